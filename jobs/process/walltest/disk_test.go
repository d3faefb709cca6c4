package walltest

import (
	_ "embed"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/jobs/process"
)

//go:embed testdata/nameless.py
var nameless []byte

// fillers are the ways in which files without a name are held.
var fillers = []string{"plain", "untraceable", "temporary", "deep", "directory", "child", "thread", "first", "program", "mapped"}

// onlyRoot are those that only a node of root sees.
var onlyRoot = []string{"program", "mapped"}

// Who fills the disk with files that it has removed ends as if it had not.
func TestFilesWithoutName(t *testing.T) {
	numbers, err := json.Marshal(map[string]int{"exit": unix.SYS_EXIT})
	if err != nil {
		t.Fatal(err)
	}
	eachWay(t, func(t *testing.T, w way) {
		r := w.runner(t)
		workers := map[string]process.Worker{}
		for _, how := range fillers {
			if os.Geteuid() != 0 && slices.Contains(onlyRoot, how) {
				continue
			}
			spec := w.spec(t, map[string][]byte{"nameless.py": nameless}, "python3", "nameless.py", how)
			spec.Disk, spec.Env = 8<<20, append(spec.Env, "CALLS="+string(numbers))
			workers[how] = start(t, r, spec)
		}
		for how, worker := range workers {
			if e := await(t, worker); e.Cause != process.Disk || e.Code != 137 {
				t.Errorf("%s: %+v %s", how, e, output(t, worker, process.Stderr))
			}
		}
	})
}
