package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/seeds"
	"zorilla/testnet/hosts/lab"
)

// frame makes a packet between two hosts as the first one's bridge hands it on.
func frame(fromSite, fromHost, toSite, toHost int, text string) []byte {
	f := append([]byte(nil), lab.MAC(fromSite, lab.GatewayHost)...)
	f = append(f, lab.MAC(fromSite, fromHost)...)
	f = append(f, 8, 0)
	head := make([]byte, ipv4Header)
	head[0] = 0x45
	copy(head[12:], lab.Address(fromSite, fromHost).AsSlice())
	copy(head[16:], lab.Address(toSite, toHost).AsSlice())
	return append(append(f, head...), text...)
}

func TestRouteTakesOnlyPacketsToOtherSites(t *testing.T) {
	p := &lab.Plan{Sites: []lab.Site{{Name: "a", Hosts: 2}, {Name: "b", Hosts: 2}}}
	f := frame(0, 1, 1, 2, "hello")
	if to, ok := route(p, 0, f); !ok || to != 1 {
		t.Fatalf("goes to %d, %v", to, ok)
	}
	if want := frame(0, 1, 1, 2, "hello"); !bytes.Equal(f[:6], lab.MAC(1, 2)) || !bytes.Equal(f[6:12], lab.MAC(1, lab.GatewayHost)) || !bytes.Equal(f[12:], want[12:]) {
		t.Errorf("the frame is now %x", f)
	}
	broadcast := frame(0, 1, 1, 2, "")
	copy(broadcast, []byte{255, 255, 255, 255, 255, 255})
	arp := frame(0, 1, 1, 2, "")
	arp[13] = 6
	for what, f := range map[string][]byte{
		"a broadcast": broadcast, "ARP": arp, "nothing": nil,
		"half a header":         frame(0, 1, 1, 2, "")[:ethernetHeader+ipv4Header-1],
		"its own site":          frame(0, 1, 0, 2, ""),
		"a host that is not":    frame(0, 1, 1, 3, ""),
		"the other gateway":     frame(0, 1, 1, lab.GatewayHost, ""),
		"another site's sender": append(append([]byte(nil), lab.MAC(0, lab.GatewayHost)...), frame(1, 1, 1, 2, "")[6:]...),
	} {
		if to, ok := route(p, 0, f); ok {
			t.Errorf("%s goes to %d", what, to)
		}
	}
}

// FuzzRoute feeds the router what a bridge could hand it.
func FuzzRoute(f *testing.F) {
	f.Add(0, frame(0, 1, 1, 2, "hello"))
	f.Add(1, frame(1, 1, 0, 200, ""))
	p := &lab.Plan{Sites: []lab.Site{{Name: "a", Hosts: 2}, {Name: "b", Hosts: 2}}}
	f.Fuzz(func(t *testing.T, site int, b []byte) {
		site &= 1
		before := bytes.Clone(b)
		to, ok := route(p, site, b)
		if !ok && !bytes.Equal(b, before) {
			t.Error("changed a frame that it does not want")
		}
		if ok && (to != 1-site || !bytes.Equal(b[12:], before[12:])) {
			t.Errorf("from %d to %d, or changed the packet", site, to)
		}
	})
}

// port makes a port for a router, and returns a site's end of it.
func port(t *testing.T) (router int, site *os.File) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	site = os.NewFile(uintptr(ends[1]), "site")
	t.Cleanup(func() { site.Close(); unix.Close(ends[0]) })
	return ends[0], site
}

