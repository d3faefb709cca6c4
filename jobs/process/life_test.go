package process

import (
	"errors"
	"syscall"
	"testing"
	"time"
)

func TestLife(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	exit := func(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
	const killed = syscall.WaitStatus(9)
	for name, c := range map[string]struct {
		events func(l *life)
		phase  phase
		cause  Cause
		code   int
		next   time.Time // zero: never
	}{
		"runs":                   {func(l *life) { l.tick(at(99)) }, running, "", 125, at(100)},
		"exits":                  {func(l *life) { l.exited(exit(3)) }, killing, Exited, 3, time.Time{}},
		"exits, gone":            {func(l *life) { l.exited(exit(3)); l.gone() }, over, Exited, 3, time.Time{}},
		"killed by others":       {func(l *life) { l.exited(killed) }, killing, Signalled, 137, time.Time{}},
		"walltime":               {func(l *life) { l.tick(at(100)) }, ending, Walltime, 124, at(105)},
		"walltime, no grace":     {func(l *life) { l.grace = 0; l.tick(at(100)) }, killing, Walltime, 124, time.Time{}},
		"walltime, grace over":   {func(l *life) { l.tick(at(100)); l.tick(at(105)) }, killing, Walltime, 124, time.Time{}},
		"walltime, exits":        {func(l *life) { l.tick(at(100)); l.exited(exit(0)) }, ending, Walltime, 124, at(105)},
		"stop":                   {func(l *life) { l.stop(at(1), 7*time.Second); l.exited(exit(2)) }, ending, Stopped, 2, at(8)},
		"stop at once":           {func(l *life) { l.stop(at(1), 0); l.exited(killed) }, killing, Stopped, 137, time.Time{}},
		"stop, stop sooner":      {func(l *life) { l.stop(at(1), 9*time.Second); l.stop(at(2), time.Second) }, ending, Stopped, 125, at(3)},
		"stop, stop later":       {func(l *life) { l.stop(at(1), time.Second); l.stop(at(1), time.Hour) }, ending, Stopped, 125, at(2)},
		"exits, stop":            {func(l *life) { l.exited(exit(0)); l.stop(at(1), time.Hour) }, killing, Exited, 0, time.Time{}},
		"memory":                 {func(l *life) { l.exceeded(); l.exited(killed) }, killing, Memory, 137, time.Time{}},
		"stop, memory":           {func(l *life) { l.stop(at(1), time.Second); l.exceeded() }, ending, Stopped, 125, at(2)},
		"exits, memory":          {func(l *life) { l.exited(exit(0)); l.exceeded() }, killing, Exited, 0, time.Time{}},
		"node lost":              {func(l *life) { l.nodeLost(at(10)); l.tick(at(39)) }, running, "", 125, at(40)},
		"node lost for long":     {func(l *life) { l.nodeLost(at(10)); l.tick(at(40)); l.exited(killed) }, ending, Orphaned, 137, at(45)},
		"node back":              {func(l *life) { l.nodeLost(at(10)); l.nodeBack(); l.tick(at(40)) }, running, "", 125, at(100)},
		"origin silent":          {func(l *life) { l.orphanLim = 20 * time.Second; l.originHeard(at(5)); l.tick(at(24)) }, running, "", 125, at(25)},
		"origin silent for long": {func(l *life) { l.orphanLim = 20 * time.Second; l.originHeard(at(5)); l.tick(at(25)); l.exited(killed) }, ending, Orphaned, 137, at(30)},
		"fails":                  {func(l *life) { l.fail(errors.New("disk full")); l.exited(killed) }, killing, Failed, 125, time.Time{}},
		"stop, fails":            {func(l *life) { l.stop(at(1), time.Second); l.fail(errors.New("disk full")) }, killing, Failed, 125, time.Time{}},
	} {
		l := &life{walltime: 100 * time.Second, nodeLimit: 30 * time.Second, grace: 5 * time.Second, started: start}
		c.events(l)
		if e := l.exit(); l.phase != c.phase || e.Cause != c.cause || e.Code != c.code || !l.next().Equal(c.next) {
			t.Errorf("%s: phase %d, %+v, next %v", name, l.phase, e, l.next())
		}
	}
	unlimited := &life{started: start}
	if unlimited.tick(at(1e9)); unlimited.phase != running || !unlimited.next().IsZero() {
		t.Error("a worker without limits ends by itself only")
	}
}
