package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/testnet/hosts/lab"
)

// near is how much two round trips may differ, in ms, and still count as the
// same: less than that is noise on a busy machine.
const near = 1.0

// truth measures the emulation itself, without Zorilla. Between two sites the best
// of all pings reports what the lab does, and the median how busy the machine is.
func (s *sixSites) truth(ctx context.Context) {
	var mu sync.Mutex
	best := map[string]float64{}
	var usual []float64
	took, err := lab.Until(ctx, 30*time.Second, "the best ping between any two sites is right", func(context.Context) string {
		err := s.each(s.nodes, func(n *lab.Node) error {
			from := s.siteOf(n.Name)
			for to := range s.plan.Sites {
				if from == to || !strings.HasSuffix(n.Name, "-1") { // one per site is enough
					continue
				}
				trips, err := s.ping(n.Name, lab.Address(to, 2).String())
				if err != nil {
					return err
				}
				mu.Lock()
				pair, added := fmt.Sprint(from, to), trips[0]-s.plan.RTT[from][to]
				if old, ok := best[pair]; !ok || added < old {
					best[pair] = added
				}
				usual = append(usual, trips[len(trips)/2]-s.plan.RTT[from][to])
				mu.Unlock()
			}
			return nil
		})
		if err != nil {
			return err.Error()
		}
		if most := slices.Max(slices.Collect(maps.Values(best))); most >= 2 {
			return fmt.Sprintf("%.1f ms too long", most)
		}
		return ""
	})
	must(err)
	least := slices.Sorted(maps.Values(best))
	slices.Sort(usual)
	span := func(l []float64) string { return millis(l[0]) + ", " + millis(last(l)) }
	s.row("the lab itself: what it adds to the best ping between two sites, smallest and largest", span(least), "0 to 2 ms", least[0] >= 0)
	s.row("and to the median of nine pings (on a busy machine: more)", span(usual)+" in "+precise(took), "-", true)
}

// ping returns nine round trips from a host to an address in milliseconds, sorted:
// how soon the kernel there refuses a connection.
func (s *sixSites) ping(host, address string) (trips []float64, err error) {
	return trips, lab.On(s.dir, host, func() error {
		for range 9 {
			begin := time.Now()
			c, err := net.Dial("tcp4", address+":7")
			trips = append(trips, time.Since(begin).Seconds()*1000)
			if err == nil {
				err = errors.Join(errors.New("somebody listens at "+address), c.Close())
			}
			if !errors.Is(err, syscall.ECONNREFUSED) {
				return err
			}
		}
		slices.Sort(trips)
		return nil
	})
}

// discover starts all nodes with nothing but the secret.
func (s *sixSites) discover(ctx context.Context) {
	begin := time.Now()
	must(s.each(s.nodes, func(n *lab.Node) error { return n.Start(ctx, s.args...) }))
	for _, site := range s.plan.Sites {
		s.know(ctx, 30*time.Second, s.at(site.Name, true))
	}
	s.row("the two nodes of each site know each other, by the secret alone", since(begin), "30 s", true)
}

// join starts one node per site anew, with an address of the first site.
func (s *sixSites) join(ctx context.Context) {
	var firsts []*lab.Node
	for _, site := range s.plan.Sites[1:] {
		firsts = append(firsts, s.node(site.Name+"-1"))
	}
	must(s.each(firsts, func(n *lab.Node) error { return n.End(syscall.SIGTERM) }))
	begin := time.Now()
	joined := append(slices.Clone(s.args), "--join", lab.Address(0, 1).String()+":5444")
	must(s.each(firsts, func(n *lab.Node) error { return n.Start(ctx, joined...) }))
	s.know(ctx, 90*time.Second, s.nodes)
	s.row("all know all after five nodes joined by an address", since(begin), "90 s", true)
	took := s.ofAll(ctx, 60*time.Second, s.nodes, "have measured all others", func(_ *lab.Node, members []api.NodeInfo) string {
		for _, m := range members {
			if m.RTT == 0 && !m.Self {
				return "has not measured " + m.Name
			}
		}
		return ""
	})
	s.row("after that all nodes have measured all others", "after "+precise(took), "60 s", true)
}

// distances waits until every node sorts the other sites as they are.
func (s *sixSites) distances(ctx context.Context) {
	var errs, local []float64
	took := s.ofAll(ctx, 90*time.Second, s.nodes, "sort the sites rightly", func(n *lab.Node, members []api.NodeInfo) string {
		if n == s.nodes[0] {
			errs, local = nil, nil
		}
		for _, m := range members {
			switch a, b := s.siteOf(n.Name), s.siteOf(m.Name); {
			case m.Self:
			case a == b:
				local = append(local, inMillis(m))
			default:
				errs = append(errs, math.Abs(inMillis(m)-s.plan.RTT[a][b]))
			}
		}
		return s.sorted(n.Name, members)
	})
	slices.Sort(errs)
	slices.Sort(local)
	middle := func(l []float64) string { return millis(l[len(l)/2]) + ", " + millis(last(l)) }
	s.row("every node sorts the other sites by round trip, if they differ by 1 ms", precise(took)+" later", "90 s", true)
	s.row("its round trips to other sites (10.2 to 19.4 ms): median and largest error", middle(errs), "median below 3 ms", errs[len(errs)/2] < 3)
	s.row("its round trip to its own site: median and largest", middle(local), "below 5 ms", last(local) < 5)
}

