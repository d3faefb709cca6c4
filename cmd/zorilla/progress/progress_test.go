package progress

import (
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
)

// screen is a terminal: its last line, and those above it.
type screen struct {
	above []string
	line  string
	at    int // column
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	for _, c := range []byte(strings.ReplaceAll(string(p), "\x1b[K", "\x00")) {
		switch c {
		case '\n':
			s.above, s.line, s.at = append(s.above, s.line), "", 0
		case '\r':
			s.at = 0
		case 0: // to the end of the line
			s.line = s.line[:s.at]
		default:
			s.line = s.line[:s.at] + string(c) + s.line[min(s.at+1, len(s.line)):]
			s.at++
		}
	}
	return len(p), nil
}

func newLine(mode Mode, to *strings.Builder, width int) (*Line, *time.Time) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return New(mode, to, func() int { return width }, func() time.Time { return now }), &now
}

func TestLineOfATerminal(t *testing.T) {
	var out strings.Builder
	l, now := newLine(Bar, &out, 120)
	l.Show(Update{Step: "hashing inputs", Total: 4 << 20})
	*now = now.Add(100 * time.Millisecond)
	l.Show(Update{Step: "hashing inputs", Done: 4 << 20, Total: 4 << 20})
	l.Done()
	if out.Len() > 0 {
		t.Fatalf("%q was drawn for a short step", out.String())
	}
	l.Show(Update{Step: "inputs to nodes", Done: 0, Total: 4 << 20, Nodes: 3})
	*now = now.Add(time.Second)
	l.Show(Update{Step: "inputs to nodes", Done: 1 << 20, Total: 4 << 20, Nodes: 3})
	want := "\rinputs to nodes (3 nodes)  [#######.......................]  25%  1 MiB of 4 MiB  1 MiB/s  3s left\x1b[K"
	if out.String() != want {
		t.Fatalf("it shows\n%q, want\n%q", out.String(), want)
	}
	out.Reset()
	*now = now.Add(redraw / 2)
	l.Show(Update{Step: "inputs to nodes", Done: 2 << 20, Total: 4 << 20, Nodes: 3})
	if out.Len() > 0 {
		t.Errorf("%q was drawn too soon after the one before", out.String())
	}
	*now = now.Add(redraw)
	l.Show(Update{Step: "inputs to nodes", Done: 2 << 20, Total: 4 << 20, Nodes: 3, Rate: 512 << 10, Left: codec.Duration(4 * time.Second)})
	if !strings.Contains(out.String(), "512 KiB/s  4s left") {
		t.Errorf("it shows %q without the rate that it was told", out.String())
	}
	out.Reset()
	l.Done()
	if out.String() != "\r\x1b[K" {
		t.Errorf("%q at the end", out.String())
	}
}

// What else is written to the terminal has a line of its own, whenever it comes.
func TestMessagesAboveALine(t *testing.T) {
	var s screen
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l := New(Bar, &s, func() int { return 60 }, func() time.Time { return now })
	other := l.Over(&s)
	show := func(done int64) {
		now = now.Add(time.Second)
		l.Show(Update{Step: "inputs", Done: done, Total: 100})
	}
	show(0)
	show(10)
	if s.line == "" {
		t.Fatalf("the line is %q", s.line)
	}
	_, _ = other.Write([]byte("zorilla: a warning\n")) // of a screen, which does not fail
	if s.line != "" || len(s.above) != 1 || s.above[0] != "zorilla: a warning" {
		t.Fatalf("above is %q, and the line %q", s.above, s.line)
	}
	show(20)
	if s.line == "" {
		t.Fatal("nothing is drawn after a whole line")
	}
	_, _ = other.Write([]byte("half a li"))
	show(30)
	if s.line != "half a li" {
		t.Fatalf("half a line became %q", s.line)
	}
	_, _ = other.Write([]byte("ne\n"))
	show(40)
	if s.line == "" || s.above[1] != "half a line" {
		t.Fatalf("above is %q, and the line %q", s.above, s.line)
	}
}

func TestLinesForPrograms(t *testing.T) {
	var out strings.Builder
	l, now := newLine(JSON, &out, 80)
	l.Show(Update{Step: "inputs", Job: "aaaaa@zeb2a", Done: 0, Total: 1000, Nodes: 2, Holders: 1})
	*now = now.Add(500 * time.Millisecond)
	l.Show(Update{Step: "inputs", Job: "aaaaa@zeb2a", Done: 500, Total: 1000})
	*now = now.Add(500 * time.Millisecond)
	l.Show(Update{Step: "inputs", Job: "aaaaa@zeb2a", Done: 600, Total: 1000})
	l.Show(Update{Step: "inputs", Job: "aaaaa@zeb2a", Done: 1000, Total: 1000})
	l.Show(Update{Step: "outputs", Done: 1, Total: 2})
	l.Done()
	want := `{"event":"progress","step":"inputs","job":"aaaaa@zeb2a","done":0,"total":1000,"nodes":2,"holders":1}
{"event":"progress","step":"inputs","job":"aaaaa@zeb2a","done":600,"total":1000,"rate":600,"left":1}
{"event":"progress","step":"inputs","job":"aaaaa@zeb2a","done":1000,"total":1000,"rate":1000}
{"event":"progress","step":"outputs","done":1,"total":2}
`
	if out.String() != want {
		t.Errorf("it writes\n%swant\n%s", out.String(), want)
	}
}

// Nobody's line shows nothing, and is in nobody's way.
func TestNoLine(t *testing.T) {
	var out strings.Builder
	l, now := newLine(None, &out, 80)
	for _, l := range []*Line{nil, l} {
		l.Show(Update{Step: "inputs", Total: 1})
		*now = now.Add(time.Minute)
		l.Show(Update{Step: "inputs", Total: 1})
		l.Done()
		if w := l.Over(&out); w != &out || out.Len() > 0 {
			t.Errorf("%v, %q", w, out.String())
		}
	}
}

// However narrow a terminal is, a line fits.
func TestWidths(t *testing.T) {
	u := Update{Step: "fetching output files", Done: 123456789, Total: 3 << 40, Rate: 12345678, Left: codec.Duration(72 * time.Hour), Nodes: 1000}
	for width := range 200 {
		if got := u.draw(width); len(got) >= max(width, narrowest) {
			t.Errorf("%d columns: %q has %d", width, got, len(got))
		}
	}
	for _, u := range []Update{{Total: 0}, {Done: 5, Total: 1}, {Done: -5, Total: 1}} {
		if got := u.draw(80); got == "" {
			t.Errorf("%+v is nothing", u)
		}
	}
}
