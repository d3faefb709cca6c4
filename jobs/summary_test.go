package jobs_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
)

// A summary says what lists tell of a job, whatever its workers did, and does not grow
// with it.
func TestSummary(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	st := jobs.Status{
		ID: "k7f3q@zeb2a", Origin: "zeb2a", State: jobs.Failed, Reason: "rank 1 ended with 3", ExitCode: 3, Submitted: at, Started: at.Add(1), Ended: at.Add(2),
		Spec:    jobs.Spec{Name: "pi", Args: []string{"./pi", strings.Repeat("x", 600), "more"}, Min: 3, Max: 5},
		Damaged: []string{"rank 0: standard output", "rank 2: too"}, Size: 9, Forgotten: at.Add(3), Brief: true, LastKnown: true,
		Array: &jobs.ArrayStatus{Tasks: 4, Done: 2},
	}
	for _, state := range []jobs.WorkerState{jobs.WorkerWanted, jobs.WorkerPreparing, jobs.WorkerReady, jobs.WorkerRunning, jobs.WorkerEnded, jobs.WorkerEnded, jobs.WorkerLost, jobs.WorkerStopped} {
		st.Workers = append(st.Workers, jobs.WorkerStatus{State: state})
	}
	want := jobs.Summary{
		ID: "k7f3q@zeb2a", Origin: "zeb2a", Name: "pi", Args: []string{"./pi", strings.Repeat("x", 508)}, State: jobs.Failed, Reason: "rank 1 ended with 3", ExitCode: 3,
		Submitted: at, Started: at.Add(1), Ended: at.Add(2), Min: 3, Max: 5, Wanted: st.Spec.Workers(), Count: jobs.WorkerCount{All: 8, Active: 3, Ended: 2, Stuck: 2},
		Array: st.Array, Damage: "rank 0: standard output", Size: 9, Forgotten: at.Add(3), Brief: true, LastKnown: true,
	}
	if got := st.Summary(); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	rigid := jobs.Status{Spec: jobs.Spec{Args: []string{"hostname"}, Min: 2, Max: 2}}
	if got := rigid.Summary(); !got.Rigid || got.Wanted != 2 || len(got.Args) != 1 {
		t.Errorf("a rigid job: %+v", got)
	}
}

// Summaries are in the order of the statuses that they are of.
func TestSummariesInOrder(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var list []jobs.Status
	for _, state := range []jobs.State{jobs.Running, jobs.Completed, jobs.Pending} {
		for i := range 3 {
			list = append(list, jobs.Status{ID: jobs.ID(rune('a' + i)), State: state, Submitted: at.Add(time.Duration(i/2) * time.Hour)})
		}
	}
	for i := range list {
		for k := range list {
			if got, want := jobs.SummariesInOrder(list[i].Summary(), list[k].Summary()), jobs.InOrder(list[i], list[k]); got != want {
				t.Errorf("%+v, %+v: got %d, want %d", list[i], list[k], got, want)
			}
		}
	}
}
