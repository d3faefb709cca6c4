package gossip

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"zorilla/node/trust"
	"zorilla/vicinity"
)

// testCreds makes the credentials of node n of a network.
func testCreds(t testing.TB, network, n int) *trust.Credentials {
	t.Helper()
	s, err := trust.NewSecret(bytes.NewReader(bytes.Repeat([]byte{byte(network)}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	net, err := trust.NewNetwork(s)
	if err != nil {
		t.Fatal(err)
	}
	id, err := trust.NewIdentity(bytes.NewReader(binary.BigEndian.AppendUint32(make([]byte, 28), uint32(n))))
	if err != nil {
		t.Fatal(err)
	}
	c, err := trust.NewCredentials(id, net)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type message struct {
	from    vicinity.ID
	kind    byte
	payload string
}

// recorder is a Handler that remembers; await waits until what it remembers is
// as wanted.
type recorder struct {
	rmu       sync.Mutex
	members   map[vicinity.ID]vicinity.Member
	left      map[vicinity.ID]int
	messages  []message
	rtts      map[vicinity.ID]time.Duration
	slowest   map[vicinity.ID]time.Duration
	elsewhere []string
	text      bytes.Buffer
	change    chan struct{}
}

func newRecorder() *recorder {
	return &recorder{members: map[vicinity.ID]vicinity.Member{}, left: map[vicinity.ID]int{}, rtts: map[vicinity.ID]time.Duration{}, slowest: map[vicinity.ID]time.Duration{}, change: make(chan struct{})}
}

func (r *recorder) note(f func()) {
	r.rmu.Lock()
	defer r.rmu.Unlock()
	f()
	close(r.change)
	r.change = make(chan struct{})
}

func (r *recorder) Join(m vicinity.Member) { r.note(func() { r.members[m.ID] = m }) }
func (r *recorder) Leave(id vicinity.ID) {
	r.note(func() { delete(r.members, id); r.left[id]++ })
}
func (r *recorder) Message(from vicinity.ID, kind byte, p []byte) {
	r.note(func() { r.messages = append(r.messages, message{from, kind, string(p)}) })
}
func (r *recorder) Elsewhere(addrs []string) {
	r.note(func() { r.elsewhere = append(r.elsewhere, addrs...) })
}
func (r *recorder) RTT(id vicinity.ID, d time.Duration) {
	r.note(func() { r.rtts[id], r.slowest[id] = d, max(d, r.slowest[id]) })
}

func (r *recorder) Write(b []byte) (int, error) {
	r.note(func() { r.text.Write(b) })
	return len(b), nil
}

// logged returns how many lines contain the text.
func (r *recorder) logged(text string) int {
	r.rmu.Lock()
	defer r.rmu.Unlock()
	n := 0
	for line := range strings.Lines(r.text.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (r *recorder) await(t *testing.T, what string, within time.Duration, ok func() bool) {
	t.Helper()
	end := time.NewTimer(within)
	defer end.Stop()
	for {
		r.rmu.Lock()
		done, change := ok(), r.change
		r.rmu.Unlock()
		if done {
			return
		}
		select {
		case <-change:
		case <-end.C:
			r.rmu.Lock()
			defer r.rmu.Unlock()
			t.Fatalf("not within %v: %s; knows %d members\n%s", within, what, len(r.members), r.text.String())
		}
	}
}

// knows waits until the node has this many members.
func (n *testNode) knows(t *testing.T, members int, within time.Duration) {
	t.Helper()
	n.await(t, fmt.Sprintf("%s knows %d members", n.ID().Short(), members), within, func() bool { return len(n.members) == members })
}

type testNode struct {
	*recorder
	*Overlay
	stopRun context.CancelFunc
	done    chan error
}

func (n *testNode) ID() vicinity.ID { return n.Self().ID }

// startNode runs an overlay until the test or n.end ends it.
func startNode(t *testing.T, cfg Config) *testNode {
	t.Helper()
	n := &testNode{recorder: newRecorder(), done: make(chan error, 1)}
	cfg.Handler = n.recorder
	cfg.Log = zerolog.New(n.recorder).Level(zerolog.InfoLevel)
	if cfg.Self.Name == "" {
		cfg.Self.Name = "node"
	}
	o, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Listen(context.Background()); err != nil {
		t.Fatal(err)
	}
	n.Overlay = o
	ctx, cancel := context.WithCancel(context.Background())
	n.stopRun = cancel
	go func() { n.done <- o.Run(ctx) }()
	t.Cleanup(func() { n.end(t) })
	return n
}

// end lets the node leave; it may be called again.
func (n *testNode) end(t *testing.T) {
	n.stopRun()
	if n.done == nil {
		return
	}
	if err := <-n.done; err != nil {
		t.Errorf("run: %v", err)
	}
	n.done = nil
}

// idleNode is bound, on an in-memory network, but does not run.
func idleNode(t *testing.T) *testNode {
	t.Helper()
	n := &testNode{recorder: newRecorder(), stopRun: func() {}}
	cfg := memConfig(t, newFabric(0), 0)
	cfg.Handler, cfg.Log = n.recorder, zerolog.New(n.recorder).Level(zerolog.InfoLevel)
	o, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	n.Overlay = o
	return n
}
