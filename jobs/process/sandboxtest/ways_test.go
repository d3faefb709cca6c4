package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/needs"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// deadline is how long a test waits for what should come at once.
const deadline = 30 * time.Second

// strangerUID is a user that owns nothing, another one in each process of tests: the kernel
// counts processes by user, so that bombs of others would leave workers none.
var strangerUID = 1_000_000 + os.Getpid()

// TestMain makes the test binary a supervisor when it is started as one.
func TestMain(m *testing.M) {
	process.Main()
	os.Exit(m.Run())
}

// way is one of those in which workers run.
type way struct {
	uid   int // -1 = that of the node, which is this process
	basic bool
}

func (w way) String() string {
	text := "as the node's user"
	if w.uid >= 0 {
		text = "as another user"
	}
	if w.basic {
		return text + " without namespaces"
	}
	return text
}

// eachWay runs a test for workers with and without namespaces, as the user of the test
// and, where that is root, as another user.
func eachWay(t *testing.T, test func(t *testing.T, w way)) {
	needs.Programs(t, "python3") // which most attacks are written in
	users := []int{-1}
	if os.Geteuid() == 0 {
		users = append(users, strangerUID)
	}
	for _, uid := range users {
		for _, basic := range []bool{false, true} {
			w := way{uid, basic}
			t.Run(w.String(), func(t *testing.T) { test(t, w) })
		}
	}
}

// enforced is what this machine enforces; it is found once.
var enforced = sync.OnceValues(func() ([]string, error) {
	r := process.New(process.Config{})
	err := r.Probe(context.Background())
	return r.Enforces(), err
})

// runner is a node's runner for workers of that way.
func (w way) runner(t *testing.T) *process.Runner {
	t.Helper()
	names, err := enforced()
	if err != nil || !slices.Contains(names, "landlock") || !slices.Contains(names, "seccomp") || !w.basic && !slices.Contains(names, "namespaces") {
		t.Fatalf("what this test shows cannot be shown on this machine: %v, %v", names, err)
	}
	r := process.New(process.Config{Basic: w.basic, Grace: 100 * time.Millisecond, Log: zerolog.New(complain{t})})
	if err := r.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// complain makes a test fail if a supervisor has something to say.
type complain struct{ t testing.TB }

func (c complain) Write(p []byte) (int, error) {
	c.t.Errorf("log: %s", p)
	return len(p), nil
}

// spec is that of a command with some files in its work directory.
func (w way) spec(t *testing.T, files map[string][]byte, args ...string) process.Spec {
	t.Helper()
	return w.specIn(t, filepath.Join(opened(t, t.TempDir()), "root"), files, args...)
}

// specIn is spec with a root that does not exist yet.
func (w way) specIn(t *testing.T, root string, files map[string][]byte, args ...string) process.Spec {
	t.Helper()
	if err := process.MakeRoot(root, "test"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.CleanRoot(root, nil); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(root); err == nil {
			t.Errorf("%s is left", root)
		}
	})
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(root, "work", name), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return process.Spec{Root: root, Args: args, UID: w.uid, GID: w.uid, Env: []string{
		"PATH=/usr/bin:/bin", "TMPDIR=" + filepath.Join(root, "tmp"), "PYTHONDONTWRITEBYTECODE=1"}}
}

// opened lets other users pass to what a test has made.
func opened(t *testing.T, dir string) string {
	t.Helper()
	for d := dir; d != "/tmp" && len(d) > 1 && os.Geteuid() == 0; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// start starts a worker.
func start(t *testing.T, r *process.Runner, spec process.Spec) process.Worker {
	t.Helper()
	w, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Stop(0, 0)
		await(t, w)
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func await(t *testing.T, w process.Worker) work.Exit {
	t.Helper()
	select {
	case <-w.Done():
	case <-time.After(deadline):
		t.Fatal("the worker does not end")
	}
	return w.Exit()
}

// run is a whole worker, and all that it has written.
func run(t *testing.T, r *process.Runner, spec process.Spec) (work.Exit, string) {
	t.Helper()
	w := start(t, r, spec)
	e := await(t, w)
	return e, output(t, w, work.Stdout) + output(t, w, work.Stderr)
}

func output(t *testing.T, w process.Worker, s work.Stream) string {
	t.Helper()
	var all bytes.Buffer
	buf := make([]byte, 4096)
	for {
		n, err := w.ReadOutput(s, int64(all.Len()), buf)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return all.String()
		}
		all.Write(buf[:n])
	}
}

// awaitLine waits until a worker has written a line, and returns false if it ended first.
func awaitLine(t *testing.T, w process.Worker, line string) bool {
	t.Helper()
	late := time.After(deadline)
	for {
		changed := w.Changed()
		if strings.Contains("\n"+output(t, w, work.Stdout), "\n"+line+"\n") {
			return true
		}
		select {
		case <-changed:
		case <-w.Done():
			return false
		case <-late:
			t.Fatalf("the worker does not write %q", line)
		}
	}
}

// nothingNamed makes sure that no process has a text in its command line.
func nothingNamed(t *testing.T, text string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		b, err := os.ReadFile(file)
		if err == nil && bytes.Contains(b, []byte(text)) {
			t.Errorf("%s is left: %q", filepath.Dir(file), b)
		}
	}
}

// mark is a text that only one test has in its command lines.
func mark(t *testing.T) string {
	return fmt.Sprintf("sandboxtest-%d-%x", os.Getpid(), t.Name()[len(t.Name())/2:])
}
