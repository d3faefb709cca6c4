package gossip

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/node/trust"
	"zorilla/vicinity"
)

// afterwards lets memberlist's timers fire, which the bubble waits for.
func afterwards() { time.Sleep(5 * time.Minute) }

// startMany starts n nodes that join the first one.
func startMany(t *testing.T, f *fabric, n int) []*testNode {
	t.Helper()
	var nodes []*testNode
	var seeds []string
	for i := range n {
		nodes = append(nodes, startNode(t, memConfig(t, f, i, seeds...)))
		seeds = []string{nodes[0].Addr()}
		time.Sleep(20 * time.Millisecond)
	}
	return nodes
}

func memConfig(t *testing.T, f *fabric, i int, seeds ...string) Config {
	return Config{Creds: testCreds(t, 1, i), Net: f.host(i), Listen: "0.0.0.0:5444", Seeds: seeds,
		Rand: rand.New(rand.NewPCG(1, uint64(i))), Self: vicinity.Member{Name: fmt.Sprint("node", i), Slots: 1}}
}

func endAll(t *testing.T, nodes []*testNode) {
	for _, n := range nodes {
		n.stopRun()
	}
	for _, n := range nodes {
		n.end(t)
	}
	afterwards()
}

func TestTwentyNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(5 * time.Millisecond)
		nodes := startMany(t, f, 20)
		for _, n := range nodes {
			n.knows(t, 19, time.Minute)
		}

		dead := nodes[7]
		f.host(7).crash()
		for i, n := range nodes {
			if i != 7 {
				n.await(t, "the crash is noticed", time.Minute, func() bool { return n.left[dead.ID()] == 1 })
			}
		}
		dead.end(t)
		rest := append(append([]*testNode{}, nodes[:7]...), nodes[8:]...)

		// Cut in two for longer than memberlist remembers the dead.
		for i := 10; i < 20; i++ {
			f.split(1, f.host(i))
		}
		time.Sleep(10 * time.Minute)
		for _, n := range rest {
			n.rmu.Lock()
			known := len(n.members)
			n.rmu.Unlock()
			if known != 8 && known != 9 {
				t.Fatalf("%s knows %d members after the cut", n.ID().Short(), known)
			}
		}
		for i := 10; i < 20; i++ {
			f.split(0, f.host(i))
		}
		healed := time.Now()
		for _, n := range rest {
			n.knows(t, 18, 5*time.Minute)
		}
		t.Logf("healed within %v", time.Since(healed))
		for _, n := range rest {
			n.rmu.Lock()
			if d := n.rtts[rest[1].ID()]; d != 0 && d < 10*time.Millisecond {
				t.Errorf("round trip of %v, shorter than light", d)
			}
			n.rmu.Unlock()
		}
		endAll(t, rest)
	})
}

// A node that joins at the same time as others misses the news of some of them; here no packet
// brings any, and the next exchange with a member is half a minute away. It asks once before.
func TestNewsThatWereMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(5 * time.Millisecond)
		for i := range 4 {
			f.host(i).set(f.noUDP, true)
		}
		nodes := startMany(t, f, 4)
		for _, n := range nodes {
			n.knows(t, 3, 3*settled)
		}
		endAll(t, nodes)
	})
}

func TestSmallPartitionHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		nodes := startMany(t, f, 2)
		for range 2 {
			for _, n := range nodes {
				n.knows(t, 1, time.Minute)
			}
			f.split(1, f.host(1))
			for _, n := range nodes {
				n.knows(t, 0, time.Minute)
			}
			time.Sleep(time.Hour)
			f.split(0, f.host(1))
		}
		for _, n := range nodes {
			n.knows(t, 1, time.Minute)
		}
		endAll(t, nodes)
	})
}

func TestRestartAtAnotherAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		nodes := startMany(t, f, 5)
		for _, n := range nodes {
			n.knows(t, 4, time.Minute)
		}
		id := nodes[4].ID()
		for round, crash := range []bool{true, false} {
			old, err := nodes[0].DialPeer(t.Context(), id, []string{nodes[4].Addr()}, HTTP2)
			if err != nil {
				t.Fatal(err)
			}
			if crash {
				f.host(4).crash() // the others do not know yet
			}
			nodes[4].end(t)
			if !crash {
				time.Sleep(2 * time.Second) // the farewell goes round; sooner, it may be seen twice
			}
			cfg := memConfig(t, f, 4, nodes[0].Addr())
			cfg.Net = f.host(50 + round)
			nodes[4] = startNode(t, cfg)
			for _, n := range nodes[:4] {
				n.await(t, "the node is at its new address", time.Minute, func() bool {
					return n.members[id].ID == id && n.members[id].Addrs[0] == nodes[4].Addr()
				})
				if got := nodes[4].logged("same key"); got != 0 {
					t.Errorf("a restart is taken for a second node")
				}
			}
			nodes[4].knows(t, 4, time.Minute)
			if !closed(old) {
				t.Error("a connection to the old address is still open")
			}
			time.Sleep(time.Minute)
			for _, n := range nodes[:4] {
				n.rmu.Lock()
				if n.left[id] != round+1 {
					t.Errorf("%s saw %d deaths in %d lives", n.ID().Short(), n.left[id], round+1)
				}
				n.rmu.Unlock()
			}
			if err := nodes[0].Send(id, 1, []byte("found you")); err != nil {
				t.Fatal(err)
			}
			nodes[4].await(t, "a message", time.Second, func() bool { return len(nodes[4].messages) == 1 })
		}
		endAll(t, nodes)
	})
}

