package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

// out is a piece of standard output.
func out(rank, attempt int, offset int64, text string) jobs.Output {
	return jobs.Output{Rank: rank, Attempt: attempt, Stream: work.Stdout, Offset: offset, Data: []byte(text)}
}

// With a tail the last lines are printed when they are asked for, then all that comes.
func TestPrinterOfTails(t *testing.T) {
	onStderr := out(0, 1, 0, "e1\ne2\ne3\n")
	onStderr.Stream = work.Stderr
	for _, c := range []struct {
		labels bool
		want   string
	}{{false, "b\nc2\nnew line\nY\n"}, {true, "0: b\n0: c\n1: 2\n1: new line\n2: Y\n"}} {
		var stdout, stderr bytes.Buffer
		p := newPrinter(&stdout, &stderr, c.labels)
		p.tail = 2
		pieces := []jobs.Output{out(0, 1, 0, "a\nb"), out(0, 1, 3, "\nc"), out(1, 1, 0, "1\n"), out(1, 2, 0, "2\n"), onStderr}
		for _, o := range pieces {
			if err := p.print(o); err != nil {
				t.Fatal(err)
			}
		}
		if stdout.Len() > 0 || stderr.Len() > 0 {
			t.Errorf("before it is asked for: %q, %q", &stdout, &stderr)
		}
		if err := p.release(); err != nil {
			t.Fatal(err)
		}
		for _, o := range append(pieces, out(1, 2, 2, "new line\n"), out(2, 1, 0, "Y\n")) { // it comes from the beginning again
			if err := p.print(o); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.finish(); err != nil {
			t.Fatal(err)
		}
		want := c.want
		if c.labels { // a line that has not ended waits for its end
			want = "0: b\n1: 2\n1: new line\n2: Y\n0: c\n"
		}
		wantErr := "e2\ne3\n"
		if c.labels {
			wantErr = "0: e2\n0: e3\n"
		}
		if stdout.String() != want || stderr.String() != wantErr {
			t.Errorf("labels %v: %q and %q, want %q and %q", c.labels, &stdout, &stderr, want, wantErr)
		}
	}
}

// What is held is bounded, and right.
func TestTailOfMuch(t *testing.T) {
	var stdout bytes.Buffer
	p := newPrinter(&stdout, &stdout, false)
	p.tail = 3
	line := strings.Repeat("x", 999) + "\n"
	for i := range int64(10_000) {
		if err := p.print(out(0, 1, i*1000, line)); err != nil {
			t.Fatal(err)
		}
	}
	if n := cap(p.seen[source{0, work.Stdout}].held); n > 4*maxHeld {
		t.Errorf("%d bytes are held", n)
	}
	for i := range int64(40) { // a line without an end
		if err := p.print(out(1, 1, i*100_000, strings.Repeat("y", 100_000))); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.release(); err != nil {
		t.Fatal(err)
	}
	if got, want := stdout.String(), strings.Repeat(line, 3)+strings.Repeat("y", maxHeld); got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}

func TestLastLines(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "a", "a\n": "a\n", "a\nb": "a\nb", "a\nb\nc": "b\nc", "a\nb\nc\n": "b\nc\n", "\n\n\n": "\n\n"} {
		if got := string(lastLines([]byte(text), 2)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestPrinter(t *testing.T) {
	onStderr := out(0, 1, 0, "err\n")
	onStderr.Stream = work.Stderr
	for _, c := range []struct {
		name           string
		labels         bool
		pieces         []jobs.Output
		stdout, stderr string
	}{
		{"unmodified", false, []jobs.Output{out(0, 1, 0, "a"), out(1, 1, 0, "\x00b"), onStderr, out(0, 1, 1, "c")}, "a\x00bc", "err\n"},
		{"sent again", false, []jobs.Output{out(0, 1, 0, "abc"), out(0, 1, 0, "abc"), out(0, 1, 1, "bcde"), out(0, 1, 2, "c")}, "abcde", ""},
		{"an earlier attempt is over", false, []jobs.Output{out(0, 1, 0, "a"), out(0, 2, 0, "b"), out(0, 1, 1, "X"), out(0, 2, 1, "c")}, "abc", ""},
		{"labels", true, []jobs.Output{out(3, 1, 0, "a\nb\n"), onStderr}, "3: a\n3: b\n", "0: err\n"},
		{"whole lines", true, []jobs.Output{out(0, 1, 0, "he"), out(1, 1, 0, "you\n"), out(0, 1, 2, "llo\nag"), out(0, 1, 8, "ain\n")}, "1: you\n0: hello\n0: again\n", ""},
		{"lines without an end", true, []jobs.Output{out(12, 1, 0, "x"), out(1, 1, 0, "\ny")}, "1: \n1: y\n12: x\n", ""},
		{"a line cut off by a new attempt", true, []jobs.Output{out(0, 1, 0, "ha"), out(0, 2, 0, "half\n")}, "0: ha\n0: half\n", ""},
	} {
		var stdout, stderr bytes.Buffer
		p := newPrinter(&stdout, &stderr, c.labels)
		for _, o := range c.pieces {
			if err := p.print(o); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.finish(); err != nil {
			t.Fatal(err)
		}
		if stdout.String() != c.stdout || stderr.String() != c.stderr {
			t.Errorf("%s: got %q and %q, want %q and %q", c.name, &stdout, &stderr, c.stdout, c.stderr)
		}
	}
}

// A line of any length must neither be lost nor be kept in memory.
func TestPrinterBreaksLongLines(t *testing.T) {
	var stdout bytes.Buffer
	p := newPrinter(&stdout, nil, true)
	const total = 5*maxLine + 100
	for offset := 0; offset < total; offset += 700 {
		n := min(700, total-offset)
		if err := p.print(out(0, 1, int64(offset), strings.Repeat("x", n))); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.print(out(0, 1, total, "\nend\n")); err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("0: "+strings.Repeat("x", maxLine)+"\n", 5) + "0: " + strings.Repeat("x", 100) + "\n0: end\n"
	if stdout.String() != want {
		t.Errorf("got %d bytes, want %d", stdout.Len(), len(want))
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestPrinterMarksItsOwnErrors(t *testing.T) {
	var writing *writeError
	if err := newPrinter(full{}, nil, false).print(out(0, 1, 0, "x")); !errors.As(err, &writing) || err.Error() != "disk full" {
		t.Errorf("got %v", err)
	}
}

// With times each line has that at which it began, and a tail is one of lines with theirs.
func TestPrinterOfTimes(t *testing.T) {
	at := func(o jobs.Output, millis int64) jobs.Output { o.At = millis; return o }
	pieces := []jobs.Output{out(0, 1, 0, "old\nbe"), at(out(0, 1, 6, "gun\n"), 1000), at(out(1, 1, 0, "a\nb"), 61_250), at(out(1, 1, 3, "c\nd"), 3_600_000)}
	stamp := func(millis int64) string { return time.UnixMilli(millis).Format(stampLayout) }
	for _, c := range []struct {
		tail   int
		labels bool
		want   string
	}{
		{0, false, "- old\n- begun\n" + stamp(61_200) + " a\n" + stamp(61_200) + " bc\n" + stamp(3_600_000) + " d\n"},
		{2, true, "- 0: old\n- 0: begun\n" + stamp(61_200) + " 1: bc\n" + stamp(3_600_000) + " 1: d\n"},
	} {
		var stdout bytes.Buffer
		p := newPrinter(&stdout, &stdout, c.labels)
		p.times, p.tail = true, c.tail
		for _, o := range pieces {
			if err := p.print(o); err != nil {
				t.Fatal(err)
			}
		}
		if c.tail > 0 {
			if err := p.release(); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.finish(); err != nil {
			t.Fatal(err)
		}
		if stdout.String() != c.want {
			t.Errorf("tail %d: %q, want %q", c.tail, &stdout, c.want)
		}
	}
}

func TestSinceOfAnOption(t *testing.T) {
	now := time.Date(2026, 11, 25, 21, 48, 0, 0, time.FixedZone("", 3600))
	for text, want := range map[string]time.Time{
		"10m": now.Add(-10 * time.Minute), "1h30m": now.Add(-90 * time.Minute), "01:00:00": now.Add(-time.Hour),
		"2026-11-25 20:00": time.Date(2026, 11, 25, 20, 0, 0, 0, now.Location()), "2026-11-24": time.Date(2026, 11, 24, 0, 0, 0, 0, now.Location()),
		"2026-11-25T20:00:01.5Z": time.Date(2026, 11, 25, 20, 0, 1, 5e8, time.UTC), "2026-11-25T20:00": time.Date(2026, 11, 25, 20, 0, 0, 0, now.Location()),
	} {
		if got, err := since("--since", text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "soon", "2026-13-01", "-5m", "25:61"} {
		if got, err := since("--since", text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
