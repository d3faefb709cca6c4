package testnet

import (
	"sync/atomic"

	"zorilla/node"
	"zorilla/node/gossip"
	"zorilla/vicinity"
)

// Kinds of packets, as PROTOCOL.md names them, and one for the floods that
// Nodes.Flood starts. Nodes do not know that one.
const (
	kindVicinity byte = 1
	kindFlood    byte = 2
	kindJobs     byte = 3
	kindEarly    byte = 4
	kindProbe    byte = 0xf0
)

// watch stands between a node and its overlay, in one of the node's lives: it
// counts whom the node knows and what it sends.
type watch struct {
	node.Overlay
	nodes *Nodes
	node  int
	here  []bool // members, by number of node; owned by the goroutine that calls Join and Leave

	known atomic.Int64 // other members
	gone  atomic.Int64 // how often one of them was said to be gone
	probe atomic.Pointer[probe]
}

type tally struct{ packets, bytes atomic.Int64 }

// watched returns the overlay of node i.
func (n *Nodes) watched(i int, cfg gossip.Config) (node.Overlay, error) {
	w := &watch{nodes: n, node: i, here: make([]bool, len(n.list))}
	cfg.Handler = told{cfg.Handler, w}
	o, err := gossip.New(cfg)
	if err != nil {
		return nil, err
	}
	w.Overlay, n.list[i].watch = o, w
	return w, nil
}

// Send implements node.Overlay.
func (w *watch) Send(to vicinity.ID, kind byte, payload []byte) error {
	w.nodes.sent[kind].packets.Add(1)
	w.nodes.sent[kind].bytes.Add(int64(len(payload)))
	if lose := w.nodes.cfg.Lose; lose != nil && lose(w.node, kind, payload) {
		return nil
	}
	return w.Overlay.Send(to, kind, payload)
}

// told is a gossip.Handler: what the overlay tells, on its way to the node.
type told struct {
	gossip.Handler
	*watch
}

// Join implements gossip.Handler.
func (t told) Join(m vicinity.Member) {
	if i, ok := t.nodes.index[m.ID]; ok && !t.here[i] {
		t.here[i] = true
		t.known.Add(1)
	}
	t.Handler.Join(m)
}

// Leave implements gossip.Handler.
func (t told) Leave(id vicinity.ID) {
	if i, ok := t.nodes.index[id]; ok && t.here[i] {
		t.here[i] = false
		t.known.Add(-1)
		t.gone.Add(1)
	}
	t.Handler.Leave(id)
}

// Message implements gossip.Handler.
func (t told) Message(from vicinity.ID, kind byte, payload []byte) {
	if kind != kindProbe {
		t.Handler.Message(from, kind, payload)
	} else if p := t.probe.Load(); p != nil {
		p.flooder.Receive(from, payload)
	}
}
