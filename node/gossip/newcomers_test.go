package gossip

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// told is what memberlist tells of a node: in packets, and in the states of members.
type told struct {
	Incarnation uint32
	Node, Name  string
	Addr        []byte
	Port        uint16
	Meta        []byte
	State       int
	Vsn         []uint8
}

// ghost is a node that does not exist.
func ghost(t *testing.T, i int, meta []byte) told {
	id := string(testCreds(t, 1, 10000+i).ID())
	return told{Incarnation: 1, Node: id, Name: id, Addr: []byte{10, 0, 9, 9}, Port: uint16(1024 + i), Meta: meta, Vsn: []uint8{1, 5, 2, 1, 1, 1}}
}

// A member tells in packets, and in its state, of thousands of nodes that do not exist: nobody
// lists, logs or probes them, and who is there becomes a member as fast as before.
func TestNodesThatDoNotExist(t *testing.T) {
	const many = 2000
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		nodes := startMany(t, f, 3)
		for _, n := range nodes {
			n.knows(t, 2, time.Minute)
		}
		a, b, c := nodes[0], nodes[1], nodes[2]
		meta, err := encodeMeta(vicinity.Member{ID: a.ID(), Name: "ghost", Addrs: []string{"10.0.9.9:1024"}, Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		evil, err := f.host(9).ListenPacket(t.Context(), "10.0.0.10:5444")
		if err != nil {
			t.Fatal(err)
		}
		state := []byte{messageState}
		state = append(state, codec.MustMarshal(struct {
			Nodes, UserStateLen int
			Join                bool
		}{Nodes: many})...)
		for i := range 2 * many {
			g := ghost(t, i, meta)
			if i >= many {
				state = append(state, codec.MustMarshal(g)...)
				continue
			}
			for _, n := range nodes {
				p := a.transport.sift.seal(append([]byte{messageAlive}, codec.MustMarshal(g)...))
				if _, err := evil.WriteTo(p, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(n.Addr()))); err != nil {
					t.Fatal(err)
				}
			}
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		conn, err := c.DialPeer(t.Context(), a.ID(), []string{a.Addr()}, protoGossip)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(frameOf(a.transport.sift, string(state))); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1000)
		if _, err := conn.Read(buf); err != nil { // its own state
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		conn.Close()
		a.mu.Lock()
		if n := a.ml.NumMembers(); n < many || n > many+3 {
			t.Errorf("memberlist has %d members, want those of the state, %d, alone", n, many)
		}
		a.mu.Unlock()
		b.mu.Lock()
		if n := b.ml.NumMembers(); n > many+3 {
			t.Errorf("memberlist has %d members", n)
		}
		b.mu.Unlock()

		begin := time.Now()
		late := startNode(t, memConfig(t, f, 3, b.Addr()))
		late.knows(t, 3, time.Minute)
		for _, n := range nodes {
			n.knows(t, 3, time.Minute)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("a node became a member after %v", took)
		}
		time.Sleep(time.Minute)
		for _, n := range append(nodes, late) {
			if len(n.Members()) != 3 {
				t.Errorf("%d members are listed", len(n.Members()))
			}
			n.rmu.Lock()
			if lines := strings.Count(n.text.String(), "\n"); lines > 10 {
				t.Errorf("%d lines are logged:\n%.1000s", lines, n.text.String())
			}
			n.rmu.Unlock()
			if n != late && n.Stats()["newcomers unanswered"] < many/2 {
				t.Errorf("counted %d that do not answer", n.Stats()["newcomers unanswered"])
			}
		}
		evil.Close()
		endAll(t, append(nodes, late))
	})
}

// What is remembered of newcomers is bounded, and who is told of last is asked first.
func TestManyNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNewcomers()
		id := func(i int) vicinity.ID { return vicinity.ID(fmt.Sprintf("z%026d", i)) }
		for i := range 2 * maxHeld {
			if !n.hold(vicinity.Member{ID: id(i)}, []byte("alive")) {
				t.Fatal("who has not answered is heard of")
			}
			n.answered(id(-1-i), nil)
		}
		if len(n.held) != maxHeld || len(n.next) != maxHeld || len(n.asked) != maxHeld || len(n.proven) != maxProven {
			t.Errorf("%d are held, %d to be asked, %d proven", len(n.held), len(n.next), len(n.proven))
		}
		if m, ok := n.dequeue(); !ok || m.ID != id(maxHeld-1) {
			t.Errorf("the first one asked is %v", m.ID)
		}
		if !n.done(id(maxHeld-1)) || n.done(id(maxHeld-1)) {
			t.Error("who has not answered has, or the other way round")
		}
		time.Sleep(provenFor)
		n.answered(id(7), nil)
		if len(n.proven) != 1 || n.hold(vicinity.Member{ID: id(7)}, []byte("alive")) {
			t.Errorf("%d have answered lately", len(n.proven))
		}
	})
}

// memberlist takes no more unanswered nodes than maxPending; those that it has, and those that have
// answered, always have room.
func TestRoomForNewcomers(t *testing.T) {
	n := newNewcomers()
	for i := range maxPending {
		m := vicinity.Member{ID: vicinity.ID(fmt.Sprint(i))}
		if !n.room(m.ID) || n.joined(m, &memberlist.Node{}) {
			t.Fatalf("node %d has no room or is a member", i)
		}
	}
	n.answered("b", func(entry) { t.Error("a node that memberlist has not got is a member") })
	for id, want := range map[vicinity.ID]bool{"0": true, "a": false, "b": true} {
		if got := n.room(id); got != want {
			t.Errorf("room for %s: %t, want %t", id, got, want)
		}
	}
	n.left("0")
	if !n.room("a") {
		t.Error("no room after one has left")
	}
}
