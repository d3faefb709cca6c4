package testnet

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/journal"
)

// A node that said it would be away, and comes back without what it knew, is not waited for as
// long as it said, since the overlay tells its origins that it is back. One that stays away is,
// and one that is gone again.
func TestOriginsHearWhoIsBack(t *testing.T) {
	for name, is := range map[string]struct{ back, gone bool }{"away": {}, "back": {back: true}, "gone again": {back: true, gone: true}} {
		t.Run(name, func(t *testing.T) {
			wholeNodes(t, 1, []int{2}, func(t *nodesTest) {
				id := t.submit(0, rigid(4, "sleep", "1h"))
				t.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
				time.Sleep(10 * time.Second)
				if err := t.Leave(1); err != nil {
					t.Fatal(err)
				}
				m := t.list[1]
				m.runner.Kill()
				m.journal = journal.NewMemory()
				if err := os.RemoveAll(filepath.Join(m.state, "work")); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				if is.back {
					if err := t.Restart(1); err != nil {
						t.Fatal(err)
					}
				}
				if is.gone {
					time.Sleep(5 * time.Second) // the origin has heard of its return
					t.Crash(1)
				}
				st := t.await(0, id, time.Hour, func(st jobs.Status) bool { return st.State.Final() })
				if waited := time.Since(begun); st.State != jobs.NodeFail || (is.back && !is.gone) != (waited < time.Minute) {
					t.Errorf("after %v the job is %s: %s", waited, st.State, st.Reason)
				}
			})
		})
	}
}
