package workertest

import (
	"context"
	"errors"
	"strings"
	"time"

	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// nodes is about workers whose nodes come and go.
var nodes = []test{
	{"goes on without its node", testAdopt},
	{"is adopted after its end", testAdoptEnded},
	{"is not there to be adopted", testAdoptNothing},
	{"obeys the node that adopted it", testAdoptStop},
	{"goes on reading where another node ended", testAdoptStdin},
	{"remembers what was taken away", testAdoptAcked},
	{"ends without a node", testNodeGone},
	{"ends without word of its origin", testOriginSilent},
}

func testAdopt(s *suite) {
	spec := s.spec("listen")
	first := s.ready(spec)
	for range 3 {
		first.Leave()
		first.Leave()
		if _, err := first.ReadOutput(work.Stdout, 0, make([]byte, 1)); err == nil {
			s.Error("a node that has left reads on")
		}
		first.Stop(0, 0)
	}
	gone := []process.Worker{first}
	for range 5 { // each comes before the worker may have heard of the one before
		w := s.adopt(spec)
		s.awaitOutput(w, "ready\n")
		w.Leave()
		gone = append(gone, w)
	}
	last := s.adopt(spec)
	last.Signal(10)
	s.want(last, 4, work.Exited, "")
	s.wantOutput(last, "ready\ntold 10\n", "")
	for _, w := range gone {
		select {
		case <-w.Done():
			s.Error("a node that has left hears of the end")
		default:
		}
	}
}

func testAdoptEnded(s *suite) {
	spec := s.spec("say", "x")
	s.await(s.start(spec))
	for range 2 {
		w := s.adopt(spec)
		s.want(w, 0, work.Exited, "")
		s.wantOutput(w, "out\nx", "err\n")
		if err := w.Close(); err != nil {
			s.Error(err)
		}
		w.Leave()
		select {
		case <-w.Done():
		default:
			s.Error("it has not ended any more")
		}
	}
}

func testAdoptNothing(s *suite) {
	spec := s.spec("say")
	if _, err := s.r.Adopt(s.Context(), spec.Root); !errors.Is(err, process.ErrNotStarted) {
		s.Errorf("what was never started: %v", err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if _, err := s.r.Start(ctx, spec); !errors.Is(err, context.Canceled) {
		s.Fatal(err)
	}
	if _, err := s.r.Adopt(s.Context(), spec.Root); !errors.Is(err, process.ErrNotStarted) {
		s.Errorf("what could not be started: %v", err)
	}
}

func testAdoptStop(s *suite) {
	spec := s.spec("polite")
	s.ready(spec).Leave()
	w := s.adopt(spec)
	w.Stop(0, deadline)
	s.want(w, 7, work.Stopped, "stopped")
}

func testAdoptStdin(s *suite) {
	spec := s.spec("cat")
	spec.Stdin = true
	w, want := s.start(spec), ""
	for _, line := range []string{"one\n", "two, longer\n", strings.Repeat("three\n", 10_000)} {
		if n, err := w.Stdin().Offset(); err != nil || n != int64(len(want)) {
			s.Fatalf("%d bytes were passed on, %v, want %d", n, err, len(want))
		}
		if _, err := w.Stdin().Write([]byte(line)); err != nil {
			s.Fatal(err)
		}
		want += line
		w.Leave()
		if _, err := w.Stdin().Write([]byte("late")); err == nil {
			s.Error("a node that has left writes on")
		}
		w = s.adopt(spec)
	}
	if err := w.Stdin().Close(); err != nil {
		s.Fatal(err)
	}
	s.want(w, 0, work.Exited, "")
	s.wantOutput(w, want+"end\n", "")
}

func testAdoptAcked(s *suite) {
	s.configure(time.Second, 16)
	spec := s.spec("lines")
	spec.Stdin = true
	w := s.start(spec)
	write := func(text string) {
		if _, err := w.Stdin().Write([]byte(text)); err != nil {
			s.Fatal(err)
		}
	}
	write("0123456789abcde\n") // all that the spool holds
	s.awaitOutput(w, "0123456789abcde\n")
	w.Ack(16, 0)
	write("end\n")
	s.follow(w, func() bool { n, _ := w.Written(); return n == 20 })
	w.Leave()
	w = s.adopt(spec)
	if _, err := w.Stdin().Offset(); err != nil {
		s.Fatal(err)
	}
	if err := w.Stdin().Close(); err != nil {
		s.Fatal(err)
	}
	s.want(w, 0, work.Exited, "")
	buf := make([]byte, 100)
	if _, err := w.ReadOutput(work.Stdout, 15, buf); !errors.Is(err, process.ErrAcked) {
		s.Errorf("what was taken away: %v", err)
	}
	if n, err := w.ReadOutput(work.Stdout, 16, buf); err != nil || string(buf[:n]) != "end\n" {
		s.Errorf("what was not: %q, %v", buf[:n], err)
	}
}

func testNodeGone(s *suite) {
	spec := s.spec("idle")
	spec.NodeLimit = 500 * time.Millisecond
	s.ready(spec).Leave()
	s.kit.Ended(s.T, s.r, spec.Root)
	s.want(s.adopt(spec), 143, work.Orphaned, "its node was gone for 500ms")
}

func testOriginSilent(s *suite) {
	spec := s.spec("stubborn")
	spec.OrphanLimit = 500 * time.Millisecond
	s.want(s.start(spec), 137, work.Orphaned, "its origin was silent for 500ms")
}
