package workertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// ends is about how workers begin and end.
var ends = []test{
	{"ends with the program's code", testCode},
	{"tells of a signal", testKilled},
	{"does not find a command", testNotFound},
	{"refuses what cannot be started", testRefused},
	{"runs in its directory with its environment", testSurroundings},
	{"ends at its walltime", testWalltime},
	{"ends at its walltime whatever it does", testWalltimeIgnored},
	{"ends when it needs too much memory", testMemory},
	{"ends when it needs too much disk space", testDisk},
	{"makes room", testYield},
	{"stops", testStop},
	{"stops at once", testStopAtOnce},
	{"stops in its own way", testStopTrapped},
	{"stops sooner when it is told so", testStopTwice},
	{"leaves no child", testChildren},
	{"gives its children the grace", testChildrenStop},
	{"passes signals on to who handles them", testSignal},
	{"is not ended by a signal", testSignalIgnored},
}

func testCode(s *suite) {
	for _, code := range []int{0, 41, 255} {
		w := s.start(s.spec("exit", fmt.Sprint(code)))
		s.want(w, code, work.Exited, "")
		if w.Exit().Started.IsZero() {
			s.Error("it does not say when it began")
		}
		w.Stop(0, 0)
		w.Signal(15)
		w.Heard()
		if e := w.Exit(); e.Code != code || e.Cause != work.Exited {
			s.Errorf("after its end it became %+v", e)
		}
		if err := errors.Join(w.Close(), w.Close()); err != nil {
			s.Error(err)
		}
	}
}

func testKilled(s *suite) {
	s.want(s.start(s.spec("exit", "-9")), 137, work.Signalled, "ended by SIGKILL (killed)")
}

func testNotFound(s *suite) {
	spec := s.spec("exit", "0")
	spec.Args = []string{"surely-not-there"}
	w := s.start(spec)
	if e := s.await(w); e.Code != 127 || e.Cause != work.NotFound || !strings.HasPrefix(e.Detail, "surely-not-there: ") || !e.Started.IsZero() {
		s.Errorf("it ended with %+v", e)
	}
	s.wantOutput(w, "", "")
}

