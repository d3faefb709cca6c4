package process

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/jobs/session"
	"zorilla/jobs/work"
)

// talk is a client of a session.
type talk struct {
	t    testing.TB
	conn io.ReadWriteCloser
	w    *session.Writer
	r    *session.Reader
	out  map[session.Kind]*bytes.Buffer
}

func enter(t testing.TB, w Worker, start session.Start) *talk {
	t.Helper()
	conn, err := w.Enter(t.Context(), &start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &talk{t, conn, session.NewWriter(conn), session.NewReader(conn), map[session.Kind]*bytes.Buffer{}}
}

// until reads frames until one of a kind has come and ok says that it is enough.
func (k *talk) until(kind session.Kind, ok func(all string) bool) (data []byte) {
	k.t.Helper()
	for {
		got, data, err := k.r.Next()
		if err != nil {
			k.t.Fatalf("after %v: %v", k.out, err)
		}
		if k.out[got] == nil {
			k.out[got] = &bytes.Buffer{}
		}
		k.out[got].Write(data)
		if got == kind && ok(k.out[got].String()) {
			return data
		}
		if got == session.KindExit {
			k.t.Fatalf("it ended, after %v", k.out)
		}
	}
}

func (k *talk) exit() session.Exit {
	k.t.Helper()
	e, err := session.ParseExit(k.until(session.KindExit, func(string) bool { return true }))
	if err != nil {
		k.t.Fatal(err)
	}
	if _, _, err := k.r.Next(); err == nil {
		k.t.Errorf("after the exit: %v", err)
	}
	return e
}

func (k *talk) said(kind session.Kind) string {
	if b := k.out[kind]; b != nil {
		return b.String()
	}
	return ""
}

func has(text string) func(string) bool {
	return func(all string) bool { return strings.Contains(all, text) }
}

// hosts of sessions: with namespaces and without.
func eachWorld(t *testing.T, f func(t *testing.T, cfg Config)) {
	t.Run("namespaces", func(t *testing.T) { f(t, Config{}) })
	t.Run("basic", func(t *testing.T) { f(t, Config{Basic: true}) })
}

// sleeper is a worker that goes on until it is ended, with a variable of its own.
func sleeper(t *testing.T, cfg Config) (Worker, Spec) {
	spec := script(t, "touch mark; echo up; read x")
	spec.Stdin = true
	spec.Env = []string{"PATH=/usr/bin:/bin", "OWN=1", "TMPDIR=" + filepath.Join(spec.Root, tmpDir)}
	w := start(t, cfg, spec)
	awaitOutput(t, w, 3)
	return w, spec
}

func TestEnter(t *testing.T) {
	eachWorld(t, func(t *testing.T, cfg Config) {
		w, spec := sleeper(t, cfg)
		k := enter(t, w, session.Start{Args: []string{"sh", "-c", `pwd; ls; echo $OWN $TWO; cat; echo bad >&2; exit 41`}, Env: []string{"TWO=2 two"}})
		if err := errors.Join(k.w.Write(session.KindInput, []byte("in\xff\x00")), k.w.Write(session.KindClose, nil)); err != nil {
			t.Fatal(err)
		}
		if e := k.exit(); e != (session.Exit{Code: 41}) {
			t.Errorf("%+v", e)
		}
		if out, want := k.said(session.KindOutput), filepath.Join(spec.Root, "work")+"\nmark\n1 2 two\nin\xff\x00"; out != want || k.said(session.KindErrors) != "bad\n" {
			t.Errorf("it said %q and %q, want %q", out, k.said(session.KindErrors), want)
		}
		for _, dir := range []string{"one", "two"} { // the same name is another program in another PATH
			bin := filepath.Join(spec.Root, "work", dir)
			if err := errors.Join(os.Mkdir(bin, 0o755), os.WriteFile(filepath.Join(bin, "which"), []byte("#!/bin/sh\necho "+dir+"\n"), 0o755)); err != nil {
				t.Fatal(err)
			}
			k := enter(t, w, session.Start{Args: []string{"which"}, Env: []string{"PATH=" + bin}})
			if e := k.exit(); e.Code != 0 || k.said(session.KindOutput) != dir+"\n" {
				t.Errorf("%s: %+v, %q", dir, e, k.said(session.KindOutput))
			}
		}
		for command, code := range map[string]int{"surely-not-there": 127, "/etc/passwd": 126} {
			if e := enter(t, w, session.Start{Args: []string{command}}).exit(); e.Code != code || !strings.Contains(e.Text, command) {
				t.Errorf("%s: %+v", command, e)
			}
		}
		// A program that goes on: its end, and that of what it has started, by a signal.
		k = enter(t, w, session.Start{Args: []string{"sh", "-c", `sleep 1000 & echo $! >pids; echo $$ >>pids; echo up; wait`}})
		k.until(session.KindOutput, has("up"))
		all := pids(t, spec.Root, "pids")
		if err := k.w.Signal(int(unix.SIGINT)); err != nil {
			t.Fatal(err)
		}
		if e := k.exit(); e.Code != 130 {
			t.Errorf("%+v", e)
		}
		mustBeGone(t, all)
		select {
		case <-w.Done():
			t.Errorf("the worker has ended: %+v", w.Exit())
		default:
		}
	})
}

// What runs beside a worker ends with its client, and with the worker.
func TestEnterEnds(t *testing.T) {
	eachWorld(t, func(t *testing.T, cfg Config) {
		w, spec := sleeper(t, cfg)
		const stubborn = `trap "" HUP TERM; sh -c 'trap "" HUP TERM; while :; do sleep 0.1; done' & echo $! >pids; echo $$ >>pids; echo up; while :; do wait; done`
		k := enter(t, w, session.Start{Args: []string{"sh", "-c", stubborn}})
		k.until(session.KindOutput, has("up"))
		all := pids(t, spec.Root, "pids")
		if err := k.conn.Close(); err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			mustEnd(t, p)
		}
		k = enter(t, w, session.Start{Args: []string{"sh", "-c", stubborn}})
		k.until(session.KindOutput, has("up"))
		all = pids(t, spec.Root, "pids")
		if err := w.Stdin().Close(); err != nil {
			t.Fatal(err)
		}
		if e := await(t, w); e.Code != 1 || e.Cause != work.Exited {
			t.Errorf("the worker: %+v", e)
		}
		mustBeGone(t, all)
		if e := k.exit(); e.Code != 137 || !strings.Contains(e.Text, "the worker has ended") {
			t.Errorf("%+v", e)
		}
		if _, err := w.Enter(t.Context(), &session.Start{Args: []string{"true"}}); !errors.Is(err, ErrNotEntered) || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("after its end: %v", err)
		}
	})
}

