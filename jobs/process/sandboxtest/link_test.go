package sandboxtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zorilla/jobs/work"
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
		if e := await(t, start(t, r, next)); e.Code != 0 { // there is no link: the base is not theirs to change
			t.Errorf("%+v", e)
		}
		if all, err := os.ReadDir(target); err != nil || len(all) > 0 {
			t.Errorf("thread %d: %v %v", thread, all, err)
		}
	}
}

// A worker can neither move the directories of another one of its job away nor put
// anything in their place, which the launcher would take for them at their end.
func TestDirectoriesOfTheNextWorkerStay(t *testing.T) {
	w := way{uid: -1}
	r := w.runner(t)
	dir := t.TempDir()
	next := w.specIn(t, filepath.Join(dir, "b"), nil, "sh", "-c", "echo runs; sleep 3600")
	text := fmt.Sprintf("cd %s; mv b x 2>&1 && echo moved; mv b/work x 2>&1 && echo moved; mkdir c 2>&1 && echo made; ln -s / l 2>&1 && echo linked; rmdir b/tmp 2>&1 && echo removed; echo tried; sleep 3600", dir)
	first := w.specIn(t, filepath.Join(dir, "a"), nil, "sh", "-c", text)
	first.Group, next.Group = "job", "job"
	awaitLine(t, start(t, r, next), "runs")
	tries := start(t, r, first)
	awaitLine(t, tries, "tried")
	out := "\n" + output(t, tries, work.Stdout)
	for _, what := range []string{"moved", "made", "linked", "removed"} {
		if strings.Contains(out, "\n"+what+"\n") {
			t.Errorf("a worker has %s something in the base: %q", what, out)
		}
	}
}
