package lab

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"zorilla/testnet"
)

func TestGrid5000IsThatOfTheEmulation(t *testing.T) {
	p, err := ReadPlan("../grid5000.json")
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

func TestBadPlansSayWhatIsWrong(t *testing.T) {
	two := `"sites": [{"name": "a", "hosts": 2}, {"name": "b", "hosts": 1}]`
	for _, c := range []struct{ text, want string }{
		{``, "line 1: the description ends too early"},
		{"{\n\"sites\": [,", "line 2: invalid character ','"},
		{`{"sites": 3}`, "line 1: sites: want []lab.Site, not number"},
		{`{"site": []}`, `unknown field "site"`},
		{`{}`, "sites: 0, want 1 to 32"},
		{`{"sites": [{"name": "A b", "hosts": 1}], "rtt_ms": [[0]]}`, `site "A b": want a name`},
		{`{"sites": [{"name": "a/b", "hosts": 1}], "rtt_ms": [[0]]}`, `site "a/b": want a name`},
		{`{"sites": [{"name": "a", "hosts": 1}, {"name": "a", "hosts": 1}]}`, "site a: is there twice"},
		{`{"sites": [{"name": "a", "hosts": 0}]}`, "site a: 0 hosts, want 1 to 200"},
		{`{"sites": [{"name": "a", "hosts": 201}]}`, "site a: 201 hosts"},
		{`{"sites": [{"name": "a", "hosts": 200}, {"name": "b", "hosts": 200}, {"name": "c", "hosts": 1}]}`, "401 hosts in all, want at most 400"},
		{`{"sites": [{"name": "a", "hosts": 1}, {"name": "a-1", "hosts": 1}]}`, "host a-1: another host or site has this name"},
		{`{` + two + `}`, "rtt_ms: 0 rows for 2 sites"},
		{`{` + two + `, "rtt_ms": [[0, 1], [1]]}`, "rtt_ms: the row of b has 1 numbers for 2 sites"},
		{`{` + two + `, "rtt_ms": [[0, 1], [2, 0]]}`, "rtt_ms: a to b is 1, but back it is 2: want the same"},
		{`{` + two + `, "rtt_ms": [[3, 1], [1, 0]]}`, "rtt_ms: a to itself is 3, want 0"},
		{`{` + two + `, "rtt_ms": [[0, -1], [-1, 0]]}`, "rtt_ms: a to b is -1, want 0 to 10000"},
		{`{` + two + `, "rtt_ms": [[0, 10001], [10001, 0]]}`, "want 0 to 10000"},
		{`{` + two + `, "rtt_ms": [[0, 1], [1, 0]]} {}`, "something follows"},
	} {
		if _, err := ParsePlan([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngives %v\nwant %s", c.text, err, c.want)
		}
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

// FuzzParsePlan checks that what is accepted can be built: bounded, with
// distances that are the same both ways, and names that are safe in paths.
func FuzzParsePlan(f *testing.F) {
	grid, err := os.ReadFile("../grid5000.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(grid)
	f.Add([]byte(`{"sites": [{"name": "a", "hosts": 1}], "rtt_ms": [[0]]}`))
	f.Add([]byte(`{"sites": [{"name": "a", "hosts": -1}], "rtt_ms": [[1e400]]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePlan(b)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %q", err)
			}
			return
		}
		hosts := p.Hosts()
		if len(hosts) == 0 || len(hosts) > maxHosts || len(p.Sites) > maxSites {
			t.Errorf("%d hosts at %d sites", len(hosts), len(p.Sites))
		}
		for _, h := range hosts {
			if strings.Trim(h.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || h.Name == Fabric {
				t.Errorf("a host is called %q", h.Name)
			}
		}
		for a := range p.Sites {
			for b := range p.Sites {
				if d := p.OneWay(a, b); d < 0 || d > 5*time.Second || d != p.OneWay(b, a) || a == b && d != 0 {
					t.Errorf("%d to %d: %v", a, b, d)
				}
			}
		}
		if again, err := json.Marshal(p); err != nil {
			t.Error(err)
		} else if _, err := ParsePlan(again); err != nil {
			t.Errorf("written and read again: %v", err)
		}
	})
}
