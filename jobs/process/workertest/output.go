package workertest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// outputs is about what workers read and write.
var outputs = []test{
	{"keeps its streams apart", testStreams},
	{"gives output from any offset", testOffsets},
	{"waits while its output is not taken away", testSpool},
	{"stops while it waits for that", testSpoolStop},
	{"ends when it writes too much", testTooMuch},
	{"may write as much as it may", testEnough},
	{"tells of each piece of output", testFollow},
	{"reads its input to the end", testStdin},
	{"has no input", testNoStdin},
	{"lets go of input that is not read", testStdinUnread},
}

func testStreams(s *suite) {
	w := s.start(s.spec("say", "no newline"))
	s.want(w, 0, work.Exited, "")
	s.wantOutput(w, "out\nno newline", "err\n")
	if out, errs := w.Written(); out != 14 || errs != 4 {
		s.Errorf("it wrote %d and %d bytes", out, errs)
	}
}

func testOffsets(s *suite) {
	w := s.start(s.spec("say", "456789"))
	s.await(w)
	buf := make([]byte, 4)
	read := func(stream work.Stream, offset int64, want string, fails error) {
		s.Helper()
		n, err := w.ReadOutput(stream, offset, buf)
		if string(buf[:n]) != want || !errors.Is(err, fails) {
			s.Errorf("%v at %d: %q, %v, want %q, %v", stream, offset, buf[:n], err, want, fails)
		}
	}
	read(work.Stdout, 0, "out\n", nil)
	read(work.Stdout, 7, "789", nil)
	read(work.Stdout, 10, "", nil)
	read(work.Stdout, 1<<40, "", nil)
	read(work.Stdout, -1, "", process.ErrAcked)
	read(work.Stderr, 0, "err\n", nil)
	if n, err := w.ReadOutput(work.Files, 0, buf); n != 0 || err == nil {
		s.Errorf("a third stream: %d, %v", n, err)
	}
	w.Ack(4, 0)
	read(work.Stdout, 3, "", process.ErrAcked)
	read(work.Stdout, 4, "4567", nil)
	read(work.Stderr, 0, "err\n", nil)
	w.Ack(2, 1<<40) // back, and more than there is
	read(work.Stdout, 4, "4567", nil)
	read(work.Stderr, 3, "", process.ErrAcked)
	read(work.Stderr, 4, "", nil)
	if err := w.Close(); err != nil {
		s.Fatal(err)
	}
	read(work.Stdout, 4, "", os.ErrClosed)
}

const (
	small = 64 << 10
	much  = 1 << 20
)

// flooded is what the program writes between two offsets.
func flooded(from, to int64) string {
	var b strings.Builder
	for n := from / 8; n <= to/8; n++ {
		fmt.Fprintf(&b, "%07x\n", n)
	}
	return b.String()[from%8 : from%8+to-from]
}

func testSpool(s *suite) {
	s.configure(time.Second, small)
	w := s.start(s.spec("flood", fmt.Sprint(much)))
	got := int64(0)
	s.follow(w, func() bool {
		n, errs := w.Written()
		got = n
		return n >= small && errs >= int64(len("begun\n"))
	})
	if errs := s.output(w, work.Stderr); got != small || errs != "begun\n" {
		s.Errorf("it wrote %d bytes and %q ahead of a spool of %d", got, errs, small)
	}
	got = 0
	for buf := make([]byte, 10_000); got < much; {
		s.follow(w, func() bool { n, _ := w.Written(); return n > got })
		n, err := w.ReadOutput(work.Stdout, got, buf)
		if err != nil || string(buf[:n]) != flooded(got, got+int64(n)) {
			s.Fatalf("after %d bytes came %d others: %v", got, n, err)
		}
		got += int64(n)
		w.Ack(got, 0)
	}
	s.want(w, 0, work.Exited, "")
	if out, _ := w.Written(); out != much || s.output(w, work.Stderr) != "begun\nall\n" {
		s.Errorf("it wrote %d bytes of %d", out, much)
	}
}