// Nothing waits for a command that does not read, or a client that does not.
func TestEnterHeldUp(t *testing.T) {
	w, _ := sleeper(t, Config{})
	k := enter(t, w, session.Start{Args: []string{"sh", "-c", "echo up; exec sleep 1000"}})
	for range session.Window / session.MaxData {
		if err := k.w.Write(session.KindInput, make([]byte, session.MaxData)); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.w.Signal(int(unix.SIGTERM)); err != nil {
		t.Fatal(err)
	}
	if e := k.exit(); e.Code != 143 {
		t.Errorf("%+v", e)
	}
	// Who sends more than there is room for is sent away.
	k = enter(t, w, session.Start{Args: []string{"sleep", "1000"}})
	for range 4 * session.Window / session.MaxData {
		if k.w.Write(session.KindInput, make([]byte, session.MaxData)) != nil {
			break
		}
	}
	if e := k.exit(); e.Code != 128+int(unix.SIGHUP) {
		t.Errorf("%+v", e)
	}
	// A client that does not read holds up its command, and no other one.
	k = enter(t, w, session.Start{Args: []string{"sh", "-c", "yes; true"}})
	if e := enter(t, w, session.Start{Args: []string{"true"}}).exit(); e.Code != 0 {
		t.Errorf("%+v", e)
	}
	w.Stop(0, 0) // nor the end of the worker
	await(t, w)
	_ = k.conn.Close()
}

func TestEnterWithATerminal(t *testing.T) {
	eachWorld(t, func(t *testing.T, cfg Config) {
		w, _ := sleeper(t, cfg)
		k := enter(t, w, session.Start{
			Args:     []string{"sh", "-c", `test -t 0 -a -t 1 -a -t 2 && stty size; trap 'stty size; echo changed' WINCH; echo up; sleep 1000 & while :; do wait; done`},
			Terminal: &session.Size{Rows: 33, Columns: 77},
		})
		k.until(session.KindOutput, has("33 77\r\nup\r\n"))
		if err := k.w.Resize(session.Size{Rows: 5, Columns: 6}); err != nil {
			t.Fatal(err)
		}
		k.until(session.KindOutput, has("5 6\r\nchanged\r\n"))
		if err := k.w.Write(session.KindInput, []byte{3}); err != nil { // Ctrl-C
			t.Fatal(err)
		}
		if e := k.exit(); e.Code != 130 {
			t.Errorf("%+v", e)
		}
		if !cfg.Basic {
			k = enter(t, w, session.Start{Args: []string{"sh", "-c", "tty; echo there >/dev/tty; cat"}, Terminal: &session.Size{}})
			k.until(session.KindOutput, has("there"))
			if out := k.said(session.KindOutput); !strings.HasPrefix(out, "/dev/pts/") {
				t.Errorf("its terminal: %q", out)
			}
			if err := k.w.Write(session.KindClose, nil); err != nil { // Ctrl-D
				t.Fatal(err)
			}
			if e := k.exit(); e.Code != 0 {
				t.Errorf("%+v", e)
			}
		}
	})
}

// The workers of a job share a world: what runs beside one is counted with that, and ends
// with it.
func TestEnterOneOfSeveral(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("as root, workers share a world if they are another user's")
	}
	needNamespaces(t)
	var specs [2]Spec
	var ws [2]Worker
	base := filepath.Dir(newRoot(t))
	for i := range ws {
		specs[i] = script(t, "echo up; read x")
		specs[i].Root, specs[i].Group, specs[i].Stdin = filepath.Join(base, string(rune('a'+i))), "job", true
		specs[i].Memory = 200 << 20
		if err := MakeRoot(specs[i].Root, "test"); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			specs[i].UID, specs[i].GID = nobody, nobody
		}
		ws[i] = start(t, Config{}, specs[i])
	}
	for _, w := range ws {
		awaitOutput(t, w, 3)
	}
	one := enter(t, ws[0], session.Start{Args: []string{"sh", "-c", "setsid sh -c 'echo up; exec sleep 1000' & wait"}})
	two := enter(t, ws[1], session.Start{Args: []string{"sh", "-c", "echo up; exec sleep 1000"}})
	one.until(session.KindOutput, has("up"))
	two.until(session.KindOutput, has("up"))
	if err := ws[0].Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	await(t, ws[0])
	if e := one.exit(); e.Code != 137 {
		t.Errorf("%+v", e)
	}
	if err := two.w.Signal(int(unix.SIGTERM)); err != nil {
		t.Fatal(err)
	}
	if e := two.exit(); e.Code != 143 {
		t.Errorf("the other: %+v", e)
	}
	// More memory than the worker may have.
	three := enter(t, ws[1], session.Start{Args: []string{"python3", "-c", "b = bytearray(300 << 20); input()"}})
	if e := await(t, ws[1]); e.Cause != work.Memory {
		t.Errorf("%+v", e)
	}
	if e := three.exit(); e.Code != 137 {
		t.Errorf("%+v", e)
	}
}
