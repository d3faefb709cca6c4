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
		"stop":                   {func(l *Life) { l.Stop(at(1), 0, 7*time.Second); l.Exited(exit(2)) }, Ending, work.Stopped, 2, at(8)},
		"stop at once":           {func(l *Life) { l.Stop(at(1), 0, 0); l.Exited(killed) }, Killing, work.Stopped, 137, time.Time{}},
		"stop, stop sooner":      {func(l *Life) { l.Stop(at(1), 0, 9*time.Second); l.Stop(at(2), 0, time.Second) }, Ending, work.Stopped, 125, at(3)},
		"stop, stop later":       {func(l *Life) { l.Stop(at(1), 0, time.Second); l.Stop(at(1), 0, time.Hour) }, Ending, work.Stopped, 125, at(2)},
		"exits, stop":            {func(l *Life) { l.Exited(exit(0)); l.Stop(at(1), 0, time.Hour) }, Killing, work.Exited, 0, time.Time{}},
		"memory":                 {func(l *Life) { l.Exceeded(); l.Exited(killed) }, Killing, work.Memory, 137, time.Time{}},
		"stop, memory":           {func(l *Life) { l.Stop(at(1), 0, time.Second); l.Exceeded() }, Ending, work.Stopped, 125, at(2)},
		"exits, memory":          {func(l *Life) { l.Exited(exit(0)); l.Exceeded() }, Killing, work.Exited, 0, time.Time{}},
		"disk full":              {func(l *Life) { l.Crowded(1 << 20); l.Exited(killed) }, Killing, work.Full, 137, time.Time{}},
		"disk full, tasks":       {func(l *Life) { l.Crowded(1 << 20); l.Finished() }, Over, work.Full, 137, time.Time{}},
		"stop, disk full":        {func(l *Life) { l.Stop(at(1), 0, time.Hour); l.Crowded(1 << 20) }, Killing, work.Stopped, 125, time.Time{}},
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
		"stop, fails":            {func(l *Life) { l.Stop(at(1), 0, time.Second); l.Fail(errors.New("disk full")) }, Killing, work.Failed, 125, time.Time{}},
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

