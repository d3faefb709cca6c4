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
	maxHeld    = 4096             // messages about nodes that are not members yet
	maxPending = 4096             // nodes of which members' states tell, and that have not answered
	provenFor  = 10 * time.Second // how long who has answered may take to become a member
	maxProven  = 4096
)

// errCrowd keeps a node from becoming a member, until there is room.
var errCrowd = errors.New("too many nodes are told of that have not answered")

// newcomers are nodes that others tell of and that are no members yet: anybody can tell of nodes
// that do not exist. Who has answered this node is let in. What packets tell of others memberlist
// does not hear before, so that it tells nobody and probes nobody in vain; what it hears on
// streams, which members with a name open, waits here.
type newcomers struct {
	wake chan struct{} // has room for one: somebody is to be asked

	mu      sync.Mutex // guards what follows
	held    map[vicinity.ID][]byte
	pending map[vicinity.ID]entry
	proven  map[vicinity.ID]time.Time // who has answered, and when
	asked   map[vicinity.ID]bool      // who is to be asked, or is being
	next    []vicinity.Member         // who is to be asked, the last one first
}

func newNewcomers() *newcomers {
	return &newcomers{wake: make(chan struct{}, 1), held: map[vicinity.ID][]byte{}, pending: map[vicinity.ID]entry{},
		proven: map[vicinity.ID]time.Time{}, asked: map[vicinity.ID]bool{}}
}

// hold keeps what a packet tells of a node, until the node has answered. It reports false if the
// node has answered already.
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

// room reports whether memberlist may take a node that a member's state tells of.
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

// take returns who is to be asked next, until done is called.
func (n *newcomers) take() (m vicinity.Member, ok bool) {
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

// done says that a node has been asked, and reports whether it has not answered. Then it may be
// told of again.
func (n *newcomers) done(id vicinity.ID) (vain bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	vain = n.held[id] != nil || n.pending[id].ID != ""
	delete(n.asked, id)
	delete(n.held, id)
	return vain
}

// answered says that a node has answered. It calls member if memberlist has it, before left can be
// called, and returns what memberlist has not heard of it, if there is any.
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