// closed reports whether this end has closed a connection.
func closed(c net.Conn) bool {
	return errors.Is(c.SetDeadline(time.Time{}), net.ErrClosed)
}

func TestTwoNodesWithOneKeyAreNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		nodes := startMany(t, f, 3)
		for _, n := range nodes {
			n.knows(t, 2, time.Minute)
		}
		cfg := memConfig(t, f, 2, nodes[0].Addr())
		cfg.Net = f.host(9)
		twin := startNode(t, cfg)
		time.Sleep(time.Hour)
		if n := twin.logged("same key") + nodes[2].logged("same key"); n == 0 || n > 2 {
			t.Errorf("said %d times", n)
		}
		if n := twin.Stats()["joins"] + nodes[2].Stats()["joins"]; n > 500 {
			t.Errorf("%d introductions in an hour", n)
		}
		if m, _ := nodes[0].Member(twin.ID()); m.Addrs[0] != nodes[2].Addr() {
			t.Errorf("the newcomer has taken the place of the first one: %v", m)
		}
		endAll(t, append(nodes, twin))
	})
}

func TestRestartAtTheSameAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		nodes := startMany(t, f, 3)
		for _, n := range nodes {
			n.knows(t, 2, time.Minute)
		}
		seeds := nodes[2].Seeds()
		nodes[2].end(t)
		cfg := memConfig(t, f, 2, seeds...)
		cfg.Self.Name = "renamed"
		nodes[2] = startNode(t, cfg)
		for _, n := range nodes[:2] {
			n.await(t, "the node says its new name", time.Minute, func() bool { return n.members[nodes[2].ID()].Name == "renamed" })
		}
		nodes[2].knows(t, 2, time.Minute)
		endAll(t, nodes)
	})
}

func TestSeedThatComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		second := startNode(t, memConfig(t, f, 1, "10.0.0.2:5444", "10.0.0.1:5444", "name:1", "junk"))
		time.Sleep(10 * time.Minute)
		first := startNode(t, memConfig(t, f, 0))
		first.knows(t, 1, time.Minute)
		second.knows(t, 1, time.Minute)
		time.Sleep(time.Second) // they know each other a little before the join has ended
		for text, want := range map[string]int{"cannot join 10.0.0.1:5444": 1, "cannot join name:1": 1, "cannot join junk": 1, "10.0.0.2": 0, "joined the network": 1} {
			if got := second.logged(text); got != want {
				t.Errorf("%q is logged %d times, want %d", text, got, want)
			}
		}
		if second.logged("refused") != 0 {
			t.Errorf("a node refuses itself")
		}
		endAll(t, []*testNode{first, second})
	})
}

// A node that is told to join itself, by a name that it does not know for its own, finds nothing
// wrong with that, and tries it ever more seldom, as it does those whom it has joined.
func TestNodeThatIsToldToJoinItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		cfg := memConfig(t, f, 0, "self:5444")
		cfg.Net = selfNet{f.host(0)}
		node := startNode(t, cfg)
		time.Sleep(4 * time.Hour)
		if n := node.logged("cannot join"); n != 0 || node.Stats()["joins failed"] != 0 {
			t.Errorf("%d failures are counted, %d logged", node.Stats()["joins failed"], n)
		}
		f.mu.Lock()
		tries := f.dials
		f.mu.Unlock()
		if tries < 15 || tries > 25 {
			t.Errorf("it has tried %d times in four hours, want every %v, and some times more at first", tries, maxRest)
		}
		endAll(t, []*testNode{node})
	})
}

// selfNet is a host with a name.
type selfNet struct{ *memHost }

func (n selfNet) Resolve(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{n.ip}, nil
}

func TestWrongSecretIsRefusedAndSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		member := startNode(t, memConfig(t, f, 0))
		cfg := memConfig(t, f, 1, member.Addr())
		cfg.Creds = testCreds(t, 2, 1)
		stranger := startNode(t, cfg)
		time.Sleep(10 * time.Minute)
		if member.Stats()["strangers refused"] < 5 || stranger.Stats()["joins failed"] < 5 {
			t.Errorf("not tried again: %v, %v", member.Stats(), stranger.Stats())
		}
		if n := member.logged("refused 10.0.0.2"); n != 1 || member.logged("belongs to another network (different secret)") != 1 {
			t.Errorf("member says it %d times:\n%s", n, member.text.String())
		}
		if n := stranger.logged("cannot join 10.0.0.1:5444: it belongs to another network (different secret)"); n != 1 || stranger.logged("cannot join") != 1 {
			t.Errorf("stranger says it %d times:\n%s", n, stranger.text.String())
		}
		if len(member.Members())+len(stranger.Members()) != 0 {
			t.Error("a stranger has become a member")
		}
		endAll(t, []*testNode{member, stranger})
	})
}

func TestOtherVersionIsRefusedAndSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		older := memConfig(t, f, 1)
		listener, err := older.Net.Listen(t.Context(), "10.0.0.2:5444")
		if err != nil {
			t.Fatal(err)
		}
		node := startNode(t, memConfig(t, f, 0, "10.0.0.2:5444"))
		calls := 0
		go func() {
			for c, err := listener.Accept(); err == nil; c, err = listener.Accept() {
				_ = tls.Server(c, older.Creds.ServerTLS(protoFamily+"1", HTTP2)).Handshake()
				c.Close()
				calls++
			}
		}()
		for range 3 {
			c, err := older.Net.Dial(t.Context(), node.Addr())
			if err != nil {
				t.Fatal(err)
			}
			if err := trust.HandshakeError(tls.Client(c, older.Creds.ClientTLS("", protoFamily+"1")).Handshake()); !errors.Is(err, trust.ErrVersion) {
				t.Errorf("the older node is told %v", err)
			}
			c.Close()
		}
		time.Sleep(10 * time.Minute)
		listener.Close()
		synctest.Wait()
		for text, want := range map[string]int{"refused 10.0.0.2": 1, "cannot join 10.0.0.2:5444: it speaks another version of the protocol: let all nodes be of one release": 1, "speaks another version": 2} {
			if got := node.logged(text); got != want {
				t.Errorf("%q is logged %d times, want %d:\n%s", text, got, want, node.text.String())
			}
		}
		if calls < 5 || len(node.Members()) != 0 {
			t.Errorf("tried %d times, members %v", calls, node.Members())
		}
		endAll(t, []*testNode{node})
	})
}

func TestBeaconsFindNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		var nodes []*testNode
		for i := range 5 {
			cfg := memConfig(t, f, i)
			cfg.Beacons = true
			if i == 4 {
				cfg.Creds = testCreds(t, 2, i)
			}
			nodes = append(nodes, startNode(t, cfg))
		}
		for _, n := range nodes[:4] {
			n.knows(t, 3, 5*time.Second)
		}
		time.Sleep(time.Minute)
		if foreign := nodes[4]; len(foreign.Members()) != 0 || foreign.Stats()["beacons of other networks"] == 0 || foreign.text.Len() != 0 {
			t.Errorf("a node of another network: %v\n%s", foreign.Stats(), foreign.text.String())
		}
		if s := nodes[0].Stats(); s["strangers refused"] != 0 || s["beacons of other networks"] == 0 {
			t.Errorf("stats %v", s)
		}
		endAll(t, nodes)
	})
}

func TestHostilePacketsAreCountedAndDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		nodes := startMany(t, f, 2)
		for _, n := range nodes {
			n.knows(t, 1, time.Minute)
		}
		c, err := f.host(9).ListenPacket(t.Context(), "0.0.0.0:1")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		rnd := rand.New(rand.NewPCG(3, 4))
		for i := range 500 {
			p := make([]byte, 1+i%300)
			for k := range p {
				p[k] = byte(rnd.Uint32())
			}
			p[0] = byte(i % 256) // each type of memberlist's
			if p[0] == 244 {
				continue // a label, which is another error
			}
			if _, err := c.WriteTo(p, net.UDPAddrFromAddrPort(nodes[0].bound)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if s := nodes[0].Stats(); s["packets refused"] < 490 || s["packets received"] != 0 {
			t.Errorf("stats %v", s)
		}
		if len(nodes[0].Members()) != 1 || len(nodes[1].Members()) != 1 {
			t.Error("the members have changed")
		}
		endAll(t, nodes)
	})
}

func TestRunEndsSoonWhateverItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		silent := f.host(3)
		l, err := silent.Listen(t.Context(), "0.0.0.0:5444") // accepts, and never answers
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		n := startNode(t, memConfig(t, f, 0, "10.0.0.4:5444", "10.9.9.9:1"))
		conn, err := silent.Dial(t.Context(), n.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		time.Sleep(time.Second)
		start := time.Now()
		n.end(t)
		if d := time.Since(start); d > 100*time.Millisecond {
			t.Errorf("took %v", d)
		}
		afterwards()
	})
}
