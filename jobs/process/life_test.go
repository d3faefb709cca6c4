package process

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"zorilla/internal/stall"
	"zorilla/jobs/work"
)

func TestLife(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	exit := func(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
	const killed = syscall.WaitStatus(9)
	for name, c := range map[string]struct {
		events func(l *Life)
		phase  Phase
		cause  work.Cause
		code   int
		next   time.Time // zero: never
	}{
		"runs":                   {func(l *Life) { l.Tick(at(99)) }, Running, "", 125, at(100)},
		"exits":                  {func(l *Life) { l.Exited(exit(3)) }, Killing, work.Exited, 3, time.Time{}},
		"exits, gone":            {func(l *Life) { l.Exited(exit(3)); l.Gone() }, Over, work.Exited, 3, time.Time{}},
		"killed by others":       {func(l *Life) { l.Exited(killed) }, Killing, work.Signalled, 137, time.Time{}},
		"walltime":               {func(l *Life) { l.Tick(at(100)) }, Ending, work.Walltime, 124, at(105)},
		"walltime, no grace":     {func(l *Life) { l.grace = 0; l.Tick(at(100)) }, Killing, work.Walltime, 124, time.Time{}},
		"walltime, grace over":   {func(l *Life) { l.Tick(at(100)); l.Tick(at(105)) }, Killing, work.Walltime, 124, time.Time{}},
		"walltime, exits":        {func(l *Life) { l.Tick(at(100)); l.Exited(exit(0)) }, Ending, work.Walltime, 124, at(105)},
		"stop":                   {func(l *Life) { l.Stop(at(1), 7*time.Second); l.Exited(exit(2)) }, Ending, work.Stopped, 2, at(8)},
		"stop at once":           {func(l *Life) { l.Stop(at(1), 0); l.Exited(killed) }, Killing, work.Stopped, 137, time.Time{}},
		"stop, stop sooner":      {func(l *Life) { l.Stop(at(1), 9*time.Second); l.Stop(at(2), time.Second) }, Ending, work.Stopped, 125, at(3)},
		"stop, stop later":       {func(l *Life) { l.Stop(at(1), time.Second); l.Stop(at(1), time.Hour) }, Ending, work.Stopped, 125, at(2)},
		"exits, stop":            {func(l *Life) { l.Exited(exit(0)); l.Stop(at(1), time.Hour) }, Killing, work.Exited, 0, time.Time{}},
		"memory":                 {func(l *Life) { l.Exceeded(); l.Exited(killed) }, Killing, work.Memory, 137, time.Time{}},
		"stop, memory":           {func(l *Life) { l.Stop(at(1), time.Second); l.Exceeded() }, Ending, work.Stopped, 125, at(2)},
		"exits, memory":          {func(l *Life) { l.Exited(exit(0)); l.Exceeded() }, Killing, work.Exited, 0, time.Time{}},
		"disk full":              {func(l *Life) { l.Crowded(1 << 20); l.Exited(killed) }, Killing, work.Full, 137, time.Time{}},
		"disk full, tasks":       {func(l *Life) { l.Crowded(1 << 20); l.Finished() }, Over, work.Full, 137, time.Time{}},
		"stop, disk full":        {func(l *Life) { l.Stop(at(1), time.Hour); l.Crowded(1 << 20) }, Killing, work.Stopped, 125, time.Time{}},
		"exits, disk full":       {func(l *Life) { l.Exited(exit(0)); l.Crowded(1 << 20) }, Killing, work.Exited, 0, time.Time{}},
		"node lost":              {func(l *Life) { l.NodeLost(at(10)); l.Tick(at(39)) }, Running, "", 125, at(40)},
		"node lost for long":     {func(l *Life) { l.NodeLost(at(10)); l.Tick(at(40)); l.Exited(killed) }, Ending, work.Orphaned, 137, at(45)},
		"node back":              {func(l *Life) { l.NodeLost(at(10)); l.NodeBack(); l.Tick(at(40)) }, Running, "", 125, at(100)},
		"no node yet":            {func(l *Life) { l.nodeLimit = time.Second; l.alone = at(10); l.Tick(at(39)) }, Running, "", 125, at(40)},
		"no node at all":         {func(l *Life) { l.nodeLimit = time.Second; l.alone = at(10); l.Tick(at(40)); l.Exited(killed) }, Ending, work.Orphaned, 137, at(45)},
		"node there, lost":       {func(l *Life) { l.nodeLimit = time.Second; l.NodeBack(); l.NodeLost(at(10)); l.Tick(at(11)) }, Ending, work.Orphaned, 125, at(16)},
		"looks late":             {func(l *Life) { l.NodeLost(at(10)); l.Tick(at(41)) }, Running, "", 125, at(41).Add(stall.CatchUp)},
		"looks late, node back":  {func(l *Life) { l.NodeLost(at(10)); l.Tick(at(41)); l.NodeBack() }, Running, "", 125, at(100)},
		"looks late twice":       {func(l *Life) { l.NodeLost(at(10)); l.Tick(at(41)); l.Tick(at(43)) }, Ending, work.Orphaned, 125, at(48)},
		"origin silent":          {func(l *Life) { l.orphanLim = 20 * time.Second; l.OriginHeard(at(5)); l.Tick(at(24)) }, Running, "", 125, at(25)},
		"origin silent for long": {func(l *Life) { l.orphanLim = 20 * time.Second; l.OriginHeard(at(5)); l.Tick(at(25)); l.Exited(killed) }, Ending, work.Orphaned, 137, at(30)},
		"fails":                  {func(l *Life) { l.Fail(errors.New("disk full")); l.Exited(killed) }, Killing, work.Failed, 125, time.Time{}},
		"stop, fails":            {func(l *Life) { l.Stop(at(1), time.Second); l.Fail(errors.New("disk full")) }, Killing, work.Failed, 125, time.Time{}},
	} {
		l := &Life{walltime: 100 * time.Second, nodeLimit: 30 * time.Second, grace: 5 * time.Second, started: start}
		c.events(l)
		if e := l.Exit(); l.phase != c.phase || e.Cause != c.cause || e.Code != c.code || !l.Next().Equal(c.next) {
			t.Errorf("%s: phase %d, %+v, next %v", name, l.phase, e, l.Next())
		}
	}
	unlimited := &Life{started: start}
	if unlimited.Tick(at(1e9)); unlimited.phase != Running || !unlimited.Next().IsZero() {
		t.Error("a worker without limits ends by itself only")
	}
}
