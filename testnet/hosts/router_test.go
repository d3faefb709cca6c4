package main

import (
	"bytes"
	"fmt"
	"io"
	"testing"

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

// port is one site's end of the router.
type port struct{ in, out chan []byte }

func (p port) Read(b []byte) (int, error) {
	f, ok := <-p.in
	if !ok {
		return 0, io.EOF
	}
	return copy(b, append(make([]byte, vnetHeader), f...)), nil
}

func (p port) Write(b []byte) (int, error) {
	p.out <- bytes.Clone(b[vnetHeader:])
	return len(b), nil
}

func TestRouterDeliversInOrderAndCuts(t *testing.T) {
	p := &lab.Plan{Sites: []lab.Site{{Name: "a", Hosts: 1}, {Name: "b", Hosts: 1}, {Name: "c", Hosts: 1}}, RTT: [][]float64{{0, 2, 1}, {2, 0, 1}, {1, 1, 0}}}
	var sites [3]port
	var ports []io.ReadWriter
	for i := range sites {
		sites[i] = port{make(chan []byte), make(chan []byte, 1000)}
		defer close(sites[i].in)
		ports = append(ports, sites[i])
	}
	r := newRouter(p, ports)
	arrive := func(at int, want string) {
		t.Helper()
		if f := <-sites[at].out; string(f[ethernetHeader+ipv4Header:]) != want {
			t.Fatalf("%q arrives at %d, want %s", f[ethernetHeader+ipv4Header:], at, want)
		}
	}
	for i := range 100 {
		sites[0].in <- frame(0, 1, 1, 1, fmt.Sprint(i))
	}
	for i := range 100 {
		arrive(1, fmt.Sprint(i))
	}
	r.change(func(c *conditions) { c.cut[2] = true })
	sites[0].in <- frame(0, 1, 2, 1, "cut off")
	sites[2].in <- frame(2, 1, 0, 1, "cut off")
	sites[0].in <- frame(0, 1, 1, 1, "not cut off")
	arrive(1, "not cut off")
	r.change(func(c *conditions) { c.cut[2], c.loss = false, 100 })
	sites[1].in <- frame(1, 1, 2, 1, "lost")
	sites[1].in <- nil // taken after the one before has been dealt with
	r.change(func(c *conditions) { c.loss = 0 })
	sites[1].in <- frame(1, 1, 2, 1, "healed")
	arrive(2, "healed")
	if lost := r.lost.Load(); lost != 3 {
		t.Errorf("%d packets lost, want 3", lost)
	}
	for i, s := range sites {
		if len(s.out) > 0 {
			t.Errorf("%d packets more arrived at %d", len(s.out), i)
		}
	}
}
