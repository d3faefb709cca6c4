package process

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"zorilla/jobs/launch"
	"zorilla/jobs/proc"
	"zorilla/jobs/remover"
	"zorilla/jobs/work"
)

// deadline is how long a test waits for an event that should come at once.
const deadline = 2 * time.Minute

// TestMain makes the test binary a supervisor, or one of the helpers below,
// when it is started as such.
func TestMain(m *testing.M) {
	Main()
	if len(os.Args) > 1 {
		if mode, ok := strings.CutPrefix(os.Args[1], "helper:"); ok {
			os.Exit(helper(mode, os.Args[2:]))
		}
	}
	code := m.Run()
	if r, err := enforced(); err == nil {
		r.groups.Remove()
	}
	os.Exit(code)
}

func helper(mode string, args []string) int {
	switch mode {
	case "hog": // touches so many MiB at once, and waits if it is told so
		n, _ := strconv.Atoi(args[0])
		b := make([]byte, n<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		if len(args) > 1 {
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
		fmt.Println("touched", n, b[len(b)/2])
	case "attack":
		return attack(args)
	case "settings":
		return setItself(args)
	case "network":
		return useNetwork(args)
	case "stick":
		return stick(args)
	case "leave":
		return leaveProject(args)
	case "bomb":
		return bomb()
	case "send":
		return sendAll()
	case "hoard":
		return hoard(args)
	case "flood": // writes so many bytes of the pattern
		n, _ := strconv.Atoi(args[0])
		if _, err := io.CopyN(os.Stdout, newPattern(), int64(n)); err != nil {
			return 1
		}
	case "node": // runs a worker in args[0] until it is killed
		r := New(Config{Grace: 100 * time.Millisecond})
		if r.cfg.Basic = len(args) > 3; !r.cfg.Basic {
			if err := r.Probe(context.Background()); err != nil {
				fmt.Println(err)
				return 1
			}
		}
		limit, err := time.ParseDuration(args[2])
		if err != nil {
			return 2
		}
		spec := Spec{Root: args[0], Args: []string{"/bin/sh", "-c", args[1]}, NodeLimit: limit, UID: -1}
		w, err := r.Start(context.Background(), spec)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		for {
			changed := w.Changed()
			if n, _ := w.Written(); n > 0 {
				fmt.Println("running")
			}
			<-changed
		}
	}
	return 0
}

// pattern is an endless stream in which no two places within a mebibyte look
// alike.
type pattern struct {
	block []byte
	pos   int
}

func newPattern() *pattern {
	block := make([]byte, 1<<20-3) // prime, so that no buffer's length divides it
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(block)
	return &pattern{block: block}
}

func (p *pattern) Read(b []byte) (int, error) {
	n := copy(b, p.block[p.pos:])
	p.pos = (p.pos + n) % len(p.block)
	return n, nil
}

// follows reports whether b is what comes next, and goes on behind it.
func (p *pattern) follows(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(p.block)-p.pos)
		if !bytes.Equal(b[:n], p.block[p.pos:p.pos+n]) {
			return false
		}
		b, p.pos = b[n:], (p.pos+n)%len(p.block)
	}
	return true
}

// newRoot makes a root with an empty work directory.
func newRoot(t testing.TB) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	if err := MakeRoot(root, "test"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // inputs of tasks are not writable
		if err := remover.Remove(root, nil); err != nil {
			t.Error(err)
		}
	})
	return root
}

// script is the spec of a shell script in a new root.
func script(t testing.TB, text string) Spec {
	return Spec{Root: newRoot(t), Args: []string{"/bin/sh", "-c", text}, UID: -1}
}

// helperSpec is the spec of a helper of this binary in a new root.
func helperSpec(t testing.TB, mode string, args ...string) Spec {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Root: newRoot(t), Args: append([]string{exe, "helper:" + mode}, args...), Sight: launch.Sight{Expose: []string{exe}}, UID: -1}
}

// complain makes a test fail if a supervisor has something to say.
type complain struct{ t testing.TB }

func (c complain) Write(p []byte) (int, error) {
	c.t.Errorf("log: %s", p)
	return len(p), nil
}