func TestRouterDeliversInOrderAndCuts(t *testing.T) {
	p := &lab.Plan{Sites: []lab.Site{{Name: "a", Hosts: 1}, {Name: "b", Hosts: 1}, {Name: "c", Hosts: 1}}, RTT: [][]float64{{0, 2, 1}, {2, 0, 1}, {1, 1, 0}}}
	var sites [3]*os.File
	var ports [3]int
	for i := range sites {
		ports[i], sites[i] = port(t)
	}
	r := newRouter(p, ports[:])
	ended := make(chan struct{})
	go func() { defer close(ended); r.run() }()
	t.Cleanup(func() { // before ports are closed
		for _, s := range sites {
			s.Close()
		}
		<-ended
	})
	send := func(at int, f []byte) {
		t.Helper()
		if _, err := sites[at].Write(append(make([]byte, vnetHeader), f...)); err != nil {
			t.Fatal(err)
		}
	}
	arrive := func(at int, want string) {
		t.Helper()
		f := make([]byte, maxFrame)
		if n, err := sites[at].Read(f); err != nil || string(f[vnetHeader+ethernetHeader+ipv4Header:n]) != want {
			t.Fatalf("%q, %v arrives at %d, want %s", f[:n], err, at, want)
		}
	}
	taken := func(lost int64) { // by the router, or it never ends
		for end := time.Now().Add(20 * time.Second); r.lost.Load() < lost; runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("%d packets lost, want %d", r.lost.Load(), lost)
			}
		}
	}
	for i := range 100 {
		send(0, frame(0, 1, 1, 1, fmt.Sprint(i)))
	}
	for i := range 100 {
		arrive(1, fmt.Sprint(i))
	}
	r.change(func(c *conditions) { c.cut[2] = true })
	send(0, frame(0, 1, 2, 1, "cut off"))
	send(2, frame(2, 1, 0, 1, "cut off"))
	send(0, frame(0, 1, 1, 1, "not cut off"))
	arrive(1, "not cut off")
	taken(2)
	r.change(func(c *conditions) { c.cut[2], c.loss = false, 100 })
	send(1, frame(1, 1, 2, 1, "lost"))
	taken(3)
	r.change(func(c *conditions) { c.loss = 0 })
	send(1, frame(1, 1, 2, 1, "healed"))
	send(2, frame(2, 1, 0, 1, "healed"))
	arrive(2, "healed")
	arrive(0, "healed")
	if lost := r.lost.Load(); lost != 3 {
		t.Errorf("%d packets lost, want 3", lost)
	}
}

// What comes later on a shorter line arrives earlier, and no line has more than its queue.
func TestRouterKeepsDistances(t *testing.T) {
	p := &lab.Plan{Sites: []lab.Site{{Name: "a", Hosts: 1}, {Name: "b", Hosts: 1}, {Name: "c", Hosts: 1}}, RTT: [][]float64{{0, 2000, 1}, {2000, 0, 1}, {1, 1, 0}}}
	r := newRouter(p, nil)
	for range maxQueue + 2 {
		r.send(0, append(make([]byte, vnetHeader), frame(0, 1, 1, 1, "far")...))
	}
	begun := time.Now()
	r.send(0, append(make([]byte, vnetHeader), frame(0, 1, 2, 1, "near")...))
	if next := r.queue[0]; next.to != 2 || next.due.Before(begun.Add(500*time.Microsecond)) || next.due.After(time.Now().Add(500*time.Microsecond)) {
		t.Errorf("the next one is to site %d, due in %v", next.to, next.due.Sub(begun))
	}
	if n, dropped := len(r.queue), r.dropped.Load(); n != maxQueue+1 || dropped != 2 {
		t.Errorf("%d are on their way and %d were dropped", n, dropped)
	}
	for i := range r.queue {
		r.queue[i].due = begun.Add(time.Hour)
	}
	if wait, more := r.deliver(); wait < 50*time.Minute || !more || len(r.queue) != maxQueue+1 {
		t.Errorf("%d are on their way an hour before they are due; the next one in %v", len(r.queue), wait)
	}
	for i := range r.queue {
		r.queue[i].due = begun
	}
	r.ports = []int{-1, -1, -1} // which takes none
	if _, more := r.deliver(); more || r.lines[0][1] != 0 || r.lines[0][2] != 0 || r.dropped.Load() != 2+maxQueue+1 {
		t.Errorf("%v are on the lines, more: %v, %d were dropped", r.lines, more, r.dropped.Load())
	}
}

// Of packets that are due at once the first is first.
func TestRouterKeepsOrder(t *testing.T) {
	seed := seeds.One(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var w packetQueue
	now := time.Now()
	for i := range 1000 {
		w.push(packet{due: now.Add(time.Duration(rnd.IntN(10))), number: uint64(i)})
	}
	last := packet{due: now.Add(-1)}
	for len(w) > 0 {
		p := w.pop()
		if p.due.Before(last.due) || p.due.Equal(last.due) && p.number < last.number {
			t.Fatalf("seed %d: number %d, due in %v, comes after number %d, due in %v", seed, p.number, p.due.Sub(now), last.number, last.due.Sub(now))
		}
		last = p
	}
}