func testRefused(s *suite) {
	good, used := s.spec("exit", "0"), s.spec("exit", "0")
	s.await(s.start(used))
	for name, spoil := range map[string]func(*process.Spec){
		"a relative root":      func(spec *process.Spec) { spec.Root = "here" },
		"an unclean root":      func(spec *process.Spec) { spec.Root += "/" },
		"no work directory":    func(spec *process.Spec) { spec.Root = filepath.Dir(spec.Root) },
		"no command":           func(spec *process.Spec) { spec.Args = nil },
		"an empty command":     func(spec *process.Spec) { spec.Args = []string{""} },
		"a zero byte":          func(spec *process.Spec) { spec.Env = []string{"A=\x00"} },
		"a negative limit":     func(spec *process.Spec) { spec.Walltime = -1 },
		"no tasks":             func(spec *process.Spec) { spec.Tasks = &process.TaskSpec{} },
		"a root used before":   func(spec *process.Spec) { spec.Root = used.Root },
		"lines somewhere else": func(spec *process.Spec) { spec.Tasks = taskSpec(1); spec.Tasks.Lines = "../x" },
	} {
		spec := good
		spoil(&spec)
		if _, err := s.r.Start(s.Context(), spec); !errors.Is(err, process.ErrSpec) {
			s.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if _, err := s.r.Start(ctx, good); !errors.Is(err, context.Canceled) {
		s.Errorf("cancelled: %v", err)
	}
	s.want(s.start(good), 0, work.Exited, "")
}

func testSurroundings(s *suite) {
	spec := s.spec("env", "ONE", "TWO", "HOME")
	spec.Env = []string{"ONE=1", "TWO=\xff 2"}
	w := s.start(spec)
	s.want(w, 0, work.Exited, "")
	s.wantOutput(w, "ONE=1\nTWO=\xff 2\nHOME=\n", "")
	spec = s.spec("file", "a", "../tmp/b")
	s.want(s.start(spec), 0, work.Exited, "")
	if a, b := s.file(spec, "work/a"), s.file(spec, "tmp/b"); a != "a" || b != "../tmp/b" {
		s.Errorf("it left %q and %q", a, b)
	}
}

func testWalltime(s *suite) {
	for _, program := range []string{"idle", "polite"} { // whatever code it ends with
		s.configure(deadline, process.DefaultSpool)
		spec := s.spec(program)
		spec.Walltime = 500 * time.Millisecond
		s.want(s.start(spec), 124, work.Walltime, "needed more than 500ms (-t)")
	}
}

func testWalltimeIgnored(s *suite) {
	spec := s.spec("stubborn")
	spec.Walltime = 50 * time.Millisecond
	s.want(s.start(spec), 124, work.Walltime, "needed more than 50ms (-t)")
}

func testMemory(s *suite) {
	spec := s.spec("hold", fmt.Sprint(300<<20))
	spec.Memory = 100 << 20
	s.want(s.start(spec), 137, work.Memory, "needed more than 100 MiB of memory (--mem)")
}

func testDisk(s *suite) {
	spec := s.spec("fill", fmt.Sprint(24<<20))
	spec.Disk = 16 << 20
	s.want(s.start(spec), 137, work.Disk, "needed more than 16 MiB of disk space (--disk)")
}

func testYield(s *suite) {
	const why = "ended, since the disk of its node was nearly full: its files took 2 MiB"
	for _, adopted := range []bool{false, true} {
		s.configure(deadline, process.DefaultSpool)
		spec := s.spec("stubborn")
		w := s.ready(spec)
		if adopted {
			w.Leave()
			w = s.adopt(spec)
		}
		if err := os.WriteFile(filepath.Join(spec.Root, "work", "big"), []byte("x"), 0o644); err != nil {
			s.Fatal(err)
		}
		w.Yield(2 << 20)
		s.want(w, 137, work.Full, why)
		s.wantOutput(w, "ready\n", "")
		s.want(s.adopt(spec), 137, work.Full, why)
		if left, _ := os.ReadDir(filepath.Join(spec.Root, "work")); len(left) > 0 {
			s.Errorf("its files are still there: %v", left)
		}
	}
}

func testStop(s *suite) {
	w := s.ready(s.spec("idle"))
	if err := w.Close(); !errors.Is(err, process.ErrRunning) {
		s.Errorf("close while it runs: %v", err)
	}
	w.Stop(0, deadline)
	s.want(w, 143, work.Stopped, "stopped")
}

func testStopAtOnce(s *suite) {
	for _, grace := range []time.Duration{0, -1} {
		w := s.ready(s.spec("polite"))
		w.Stop(0, grace)
		s.want(w, 137, work.Stopped, "stopped")
		s.wantOutput(w, "ready\n", "")
	}
}

func testStopTrapped(s *suite) {
	w := s.ready(s.spec("polite"))
	w.Stop(0, deadline)
	s.want(w, 7, work.Stopped, "stopped")
	s.wantOutput(w, "ready\nsaved\n", "")
	spec := s.spec("listen")
	spec.Rank.Signal, spec.Rank.Notice = 10, time.Hour
	w = s.ready(spec)
	w.Stop(time.Hour, time.Hour)
	s.want(w, 4, work.Stopped, "stopped")
	s.wantOutput(w, "ready\ntold 10\n", "")

	spec = s.spec("polite") // handles SIGTERM alone
	spec.Rank.Signal, spec.Rank.Notice = 10, time.Hour
	for _, w := range []process.Worker{s.ready(spec), s.ready(s.spec("polite"))} {
		w.Stop(50*time.Millisecond, deadline)
		s.want(w, 7, work.Stopped, "stopped")
		s.wantOutput(w, "ready\nsaved\n", "")
	}
}

func testStopTwice(s *suite) {
	w := s.ready(s.spec("stubborn"))
	w.Stop(0, math.MaxInt64)
	w.Stop(0, 0)
	w.Stop(0, time.Hour)
	s.want(w, 137, work.Stopped, "stopped")
}

// The child would write for ever: Done would never come.
func testChildren(s *suite) {
	s.configure(time.Second, 64<<10)
	w := s.start(s.spec("parent", "3"))
	s.want(w, 3, work.Exited, "")
	before, _ := w.Written()
	w.Ack(before, 0)
	if after, _ := w.Written(); after != before {
		s.Errorf("%d bytes at its end, %d later", before, after)
	}
}

func testChildrenStop(s *suite) {
	w := s.ready(s.spec("shell"))
	w.Stop(0, deadline)
	s.want(w, 143, work.Stopped, "stopped")
	s.wantOutput(w, "ready\nsaved\n", "")
}

func testSignal(s *suite) {
	w := s.ready(s.spec("listen"))
	w.Signal(10)
	s.want(w, 4, work.Exited, "")
	s.wantOutput(w, "ready\ntold 10\n", "")
}

func testSignalIgnored(s *suite) {
	spec := s.spec("lines")
	spec.Stdin = true
	w := s.start(spec)
	for i, signal := range []int{-1, 0, 10, 64, 65, 1 << 20} {
		w.Signal(signal)
		if _, err := w.Stdin().Write([]byte("on\n")); err != nil {
			s.Fatal(err)
		}
		s.awaitOutput(w, strings.Repeat("on\n", i+1))
	}
	_ = w.Stdin().Close()
	s.want(w, 0, work.Exited, "")
}
