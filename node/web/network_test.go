package web

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/usage"
	"zorilla/vicinity"
)

func TestNodesTogether(t *testing.T) {
	at := time.Now()
	node := func(slots, busy int, state string, told bool, l *usage.Lately) api.NodeInfo {
		n := api.NodeInfo{Member: vicinity.Member{Slots: slots, Memory: 8 << 30}, Busy: busy, State: state, Lately: l}
		if told {
			n.Told = at
		}
		return n
	}
	now := &usage.Lately{Load: 1.25, Free: 2 << 30}
	v := together([]api.NodeInfo{node(8, 3, "", true, now), node(4, 1, "draining", true, now), node(16, 0, "", false, nil), node(2, 99, "paused", true, nil)})
	if v.Busy != "6" || v.Free != "5" || v.Shut != "3" || v.All != "14 slots" || v.Shares != (shares{428.6, 214.3, 428.6}) {
		t.Errorf("%+v", v)
	}
	if v.Memory != "4 GiB of 16 GiB" || v.Load != "2.5" || !strings.HasPrefix(v.Note, "Of 3 nodes of 4") {
		t.Errorf("%+v", v)
	}
	if v := together(nil); v.Busy != "0" || !v.Hour.None || v.Shares != (shares{}) {
		t.Errorf("of nothing: %+v", v)
	}
	huge := &usage.Lately{Load: math.Inf(1), Free: math.MaxInt64}
	if v := together([]api.NodeInfo{node(1, 0, "", true, huge), node(-5, -5, "", true, nil)}); v.Memory != "" || v.Busy != "0" || v.All != "1 slot" {
		t.Errorf("of what cannot be: %+v", v)
	}
}

// A chart shows half of the slots busy at half of its height, at the right end the last
// minute, and nothing before there is something.
func TestChartOfTheLastHour(t *testing.T) {
	l := &usage.Lately{Busy: []byte{0, 100, 200}, Shut: []byte{200, 50, 0}}
	c := hourChart([]api.NodeInfo{{Member: vicinity.Member{Slots: 10}, Self: true, Lately: l}})
	want := chartView{
		Busy: "M570 100L570 100 L580 100L580 50 L590 50L590 0 L600 0L600 100Z",
		Shut: "M570 100L570 0 L580 0L580 25 L590 25L590 0 L600 0L600 100Z",
		All:  "M570 0 L580 0L580 0 L590 0L590 0 L600 0",
		Top:  "upper edge: 10 slots", Alt: "In the last 3 minutes on average 5.0 slots were busy; now 10.0 of 10 are.",
	}
	if c != want {
		t.Errorf("got\n%+v, want\n%+v", c, want)
	}
}

func TestPageOfANode(t *testing.T) {
	f := scene()
	f.nodes[7].Speeds = vicinity.Speeds{Clock: 2450, Power: 1337, Bandwidth: 25_000}
	st := sample("h3r3a@zaaaa", jobs.Running, f.nodes[7:8], 30, time.Minute, "<b>there</b>")
	f.put(st)
	srv := serve(t, f)
	res, body := ask(t, srv, "GET", "/nodes/"+string(nodeID(7)), nil)
	for _, want := range []string{f.nodes[7].Name, "draining", `href="/jobs/h3r3a@zaaaa"`, "rank 0, 1, 2,", ", …", "&lt;b&gt;there", "landlock, memory", "16 GiB", "2.45GHz", "1337", "25Gbit"} {
		if !strings.Contains(body, want) {
			t.Errorf("%s: the page lacks %q", res.Status, want)
		}
	}
	if strings.Contains(body, "<b>there") || strings.Contains(body, "rank 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12") {
		t.Error("a name is markup, or a list is too long")
	}
	for _, id := range []string{string(nodeID(99)), "z", "zzz%3Cb%3E", strings.Repeat("z", 27), "..%2f..%2f"} {
		for _, path := range []string{"/nodes/" + id, "/nodes/" + id + "/events"} {
			if res, body := ask(t, srv, "GET", path, nil); res.StatusCode != http.StatusNotFound || strings.Contains(body, "<b>") {
				t.Errorf("%s: %s", path, res.Status)
			}
		}
	}
	for _, n := range f.nodes {
		if _, body := ask(t, srv, "GET", "/", nil); !strings.Contains(body, `href="/nodes/`+string(n.ID)+`"`) {
			t.Errorf("nothing leads to %s", n.Name)
		}
	}
}

