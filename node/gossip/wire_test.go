package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/hashicorp/memberlist"

	"zorilla/internal/codec"
	"zorilla/node/trust"
	"zorilla/vicinity"
)

func nodeWith(id vicinity.ID, v any) *memberlist.Node {
	return &memberlist.Node{Name: string(id), Addr: net.IP{10, 0, 0, 1}, Port: 5444, Meta: codec.MustMarshal(v)}
}

func TestMemberRoundTrip(t *testing.T) {
	m := vicinity.Member{ID: testCreds(t, 1, 1).ID(), Name: "größe", Site: "Amsterdam", Addrs: []string{"10.0.0.1:5444", "[fd00::1]:5444"},
		Slots: 16, Memory: 64 << 30, Platform: "linux/amd64", Enforces: []string{"landlock", "memory"}, Version: 3,
		GPUs: 2, Labels: map[string]string{"rack": "b7", "cpu.kind": "größer 3"},
		Speeds: vicinity.Speeds{Clock: 2400, Power: 1010, Bandwidth: 100_000}}
	got, meta, err := tidy(m)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Fatalf("tidied to %v, %v", got, err)
	}
	got, err = decodeMember(&memberlist.Node{Name: string(m.ID), Addr: net.ParseIP("10.0.0.1"), Port: 5444, Meta: meta})
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Fatalf("got %v, %v", got, err)
	}
}

