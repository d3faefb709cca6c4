package process

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/needs"
	"zorilla/jobs/cgroup"
	"zorilla/jobs/work"
)

// bomb is a helper that forks as long as it may, and then tries again.
func bomb() int {
	for told := false; ; {
		switch pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); {
		case errno == 0 && pid == 0:
			for { // nothing of the runtime works here
				_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		case errno != 0 && !told:
			told = true
			fmt.Println("full")
		case errno != 0:
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 10e6}, nil)
		}
	}
}

// inSmall is set where a test runs in a group with few processes: to its directory.
const inSmall = "ZORILLA_TEST_SMALL"

// A node and its supervisors live on where there is no process more to be had, not even a
// thread of theirs: the bomb that has them all ends with its worker, and the next one runs.
func TestNoProcessMore(t *testing.T) {
	needs.Root(t) // only root makes a group around this
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
	cmd.Env = append(os.Environ(), inSmall+"="+filepath.Join(place.Dirs["pids"], "small"))
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%.20000s", err, out)
	}
	killWithin(filepath.Join(place.Dirs["pids"], "small")) // supervisors without workers; bombs, if it has failed
}

// killWithin kills what is in a control group and those within it, which it removes.
func killWithin(dir string) {
	_ = os.WriteFile(filepath.Join(dir, "pids.max"), []byte("0"), 0)
	var dirs []string
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, path)
			b, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			for _, f := range strings.Fields(string(b)) {
				if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
		}
		return nil
	})
	for _, d := range slices.Backward(dirs[min(1, len(dirs)):]) {
		_ = unix.Rmdir(d)
	}
}

func outlive(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
	s, next := spec("bomb"), spec("none")
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
	w.Stop(0, 0)
	if e := await(t, w); e.Cause != work.Stopped {
		t.Errorf("%+v", e)
	}
	nothingOf(t, s.Root)
	// Those that have ended count until all are reaped, and a supervisor needs some threads.
	for end := time.Now().Add(deadline); ; {
		b, err := os.ReadFile(filepath.Join(os.Getenv(inSmall), "pids.current"))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && n < 125 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%d processes are left: %v", n, err)
		}
		_, _ = unix.Poll(nil, 10)
	}
	if e, _, stderr := run(t, cfg, next); e.Code != 3 {
		t.Errorf("the next one: %+v %q", e, stderr)
	}
}