// A program hears of its end once: before its walltime, or when it is stopped, whichever comes first.
func TestNotice(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	const sec = time.Second
	type event func(l *Life)
	tick := func(s int) event { return func(l *Life) { l.Tick(at(s)) } }
	stop := func(s int, notice, grace time.Duration) event { return func(l *Life) { l.Stop(at(s), notice, grace) } }
	exit := func(l *Life) { l.Exited(syscall.WaitStatus(3 << 8)) }
	lost := func(l *Life) { l.NodeLost(at(2)) }
	for name, c := range map[string]struct {
		events []event
		told   int // how often it gets its signal
		phase  Phase
		cause  work.Cause
		code   int
		next   time.Time // zero: never
	}{
		"runs":                         {[]event{tick(79)}, 0, Running, "", 125, at(80)},
		"walltime is near":             {[]event{tick(80), tick(81)}, 1, Running, "", 125, at(100)},
		"walltime is near, exits":      {[]event{tick(80), exit}, 1, Killing, work.Exited, 3, time.Time{}},
		"walltime":                     {[]event{tick(80), tick(100)}, 1, Ending, work.Walltime, 124, at(105)},
		"walltime, looks late":         {[]event{tick(100)}, 0, Ending, work.Walltime, 124, at(105)},
		"stop":                         {[]event{stop(1, time.Hour, 7*sec)}, 1, Noticed, work.Stopped, 125, at(21)},
		"stop, less notice":            {[]event{stop(1, 9*sec, 7*sec)}, 1, Noticed, work.Stopped, 125, at(10)},
		"stop, notice over":            {[]event{stop(1, 9*sec, 7*sec), tick(10)}, 1, Ending, work.Stopped, 125, at(17)},
		"stop, grace over":             {[]event{stop(1, 9*sec, 7*sec), tick(10), tick(17)}, 1, Killing, work.Stopped, 125, time.Time{}},
		"stop, exits":                  {[]event{stop(1, 9*sec, 7*sec), exit, tick(2)}, 1, Ending, work.Stopped, 3, at(9)},
		"stop, exits, gone":            {[]event{stop(1, 9*sec, 7*sec), exit, (*Life).Gone}, 1, Over, work.Stopped, 3, time.Time{}},
		"stop twice":                   {[]event{stop(1, 9*sec, 7*sec), stop(2, 9*sec, 7*sec)}, 1, Noticed, work.Stopped, 125, at(10)},
		"stop, stop sooner":            {[]event{stop(1, 9*sec, 7*sec), stop(2, 2*sec, sec), tick(4)}, 1, Ending, work.Stopped, 125, at(5)},
		"stop, stop at once":           {[]event{stop(1, 9*sec, 7*sec), stop(2, 0, 7*sec)}, 1, Ending, work.Stopped, 125, at(9)},
		"stop at once":                 {[]event{stop(1, 0, 7*sec)}, 0, Ending, work.Stopped, 125, at(8)},
		"stop at once, stop":           {[]event{stop(1, 0, 7*sec), stop(2, 9*sec, 7*sec)}, 0, Ending, work.Stopped, 125, at(8)},
		"walltime is near, stop":       {[]event{tick(80), stop(90, time.Hour, 7*sec)}, 1, Noticed, work.Stopped, 125, at(100)},
		"walltime is near, stop, over": {[]event{tick(80), stop(90, time.Hour, 7*sec), tick(100)}, 1, Ending, work.Stopped, 125, at(107)},
		"stop, walltime is near":       {[]event{stop(79, time.Hour, 7*sec), tick(80), tick(81)}, 1, Noticed, work.Stopped, 125, at(99)},
		"exits, stop":                  {[]event{exit, stop(1, time.Hour, 7*sec)}, 0, Killing, work.Exited, 3, time.Time{}},
		"exits, walltime is near":      {[]event{exit, tick(80)}, 0, Killing, work.Exited, 3, time.Time{}},
		"stop, memory":                 {[]event{stop(1, time.Hour, sec), (*Life).Exceeded}, 1, Killing, work.Stopped, 125, time.Time{}},
		"stop, output":                 {[]event{stop(1, time.Hour, sec), (*Life).Overflowed}, 1, Killing, work.Stopped, 125, time.Time{}},
		"stop, files":                  {[]event{stop(1, time.Hour, sec), (*Life).Overfilled}, 1, Killing, work.Stopped, 125, time.Time{}},
		"stop, node lost":              {[]event{stop(1, time.Hour, sec), lost, tick(12)}, 1, Ending, work.Stopped, 125, at(17)},
		"node lost":                    {[]event{lost, tick(12)}, 0, Ending, work.Orphaned, 125, at(17)},
	} {
		l := NewLife(&Spec{Walltime: 100 * sec, NodeLimit: 10 * sec, Rank: Rank{Signal: 10, Notice: 20 * sec}}, 5*sec)
		l.Begin(start)
		l.NodeBack()
		told := 0
		for _, happens := range append(c.events, func(*Life) {}) {
			if happens(l); l.Signals() {
				told++
			}
		}
		if e := l.Exit(); told != c.told || l.phase != c.phase || e.Cause != c.cause || e.Code != c.code || !l.Next().Equal(c.next) {
			t.Errorf("%s: told %d times, phase %d, %+v, next %v", name, told, l.phase, e, l.Next().Sub(start))
		}
	}
}

// Tasks have a walltime each, of which they hear; the worker that runs them is stopped at once.
func TestTasksHaveNoNotice(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	l := NewLife(&Spec{Walltime: time.Minute, Tasks: &TaskSpec{}, Rank: Rank{Signal: 10, Notice: time.Second}}, time.Second)
	l.Begin(start)
	l.NodeBack()
	l.Tick(start.Add(59 * time.Second))
	l.Stop(start.Add(time.Minute), time.Second, time.Second)
	if l.Signals() || l.Phase() != Ending {
		t.Errorf("phase %d", l.Phase())
	}
}