func TestTidyMakesMembersAcceptable(t *testing.T) {
	id := testCreds(t, 1, 1).ID()
	var addrs []string
	for i := range 20 {
		addrs = append(addrs, fmt.Sprintf("[fd00:1111:2222:3333:4444:5555:6666:%d]:5444", i+1000))
	}
	fat, meta, err := tidy(vicinity.Member{ID: id, Name: strings.Repeat("ö", 100), Site: "a\x1b[31mb\nc\u202e" + strings.Repeat("x", 100), Addrs: addrs,
		Slots: -1, Memory: -1, Platform: strings.Repeat("p", 100), Enforces: slices.Repeat([]string{strings.Repeat("e", 32), "bad\x00"}, 30), Version: 1,
		GPUs: maxGPUs, Labels: map[string]string{strings.Repeat("k", 100): strings.Repeat("v", vicinity.MaxLabels-104)}})
	if err != nil || len(meta) > maxMeta {
		t.Fatalf("%d bytes, %v", len(meta), err)
	}
	if len(fat.Name) != maxLabel || fat.Site[:6] != "a[31mb" || len(fat.Addrs) == 0 || fat.Addrs[0] != addrs[0] || fat.Slots != 0 || len(fat.Labels) != 1 {
		t.Fatalf("got %+v", fat)
	}
	ap := netip.MustParseAddrPort(fat.Addrs[0])
	got, err := decodeMember(&memberlist.Node{Name: string(id), Addr: ap.Addr().AsSlice(), Port: ap.Port(), Meta: meta})
	if err != nil || !reflect.DeepEqual(got, fat) {
		t.Fatalf("others see %+v, %v", got, err)
	}
	for name, m := range map[string]vicinity.Member{
		"no address":       {ID: id},
		"no ID":            {Addrs: addrs[:1]},
		"host name":        {ID: id, Addrs: []string{"host:1"}},
		"too many slots":   {ID: id, Addrs: addrs[:1], Slots: maxSlots + 1},
		"negative power":   {ID: id, Addrs: addrs[:1], Speeds: vicinity.Speeds{Power: -1}},
		"negative version": {ID: id, Addrs: addrs[:1], Version: -1},
	} {
		if _, _, err := tidy(m); !errors.Is(err, errMeta) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Speeds take no room from what finds a node and decides what may run there.
func TestSpeedsAreLeftOutFirst(t *testing.T) {
	m := vicinity.Member{ID: testCreds(t, 1, 1).ID(), Addrs: []string{"10.0.0.1:5444"}, Enforces: []string{"landlock"}, Version: 1,
		Speeds: vicinity.Speeds{Clock: 2400, Power: 1010, Bandwidth: 1000}}
	for i := range 6 {
		m.Addrs = append(m.Addrs, fmt.Sprintf("[fd00:1111:2222:3333:4444:5555:6666:%d]:5444", i+1000))
	}
	left, without := 0, 0
	for n := range vicinity.MaxLabels - 8 {
		m.Labels = map[string]string{"label": strings.Repeat("v", n)}
		got, meta, err := tidy(m)
		if err != nil || len(meta) > maxMeta {
			t.Fatalf("%d bytes, %v", len(meta), err)
		}
		if got.Speeds == m.Speeds {
			left++
		} else if without++; got.Speeds != (vicinity.Speeds{}) {
			t.Fatalf("a part of them is left: %+v", got.Speeds)
		}
		if whole := len(got.Addrs) == 7 && len(got.Enforces) == 1; !whole && got.Speeds == m.Speeds {
			t.Fatalf("%+v has its speeds and lacks something else", got)
		}
	}
	if left == 0 || without == 0 {
		t.Errorf("%d with speeds, %d without: the test covers nothing", left, without)
	}
}

func hostileNodes(id vicinity.ID) map[string]*memberlist.Node {
	ok := meta{Name: "n", Version: 1}
	with := func(f func(*memberlist.Node)) *memberlist.Node {
		n := nodeWith(id, ok)
		f(n)
		return n
	}
	return map[string]*memberlist.Node{
		"no meta":         with(func(n *memberlist.Node) { n.Meta = nil }),
		"junk":            with(func(n *memberlist.Node) { n.Meta = []byte("\xc1junk") }),
		"too long":        with(func(n *memberlist.Node) { n.Meta = make([]byte, maxMeta+1) }),
		"no ID":           with(func(n *memberlist.Node) { n.Name = "" }),
		"host as ID":      with(func(n *memberlist.Node) { n.Name = "../../etc/passwd" }),
		"no IP":           with(func(n *memberlist.Node) { n.Addr = nil }),
		"odd IP":          with(func(n *memberlist.Node) { n.Addr = net.IP{1, 2, 3} }),
		"everywhere":      with(func(n *memberlist.Node) { n.Addr = net.IP{0, 0, 0, 0} }),
		"multicast":       with(func(n *memberlist.Node) { n.Addr = net.IP{224, 0, 0, 1} }),
		"port 0":          with(func(n *memberlist.Node) { n.Port = 0 }),
		"escape codes":    nodeWith(id, meta{Name: "\x1b]0;owned\x07"}),
		"line break":      nodeWith(id, meta{Site: "a\nb"}),
		"turned around":   nodeWith(id, meta{Name: "\u202egnp.exe"}),
		"not text":        nodeWith(id, meta{Name: "\xff\xfe"}),
		"long name":       nodeWith(id, meta{Name: strings.Repeat("n", maxLabel+1)}),
		"long platform":   nodeWith(id, meta{Platform: strings.Repeat("n", maxPlatform+1)}),
		"negative slots":  nodeWith(id, meta{Slots: -1}),
		"absurd slots":    nodeWith(id, meta{Slots: 1 << 40}),
		"absurd memory":   nodeWith(id, meta{Memory: 1 << 62}),
		"negative memory": nodeWith(id, meta{Memory: -1}),
		"absurd version":  nodeWith(id, meta{Version: 1 << 40}),
		"negative GPUs":   nodeWith(id, meta{GPUs: -1}),
		"negative clock":  nodeWith(id, meta{Clock: -1}),
		"absurd power":    nodeWith(id, meta{Power: 1 << 40}),
		"label to harm":   nodeWith(id, meta{Labels: map[string]string{"a": "\x1b]0;owned\x07"}}),
		"label of paths":  nodeWith(id, meta{Labels: map[string]string{"../a": "b"}}),
		"long labels":     nodeWith(id, meta{Labels: map[string]string{"a": strings.Repeat("x", vicinity.MaxLabels)}}),
		"many enforces":   nodeWith(id, meta{Enforces: slices.Repeat([]string{"e"}, maxEnforces+1)}),
		"bad enforces":    nodeWith(id, meta{Enforces: []string{"\x00"}}),
		"many addresses":  nodeWith(id, meta{Addrs: slices.Repeat([]string{"10.0.0.2:1"}, maxAddrs)}),
		"host name":       nodeWith(id, meta{Addrs: []string{"host.example.org:1"}}),
		"bad address":     nodeWith(id, meta{Addrs: []string{"10.0.0.2"}}),
		"address port 0":  nodeWith(id, meta{Addrs: []string{"10.0.0.2:0"}}),
		"address nowhere": nodeWith(id, meta{Addrs: []string{"0.0.0.0:1"}}),
		"hostile zone":    nodeWith(id, meta{Addrs: []string{"[fe80::1%\x1b[31m]:1"}}),
	}
}

func TestHostileMembersAreIgnoredAndLoggedOnce(t *testing.T) {
	n := idleNode(t)
	id := testCreds(t, 1, 2).ID()
	if err := (delegate{n.Overlay}).NotifyAlive(nodeWith(id, meta{Name: "fine"})); err != nil {
		t.Fatalf("a good member is refused: %v", err)
	}
	bad := 0
	for name, node := range hostileNodes(id) {
		if _, err := decodeMember(node); !errors.Is(err, errMeta) {
			t.Errorf("%s: %v", name, err)
		} else if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s: the error cannot be shown: %q", name, err)
		}
		for range 3 {
			if (delegate{n.Overlay}).NotifyAlive(node) == nil {
				t.Errorf("%s: accepted", name)
			}
			bad++
		}
		(delegate{n.Overlay}).NotifyJoin(node)
	}
	if len(n.Members()) != 0 || n.Stats()["members malformed"] != int64(bad) {
		t.Errorf("members %v, stats %v", n.Members(), n.Stats())
	}
	if got := n.logged("ignored node"); got != 3 { // "", the passwd file and all that go by one ID
		t.Errorf("logged %d times:\n%s", got, n.text.String())
	}
}

func FuzzDecodeMember(f *testing.F) {
	id := testCreds(f, 1, 2).ID()
	f.Add(string(id), []byte{10, 0, 0, 1}, uint16(5444), codec.MustMarshal(meta{Name: "n", Site: "s", Addrs: []string{"10.0.0.2:5444"}, Slots: 1, Version: 1}))
	for _, n := range hostileNodes(id) {
		f.Add(n.Name, []byte(n.Addr), n.Port, n.Meta)
	}
	f.Fuzz(func(t *testing.T, name string, ip []byte, port uint16, meta []byte) {
		m, err := decodeMember(&memberlist.Node{Name: name, Addr: ip, Port: port, Meta: meta})
		if err != nil {
			return
		}
		again, _, err := tidy(m)
		if err != nil || !reflect.DeepEqual(again, m) {
			// What was sent may be longer than what we would send.
			b, encErr := encodeMeta(m)
			if encErr != nil || len(b) <= maxMeta {
				t.Fatalf("%+v becomes %+v, %v", m, again, err)
			}
		}
	})
}

func TestPackets(t *testing.T) {
	id := testCreds(t, 1, 2).ID()
	b := encodePacket(id, 9, []byte("payload"))
	from, kind, payload, err := decodePacket(b)
	if err != nil || from != id || kind != 9 || string(payload) != "payload" {
		t.Fatalf("got %v %v %q %v", from, kind, payload, err)
	}
	b[len(b)-1] = 'X'
	if string(payload) != "payload" {
		t.Error("the payload is shared")
	}
	n := idleNode(t)
	bad := [][]byte{
		nil, {1}, b[:packetHeader-1],
		append([]byte{2}, b[1:]...),
		append([]byte{1, 0}, b[2:]...),
		bytes.Replace(b, []byte("z"), []byte("Z"), 1),
		encodePacket(id, 1, make([]byte, MaxPayload+1)),
	}
	for _, p := range bad {
		if _, _, _, err := decodePacket(p); !errors.Is(err, errPacket) {
			t.Errorf("%.40q: %v", p, err)
		}
		delegate{n.Overlay}.NotifyMsg(p)
	}
	delegate{n.Overlay}.NotifyMsg(encodePacket(n.ID(), 1, nil)) // in our own name
	if s := n.Stats(); s["packets malformed"] != int64(len(bad)) || len(n.messages) != 0 {
		t.Errorf("stats %v, messages %v", s, n.messages)
	}
}

func FuzzDecodePacket(f *testing.F) {
	id := testCreds(f, 1, 2).ID()
	f.Add(encodePacket(id, 9, []byte("payload")))
	f.Add(encodePacket(id, 1, nil))
	f.Add([]byte{1, 1, 'z'})
	f.Fuzz(func(t *testing.T, b []byte) {
		from, kind, payload, err := decodePacket(b)
		if err == nil && (!from.Valid() || !bytes.Equal(encodePacket(from, kind, payload), b)) {
			t.Fatalf("%x changes", b)
		}
	})
}

func TestBeacons(t *testing.T) {
	mine, other := testCreds(t, 1, 1).Networks(), testCreds(t, 2, 1).Networks()
	want := beacon{testCreds(t, 1, 2).ID(), []string{"10.0.0.1:5444", "192.168.0.1:5444"}}
	p, err := sealBeacon(mine[0], want)
	if err != nil || len(p) > maxBeacon {
		t.Fatalf("%d bytes, %v", len(p), err)
	}
	got, err := openBeacon(append(other, mine...), p)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, %v", got, err)
	}
	if bytes.Contains(p, []byte(want.ID)) || bytes.Contains(p, []byte("5444")) {
		t.Error("a beacon can be read by everybody")
	}
	if _, err := openBeacon(other, p); !errors.Is(err, errForeign) {
		t.Errorf("another network: %v", err)
	}
	for i := range p {
		q := bytes.Clone(p)
		q[i] ^= 1
		if _, err := openBeacon(mine, q); err == nil {
			t.Fatalf("byte %d was changed and nobody noticed", i)
		}
		if _, err := openBeacon(mine, p[:i]); err == nil {
			t.Fatalf("%d bytes of a beacon are accepted", i)
		}
	}
	for _, b := range hostileBeacons(want.ID) {
		p, err := sealBeacon(mine[0], b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := openBeacon(mine, p); !errors.Is(err, errBeacon) {
			t.Errorf("%v: %v", b, err)
		}
	}
	from := func(s string) net.Addr { return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
	if a := want.where(from("192.168.0.1:5445")); a != "192.168.0.1:5444" {
		t.Errorf("knock at %s", a)
	}
	if a := want.where(from("172.16.0.1:5445")); a != "10.0.0.1:5444" {
		t.Errorf("knock at %s", a)
	}
}

func hostileBeacons(id vicinity.ID) []beacon {
	return []beacon{
		{}, {ID: id}, {ID: "z", Addrs: []string{"10.0.0.1:1"}},
		{ID: id, Addrs: slices.Repeat([]string{"10.0.0.1:1"}, beaconAddrs+1)},
		{ID: id, Addrs: []string{"10.0.0.1:0"}}, {ID: id, Addrs: []string{"host:1"}}, {ID: id, Addrs: []string{"127.0.0.1:1"}},
		{ID: id, Addrs: []string{"0.0.0.0:1"}}, {ID: id, Addrs: []string{"224.0.0.1:1"}}, {ID: id, Addrs: []string{"10.0.0.1:01"}},
	}
}

// FuzzOpenBeacon seals what it is given, so that the decoder behind the seal is
// reached as well.
func FuzzOpenBeacon(f *testing.F) {
	networks := testCreds(f, 1, 1).Networks()
	id := testCreds(f, 1, 2).ID()
	for _, b := range append(hostileBeacons(id), beacon{id, []string{"10.0.0.1:5444"}}) {
		f.Add(string(b.ID), strings.Join(b.Addrs, " "), []byte("zorb\x01"))
	}
	f.Fuzz(func(t *testing.T, id, addrs string, raw []byte) {
		if _, err := openBeacon(networks, raw); err == nil {
			t.Fatalf("%x was not sealed", raw)
		}
		p, err := sealBeacon(networks[0], beacon{vicinity.ID(id), strings.Fields(addrs)})
		if err != nil {
			t.Fatal(err)
		}
		b, err := openBeacon([]*trust.Network{networks[0]}, p)
		if err != nil {
			return
		}
		if !b.ID.Valid() || b.where(nil) != b.Addrs[0] {
			t.Fatalf("accepted %v", b)
		}
	})
}
