package lab

import (
	"strings"
	"testing"

	"zorilla/testnet"
)

func TestGrid5000IsThatOfTheEmulation(t *testing.T) {
	p, err := PlanOf("grid5000")
	if err != nil {
		t.Fatal(err)
	}
	for a, row := range testnet.Grid5000() {
		for b, want := range row {
			if got := 2 * p.OneWay(a, b); got != want {
				t.Errorf("%s to %s: %v, the emulation has %v", p.Sites[a].Name, p.Sites[b].Name, got, want)
			}
		}
	}
}

func TestPlansCanBeBuilt(t *testing.T) {
	for _, name := range strings.Split(Plans, " or ") {
		p, err := PlanOf(name)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{Fabric: true}
		for _, h := range p.Hosts() {
			if seen[h.Name] || strings.Trim(h.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
				t.Errorf("%s: a host is called %q", name, h.Name)
			}
			seen[h.Name] = true
		}
		for a := range p.Sites {
			for b := range p.Sites {
				if d := p.OneWay(a, b); d < 0 || d != p.OneWay(b, a) || (d == 0) != (a == b) {
					t.Errorf("%s: %s to %s: %v", name, p.Sites[a].Name, p.Sites[b].Name, d)
				}
			}
		}
	}
	if _, err := PlanOf("paris"); err == nil || !strings.Contains(err.Error(), "want grid5000 or room") {
		t.Errorf("a network that there is not: %v", err)
	}
}

func TestAddressesTellThePlace(t *testing.T) {
	p := &Plan{Sites: []Site{{"a", 3}, {"b", 200}}}
	hosts := p.Hosts()
	if len(hosts) != 203 || hosts[0].Name != "a-1" || hosts[0].Addr.String() != "10.0.1.1" || hosts[202].Name != "b-200" || hosts[202].MAC.String() != "02:00:00:00:02:c8" {
		t.Fatalf("%d hosts from %v to %v", len(hosts), hosts[0], hosts[len(hosts)-1])
	}
	seen := map[string]bool{}
	for _, h := range hosts {
		site, number, ok := p.PlaceOf(h.Addr.As4())
		if !ok || site != h.Site || Address(site, number) != h.Addr || seen[h.Addr.String()] || seen[h.MAC.String()] {
			t.Errorf("%v: address tells %d, %d, %v", h, site, number, ok)
		}
		seen[h.Addr.String()], seen[h.MAC.String()] = true, true
	}
	for _, a := range [][4]byte{{10, 0, 0, 1}, {10, 0, 3, 1}, {10, 0, 1, 0}, {10, 0, 1, 4}, {10, 0, 2, 201}, {10, 0, 1, 254}, {10, 1, 1, 1}, {11, 0, 1, 1}} {
		if site, number, ok := p.PlaceOf(a); ok {
			t.Errorf("%v is host %d of site %d", a, number, site)
		}
	}
}
