package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"zorilla/jobs/cgroup"
)

// bomb forks as long as it may, and then tries again.
const bomb = `import os, time
told = False
while True:
    try:
        os.fork()
    except OSError:
        if not told:
            told = True
            os.write(1, b"full\n")
        time.sleep(0.01)
`

// inSmall is set where a test runs in a group with few processes.
const inSmall = "ZORILLA_TEST_SMALL"

// A node and its supervisors live on where there is no process more to be had, not even a
// thread of theirs: the bomb that has them all ends with its worker, and the next one runs.
func TestNoProcessMore(t *testing.T) {
	if os.Geteuid() != 0 || !hasGroups(t) {
		t.Log("only root makes a group around this")
		return
	}
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		if os.Getenv(inSmall) != "" {
			outlive(t, cfg, spec)
			return
		}
		test, way, _ := strings.Cut(t.Name(), "/")
		inSmallGroup(t, "^"+test+"$/^"+way+"$")
	})
}

// inSmallGroup runs a test again, in a group with few processes for it and all that it starts.
func inSmallGroup(t *testing.T, test string) {
	place, err := cgroup.Make("test-small-"+strconv.Itoa(os.Getpid()), cgroup.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer place.Remove()
	group, err := place.New("small", cgroup.Limits{Processes: 250})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Remove()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	enter := "echo $$ >" + filepath.Join(place.Dirs["pids"], "small", "cgroup.procs") + ` && exec "$@"`
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", enter, "sh", exe, "-test.run", test)
	cmd.Env = append(os.Environ(), inSmall+"=1")
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%.20000s", err, out)
	}
	if !place.Kill("small") {
		t.Error("something is left")
	}
}

func outlive(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
	s, next := spec("none"), spec("none")
	s.Args = []string{"/usr/bin/python3", "-c", bomb}
	next.Args = []string{"/bin/sh", "-c", "exit 3"}
	w := start(t, cfg, s)
	awaitOutput(t, w, 5)
	// One more may find no process for its supervisor, which says so: it ends somehow.
	other := spec("none")
	other.Args = next.Args
	if late, err := probed(t, cfg).Start(t.Context(), other); err == nil {
		await(t, late)
		_ = late.Close()
	}
	w.Stop(0)
	if e := await(t, w); e.Cause != Stopped {
		t.Errorf("%+v", e)
	}
	nothingOf(t, s.Root)
	if e, _, stderr := run(t, cfg, next); e.Code != 3 {
		t.Errorf("the next one: %+v %q", e, stderr)
	}
}
