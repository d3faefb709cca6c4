package process

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"zorilla/jobs/proc"
	"zorilla/jobs/work"
)

// drink reads a stream to its end, checks that it is the pattern, and
// acknowledges as it goes. It returns the length and the most memory that the
// supervisor had.
func drink(t *testing.T, w Worker, root string) (n, peak int64) {
	t.Helper()
	buf := make([]byte, 1<<20)
	late := time.After(2 * deadline)
	var rec record
	want := newPattern()
	for {
		changed := w.Changed()
		for {
			k, err := w.ReadOutput(work.Stdout, n, buf)
			if err != nil {
				t.Fatal(err)
			}
			if k == 0 {
				break
			}
			if !want.follows(buf[:k]) {
				t.Fatalf("wrong bytes between %d and %d", n, n+int64(k))
			}
			n += int64(k)
			w.Ack(n, 0)
		}
		if rec.Supervisor.PID == 0 {
			_ = load(root, recordEntry, &rec)
		}
		peak = max(peak, proc.MostResident(rec.Supervisor.PID))
		select {
		case <-w.Done():
			if all, _ := w.Written(); n == all {
				return n, peak
			}
		case <-changed:
		case <-late:
			t.Fatalf("only %d bytes came", n)
		}
	}
}

func TestMuchOutputArrives(t *testing.T) {
	const size = 200 << 20
	spec := helperSpec(t, "flood", strconv.Itoa(size))
	w := start(t, Config{}, spec)
	begin := time.Now()
	n, peak := drink(t, w, spec.Root)
	if e := await(t, w); e.Code != 0 || n != size {
		t.Fatalf("%d bytes, %+v", n, e)
	}
	t.Logf("%.0f MB/s, supervisor at most %d MiB", size/1e6/time.Since(begin).Seconds(), peak>>20)
	if peak > 48<<20 {
		t.Errorf("the supervisor took %d MiB", peak>>20)
	}
	if _, err := w.ReadOutput(work.Stdout, 0, make([]byte, 1)); !errors.Is(err, ErrAcked) {
		t.Errorf("acknowledged bytes: %v", err)
	}
	info, err := os.Stat(spec.Root + "/stdout")
	if err != nil || info.Size() != size {
		t.Fatal(info, err)
	}
	// The last acknowledgements may come after the supervisor's end.
	if used := blocks(t, info); used > DefaultSpool+punchSize {
		t.Errorf("%d MiB of the spool are still on disk", used>>20)
	}
}

// While nobody acknowledges, the worker waits in its writes; it goes on with
// the acknowledgements.
func TestSlowReaderBlocksTheWorker(t *testing.T) {
	const spool, size = 256 << 10, 8 << 20
	spec := helperSpec(t, "flood", strconv.Itoa(size))
	spec.Args = append([]string{"/bin/sh", "-c", `echo begun >&2; "$@"; echo all >&2`, "sh"}, spec.Args...)
	w := start(t, Config{Spool: spool}, spec)
	awaitBoth(t, w, spool, int64(len("begun\n"))) // each stream goes its own way
	stdout, stderr := w.Written()
	if stdout != spool || output(t, w, work.Stderr) != "begun\n" {
		t.Errorf("%d and %d bytes before any acknowledgement", stdout, stderr)
	}
	if n, _ := drink(t, w, spec.Root); n != size {
		t.Errorf("%d bytes", n)
	}
	if e := await(t, w); e.Code != 0 || output(t, w, work.Stderr) != "begun\nall\n" {
		t.Errorf("%+v", e)
	}
}

// What is in the pipe at the end arrives, too, although nobody acknowledges.
func TestBlockedWorkerCanBeStopped(t *testing.T) {
	const spool = 64 << 10
	w := start(t, Config{Spool: spool}, helperSpec(t, "flood", strconv.Itoa(64<<20)))
	awaitOutput(t, w, spool)
	w.Stop(0, 0)
	if e := await(t, w); e.Cause != work.Stopped {
		t.Errorf("%+v", e)
	}
	n, _ := w.Written()
	if out := output(t, w, work.Stdout); int64(len(out)) != n || n < spool || n > spool+2<<20 {
		t.Errorf("%d of %d bytes", len(out), n)
	}
}

func TestStreamsAreApart(t *testing.T) {
	e, out, stderr := run(t, Config{}, script(t, "echo out; echo err >&2; printf 'no newline'"))
	if e.Code != 0 || out != "out\nno newline" || stderr != "err\n" {
		t.Errorf("%+v %q %q", e, out, stderr)
	}
}

func TestReadOutputAtTheEdges(t *testing.T) {
	w := start(t, Config{}, script(t, "printf 0123456789"))
	await(t, w)
	buf := make([]byte, 4)
	for _, c := range []struct {
		s      work.Stream
		offset int64
		want   string
		fails  bool
	}{
		{work.Stdout, 0, "0123", false}, {work.Stdout, 8, "89", false}, {work.Stdout, 10, "", false}, {work.Stdout, 1 << 40, "", false},
		{work.Stderr, 0, "", false}, {work.Stdout, -1, "", true}, {work.Stream(3), 0, "", true},
	} {
		n, err := w.ReadOutput(c.s, c.offset, buf)
		if string(buf[:n]) != c.want || (err != nil) != c.fails {
			t.Errorf("%v at %d: %q, %v", c.s, c.offset, buf[:n], err)
		}
	}
	w.Ack(1<<40, 1<<40) // more than there is
	if n, err := w.ReadOutput(work.Stdout, 10, buf); n != 0 || err != nil {
		t.Errorf("after everything was acknowledged: %d, %v", n, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ReadOutput(work.Stdout, 10, buf); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

// Output can be followed while the worker runs: no change is missed.
func TestOutputCanBeFollowed(t *testing.T) {
	const lines = 200
	spec := script(t, "while read -r line; do echo $line; done")
	spec.Stdin = true
	w := start(t, Config{}, spec)
	for i := range lines {
		if _, err := w.Stdin().Write([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
		awaitOutput(t, w, int64(i+1)*5)
	}
	if err := w.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	if e := await(t, w); e.Code != 0 || output(t, w, work.Stdout) != strings.Repeat("line\n", lines) {
		t.Errorf("%+v", e)
	}
}

func blocks(t *testing.T, info os.FileInfo) int64 {
	t.Helper()
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatalf("no blocks in %T", info.Sys())
	}
	return st.Blocks * 512
}
