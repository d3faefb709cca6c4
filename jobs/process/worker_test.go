package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"zorilla/jobs/proc"
	"zorilla/jobs/work"
)

func TestHowWorkersEnd(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		limits func(*Spec)
		code   int
		cause  work.Cause
		detail string
	}{
		"success":    {script: "exit 0", cause: work.Exited},
		"exit code":  {script: "exit 41", code: 41, cause: work.Exited},
		"signal":     {script: "kill -SEGV $$", code: 139, cause: work.Signalled, detail: "SIGSEGV"},
		"killed":     {script: "kill -KILL $$", code: 137, cause: work.Signalled, detail: "SIGKILL"},
		"no core":    {script: "ulimit -c; kill -QUIT $$", code: 131, cause: work.Signalled},
		"walltime":   {script: "echo x; exec sleep 1000", limits: func(s *Spec) { s.Walltime = 50 * time.Millisecond }, code: 124, cause: work.Walltime, detail: "needed more than 50ms (-t)"},
		"unwilling":  {script: "trap : TERM; while :; do sleep 1000; done", limits: func(s *Spec) { s.Walltime = 50 * time.Millisecond }, code: 124, cause: work.Walltime},
		"many procs": {script: "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait", limits: func(s *Spec) { s.Walltime = 50 * time.Millisecond }, code: 124, cause: work.Walltime},
	} {
		t.Run(name, func(t *testing.T) {
			spec := script(t, c.script)
			if c.limits != nil {
				c.limits(&spec)
			}
			e, _, _ := run(t, Config{Grace: 200 * time.Millisecond}, spec)
			if e.Code != c.code || e.Cause != c.cause || !strings.Contains(e.Detail, c.detail) {
				t.Fatalf("got %+v, want code %d, cause %q, detail %q", e, c.code, c.cause, c.detail)
			}
			if e.Started.IsZero() || e.Ended.Before(e.Started) {
				t.Errorf("times: %v to %v", e.Started, e.Ended)
			}
			var rec exitRecord
			if err := load(spec.Root, exitEntry, &rec); err != nil || rec.Exit.Code != c.code {
				t.Errorf("exit record: %+v, %v", rec, err)
			}
		})
	}
}

func TestCommandsThatCannotRun(t *testing.T) {
	foreign := make([]byte, 64) // the head of an ELF file for a machine that is not this one
	copy(foreign, "\x7fELF\x02\x01\x01")
	foreign[16], foreign[18], foreign[20] = 2, 22, 1 // EXEC, S390
	foreign[52], foreign[54], foreign[58] = 64, 56, 64
	for name, c := range map[string]struct {
		file   []byte
		mode   os.FileMode
		args   string
		path   string
		code   int
		cause  work.Cause
		detail string
	}{
		"missing":         {args: "./prog", code: 127, cause: work.NotFound, detail: "./prog: no such file in the work directory"},
		"missing, global": {args: "/no/such/prog", code: 127, cause: work.NotFound, detail: "/no/such/prog: is not shown to workers on this node"},
		"not on the path": {args: "surely-not-there", code: 127, cause: work.NotFound, detail: "surely-not-there: command not found"},
		"below a file":    {args: "./prog/x", file: []byte("x"), mode: 0o755, code: 127, cause: work.NotFound},
		"other machine":   {args: "./prog", file: foreign, mode: 0o755, code: 126, cause: work.NotRun, detail: "./prog: built for another architecture or not an executable file (s390"},
		"garbage":         {args: "./prog", file: []byte("\x01\x02\x03"), mode: 0o755, code: 126, cause: work.NotRun, detail: "./prog: not an executable file"},
		"empty":           {args: "./prog", file: []byte{}, mode: 0o755, code: 126, cause: work.NotRun, detail: "./prog: not an executable"},
		"interpreter":     {args: "./prog", file: []byte("#!/no/such/python -u\n"), mode: 0o755, code: 126, cause: work.NotRun, detail: `./prog: its interpreter "/no/such/python" is not shown to workers`},
		"line ends":       {args: "./prog", file: []byte("#!/bin/sh\r\necho\r\n"), mode: 0o755, code: 126, cause: work.NotRun, detail: `./prog: its interpreter "/bin/sh\r" (its lines end as those of Windows do: try dos2unix) does not exist`},
		"not executable":  {args: "./prog", file: []byte("#!/bin/sh\n"), mode: 0o644, code: 126, cause: work.NotRun, detail: "./prog: is not executable"},
		"directory":       {args: "../work", code: 126, cause: work.NotRun, detail: "../work: is a directory"},
		"good":            {args: "./prog", file: []byte("#!/bin/sh\nexit 3\n"), mode: 0o755, code: 3, cause: work.Exited},
		"on the path":     {args: "true", path: "PATH=relative::/nowhere:/bin", cause: work.Exited},
	} {
		t.Run(name, func(t *testing.T) {
			spec := Spec{Root: newRoot(t), Args: []string{c.args}, UID: -1}
			if c.file != nil {
				if err := os.WriteFile(filepath.Join(spec.Root, workDir, "prog"), c.file, c.mode); err != nil {
					t.Fatal(err)
				}
			}
			if c.path != "" {
				spec.Env = []string{c.path}
			}
			e, _, _ := run(t, Config{}, spec)
			if e.Code != c.code || e.Cause != c.cause || !strings.HasPrefix(e.Detail, c.detail) {
				t.Fatalf("got %+v, want code %d, cause %q, detail %q", e, c.code, c.cause, c.detail)
			}
		})
	}
}

