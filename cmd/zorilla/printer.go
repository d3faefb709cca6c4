package main

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

// maxLine is where a labelled line without an end is broken, so that memory
// stays bounded.
const maxLine = 64 << 10

// printer writes the output of a job's ranks. It drops what it has had
// already and what belongs to an earlier attempt than the one it has seen.
// With labels it writes whole lines only, each after its rank, and with times after when it
// came. It is for one goroutine.
type printer struct {
	to     map[work.Stream]io.Writer
	labels bool
	times  bool
	seen   map[source]*printed
	tail   int // print only so many lines of each stream of each rank, when told to; 0 = all at once
}

// source is one stream of one rank.
type source struct {
	rank   int
	stream work.Stream
}

// position is how far the output of one source has come.
type position struct {
	attempt int
	next    int64 // offset
}

// fresh returns what of a piece has not come yet, as long as it is of the newest attempt that
// has been seen. If that is a newer one than before, what came of others counts no more.
func (at *position) fresh(o jobs.Output) (data []byte, newer bool) {
	if o.Attempt < at.attempt {
		return nil, false
	}
	if newer = o.Attempt > at.attempt; newer {
		*at = position{attempt: o.Attempt}
	}
	data = o.Data
	if o.Offset < at.next {
		data = data[min(at.next-o.Offset, int64(len(data))):]
	}
	at.next = max(at.next, o.Offset+int64(len(o.Data)))
	return data, newer
}

type printed struct {
	position
	line  []byte // begun, not ended; of whole lines only
	began int64  // when it did, as in jobs.Output
	held  []byte // with a tail: as it is to be written
}

// maxHeld bounds what is held of one stream, however long its lines are.
const maxHeld = 1 << 20

// hold keeps the last n lines of what came. It looks for them not before what is held has
// doubled.
func (at *printed) hold(data []byte, n int) {
	if at.held = append(at.held, data...); len(at.held) >= 2*maxHeld {
		at.held = append([]byte(nil), lastLines(at.held, n)...)
	}
}

// lastLines returns the last n lines, at most maxHeld bytes.
func lastLines(b []byte, n int) []byte {
	from := len(b)
	for ; n > 0 && from > 0; n-- {
		from = bytes.LastIndexByte(b[:from-1], '\n') + 1
	}
	return b[max(from, len(b)-maxHeld):]
}

// writeError marks an error of our own standard output or error.
type writeError struct{ error }

// Unwrap returns the error itself.
func (e *writeError) Unwrap() error { return e.error }

func newPrinter(stdout, stderr io.Writer, labels bool) *printer {
	return &printer{
		to:     map[work.Stream]io.Writer{work.Stdout: stdout, work.Stderr: stderr},
		labels: labels,
		seen:   map[source]*printed{},
	}
}

// only drops what is of other streams.
func (p *printer) only(stream work.Stream) {
	for other := range p.to {
		if other != stream {
			p.to[other] = io.Discard
		}
	}
}

// print takes one piece of output. An error is a *writeError.
func (p *printer) print(o jobs.Output) error {
	src := source{o.Rank, o.Stream}
	at := p.seen[src]
	if at == nil {
		at = &printed{}
		p.seen[src] = at
	}
	data, newer := at.fresh(o)
	if newer {
		if err := p.endLine(src, at); err != nil {
			return err
		}
		*at = printed{position: at.position}
	}
	if len(data) == 0 {
		return nil
	}
	if p.whole() {
		return p.lines(src, at, data, o.At)
	}
	return p.put(src, at, data)
}

// whole reports whether only whole lines are written.
func (p *printer) whole() bool { return p.labels || p.times }

// put writes what is ready, or holds it.
func (p *printer) put(src source, at *printed, data []byte) error {
	if p.tail > 0 {
		at.hold(data, p.tail)
		return nil
	}
	return p.write(src, data)
}

// stampLayout is how times are written. They are known to a tenth of a second.
const stampLayout = "2006-01-02T15:04:05.0Z07:00"

// label appends what stands before a line of a rank that began at a time.
func (p *printer) label(b []byte, rank int, began int64) []byte {
	switch {
	case p.times && began == 0: // of jobs that were recorded before times were
		b = append(b, "- "...)
	case p.times:
		b = append(time.UnixMilli(began).AppendFormat(b, stampLayout), ' ')
	}
	if p.labels {
		b = append(strconv.AppendInt(b, int64(rank), 10), ": "...)
	}
	return b
}

// lines writes the lines that data completes, which came at a time, in one piece.
func (p *printer) lines(src source, at *printed, data []byte, came int64) error {
	var whole []byte
	for len(data) > 0 {
		if len(at.line) == 0 {
			at.began = came
		}
		n := bytes.IndexByte(data, '\n') + 1
		ended := n > 0
		if !ended {
			n = len(data)
		}
		n = min(n, maxLine-len(at.line))
		at.line = append(at.line, data[:n]...)
		ended = ended && data[n-1] == '\n'
		data = data[n:]
		if !ended && len(at.line) < maxLine {
			break
		}
		whole = append(p.label(whole, src.rank, at.began), at.line...)
		if !ended {
			whole = append(whole, '\n')
		}
		at.line = at.line[:0]
	}
	if len(whole) == 0 {
		return nil
	}
	return p.put(src, at, whole)
}

// endLine writes a line that has no end yet, and ends it.
func (p *printer) endLine(src source, at *printed) error {
	if len(at.line) == 0 {
		return nil
	}
	return p.lines(src, at, []byte{'\n'}, at.began)
}

// sources are those of which something came, by rank.
func (p *printer) sources() []source {
	return slices.SortedFunc(maps.Keys(p.seen), func(a, b source) int { return 2*(a.rank-b.rank) + int(a.stream) - int(b.stream) })
}

// release writes the tails that were held, and has all that comes later written at once.
func (p *printer) release() error {
	n := p.tail
	p.tail = 0
	for _, src := range p.sources() {
		at := p.seen[src]
		last := n
		if len(at.line) > 0 { // it is written when it ends
			last--
		}
		held := lastLines(at.held, last)
		at.held = nil
		if err := p.write(src, held); err != nil {
			return err
		}
	}
	return nil
}

// finish writes what is left at the end.
func (p *printer) finish() error {
	for _, src := range p.sources() {
		if err := p.endLine(src, p.seen[src]); err != nil {
			return err
		}
	}
	return nil
}

func (p *printer) write(src source, b []byte) error {
	if _, err := p.to[src.stream].Write(b); err != nil {
		return &writeError{err}
	}
	return nil
}
