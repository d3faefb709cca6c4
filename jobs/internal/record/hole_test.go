package record

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// table is of an array whose ranks 0 and 1 have all tasks they want.
func table(t *testing.T) *TaskTable {
	t.Helper()
	spec := jobs.Spec{Min: 1, Max: 2, Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: 100, Step: 1}}}}
	return newTaskTable(&spec)
}

// does has a rank do so many tasks of those that it is given.
func does(t *TaskTable, rank, tasks, code int, took time.Duration) (done int) {
	ra := jobs.RankAttempt{Rank: rank, Attempt: 1}
	for range tasks {
		if l := t.Leases[rank]; l == nil || l.Left == 0 {
			t.lease(ra, t.Choose(rank, 2))
		}
		l := t.Leases[rank]
		if l == nil || l.Left == 0 {
			return done
		}
		t.ended(ra, []process.TaskResult{{Place: l.queue[0].From, Code: code, Took: took}})
		done++
	}
	return done
}

// A rank whose tasks fail at once, one after the other, is given no more where another one's
// succeed, and only there: else the program is to blame.
func TestHole(t *testing.T) {
	tt := table(t)
	if n := does(tt, 0, 20, 1, time.Millisecond); n != 20 || tt.Hole(0) {
		t.Errorf("alone it has done %d, a hole: %v", n, tt.Hole(0))
	}
	does(tt, 1, 1, 0, time.Millisecond)
	if n := does(tt, 0, 20, 1, time.Millisecond); n > 1 || !tt.Hole(0) || tt.Hole(1) {
		t.Errorf("beside one that succeeds it does %d more, a hole: %v, the other: %v", n, tt.Hole(0), tt.Hole(1))
	}
	for name, c := range map[string]struct {
		code int
		took time.Duration
	}{"slow failures": {1, 2 * time.Second}, "success": {0, time.Millisecond}} {
		tt := table(t)
		does(tt, 1, 1, 0, time.Millisecond)
		does(tt, 0, longRow-1, 1, time.Millisecond)
		does(tt, 0, 1, c.code, c.took)
		does(tt, 0, longRow-1, 1, time.Millisecond)
		if tt.Hole(0) {
			t.Errorf("%s between: it is a hole", name)
		}
	}
	// Until it is known it gets one at a time.
	tt = table(t)
	does(tt, 1, 3, 0, time.Millisecond)
	does(tt, 0, 2, 1, time.Millisecond)
	if r := tt.Choose(0, 2); len(r) != 1 || r[0].Count != 1 {
		t.Errorf("after two failures it gets %+v", r)
	}
}
