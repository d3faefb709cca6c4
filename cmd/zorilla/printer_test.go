package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/process"
)

// out is a piece of standard output.
func out(rank, attempt int, offset int64, text string) jobs.Output {
	return jobs.Output{Rank: rank, Attempt: attempt, Stream: process.Stdout, Offset: offset, Data: []byte(text)}
}

func TestPrinter(t *testing.T) {
	onStderr := out(0, 1, 0, "err\n")
	onStderr.Stream = process.Stderr
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