func TestSpecsThatAreRefused(t *testing.T) {
	good, used := script(t, "exit 0"), script(t, "exit 0")
	run(t, Config{}, used)
	for name, spoil := range map[string]func(*Spec){
		"relative root": func(s *Spec) { s.Root = "here" },
		"no work":       func(s *Spec) { s.Root = t.TempDir() },
		"no command":    func(s *Spec) { s.Args = nil },
		"empty command": func(s *Spec) { s.Args = []string{""} },
		"zero byte":     func(s *Spec) { s.Env = []string{"A=\x00"} },
		"negative":      func(s *Spec) { s.Memory = -1 },
		"used before":   func(s *Spec) { s.Root = used.Root },
	} {
		spec := good
		spoil(&spec)
		if _, err := New(Config{}).Start(t.Context(), spec); !errors.Is(err, ErrSpec) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(Config{}).Start(ctx, good); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestWorkerSeesExactlyItsEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_NODE", "1")
	spec := Spec{Root: newRoot(t), Args: []string{"/usr/bin/env"}, Env: []string{"A=1", "B=\xff 2"}, UID: -1}
	e, out, _ := run(t, Config{}, spec)
	if e.Code != 0 || out != "A=1\nB=\xff 2\n" {
		t.Fatalf("%+v %q", e, out)
	}
}

func TestWorkerHasOnlyThreeDescriptors(t *testing.T) {
	r, w, err := os.Pipe() // as if left open by the node's parent
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var leaked int
	raw, err := r.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		leaked, err = syscall.Dup(int(fd))
	}); err != nil || leaked < 3 {
		t.Fatal(err, leaked)
	}
	defer syscall.Close(leaked)
	e, out, stderr := run(t, Config{}, script(t, `for f in /proc/$$/fd/*; do [ -L $f ] && echo ${f##*/} && readlink $f; done; true`))
	if e.Code != 0 || strings.Count(out, "\n") != 6 || !strings.HasPrefix(out, "0\n/dev/null\n1\npipe:") {
		t.Fatalf("%+v\n%s%s", e, out, stderr)
	}
}

func TestWorkerLeadsASessionInItsDirectory(t *testing.T) {
	spec := script(t, `read -r pid name state parent group session rest < /proc/$$/stat; echo $$ $group $session; pwd -P`)
	e, out, stderr := run(t, Config{}, spec)
	var pid, group, session int
	var dir string
	if _, err := fmt.Sscan(out, &pid, &group, &session, &dir); err != nil {
		t.Fatalf("%+v %q %q: %v", e, out, stderr, err)
	}
	if pid != group || pid != session {
		t.Errorf("process %d is in group %d, session %d", pid, group, session)
	}
	if want := realPath(t, filepath.Join(spec.Root, workDir)); dir != want {
		t.Errorf("worker runs in %s, want %s", dir, want)
	}
}

func TestStdinArrives(t *testing.T) {
	spec := script(t, "cat; echo end")
	spec.Stdin = true
	w := start(t, Config{}, spec)
	text := strings.Repeat("all work and no play\n", 200_000)
	if n, err := w.Stdin().Write([]byte(text)); n != len(text) || err != nil {
		t.Fatal(n, err)
	}
	if err := w.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	if e := await(t, w); e.Code != 0 || output(t, w, work.Stdout) != text+"end\n" {
		n, _ := w.Written()
		t.Fatalf("%+v, %d bytes", e, n)
	}
	if _, err := w.Stdin().Write([]byte("more")); err == nil {
		t.Error("write after close")
	}
}

