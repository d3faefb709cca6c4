package walltest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"zorilla/jobs/process"
)

// A worker makes links where the directories of the next one of its job will be, by each
// thread of the launcher, one of which sees all files of the machine: nothing is made there.
func TestLinksForTheNextWorker(t *testing.T) {
	w := way{uid: -1}
	r := w.runner(t)
	for thread := 1; thread < 12; thread++ {
		dir, target := t.TempDir(), t.TempDir()
		text := fmt.Sprintf("ln -s /proc/1/task/%d/root%s %s/b; echo made; sleep 3600", thread, target, dir)
		first := w.specIn(t, filepath.Join(dir, "a"), nil, "sh", "-c", text)
		next := w.specIn(t, filepath.Join(dir, "b"), nil, "true")
		first.Group, next.Group = "job", "job"
		awaitLine(t, start(t, r, first), "made")
		if e := await(t, start(t, r, next)); e.Cause != process.Unstarted && os.Geteuid() != 0 {
			t.Errorf("%+v", e)
		}
		if all, err := os.ReadDir(target); err != nil || len(all) > 0 {
			t.Errorf("thread %d: %v %v", thread, all, err)
		}
	}
}
