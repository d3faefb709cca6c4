package gossip

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"github.com/hashicorp/memberlist"

	"zorilla/vicinity"
)

// table holds the members and what has happened to them. memberlist feeds it
// while it holds its own locks, so it does nothing but remember.
type table struct {
	mu      sync.Mutex // guards what follows
	members map[vicinity.ID]entry
	events  []event // not yet taken

	wake chan struct{} // has room for one: there are events
}

type entry struct {
	vicinity.Member
	node memberlist.Node // a copy: memberlist changes its own
}

// event says that a member has come or changed, or has gone.
type event struct {
	vicinity.Member
	gone bool
}

func newTable() *table {
	return &table{members: map[vicinity.ID]entry{}, wake: make(chan struct{}, 1)}
}

func (t *table) put(m vicinity.Member, n *memberlist.Node) {
	t.mu.Lock()
	t.members[m.ID] = entry{m, copyNode(n)}
	t.events = append(t.events, event{m, false})
	t.mu.Unlock()
	t.signal()
}

func (t *table) remove(id vicinity.ID) {
	t.mu.Lock()
	e, ok := t.members[id]
	delete(t.members, id)
	if ok {
		t.events = append(t.events, event{e.Member, true})
	}
	t.mu.Unlock()
	t.signal()
}

func (t *table) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// drain returns the events since the last call, in order.
func (t *table) drain() []event {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.events
	t.events = nil
	return list
}

func (t *table) get(id vicinity.ID) (entry, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.members[id]
	return e, ok
}

// name returns the name of a member, "" if it is none.
func (t *table) name(id vicinity.ID) string {
	e, _ := t.get(id)
	return e.Name
}

// same reports whether the node is a member that says what it said before.
func (t *table) same(n *memberlist.Node) bool {
	e, ok := t.get(vicinity.ID(n.Name))
	return ok && e.node.Port == n.Port && e.node.Addr.Equal(n.Addr) && bytes.Equal(e.node.Meta, n.Meta)
}

func (t *table) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.members)
}

// list returns the members, sorted by ID.
func (t *table) list() []vicinity.Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]vicinity.Member, 0, len(t.members))
	for _, e := range t.members {
		list = append(list, e.Member)
	}
	slices.SortFunc(list, func(a, b vicinity.Member) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

func copyNode(n *memberlist.Node) memberlist.Node {
	c := *n
	c.Addr, c.Meta = bytes.Clone(n.Addr), bytes.Clone(n.Meta)
	return c
}
