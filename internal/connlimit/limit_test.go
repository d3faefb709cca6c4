package connlimit

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

// Who has to go, told by the numbers of the connections in the order of coming.
func TestWhoHasToGo(t *testing.T) {
	const a, b, c = "10.0.0.1", "10.0.0.2", "10.0.0.3"
	for name, test := range map[string]struct {
		come  []string
		spoke []int
		want  []int
	}{
		"room for all":                       {come: []string{a, a, b, b}},
		"the oldest of its own address":      {come: []string{b, a, a, a, a}, want: []int{1}},
		"of the address that has most":       {come: []string{b, a, a, a, c, c}, want: []int{1}},
		"the oldest where all have as many":  {come: []string{a, b, c, "10.0.0.4", "10.0.0.5", "10.0.0.6"}, want: []int{0}},
		"its own, where it has most":         {come: []string{b, a, a, c, "10.0.0.4", a, c}, want: []int{1, 2}},
		"who is silent before who speaks":    {come: []string{a, a, a, a, a}, spoke: []int{0, 1}, want: []int{2, 3}},
		"who speaks if all do":               {come: []string{a, a, a, a}, spoke: []int{0, 1, 2}, want: []int{0}},
		"a network of IPv6 is one address":   {come: []string{"2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"}, want: []int{0}},
		"but another network is another one": {come: []string{"2001:db8:0:1::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"}},
		"IPv4 within IPv6 is IPv4":           {come: []string{a, "::ffff:" + a, a, a}, want: []int{0}},
	} {
		l := New(5, 3)
		var out []int
		for i, from := range test.come {
			g := l.Add(netip.MustParseAddr(from), func() { out = append(out, i) })
			if slices.Contains(test.spoke, i) {
				g.Spoke()
			}
		}
		if !slices.Equal(out, test.want) {
			t.Errorf("%s: %v had to go, want %v", name, out, test.want)
		}
	}
}

func TestWhoLeavesMakesRoom(t *testing.T) {
	l := New(2, 2)
	var conns []*Conn
	for i := range 2 {
		conns = append(conns, l.Add(netip.MustParseAddr(fmt.Sprint("10.0.0.", i+1)), func() { t.Errorf("connection %d had to go", i) }))
	}
	for range 3 {
		conns[1].Done()
	}
	l.Add(netip.MustParseAddr("10.0.0.3"), func() {})
	if l.Len() != 2 || len(l.from) != 2 {
		t.Errorf("%d connections of %d addresses, want 2 of 2", l.Len(), len(l.from))
	}
}
