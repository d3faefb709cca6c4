package gossip

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"zorilla/vicinity"
)

const (
	maxHeld    = 4096             // announcements of nodes that are not members yet
	maxPending = 4096             // nodes in the states of members that have not answered
	provenFor  = 10 * time.Second // how long a node that has answered may take to become a member
	maxProven  = 4096
)

// errCrowd keeps a node from becoming a member, until there is room.
var errCrowd = errors.New("too many announced nodes have not answered yet")

// newcomers are nodes that others announce and that are not members yet: any member can announce
// nodes that do not exist. A node becomes a member once it has answered this one. Until then
// memberlist does not get announcements from packets, so that it neither spreads them nor probes
// the node; what it gets on streams, whose sender is proven, waits here.
type newcomers struct {
	wake chan struct{} // has room for one: there is a node to ask

	mu      sync.Mutex                // guards what follows
	held    map[vicinity.ID][]byte    // announcements that memberlist has not got
	pending map[vicinity.ID]entry     // nodes that memberlist has
	proven  map[vicinity.ID]time.Time // when a node has answered
	asked   map[vicinity.ID]bool      // nodes in next, and those that are being asked
	next    []vicinity.Member         // nodes to ask, the last one first
}

func newNewcomers() *newcomers {
	return &newcomers{wake: make(chan struct{}, 1), held: map[vicinity.ID][]byte{}, pending: map[vicinity.ID]entry{},
		proven: map[vicinity.ID]time.Time{}, asked: map[vicinity.ID]bool{}}
}

// hold keeps the announcement of a node from a packet until the node has answered. It reports false
// if memberlist may have it at once.
func (n *newcomers) hold(m vicinity.Member, message []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.provenLocked(m.ID) || n.pending[m.ID].ID != "" {
		return false
	}
	if n.held[m.ID] != nil || len(n.held) < maxHeld {
		n.held[m.ID] = message
		n.askLocked(m)
	}
	return true
}

// room reports whether memberlist may take a node from the state of a member.
func (n *newcomers) room(id vicinity.ID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pending[id].ID != "" || n.provenLocked(id) || len(n.pending) < maxPending
}

// joined is called with a node that memberlist has taken. It reports whether it is a member; if
// not it is asked.
func (n *newcomers) joined(m vicinity.Member, node *memberlist.Node) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.provenLocked(m.ID) {
		delete(n.pending, m.ID)
		return true
	}
	n.pending[m.ID] = entry{m, copyNode(node)}
	n.askLocked(m)
	return false
}

// left is called with a node that memberlist has no more.
func (n *newcomers) left(id vicinity.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pending, id)
	delete(n.proven, id)
}

func (n *newcomers) provenLocked(id vicinity.ID) bool {
	at, ok := n.proven[id]
	return ok && time.Since(at) < provenFor
}

func (n *newcomers) askLocked(m vicinity.Member) {
	if n.asked[m.ID] {
		return
	}
	n.asked[m.ID] = true
	n.next = append(n.next, m)
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// dequeue returns the node to ask next; done ends that.
func (n *newcomers) dequeue() (m vicinity.Member, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.next) > 0 {
		m = n.next[len(n.next)-1]
		n.next = slices.Delete(n.next, len(n.next)-1, len(n.next))
		if n.held[m.ID] != nil || n.pending[m.ID].ID != "" {
			return m, true
		}
		delete(n.asked, m.ID)
	}
	return m, false
}

// done notes that a node has been asked, and reports whether it has not answered. Then it may be
// announced again.
func (n *newcomers) done(id vicinity.ID) (vain bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	vain = n.held[id] != nil || n.pending[id].ID != ""
	delete(n.asked, id)
	delete(n.held, id)
	return vain
}

// answered notes that a node has answered. It calls member if memberlist has the node, before left
// can be called, and returns the announcement that memberlist has not got, if there is one.
func (n *newcomers) answered(id vicinity.ID, member func(entry)) (message []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.proven) >= maxProven {
		for id, at := range n.proven {
			if time.Since(at) >= provenFor {
				delete(n.proven, id)
			}
		}
	}
	if len(n.proven) < maxProven {
		n.proven[id] = time.Now()
	}
	if e := n.pending[id]; e.ID != "" {
		member(e)
	}
	message = n.held[id]
	delete(n.held, id)
	delete(n.pending, id)
	return message
}
