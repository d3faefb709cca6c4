package process

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"zorilla/jobs/proc"
	"zorilla/jobs/work"
)

// runaway is a script that leaves processes behind in every way: in the
// background, in a session of its own, forked twice, deaf to SIGTERM, and
// with the output pipe still open. It writes their numbers to left.
const runaway = `
trap '' TERM
sleep 1001 & echo $! >> left
setsid sh -c 'echo $$ >> left; exec sleep 1002' &
(setsid sh -c 'trap "" TERM HUP; (echo $$ >> left; while :; do sleep 1003; done) & exec sleep 1004' &)
while [ $(wc -l < left) -lt 3 ]; do sleep 0.01; done
echo started
`

func TestLeftoversAreKilled(t *testing.T) {
	for name, c := range map[string]struct {
		end   string // of the script
		limit func(*Spec)
		stop  bool
		cause work.Cause
		code  int
	}{
		"main exits":   {end: "exit 5", cause: work.Exited, code: 5},
		"main crashes": {end: "kill -ABRT $$", cause: work.Signalled, code: 134},
		"stopped":      {end: "wait", stop: true, cause: work.Stopped, code: 137},
		"walltime":     {end: "wait", limit: func(s *Spec) { s.Walltime = 1500 * time.Millisecond }, cause: work.Walltime, code: 124},
	} {
		t.Run(name, func(t *testing.T) {
			spec := script(t, runaway+"read line; "+c.end)
			spec.Stdin = true
			if c.limit != nil {
				c.limit(&spec)
			}
			w := start(t, Config{Grace: 20 * time.Millisecond}, spec)
			awaitOutput(t, w, 8)
			left := pids(t, spec.Root, "left")
			if _, err := w.Stdin().Write([]byte("go on\n")); err != nil {
				t.Fatal(err)
			}
			if c.stop {
				w.Stop(0, 20*time.Millisecond)
			}
			e := await(t, w)
			if e.Cause != c.cause || e.Code != c.code || output(t, w, work.Stdout) != "started\n" {
				t.Errorf("%+v %q", e, output(t, w, work.Stdout))
			}
			mustBeGone(t, left)
		})
	}
}

func TestSupervisorIsKilled(t *testing.T) {
	spec := script(t, `sleep 1005 & echo $! > left; echo $$ >> left; (setsid sleep 1006 & echo $! >> left); echo started; wait`)
	spec.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + filepath.Join(spec.Root, tmpDir)}
	w := start(t, Config{}, spec)
	awaitOutput(t, w, 8)
	var rec record
	if err := load(spec.Root, recordEntry, &rec); err != nil {
		t.Fatal(err)
	}
	left := pids(t, spec.Root, "left")
	if err := syscall.Kill(rec.Supervisor.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	e := await(t, w)
	if e.Cause != work.Lost || e.Code != 125 || !strings.Contains(e.Detail, "killed") {
		t.Errorf("%+v", e)
	}
	if out := output(t, w, work.Stdout); out != "started\n" {
		t.Errorf("output %q", out)
	}
	mustBeGone(t, append(left, rec.Launcher))
	mustEnd(t, rec.Supervisor)
	if err := CleanRoot(spec.Root, nil); err != nil {
		t.Error(err)
	}
}

