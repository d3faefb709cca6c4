package sandboxtest

import (
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

//go:embed testdata/nameless.py
var nameless []byte

// fillers are the ways in which files without a name are held.
var fillers = []string{"plain", "untraceable", "temporary", "deep", "directory", "child", "thread", "first", "program", "mapped"}

// onlyRoot are those that only a node of root sees, which may trace all processes.
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
			if slices.Contains(onlyRoot, how) && (os.Geteuid() != 0 || os.Getenv("NO_TRACING") != "") {
				continue
			}
			spec := w.spec(t, map[string][]byte{"nameless.py": nameless}, "python3", "nameless.py", how)
			spec.Disk, spec.Env = 8<<20, append(spec.Env, "CALLS="+string(numbers))
			workers[how] = start(t, r, spec)
		}
		for how, worker := range workers {
			if e := await(t, worker); e.Cause != work.Disk || e.Code != 137 {
				t.Errorf("%s: %+v %s", how, e, output(t, worker, work.Stderr))
			}
		}
	})
}

// Root of a container may not trace whom it likes: it sees what its workers hold as well.
func TestFilesWithoutNameInAContainer(t *testing.T) {
	if os.Geteuid() != 0 || os.Getenv("NO_TRACING") != "" {
		t.Log("it is not root's container")
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", exe, "-test.run", "^TestFilesWithoutName$")
	cmd.Env = append(os.Environ(), "NO_TRACING=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
