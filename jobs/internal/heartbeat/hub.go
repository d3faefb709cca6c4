package heartbeat

import (
	"fmt"
	"time"

	"zorilla/internal/stall"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/pmi"
	"zorilla/vicinity"
)

// Hub is what the node of rank 0 knows of a gang. It is not safe for use by several
// goroutines.
type Hub struct {
	began  time.Time
	nodes  map[vicinity.ID]*node
	name   func(vicinity.ID) string
	passed int       // the last barrier
	puts   []pmi.Put // before it
	told   bool      // puts are known: the barrier was passed here
	lost   string
	failed bool      // that is a rank that has failed
	over   time.Time // since when; zero = it is not
	again  bool      // this is a later life of its node
	since  time.Time // when ranks waited first for a node that has none any more; zero = they do not
	stall  stall.Guard
}

// node is one that runs ranks of the gang.
type node struct {
	heard time.Time // zero = never
	sent  int64
	waits int
	puts  []pmi.Put
	done  bool
}

// NewHub returns a hub for the nodes that run ranks, its own among them; name is what
// people call them. again says that an earlier life of its node had it, which some nodes
// may have told that they are done.
func NewHub(now time.Time, nodes []vicinity.ID, name func(vicinity.ID) string, again bool) *Hub {
	h := &Hub{began: now, nodes: map[vicinity.ID]*node{}, name: name, again: again}
	for _, id := range nodes {
		h.nodes[id] = &node{}
	}
	return h
}

// Has reports whether a node is of the gang.
func (h *Hub) Has(id vicinity.ID) bool { return h.nodes[id] != nil }

// Beat takes a beat of a node of the gang, and reports whether others may have to be
// answered.
func (h *Hub) Beat(now time.Time, from vicinity.ID, b *wire.Beat) (news bool) {
	n := h.nodes[from]
	if n == nil {
		return false
	}
	n.heard = now
	if late := time.Duration(n.sent - b.Sent); late > 0 && late < First {
		return false // it was overtaken by another
	}
	n.sent, n.waits, n.puts = b.Sent, b.Waits, b.Puts
	news = b.Done && !n.done
	n.done = n.done || b.Done
	if b.Lost != "" && h.lose(now, b.Lost) {
		h.failed, news = b.Failed, true
	}
	if b.Passed > h.passed { // an earlier life of the hub has told some of that
		h.passed, h.puts, h.told, news = b.Passed, nil, false, true
	}
	if !h.told && h.passed > 0 {
		for _, n := range h.nodes { // and cannot tell these any more what was put
			if n.waits == h.passed {
				return h.lose(now, "the node of rank 0 was started again while the ranks met") || news
			}
		}
	}
	if h.meet() {
		if size := pmi.Size(h.puts); size > pmi.MaxBytes {
			h.lose(now, fmt.Sprintf("the ranks put %d bytes before a barrier, at most %d", size, pmi.MaxBytes))
		}
		return true
	}
	if h.ended() && h.over.IsZero() {
		h.over, news = now, true
	}
	return news
}

// meet has all ranks pass if all wait.
func (h *Hub) meet() bool {
	for _, n := range h.nodes {
		if n.waits != h.passed+1 {
			return false
		}
	}
	h.passed, h.puts, h.told = h.passed+1, nil, true
	for _, n := range h.nodes {
		h.puts = append(h.puts, n.puts...)
		n.puts = nil
	}
	return true
}

func (h *Hub) ended() bool {
	for _, n := range h.nodes {
		if !n.done && !(h.again && n.heard.IsZero()) {
			return false
		}
	}
	return true
}

// lose ends the gang, unless it has ended. The first reason counts.
func (h *Hub) lose(now time.Time, why string) bool {
	if h.lost != "" || h.ended() {
		return false
	}
	h.lost, h.over = why, now
	return true
}

// Lost returns why the gang cannot go on, or "".
func (h *Hub) Lost() string { return h.lost }

// Answer returns what a node is to be told that has sent this beat last, and whether that
// is anything.
func (h *Hub) Answer(b *wire.Beat) (a wire.BeatAnswer, news bool) {
	a.Passed, a.Lost, a.Failed = h.passed, h.lost, h.failed
	switch {
	case b.Waits == 0 || b.Waits != h.passed:
	case h.told:
		a.Puts, news = h.puts, true
	default:
		a.Passed--
	}
	return a, news || a.Lost != "" || b.Done
}

// Tick finds out who is lost, and reports whether that is somebody.
func (h *Hub) Tick(now time.Time) (news bool) {
	for id, n := range h.nodes {
		if n.done {
			continue
		}
		if n.heard.IsZero() && !h.again && now.Sub(h.began) > First {
			news = h.lose(now, h.name(id)+" did not begin") || news
		}
		if !n.heard.IsZero() && h.stall.Passed(now, n.heard.Add(Silence)) {
			news = h.lose(now, fmt.Sprintf("no word from %s for %v", h.name(id), Silence)) || news
		}
	}
	// Ranks that wait for some that have ended would wait for ever.
	waiting, done := false, ""
	for id, n := range h.nodes {
		waiting = waiting || n.waits == h.passed+1
		if n.done {
			done = h.name(id)
		}
	}
	switch {
	case !waiting || done == "":
		h.since = time.Time{}
	case h.since.IsZero():
		h.since = now
	case now.Sub(h.since) > Silence: // how they ended may end the job first, and says more
		news = h.lose(now, "ranks wait for those of "+done+", which have ended") || news
	}
	return news
}

// Next is how long to wait before Tick, or Over, can find out something.
func (h *Hub) Next(now time.Time) time.Duration {
	wait := Hold / 2
	for _, n := range h.nodes {
		if h.lost == "" && !n.done && !n.heard.IsZero() {
			wait = min(wait, n.heard.Add(Silence+time.Millisecond).Sub(now))
		}
	}
	return max(wait, 10*time.Millisecond)
}

// Over reports whether nobody has to be told of the gang any more.
func (h *Hub) Over(now time.Time) bool {
	return !h.over.IsZero() && (h.ended() || now.Sub(h.over) > Linger)
}