func TestSupervisorIsAskedToEnd(t *testing.T) {
	spec := script(t, `trap 'exit 9' TERM; echo started; while :; do sleep 0.01; done`)
	w := start(t, Config{}, spec)
	awaitOutput(t, w, 8)
	var rec record
	if err := load(spec.Root, recordEntry, &rec); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(rec.Supervisor.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e := await(t, w); e.Cause != work.Stopped || e.Code != 9 {
		t.Errorf("%+v", e)
	}
}

// nodeOf starts a node in a process of its own and returns it when its worker
// runs.
func nodeOf(t *testing.T, root, text string, limit time.Duration, more ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	node := exec.Command(exe, append([]string{"helper:node", root, text, limit.String()}, more...)...)
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = node.Process.Kill()
		_ = node.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "running\n" {
		t.Fatal(line, err)
	}
	return node
}

func TestNodeIsKilled(t *testing.T) {
	root := newRoot(t)
	node := nodeOf(t, root, runaway+"wait", time.Second)
	left := pids(t, root, "left")
	killed := time.Now()
	_ = node.Process.Kill()
	_ = node.Wait()
	rec := awaitRecord(t, root)
	if rec.Exit.Cause != work.Orphaned || rec.Stdout != 8 {
		t.Errorf("%+v", rec)
	}
	if d := rec.Exit.Ended.Sub(killed); d < time.Second || d > 20*time.Second {
		t.Errorf("ended %v after its node, want 1 s and the grace", d)
	}
	mustBeGone(t, left)
}

func TestNodeComesBackInTime(t *testing.T) {
	root := newRoot(t)
	node := nodeOf(t, root, "echo running; exec sleep 1009", time.Second)
	_ = node.Process.Kill()
	_ = node.Wait()
	var spec Spec
	if err := loadSpec(root, &spec); err != nil {
		t.Fatal(err)
	}
	conn, err := dial(spec.terms, message{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m, err := readMessage(conn)
	if err != nil || m.Kind != kindProgress || m.Stdout == 0 {
		t.Fatalf("%+v %v", m, err)
	}
	if err := writeMessage(conn, message{Kind: kindStop}); err != nil {
		t.Fatal(err)
	}
	if rec := awaitRecord(t, root); rec.Exit.Cause != work.Stopped {
		t.Errorf("%+v", rec)
	}
}

func TestCleanRoot(t *testing.T) {
	t.Run("with a living worker", func(t *testing.T) {
		spec := script(t, runaway+"mkdir shut; touch shut/f; chmod 0 shut; echo more; wait")
		w := start(t, Config{}, spec)
		awaitOutput(t, w, 13)
		left := pids(t, spec.Root, "left")
		if err := CleanRoot(spec.Root, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(spec.Root); !os.IsNotExist(err) {
			t.Errorf("root is still there: %v", err)
		}
		mustBeGone(t, left)
	})
	t.Run("that does not exist", func(t *testing.T) {
		if err := CleanRoot(filepath.Join(t.TempDir(), "none"), nil); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("that cannot be read", func(t *testing.T) {
		root := newRoot(t)
		if err := os.WriteFile(filepath.Join(root, specEntry), []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := CleanRoot(root, nil); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("of a worker long gone", func(t *testing.T) {
		root := newRoot(t)
		id, err := proc.Identify(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		id.Start-- // another process had our number
		if err := save(root, recordEntry, record{Version: protocol, Supervisor: id, Worker: id}); err != nil {
			t.Fatal(err)
		}
		if err := CleanRoot(root, nil); err != nil {
			t.Fatal(err)
		}
	})
}

func TestMemoryLimit(t *testing.T) {
	t.Run("one process", func(t *testing.T) {
		spec := helperSpec(t, "hog", "1000")
		spec.Memory = 200e6
		e, out, _ := run(t, Config{}, spec)
		if e.Cause != work.Memory || e.Code != 137 || e.Detail != "needed more than 191 MiB of memory (--mem)" || out != "" {
			t.Fatalf("%+v %q", e, out)
		}
		if e.Peak < 200e6 {
			t.Errorf("peak %d", e.Peak)
		}
	})
	t.Run("all together", func(t *testing.T) {
		spec := helperSpec(t, "hog", "60", "wait")
		spec.Args = append([]string{"/bin/sh", "-c", `exec 3<&0; for i in 1 2 3 4; do "$@" <&3 & done; wait`, "sh"}, spec.Args...)
		spec.Stdin, spec.Memory = true, 200<<20
		e, _, _ := run(t, Config{}, spec)
		if e.Cause != work.Memory || e.Detail != "needed more than 200 MiB of memory (--mem)" {
			t.Fatalf("%+v", e)
		}
	})
	t.Run("less than the launcher", func(t *testing.T) { // which is not taken for the worker's
		if e, _, _ := run(t, Config{}, script(t, "true")); e.Code != 0 || e.Peak != 0 {
			t.Fatalf("%+v", e)
		}
	})
	t.Run("within", func(t *testing.T) {
		spec := script(t, "head -c 100000000 /dev/zero | tail -c 100000000 | wc -c") // tail holds all of it
		spec.Memory = 200e6
		if e, out, _ := run(t, Config{}, spec); e.Code != 0 || out != "100000000\n" || e.Peak < 100e6 || e.CPU <= 0 {
			t.Fatalf("%+v %q", e, out)
		}
	})
}