func testSpoolStop(s *suite) {
	for _, grace := range []time.Duration{0, deadline} {
		s.configure(time.Second, small)
		w := s.start(s.spec("flood", fmt.Sprint(64*much)))
		s.follow(w, func() bool { n, _ := w.Written(); return n >= small })
		w.Stop(0, grace)
		code := 143
		if grace == 0 {
			code = 137
		}
		s.want(w, code, work.Stopped, "stopped")
		n, _ := w.Written()
		if s.output(w, work.Stdout) != flooded(0, n) {
			s.Errorf("not all of %d bytes are there", n)
		}
	}
}

const tooMuch = "wrote more than 12 KiB of output (--max-output)"

// What is within the limit is kept, in both streams together, however it ends.
func testTooMuch(s *suite) {
	begun := int64(len("begun\n"))
	for _, size := range []int{12<<10 - int(begun) + 8, 64 * much} { // it may end before it is seen
		s.configure(time.Second, process.DefaultSpool)
		spec := s.spec("flood", fmt.Sprint(size))
		spec.MaxOutput = 12 << 10
		w := s.start(spec)
		s.want(w, 137, work.Output, tooMuch)
		out, errs := w.Written()
		if out+errs != spec.MaxOutput || s.output(w, work.Stdout) != flooded(0, out) || !strings.HasPrefix("begun\nall\n", s.output(w, work.Stderr)) {
			s.Errorf("of %d bytes %d and %d are kept: %q", size, out, errs, s.output(w, work.Stderr))
		}
	}
}

func testEnough(s *suite) {
	spec := s.spec("flood", fmt.Sprint(8<<10))
	spec.MaxOutput = 8<<10 + int64(len("begun\nall\n"))
	w := s.start(spec)
	s.want(w, 0, work.Exited, "")
	s.wantOutput(w, flooded(0, 8<<10), "begun\nall\n")
}

func testFollow(s *suite) {
	spec := s.spec("lines")
	spec.Stdin = true
	w := s.start(spec)
	for i := range 100 {
		if _, err := w.Stdin().Write([]byte("line\n")); err != nil {
			s.Fatal(err)
		}
		s.awaitOutput(w, strings.Repeat("line\n", i+1))
	}
	if err := w.Stdin().Close(); err != nil {
		s.Fatal(err)
	}
	s.want(w, 0, work.Exited, "")
}

func testStdin(s *suite) {
	spec := s.spec("cat")
	spec.Stdin = true
	w := s.start(spec)
	if n, err := w.Stdin().Offset(); n != 0 || err != nil {
		s.Errorf("before the first byte: offset %d, %v", n, err)
	}
	text := bytes.Repeat([]byte("all work and no play\n"), 100_000)
	if n, err := w.Stdin().Write(text); n != len(text) || err != nil {
		s.Fatal(n, err)
	}
	if err := errors.Join(w.Stdin().Close(), w.Stdin().Close()); err != nil {
		s.Fatal(err)
	}
	if _, err := w.Stdin().Write([]byte("more")); !errors.Is(err, os.ErrClosed) {
		s.Errorf("write after close: %v", err)
	}
	s.want(w, 0, work.Exited, "")
	s.wantOutput(w, string(text)+"end\n", "")
}

func testNoStdin(s *suite) {
	w := s.start(s.spec("cat"))
	s.want(w, 0, work.Exited, "")
	s.wantOutput(w, "end\n", "")
	if w.Stdin() != nil || w.Tasks() != nil {
		s.Error("it has an input, or tasks")
	}
}

func testStdinUnread(s *suite) {
	spec := s.spec("idle")
	spec.Stdin = true
	w := s.ready(spec)
	failed := make(chan error)
	go func() {
		for block := make([]byte, 1<<20); ; {
			if _, err := w.Stdin().Write(block); err != nil {
				failed <- err
				return
			}
		}
	}()
	w.Stop(0, 0) // must get through although the input is full
	s.want(w, 137, work.Stopped, "stopped")
	select {
	case <-failed:
	case <-time.After(deadline):
		s.Error("a write to an ended worker waits")
	}
}
