package main

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strconv"

	"zorilla/jobs"
	"zorilla/jobs/process"
)

// maxLine is where a labelled line without an end is broken, so that memory
// stays bounded.
const maxLine = 64 << 10

// printer writes the output of a job's ranks. It drops what it has had
// already and what belongs to an earlier attempt than the one it has seen.
// With labels it writes whole lines only, each after its rank. It is for one
// goroutine.
type printer struct {
	to     map[process.Stream]io.Writer
	labels bool
	seen   map[source]*printed
}

// source is one stream of one rank.
type source struct {
	rank   int
	stream process.Stream
}

type printed struct {
	attempt int
	next    int64  // offset
	line    []byte // begun, not ended; with labels only
}

// writeError marks an error of our own standard output or error.
type writeError struct{ error }

// Unwrap returns the error itself.
func (e *writeError) Unwrap() error { return e.error }

func newPrinter(stdout, stderr io.Writer, labels bool) *printer {
	return &printer{
		to:     map[process.Stream]io.Writer{process.Stdout: stdout, process.Stderr: stderr},
		labels: labels,
		seen:   map[source]*printed{},
	}
}

// print takes one piece of output. An error is a *writeError.
func (p *printer) print(o jobs.Output) error {
	src := source{o.Rank, o.Stream}
	at := p.seen[src]
	if at == nil {
		at = &printed{attempt: o.Attempt}
		p.seen[src] = at
	}
	if o.Attempt < at.attempt {
		return nil
	}
	if o.Attempt > at.attempt {
		if err := p.endLine(src, at); err != nil {
			return err
		}
		*at = printed{attempt: o.Attempt}
	}
	data := o.Data
	if o.Offset < at.next {
		data = data[min(at.next-o.Offset, int64(len(data))):]
	}
	if len(data) == 0 {
		return nil
	}
	at.next = o.Offset + int64(len(o.Data))
	if p.labels {
		return p.lines(src, at, data)
	}
	return p.write(src, data)
}

// lines writes the lines that data completes, in one piece.
func (p *printer) lines(src source, at *printed, data []byte) error {
	var whole []byte
	label := strconv.AppendInt(nil, int64(src.rank), 10)
	label = append(label, ": "...)
	for len(data) > 0 {
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
		whole = append(append(whole, label...), at.line...)
		if !ended {
			whole = append(whole, '\n')
		}
		at.line = at.line[:0]
	}
	if len(whole) == 0 {
		return nil
	}
	return p.write(src, whole)
}

// endLine writes a line that has no end yet, and ends it.
func (p *printer) endLine(src source, at *printed) error {
	if len(at.line) == 0 {
		return nil
	}
	return p.lines(src, at, []byte{'\n'})
}

// finish writes what is left at the end.
func (p *printer) finish() error {
	order := slices.SortedFunc(maps.Keys(p.seen), func(a, b source) int { return 2*(a.rank-b.rank) + int(a.stream) - int(b.stream) })
	for _, src := range order {
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
