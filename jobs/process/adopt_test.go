package process

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/codec"
	"zorilla/jobs/proc"
	"zorilla/jobs/work"
)

// adopt adopts the worker of root and makes sure that it does not outlive the
// test.
func adopt(t *testing.T, root string) Worker {
	t.Helper()
	w, err := New(Config{Log: zerolog.New(complain{t})}).Adopt(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := CleanRoot(root, nil); err != nil {
			t.Error(err)
		}
	})
	return w
}

// gateText is for a script that waits for openGate.
const gateText = `until [ -e go ]; do sleep 0.01; done; `

func openGate(t *testing.T, root string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, workDir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAdoptAfterTwoKilledNodes(t *testing.T) {
	root := newRoot(t)
	node := nodeOf(t, root, `echo "$$ before"; `+gateText+`echo "$$ after"; echo trouble >&2; exit 7`, time.Hour)
	_ = node.Process.Kill()
	_ = node.Wait()

	first := adopt(t, root)
	before := output(t, first, work.Stdout)
	first.Leave()
	second := adopt(t, root)
	openGate(t, root)
	e := await(t, second)
	pid, _, _ := strings.Cut(before, " ")
	if out := output(t, second, work.Stdout); out != pid+" before\n"+pid+" after\n" {
		t.Errorf("output %q", out)
	}
	if e.Cause != work.Exited || e.Code != 7 || output(t, second, work.Stderr) != "trouble\n" {
		t.Errorf("%+v, %q", e, output(t, second, work.Stderr))
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	var rec record
	if err := load(root, recordEntry, &rec); err != nil {
		t.Fatal(err)
	}
	mustBeGone(t, []proc.ID{rec.Launcher})
	mustEnd(t, rec.Supervisor)
}

func TestAdoptWhatEndedWithoutANode(t *testing.T) {
	root := newRoot(t)
	node := nodeOf(t, root, `echo begun; `+gateText+`echo done; exit 3`, time.Hour)
	_ = node.Process.Kill()
	_ = node.Wait()
	openGate(t, root)
	awaitRecord(t, root)
	w := adopt(t, root)
	if e := await(t, w); e.Cause != work.Exited || e.Code != 3 || output(t, w, work.Stdout) != "begun\ndone\n" {
		t.Errorf("%+v %q", e, output(t, w, work.Stdout))
	}
	w.Leave()
	if again := adopt(t, root); output(t, again, work.Stdout) != "begun\ndone\n" || again.Close() != nil {
		t.Error("Leave took its output away")
	}
}

func TestAdoptedWorkerCanBeStopped(t *testing.T) {
	root := newRoot(t)
	node := nodeOf(t, root, runaway+"wait", time.Hour)
	left := pids(t, root, "left")
	_ = node.Process.Kill()
	_ = node.Wait()
	w := adopt(t, root)
	w.Stop(0, 0)
	if e := await(t, w); e.Cause != work.Stopped {
		t.Errorf("%+v", e)
	}
	mustBeGone(t, left)
}

func TestAdoptedWorkerReadsItsInputOn(t *testing.T) {
	spec := script(t, "cat")
	spec.Stdin = true
	r := New(Config{Log: zerolog.New(complain{t})})
	w, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, line := range []string{"one\n", "two, longer\n", "three\n"} {
		if n, err := w.Stdin().Offset(); err != nil || n != int64(len(want)) {
			t.Fatalf("%d bytes were passed on, %v, want %d", n, err, len(want))
		}
		if _, err := w.Stdin().Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		want += line
		w.Leave()
		w = adopt(t, spec.Root)
	}
	if err := w.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	if e := await(t, w); e.Code != 0 || output(t, w, work.Stdout) != want {
		t.Errorf("%+v %q", e, output(t, w, work.Stdout))
	}
}

// What was delivered may be gone: a new node must not read it as if it were
// there.
func TestAdoptedWorkerKnowsWhatWasDelivered(t *testing.T) {
	spec := script(t, `echo 123456789; `+gateText+`echo end`)
	w, err := New(Config{Spool: 16, Log: zerolog.New(complain{t})}).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	awaitOutput(t, w, 10)
	w.Ack(10, 0)
	openGate(t, spec.Root)
	await(t, w)
	again := adopt(t, spec.Root)
	buf := make([]byte, 100)
	if _, err := again.ReadOutput(work.Stdout, 0, buf); !errors.Is(err, ErrAcked) {
		t.Errorf("read what was delivered: %v", err)
	}
	if n, err := again.ReadOutput(work.Stdout, 10, buf); err != nil || string(buf[:n]) != "end\n" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
}

func TestNothingToAdopt(t *testing.T) {
	boot := proc.ID{PID: 1 << 30, Start: 1, Boot: "of before"}
	now, err := proc.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for want, prepare := range map[string]func(root string, spec Spec) error{
		"left no word": func(root string, spec Spec) error {
			boot := boot
			boot.Boot = now.Boot
			return errors.Join(spec.note(), save(root, recordEntry, record{Version: 1, Supervisor: boot}))
		},
		"is for another directory": func(root string, spec Spec) error {
			spec.Root += "x"
			return save(root, specEntry, stored{spec.terms, spec})
		},
		"of version 2": func(root string, spec Spec) error { spec.terms.Version = 2; return spec.note() },
		"was started anew": func(root string, spec Spec) error {
			return errors.Join(spec.note(), save(root, recordEntry, record{Version: 1, Supervisor: boot}))
		},
		"not all of its stdout is on the disk": func(root string, spec Spec) error {
			return errors.Join(spec.note(), save(root, exitEntry, exitRecord{Version: 1, Stdout: 5}))
		},
		"malformed": func(root string, spec Spec) error {
			return os.WriteFile(filepath.Join(root, specEntry), []byte("half a reco"), 0o600)
		},
	} {
		root := newRoot(t)
		spec := Spec{Root: root, Args: []string{"true"}, terms: terms{Version: protocol, Socket: filepath.Join(root, "none")}}
		if err := prepare(root, spec); err != nil {
			t.Fatal(err)
		}
		_, err := New(Config{}).Adopt(t.Context(), root)
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if err := CleanRoot(root, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestNodeWasKilledBeforeItCouldStartTheWorker(t *testing.T) {
	root := newRoot(t)
	if _, err := New(Config{}).Adopt(t.Context(), root); !errors.Is(err, ErrNotStarted) {
		t.Errorf("without a Spec: %v", err)
	}
	spec := Spec{Root: root, Args: []string{"true"}, terms: terms{Version: protocol, Socket: filepath.Join(root, "none")}}
	if err := spec.note(); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{}).Adopt(t.Context(), root); !errors.Is(err, ErrNotStarted) {
		t.Errorf("without a supervisor: %v", err)
	}
}

func TestSupervisorIsKilledWithItsNode(t *testing.T) {
	root := newRoot(t)
	node := nodeOf(t, root, runaway+"wait", time.Hour)
	var rec record
	var spec Spec
	if err := load(root, recordEntry, &rec); err != nil {
		t.Fatal(err)
	}
	_ = node.Process.Kill()
	_ = node.Wait()
	if err := syscall.Kill(rec.Launcher.PID, syscall.SIGSTOP); err != nil { // so that it cannot see to it itself
		t.Fatal(err)
	}
	if err := syscall.Kill(rec.Supervisor.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	mustEnd(t, rec.Supervisor)
	if loadSpec(root, &spec) == nil && spec.terms.Namespaces { // by the kernel; else by who comes next
		mustEnd(t, rec.Launcher)
	}
	_, err := New(Config{}).Adopt(t.Context(), root)
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "left no word") {
		t.Errorf("got %v", err)
	}
	mustBeGone(t, []proc.ID{rec.Launcher})
	mustEnd(t, rec.Supervisor)
	if err := CleanRoot(root, nil); err != nil {
		t.Error(err)
	}
}

// Without namespaces the launcher is who finds what has a session and an environment
// of its own: nobody may end it before it has.
func TestSupervisorAndNodeAreKilledWithoutNamespaces(t *testing.T) {
	root := newRoot(t)
	node := nodeOf(t, root, strings.ReplaceAll(runaway, "(setsid", "(env -i setsid")+"wait", time.Hour, "basic")
	left := pids(t, root, "left")
	_ = node.Process.Kill()
	_ = node.Wait()
	supervisor, err := proc.Identify(SupervisorOf(root))
	if err == nil {
		err = syscall.Kill(supervisor.PID, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	mustEnd(t, supervisor)
	if _, err := New(Config{}).Adopt(t.Context(), root); !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
	mustBeGone(t, left)
	nothingOf(t, root)
}

// oldSpec is Root/spec as the first version wrote it, but for the paths, and
// with a field that this version does not know.
func oldSpec(root, socket string) map[string]any {
	return map[string]any{
		"version": 1, "socket": socket, "key": "KEY", "grace": 5_000_000_000, "spool": 64 << 20, "of another time": []string{"?"},
		"spec": map[string]any{
			"root": root, "args": []string{"sh", "-c", "exit 4"}, "env": []string{"A=b"}, "stdin": false,
			"memory": 0, "walltime": 0, "node_limit": 30_000_000_000, "expose": []string{}, "hide": []string{}, "uid": -1, "gid": -1,
		},
	}
}

// A supervisor of the first version speaks the messages of then, and knows none
// of those that came later.
func TestAdoptFromAnOlderSupervisor(t *testing.T) {
	root := newRoot(t)
	socket := filepath.Join(root, "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	if err := save(root, specEntry, oldSpec(root, socket)); err != nil {
		t.Fatal(err)
	}
	self, err := proc.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	self.Start++ // a process that is no more
	if err := save(root, recordEntry, map[string]any{"version": 1, "socket": socket, "supervisor": self, "worker": self}); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 10)
	go func() {
		defer close(heard)
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		hello, err := readMessage(conn)
		if err != nil || hello.Kind != "hello" || hello.Version != 1 || hello.Key != "KEY" {
			heard <- "a bad hello"
		}
		_, _ = conn.Write(append([]byte{0, 0, 0, 23}, codec.MustMarshal(map[string]any{"kind": "progress", "stdout": 5})...))
		for m, err := readMessage(conn); err == nil; m, err = readMessage(conn) {
			heard <- m.Kind
			if m.Kind == "stop" {
				exit := map[string]any{"code": 143, "cause": "stopped", "detail": "stopped", "ended": time.Unix(1, 0)}
				_ = os.Remove(socket)
				_ = save(root, exitEntry, map[string]any{"version": 1, "exit": exit, "stdout": 5, "stderr": 0})
				break
			}
		}
		_ = conn.Close()
		_ = ln.Close()
	}()
	if err := os.WriteFile(filepath.Join(root, "stdout"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := adopt(t, root)
	awaitOutput(t, w, 5)
	w.Heard()
	w.Stop(0, time.Second)
	if e := await(t, w); e.Code != 143 || e.Cause != work.Stopped || output(t, w, work.Stdout) != "hello" {
		t.Errorf("%+v %q", e, output(t, w, work.Stdout))
	}
	for m := range heard {
		if m != "stop" {
			t.Errorf("it was sent %q", m)
		}
	}
}

func TestSupervisorIsKilledAfterItsAdoption(t *testing.T) {
	root := newRoot(t)
	node := nodeOf(t, root, runaway+"wait", time.Hour)
	_ = node.Process.Kill()
	_ = node.Wait()
	w := adopt(t, root)
	var rec record
	if err := load(root, recordEntry, &rec); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(rec.Supervisor.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := await(t, w); e.Cause != work.Lost || e.Code != 125 || output(t, w, work.Stdout) != "started\n" {
		t.Errorf("%+v %q", e, output(t, w, work.Stdout))
	}
	mustBeGone(t, []proc.ID{rec.Launcher})
	mustEnd(t, rec.Supervisor)
}

func TestOriginIsSilent(t *testing.T) {
	spec := script(t, "echo ready; exec sleep 1000")
	spec.OrphanLimit = 100 * time.Millisecond
	w := start(t, Config{Grace: 10 * time.Millisecond}, spec)
	if e := await(t, w); e.Cause != work.Orphaned || e.Detail != "its origin was silent for 100ms" {
		t.Errorf("%+v", e)
	}
}

// A worker that is of no use without its node, or origin, has a grace of its own.
func TestGraceOfAWorker(t *testing.T) {
	spec := script(t, "trap '' TERM; echo ready; while :; do sleep 1000; done")
	spec.OrphanLimit, spec.Rank.Grace = time.Second, 10*time.Millisecond // long enough for a busy machine's shell to come to its trap
	w := start(t, Config{Grace: time.Hour}, spec)
	if e := await(t, w); e.Cause != work.Orphaned || e.Code != 137 {
		t.Errorf("%+v", e)
	}
}

// A node may die at any moment of a start: what it has made by then is named in
// the root, where its next life finds it.
func TestSocketIsWrittenDownBeforeItIsMade(t *testing.T) {
	root := newRoot(t)
	r := New(Config{})
	spec := Spec{Root: root, Args: []string{"true"}, UID: -1}
	if err := r.complete(&spec); err != nil {
		t.Fatal(err)
	}
	var written Spec
	if err := loadSpec(root, &written); err != nil || written.terms.Socket != spec.terms.Socket {
		t.Fatalf("the Spec names %q, %v, want %q", written.terms.Socket, err, spec.terms.Socket)
	}
	if _, err := os.Lstat(spec.terms.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the socket is there already: %v", err)
	}
	if _, err := r.Adopt(t.Context(), root); !errors.Is(err, ErrNotStarted) { // it dies here,
		t.Errorf("adopt: %v", err)
	}
	ln, err := listen(spec.terms.Socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil { // or there
		t.Fatal(err)
	}
	if _, err := r.Adopt(t.Context(), root); !errors.Is(err, ErrNotStarted) {
		t.Errorf("adopt: %v", err)
	}
	if err := CleanRoot(root, nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(spec.terms.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}