func start(t testing.TB, cfg Config, spec Spec) Worker {
	t.Helper()
	cfg.Log = zerolog.New(complain{t})
	w, err := probed(t, cfg).Start(t.Context(), spec)
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

// enforced is what this machine enforces; it is found once.
var enforced = sync.OnceValues(func() (*Runner, error) {
	r := New(Config{Groups: fmt.Sprint("test-", os.Getpid())})
	return r, r.Probe(context.Background())
})

// probed returns a runner that knows what this machine enforces.
func probed(t testing.TB, cfg Config) *Runner {
	t.Helper()
	r := New(cfg)
	if cfg.Executable != "" {
		return r
	}
	if cfg.Work != "" {
		if err := r.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r
	}
	known, err := enforced()
	if err != nil {
		t.Fatal(err)
	}
	r.groups = known.groups
	r.enforces = slices.DeleteFunc(slices.Clone(known.enforces), func(s string) bool { return cfg.Basic && s == Namespaces })
	return r
}

func await(t testing.TB, w Worker) work.Exit {
	t.Helper()
	select {
	case <-w.Done():
	case <-time.After(deadline):
		t.Fatal("the worker does not end")
	}
	return w.Exit()
}

// run starts a worker, waits for its end, and returns all of its output.
func run(t testing.TB, cfg Config, spec Spec) (e work.Exit, stdout, stderr string) {
	t.Helper()
	w := start(t, cfg, spec)
	e = await(t, w)
	return e, output(t, w, work.Stdout), output(t, w, work.Stderr)
}

func output(t testing.TB, w Worker, s work.Stream) string {
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

// awaitOutput waits until a worker has written so many bytes to stdout.
func awaitOutput(t testing.TB, w Worker, bytes int64) {
	t.Helper()
	awaitBoth(t, w, bytes, 0)
}

func awaitBoth(t testing.TB, w Worker, stdout, stderr int64) {
	t.Helper()
	late := time.After(deadline)
	for {
		changed := w.Changed()
		if o, e := w.Written(); o >= stdout && e >= stderr {
			return
		}
		select {
		case <-changed:
		case <-w.Done():
			t.Fatalf("the worker ended first: %+v, %q", w.Exit(), output(t, w, work.Stderr))
		case <-late:
			t.Fatal("the worker does not write")
		}
	}
}

// pids reads process numbers that a script wrote to a file in its work
// directory, and identifies them.
func pids(t testing.TB, root, name string) []proc.ID {
	t.Helper()
	f, err := os.Open(filepath.Join(root, workDir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []proc.ID
	for in := bufio.NewScanner(f); in.Scan(); {
		pid, err := strconv.Atoi(in.Text())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, outside(t, root, pid))
	}
	return all
}

// outside identifies a process of a root by the number that it has for itself.
func outside(t testing.TB, root string, pid int) proc.ID {
	t.Helper()
	var rec record
	if err := load(root, recordEntry, &rec); err != nil {
		t.Fatal(err)
	}
	for _, p := range proc.Descendants(rec.Launcher.PID) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			rest, ok := strings.CutPrefix(line, "NSpid:")
			if f := strings.Fields(rest); ok && f[len(f)-1] == strconv.Itoa(pid) {
				id, err := proc.Identify(p)
				if err != nil {
					t.Fatal(err)
				}
				return id
			}
		}
	}
	t.Fatalf("no process of %s has the number %d", root, pid)
	return proc.ID{}
}

func mustBeGone(t testing.TB, all []proc.ID) {
	t.Helper()
	if len(all) == 0 {
		t.Error("no process was recorded")
	}
	for _, p := range all {
		if p.Alive() {
			t.Errorf("process %d is still alive", p.PID)
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}

// awaitRecord waits for the end of a supervisor that is nobody's child here,
// and returns the exit record.
func awaitRecord(t testing.TB, root string) exitRecord {
	t.Helper()
	var r record
	if err := load(root, recordEntry, &r); err != nil {
		t.Fatal(err)
	}
	mustEnd(t, r.Supervisor)
	var rec exitRecord
	if err := load(root, exitEntry, &rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

// awaitEnd waits for the end of any process.
func mustEnd(t testing.TB, p proc.ID) {
	t.Helper()
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	// A zombie's other threads may still hold its sockets: only the descriptor
	// tells when all of it is gone.
	if now, err := proc.Identify(p.PID); err != nil || now != p {
		return
	}
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(end).Milliseconds()))
		if n > 0 || (err != nil && err != unix.EINTR) {
			return
		}
	}
	t.Fatalf("process %d does not end", p.PID)
}

// realPath follows the links in a path.
func realPath(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
