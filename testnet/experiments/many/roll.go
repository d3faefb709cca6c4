package main

import (
	"bufio"
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
	last  []string        // lines of each
}

func newRoll(nodes int) *roll {
	r := &roll{knows: make([]map[string]bool, nodes), dead: map[string]bool{}, last: make([]string, nodes)}
	for i := range r.knows {
		r.knows[i] = map[string]bool{}
	}
	return r
}

// read takes what node i logs until that ends.
func (r *roll) read(i int, log io.Reader) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		r.line(i, lines.Text())
	}
}

func (r *roll) line(i int, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[i] = line
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

func (r *roll) lastWords(i int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[i]
}