func TestStdinOfAWorkerThatDoesNotRead(t *testing.T) {
	spec := script(t, "echo ready; exec sleep 1000")
	spec.Stdin = true
	w := start(t, Config{}, spec)
	awaitOutput(t, w, 1)
	failed := make(chan error, 1)
	go func() {
		block := make([]byte, 1<<20)
		for {
			if _, err := w.Stdin().Write(block); err != nil {
				failed <- err
				return
			}
		}
	}()
	w.Stop(0, 0) // must get through although the input is full
	if e := await(t, w); e.Cause != work.Stopped || e.Code != 137 {
		t.Fatalf("%+v", e)
	}
	select {
	case <-failed:
	case <-time.After(deadline):
		t.Fatal("write to an ended worker hangs")
	}
}

func TestNoStdinIsTheNullDevice(t *testing.T) {
	w := start(t, Config{}, script(t, "wc -c"))
	if e := await(t, w); e.Code != 0 || strings.TrimSpace(output(t, w, work.Stdout)) != "0" || w.Stdin() != nil {
		t.Fatalf("%+v", e)
	}
}

func TestStopGivesGrace(t *testing.T) {
	spec := script(t, `trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.01; done`)
	w := start(t, Config{}, spec)
	awaitOutput(t, w, 6)
	if err := w.Close(); !errors.Is(err, ErrRunning) {
		t.Errorf("close of a running worker: %v", err)
	}
	w.Stop(0, deadline)
	if e := await(t, w); e.Cause != work.Stopped || e.Code != 7 || output(t, w, work.Stdout) != "ready\nsaved\n" {
		t.Fatalf("%+v %q", e, output(t, w, work.Stdout))
	}
}

// A shell dies of SIGTERM at once; its child may need the grace.
func TestStopGivesGraceToChildren(t *testing.T) {
	spec := script(t, `(trap 'sleep 0.05; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.01; done) & wait`)
	w := start(t, Config{}, spec)
	awaitOutput(t, w, 6)
	w.Stop(0, deadline)
	if e := await(t, w); e.Cause != work.Stopped || e.Code != 143 || output(t, w, work.Stdout) != "ready\nsaved\n" {
		t.Fatalf("%+v %q", e, output(t, w, work.Stdout))
	}
}

func TestSecondStopIsSharper(t *testing.T) {
	w := start(t, Config{}, script(t, `trap : TERM; echo ready; while :; do sleep 0.01; done`))
	awaitOutput(t, w, 6)
	w.Stop(0, time.Hour)
	w.Stop(0, 0)
	if e := await(t, w); e.Cause != work.Stopped || e.Code != 137 {
		t.Fatalf("%+v", e)
	}
}

func TestManyWorkersLeaveNothing(t *testing.T) {
	before := descriptors(t)
	r := New(Config{})
	const n = 50
	var all []Worker
	var roots []string
	for range n {
		spec := script(t, `echo hello; (setsid sleep 1000 &); echo $$`)
		w, err := r.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		all, roots = append(all, w), append(roots, spec.Root)
	}
	for i, w := range all {
		if e := await(t, w); e.Code != 0 || !strings.HasPrefix(output(t, w, work.Stdout), "hello\n") {
			t.Fatalf("%+v", e)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if err := CleanRoot(roots[i], nil); err != nil {
			t.Error(err)
		}
	}
	for _, w := range all { // supervisors wait a moment for more workers
		select {
		case <-w.(*worker).host.done:
		case <-time.After(deadline):
			t.Fatal("a supervisor does not end")
		}
	}
	if left := proc.Descendants(os.Getpid()); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// BenchmarkTrue is the time from Start to Done of a worker that does nothing.
func BenchmarkTrue(b *testing.B) {
	r := New(Config{})
	var first time.Duration
	for b.Loop() {
		b.StopTimer()
		spec := Spec{Root: newRoot(b), Args: []string{"/bin/true"}, UID: -1}
		b.StartTimer()
		begin := time.Now()
		w, err := r.Start(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		first += time.Since(begin)
		await(b, w)
		_ = w.Close()
	}
	b.ReportMetric(float64(first.Microseconds())/float64(b.N), "µs/Start")
}
