// Package progress shows a user how far the long steps of a command are: as a line of a
// terminal that is drawn again and again, or as lines of JSON for programs.
//
// The line is drawn here rather than by a library: the workers' supervisors are the same
// program, and what libraries for bars do when they are loaded would be a part of each start.
package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/rate"
	"zorilla/internal/units"
)

// Mode is how steps are shown.
type Mode string

// The modes.
const (
	None Mode = "none"
	Bar  Mode = "bar"
	JSON Mode = "json"
)

// Update is how far a step is.
type Update struct {
	Step    string         `json:"step"`              // such as "sending inputs"
	Job     string         `json:"job,omitempty"`     // as people see it; "" = it has none yet
	Done    int64          `json:"done"`              // bytes
	Total   int64          `json:"total"`             // bytes
	Rate    int64          `json:"rate,omitempty"`    // bytes a second; 0 = not known, and found out here
	Left    codec.Duration `json:"left,omitempty"`    // 0 = not known
	Nodes   int            `json:"nodes,omitempty"`   // that take part
	Holders int            `json:"holders,omitempty"` // nodes that pass it on
}

const (
	// patience is how long a step takes before a line is drawn for it.
	patience = 400 * time.Millisecond
	// redraw is how often a line is drawn at most, and report how often one of JSON is
	// written.
	redraw, report = 100 * time.Millisecond, time.Second
	// widest is how many columns a line has at most, and narrowest at least.
	widest, narrowest = 100, 20
)

// Line shows one step after the other. All its methods may be called from any goroutine,
// also those of a nil *Line, which shows nothing.
type Line struct {
	mode  Mode
	width func() int // of the terminal, in columns
	now   func() time.Time

	mu      sync.Mutex // guards what follows, and the order of writes
	to      io.Writer
	step    string
	began   time.Time  // of the step
	last    time.Time  // drawn or written
	pace    rate.Meter // of a step that does not know its own
	drawn   bool       // a line is there
	midway  bool       // something else has not ended its line
	pending *Update    // JSON: the latest, not written
}

// New returns a Line that writes to a terminal of that width, or anything else, whose time
// is told by now.
func New(mode Mode, to io.Writer, width func() int, now func() time.Time) *Line {
	return &Line{mode: mode, to: to, width: width, now: now}
}

// Show reports how far a step is. Another step than before ends that.
func (l *Line) Show(u Update) {
	if !l.Shows() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if u.Step != l.step {
		l.end()
		l.step, l.began, l.last, l.pace = u.Step, now, time.Time{}, rate.Meter{}
	}
	l.pace.Note(now, u.Done)
	if u.Rate == 0 {
		u.Rate = l.pace.Rate()
		u.Left = codec.Duration(rate.Left(u.Total-u.Done, u.Rate))
	}
	every := redraw
	if l.mode == JSON {
		every = report
	}
	l.pending = &u
	if now.Sub(l.last) < every || l.mode == Bar && (now.Sub(l.began) < patience || l.midway) {
		return
	}
	l.last = now
	l.write()
}

// write shows what is pending.
func (l *Line) write() {
	u := l.pending
	if l.pending = nil; u == nil {
		return
	}
	if l.mode == JSON {
		text, _ := json.Marshal(struct { // of numbers and texts, which never fails
			Event string `json:"event"`
			*Update
		}{"progress", u})
		_, _ = l.to.Write(append(text, '\n')) // nobody reads it any more if that fails
		return
	}
	l.drawn = true
	_, _ = io.WriteString(l.to, "\r"+u.draw(min(l.width(), widest))+"\x1b[K")
}

// Shows reports whether it shows anything.
func (l *Line) Shows() bool { return l != nil && l.mode != None }

// Done ends the step that is shown, if there is one.
func (l *Line) Done() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// end tells the last of a step, if programs want to know, and removes its line.
func (l *Line) end() {
	if l.mode == JSON {
		l.write()
	}
	l.erase()
	l.step, l.pending = "", nil
}

func (l *Line) erase() {
	if l.drawn {
		_, _ = io.WriteString(l.to, "\r\x1b[K")
		l.drawn = false
	}
}

// Over returns a writer to the same terminal as the line's, which makes room for what is
// written to it.
func (l *Line) Over(w io.Writer) io.Writer {
	if l == nil || l.mode != Bar {
		return w
	}
	return over{l, w}
}

type over struct {
	line *Line
	to   io.Writer
}

// Write implements io.Writer.
func (o over) Write(p []byte) (int, error) {
	o.line.mu.Lock()
	defer o.line.mu.Unlock()
	o.line.erase()
	if len(p) > 0 {
		o.line.midway = p[len(p)-1] != '\n'
	}
	return o.to.Write(p)
}

// draw writes an update into so many columns.
func (u *Update) draw(width int) string {
	share := 1.0
	if u.Total > 0 {
		share = min(1, max(0, float64(u.Done)/float64(u.Total)))
	}
	to := u.Step
	if u.Nodes > 1 {
		to += fmt.Sprintf(" (%d nodes)", u.Nodes)
	}
	tail := fmt.Sprintf("%3.0f%%  %s of %s", 100*share, units.Bytes(u.Done), units.Bytes(u.Total))
	if u.Rate > 0 {
		tail += fmt.Sprintf("  %s/s", units.Bytes(u.Rate))
	}
	if u.Left > 0 {
		tail += fmt.Sprintf("  %s left", units.Span(u.Left.Std()))
	}
	width = max(width, narrowest) - 1 // the last column would begin a new line in some terminals
	room := width - len(to) - len(tail) - 5
	if room < 5 { // no bar
		text := to + "  " + tail
		return text[:min(len(text), width)]
	}
	room = min(room, 30)
	full := int(share * float64(room))
	return fmt.Sprintf("%s  [%s%s] %s", to, strings.Repeat("#", full), strings.Repeat(".", room-full), tail)
}