// Whatever members say of themselves, their page is text.
func TestHostileNode(t *testing.T) {
	const evil = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>` + "\x1b[2J\u202e"
	nodes := network(2)
	n := &nodes[1]
	n.Name, n.Site, n.Platform, n.Release, n.Cluster, n.State, n.Why = evil, evil, evil, evil, evil, evil, evil
	n.Labels, n.Addrs, n.Enforces, n.Neighbour = map[string]string{evil: evil}, []string{evil}, []string{evil}, evil
	for range 1000 {
		n.Addrs = append(n.Addrs, strings.Repeat("a", 5000))
		n.Enforces = append(n.Enforces, strings.Repeat("e", 5000))
	}
	n.Lately = &usage.Lately{Busy: make([]byte, 10_000), Shut: []byte{255}, Load: math.NaN(), Free: -1}
	n.Slots, n.Busy, n.Memory = 1<<40, -1<<40, -1
	srv := serve(t, newFake(nodes))
	for _, path := range []string{"/", "/nodes/" + string(n.ID)} {
		res, body := ask(t, srv, "GET", path, nil)
		if res.StatusCode != 200 || len(body) > 100_000 || !strings.Contains(body, "&lt;script&gt;") {
			t.Errorf("%s: %s, %d bytes", path, res.Status, len(body))
		}
		for _, bad := range []string{"<script>alert", "<img", "\u202e", "\x1b", "NaN"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s: the page holds %q", path, bad)
			}
		}
	}
}

func TestNodePageInChromium(t *testing.T) {
	f := scene()
	b := chromium(t)
	b.run("sign in", chromedp.Navigate(serve(t, f).URL+"/?token="+testToken))
	b.wait(`document.querySelector("#live").textContent === "live"`)
	b.run("open a member", chromedp.Click(fmt.Sprintf(`.members tr[data-key=%s] a`, f.nodes[5].ID)))
	b.wait(`location.pathname === "/nodes/` + string(f.nodes[5].ID) + `" && document.querySelector("#live").textContent === "live"`)
	b.wait(`document.querySelector(".state").textContent === "takes work"`)
	f.change(func() { f.nodes[5].State = "paused" })
	b.wait(`document.querySelector(".state").textContent === "paused"`)
	f.change(func() { f.nodes = append(f.nodes[:5:5], f.nodes[6:]...) })
	b.wait(`document.querySelector(".warn").checkVisibility()`)
	if p := b.console(); len(p) > 0 {
		t.Errorf("errors in the console: %q", p)
	}
}

// The map uses its box, however many nodes there are and however near they are; no name is
// written over another one where all have theirs.
func TestMapFillsItsBox(t *testing.T) {
	near := network(3)
	for i := range near {
		near[i].Position = []float64{float64(i) * .02, float64(i%2) * .01, 0}
	}
	same := network(3)
	for i := range same {
		same[i].Position = []float64{1, 1, 1}
	}
	for name, nodes := range map[string][]api.NodeInfo{"three": network(3), "three on one machine": near, "three at one place": same, "twelve": network(12), "three hundred": network(300)} {
		v := drawMap(nodes, groupTones(nodes), new(atlas).place(nodes, time.Now()))
		low, high := point{mapWidth, mapHeight}, point{}
		for i, d := range v.Dots {
			low, high = point{min(low.x, d.X), min(low.y, d.Y)}, point{max(high.x, d.X), max(high.y, d.Y)}
			for _, e := range v.Dots[:i] {
				if d.Name != "" && e.Name != "" && math.Abs(d.X-e.X) < 30 && math.Abs(d.NameY-e.NameY) < 10 {
					t.Errorf("%s: %s and %s are written over each other", name, d.Name, e.Name)
				}
			}
		}
		if len(v.Dots) != len(nodes) || (high.x-low.x)*2 < mapWidth && (high.y-low.y)*2 < mapHeight && name != "three at one place" || high.x-low.x < 80 && high.y-low.y < 80 {
			t.Errorf("%s: %d dots in %.0f x %.0f of %.0f x %.0f", name, len(v.Dots), high.x-low.x, high.y-low.y, mapWidth, mapHeight)
		}
		if strings.HasPrefix(name, "three ") && name != "three hundred" && (!v.Ruler.None || len(v.Halos) > 4) {
			t.Errorf("%s: a ruler for what is not to scale", name)
		}
	}
}

// Coordinates of nodes side by side wander; the map does not.
func TestMapOfNearNodesIsStill(t *testing.T) {
	nodes := network(3)
	for i := range nodes {
		nodes[i].Position = []float64{float64(i) * .1, float64(i%2) * .1, 0}
	}
	a, now := new(atlas), time.Now()
	before := a.place(nodes, now)
	for i := range nodes {
		nodes[i].Position = []float64{float64(i)*.1 + .02*float64(i%2), float64(i%2)*.1 - .02, .01}
	}
	for id, p := range a.place(nodes, now.Add(time.Minute)).points {
		if p != before.points[id] {
			t.Errorf("%.5s moved by %.0f", id, p.to(before.points[id]))
		}
	}
}

// At 390 pixels the map can be reached from the top, and charts are drawn in both schemes.
func TestNetworkOnAPhone(t *testing.T) {
	f := crowd(300)
	for i := range 40 {
		f.put(sample(fmt.Sprintf("ca%c%c@zeb2a", 'a'+i/26, 'a'+i%26), jobs.Running, f.nodes, 1, time.Minute, "x"))
	}
	b := chromium(t)
	srv := serve(t, f)
	colours := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		b.look(390, 844, true, scheme)
		b.run("sign in", chromedp.Navigate(srv.URL+"/?token="+testToken))
		b.wait(`document.querySelector("#live").textContent === "live"`)
		top, err := strconv.ParseFloat(b.ask(`document.querySelector(".network").getBoundingClientRect().top`), 64)
		if jobs := b.ask(`document.querySelector(".jobs").getBoundingClientRect().top`); err != nil || jobs < "8" && top > 844 {
			t.Errorf("all nodes together are at %v, jobs at %s", top, jobs)
		}
		b.run("to the map", chromedp.Click(`.jump a[href="#map"]`))
		b.wait(`(() => { const r = document.querySelector(".map svg").getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight && r.width > 300; })()`)
		b.wait(`document.documentElement.scrollWidth === 390`)
		colours[b.ask(`getComputedStyle(document.querySelector(".chart .busy")).fill`)] = true
		if d := b.ask(`document.querySelector(".chart .busy").getAttribute("d")`); !regexp.MustCompile(`^M\d+ 100(L\d+ [\d.]+ ?)+L600 100Z$`).MatchString(d) {
			t.Errorf("the chart is %.60s", d)
		}
	}
	if len(colours) != 2 {
		t.Errorf("the colours of light and dark are %v", colours)
	}
}
