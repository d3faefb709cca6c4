package top

import (
	"bytes"
	"fmt"
	"sync"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

const (
	maxLine    = 4096 // bytes; a longer one is cut there into several
	maxSources = 4096 // that have begun a line; of more, lines are shown as they come
)

// tail holds the newest lines of a job's output for a screen. One goroutine adds, another
// takes; whoever adds never waits.
type tail struct {
	label bool          // lines begin with their rank, or task
	wake  chan struct{} // holds a token while there is something to take

	mu    sync.Mutex // guards the fields below
	open  map[source]begun
	lines []string
	note  string // what keeps it waiting
	ended bool
	err   error
}

// source is what writes lines of its own.
type source struct {
	rank   int
	stream work.Stream
}

// begun is a line without its end.
type begun struct {
	attempt int
	text    []byte
}

func newTail(label bool) *tail {
	return &tail{label: label, wake: make(chan struct{}, 1), open: map[source]begun{}}
}

// add takes output.
func (t *tail) add(o jobs.Output) {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := source{o.Rank, o.Stream}
	if before, found := t.open[from]; found && before.attempt != o.Attempt {
		t.lineLocked(from.rank, before.text)
		delete(t.open, from)
	}
	rest := append(t.open[from].text, o.Data...)
	for len(rest) > 0 {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if !whole && len(line) < maxLine && (len(t.open) < maxSources || t.open[from].text != nil) {
			break
		}
		if len(line) > maxLine {
			line, after = rest[:maxLine], rest[maxLine:]
		}
		t.lineLocked(from.rank, line)
		rest = after
	}
	if len(rest) == 0 {
		delete(t.open, from)
	} else {
		t.open[from] = begun{o.Attempt, bytes.Clone(rest)}
	}
}

func (t *tail) lineLocked(rank int, line []byte) {
	text := outputLine(string(line))
	if t.label {
		text = fmt.Sprintf("%d: %s", rank, text)
	}
	t.lines = append(t.lines, text)
	if drop := len(t.lines) - maxLines; drop >= maxLines {
		t.lines = append([]string(nil), t.lines[drop:]...)
	}
	t.wakeLocked()
}

// end says that nothing follows; err reports why if that is not the natural end.
func (t *tail) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for from, rest := range t.open { // lines without an end
		t.lineLocked(from.rank, rest.text)
	}
	t.open, t.ended, t.err = map[source]begun{}, true, err
	t.wakeLocked()
}

// say reports what keeps the output waiting.
func (t *tail) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note = fmt.Sprintf(format, args...)
	t.wakeLocked()
}

func (t *tail) wakeLocked() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// take returns and forgets the lines that are there, and whether more can come.
func (t *tail) take() (lines []string, ended bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines, t.lines = t.lines, nil
	return lines[max(0, len(lines)-maxLines):], t.ended, t.err
}

// said returns and forgets what was said since it was asked last.
func (t *tail) said() (note string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	note, t.note = t.note, ""
	return note
}