func inMillis(m api.NodeInfo) float64 { return time.Duration(m.RTT).Seconds() * 1000 }

// sorted returns "" if the host's round trips put the other sites in their order;
// those that differ by less than near may stand either way.
func (s *sixSites) sorted(host string, members []api.NodeInfo) string {
	sites := make([]distance, len(s.plan.Sites))
	for _, m := range members {
		at := s.siteOf(m.Name)
		sites[at].name, sites[at].site = s.plan.Sites[at].Name, at
		sites[at].ms += inMillis(m) / float64(s.plan.Sites[at].Hosts)
	}
	return s.disorder(host, sites)
}

// distance is the round trip to a site, or to a host there, as a node tells it.
type distance struct {
	name string
	site int
	ms   float64
}

// disorder returns two distances from a host that do not stand as they should, or "".
func (s *sixSites) disorder(host string, list []distance) string {
	own := s.siteOf(host)
	truth := s.plan.RTT[own]
	for _, a := range list {
		for _, b := range list {
			if a.site != own && b.site != own && truth[a.site]+near < truth[b.site] && a.ms >= b.ms {
				return fmt.Sprintf("has %s at %.1f ms and %s at %.1f ms; true: %.1f and %.1f", a.name, a.ms, b.name, b.ms, truth[a.site], truth[b.site])
			}
		}
	}
	return ""
}

// nearest returns the sites in the order of their distance from a host.
func (s *sixSites) nearest(host string) []int {
	own := s.siteOf(host)
	order := make([]int, len(s.plan.Sites))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(s.plan.RTT[own][a], s.plan.RTT[own][b]) })
	return order
}

// order fills the network from two hosts, one after the other, with jobs as
// large as a site, and compares where they run with the distances.
func (s *sixSites) order(ctx context.Context) {
	const size = 2 * siteSlots
	for i, host := range []string{"rennes-1", "sophia-2"} {
		var list []*order
		var path []string
		wrong, cost := 0, 0.0
		own := s.siteOf(host)
		s.empty(ctx) // slots are free a moment after their job has ended
		// A single round trip stays wrong for a while after a busy moment. If it stays
		// wrong for longer the rows show it.
		_, _ = lab.Until(ctx, 30*time.Second, "each host has its place", lab.All([]*lab.Node{s.node(host)}, func(_ *lab.Node, members []api.NodeInfo) string {
			var hosts []distance
			for _, m := range members {
				hosts = append(hosts, distance{m.Name, s.siteOf(m.Name), inMillis(m)})
			}
			return s.disorder(host, hosts)
		}))
		for _, want := range s.nearest(host) {
			j := s.job(ctx, host, size, size)
			st := s.runs(ctx, j, size)
			list, path = append(list, j), append(path, s.places(st))
			for _, w := range st.Workers {
				d := s.plan.RTT[own][s.siteOf(w.Name)] - s.plan.RTT[own][want]
				cost = max(cost, d)
				if d > near {
					wrong++
				}
			}
		}
		s.row(fmt.Sprintf("six jobs of %d from %s, each while those before run", size, host),
			strings.Join(path, ", "), "own site first", path[0] == s.plan.Sites[own].Name)
		s.row("their workers that are more than 1 ms farther than a site with free slots",
			fmt.Sprintf("%d of %d; at most %s farther", wrong, 6*size, millis(cost)),
			"one in eight at most", wrong <= 6*size/8)
		if i == 1 {
			s.full(ctx, list[0], path[0])
		}
		s.end(ctx, 20*time.Second, list...)
	}
}

// full submits a job when no slot is free: it waits, and runs where slots get free
// when another job leaves its place.
func (s *sixSites) full(ctx context.Context, leaver *order, place string) {
	late := s.job(ctx, "lyon-1", siteSlots, siteSlots)
	st := s.becomes(ctx, late, 10*time.Second, "has asked and waits", func(st jobs.Status) bool {
		return len(st.Rounds) > 0 && st.State == jobs.Pending && strings.Contains(st.Reason, "waiting for")
	})
	s.row("a job for which no slot is free says so", st.Reason, "waits with a reason", true)
	freed := time.Now()
	s.end(ctx, 20*time.Second, leaver)
	st = s.runs(ctx, late, siteSlots)
	s.row("it runs where slots get free", fmt.Sprintf("at %s, %s after that", s.places(st), since(freed)),
		"at "+place, strings.Contains(place, strings.TrimLeft(s.places(st), "0123456789 ")))
	s.end(ctx, 20*time.Second, late)
}
