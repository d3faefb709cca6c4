package web

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

// maxTail is how many bytes of output wait for one browser; older ones are
// left out. A page shows about as much.
const maxTail = 1 << 20

// piece is some output of one rank's stream, made plain.
type piece struct {
	Rank    int    `json:"rank"`
	Attempt int    `json:"attempt"`
	Err     bool   `json:"err"`
	Text    string `json:"text"`
}

// tail holds the newest pieces for a browser. One goroutine adds, another takes.
type tail struct {
	limit int
	wake  chan struct{} // holds a token while there is something to take

	mu      sync.Mutex // guards the fields below
	pieces  []piece
	size    int
	skipped int64
	ended   bool
	err     error
}

func newTail(limit int) *tail { return &tail{limit: limit, wake: make(chan struct{}, 1)} }

func (t *tail) ready() <-chan struct{} { return t.wake }

func (t *tail) add(p piece) {
	if p.Text == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.pieces); n > 0 && t.pieces[n-1].Rank == p.Rank && t.pieces[n-1].Attempt == p.Attempt &&
		t.pieces[n-1].Err == p.Err && len(t.pieces[n-1].Text) < 4096 {
		t.pieces[n-1].Text += p.Text
	} else {
		t.pieces = append(t.pieces, p)
	}
	t.size += len(p.Text)
	drop := 0
	for t.size > t.limit && drop < len(t.pieces)-1 {
		t.size -= len(t.pieces[drop].Text)
		t.skipped += int64(len(t.pieces[drop].Text))
		drop++
	}
	t.pieces = t.pieces[drop:]
	t.wakeLocked()
}

// end says that nothing follows; err reports why if that is not the natural end.
func (t *tail) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended, t.err = true, err
	t.wakeLocked()
}

func (t *tail) wakeLocked() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// take returns and forgets what is there, and whether more can come.
func (t *tail) take() (b batch, ended bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b = batch{Skipped: t.skipped, Pieces: t.pieces}
	t.pieces, t.size, t.skipped = nil, 0, 0
	return b, t.ended, t.err
}

// cleaner makes output plain: valid UTF-8 with line breaks and tabs, without
// escape sequences or other control characters. It remembers what a piece
// broke off in the middle of.
type cleaner struct {
	open map[source]*scanner
}

type source struct {
	rank, attempt int
	stream        work.Stream
}

// scanner is where the text of one source stands.
type scanner struct {
	rest  []byte // the begin of a character
	mode  int
	after bool // the last character was a carriage return
}

// Where a scanner is within an escape sequence.
const (
	plain    = iota
	escape   // after ESC
	control  // ESC [ … up to a final byte
	text     // ESC ] and the like, up to BEL or ESC \
	textStop // ESC within such a text
)

func newCleaner() *cleaner { return &cleaner{open: make(map[source]*scanner)} }

func (c *cleaner) clean(o jobs.Output) piece {
	key := source{o.Rank, o.Attempt, o.Stream}
	s := c.open[key]
	if s == nil {
		s = new(scanner)
		c.open[key] = s
	}
	return piece{Rank: o.Rank, Attempt: o.Attempt, Err: o.Stream == work.Stderr, Text: s.scan(o.Data)}
}

func (s *scanner) scan(data []byte) string {
	if len(s.rest) > 0 {
		data = append(s.rest, data...)
		s.rest = nil
	}
	var b strings.Builder
	for len(data) > 0 {
		if !utf8.FullRune(data) {
			s.rest = append([]byte(nil), data...)
			break
		}
		r, n := utf8.DecodeRune(data)
		data = data[n:]
		s.step(&b, r)
	}
	return b.String()
}

func (s *scanner) step(b *strings.Builder, r rune) {
	switch s.mode {
	case plain:
		s.print(b, r)
	case escape:
		switch {
		case r == '[':
			s.mode = control
		case r == ']' || r == 'P' || r == '_' || r == '^' || r == 'X':
			s.mode = text
		case r >= ' ' && r <= '/': // names a character set; one more follows
		default:
			s.mode = plain
		}
	case control:
		switch {
		case r >= '@' && r <= '~':
			s.mode = plain
		case r < ' ' || r > '~': // not a sequence after all
			s.mode = plain
			s.print(b, r)
		}
	case text:
		switch r {
		case '\a':
			s.mode = plain
		case 0x1b:
			s.mode = textStop
		case '\n': // nothing goes over a line's end; a broken one must not swallow the rest
			s.mode = plain
			s.print(b, r)
		}
	case textStop:
		s.mode = plain
		if r != '\\' {
			s.mode = escape
			s.step(b, r)
		}
	}
}

func (s *scanner) print(b *strings.Builder, r rune) {
	after := s.after
	s.after = false
	switch {
	case r == '\r': // alone it starts a line again; shown as a new one
		if after {
			return
		}
		s.after = true
		b.WriteByte('\n')
	case r == '\n':
		if !after {
			b.WriteByte('\n')
		}
	case r == '\t':
		b.WriteByte('\t')
	case r == 0x1b:
		s.mode = escape
	case unicode.IsControl(r):
	case unicode.In(r, unicode.Bidi_Control):
		b.WriteRune('�') // could make a line read as another one
	default:
		b.WriteRune(r)
	}
}
