package main

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// roll is who knows whom, as the nodes' logs tell.
type roll struct {
	mu    sync.Mutex // guards what follows
	knows []map[string]bool
	dead  map[string]bool // names of nodes that were killed
	in    int             // how many have joined
	lost  int             // how often a node has held another to be gone
}

func newRoll(nodes int) *roll {
	r := &roll{knows: make([]map[string]bool, nodes), dead: map[string]bool{}}
	for i := range r.knows {
		r.knows[i] = map[string]bool{}
	}
	return r
}

// log returns a writer for what node i logs.
func (r *roll) log(i int) io.Writer { return &nodeLog{roll: r, i: i} }

// nodeLog passes whole lines on.
type nodeLog struct {
	roll *roll
	i    int
	part []byte // of a line
}

// Write implements io.Writer.
func (l *nodeLog) Write(p []byte) (int, error) {
	l.part = append(l.part, p...)
	for {
		line, rest, ok := bytes.Cut(l.part, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.roll.line(l.i, string(line))
		l.part = rest
	}
}

func (r *roll) line(i int, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := ""
	for word := range strings.FieldsSeq(line) {
		if v, ok := strings.CutPrefix(word, "name="); ok {
			name = v
		}
	}
	switch {
	case strings.Contains(line, " a member is here "):
		r.knows[i][name] = true
	case strings.Contains(line, " joined the network "):
		r.in++
	case strings.Contains(line, " a member is gone "):
		delete(r.knows[i], name)
		r.lost++
	}
}

// share is how much of all pairs is known, 0 to 1.
func (r *roll) share() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum, n := 0, len(r.knows)
	for _, k := range r.knows {
		sum += len(k)
	}
	return float64(sum) / float64(n*(n-1))
}

// joined is how many nodes have found the network.
func (r *roll) joined() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.in
}

func (r *roll) gone() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// kill notes the death of node i.
func (r *roll) kill(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead[nameOf(i)] = true
}

// missed is the share of the living that know of all deaths.
func (r *roll) missed() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	know, living := 0, 0
	for i, k := range r.knows {
		if r.dead[nameOf(i)] {
			continue
		}
		living++
		know++
		for name := range r.dead {
			if k[name] {
				know--
				break
			}
		}
	}
	return float64(know) / float64(living)
}
