package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/placement"
	"zorilla/node/api"
	"zorilla/testnet/hosts/lab"
)

// ended submits jobs of some sizes and waits until they have ended right.
func (s *sixSites) ended(ctx context.Context, row string, sizes map[string]int) {
	begin := time.Now()
	var list []*order
	for host, size := range sizes {
		list = append(list, s.job(ctx, host, size, size))
	}
	s.end(ctx, 30*time.Second, list...)
	s.row(row, since(begin), "30 s", true)
}

// cutSite cuts a site off while jobs run across the cut, uses both sides, and
// heals.
func (s *sixSites) cutSite(ctx context.Context) {
	var across []*order
	for i, host := range []string{"grenoble-1", "sophia-1"} {
		s.used(ctx, 4*i) // what the job before was offered beyond that is given back a moment later
		j := s.job(ctx, host, 3, 4, func(j *order) {
			j.spec.Strategy, j.spec.Where = string(placement.Spread), `site in ["grenoble", "sophia"]`
		})
		if places := s.places(s.runs(ctx, j, 4)); places != "2 grenoble + 2 sophia" {
			must(fmt.Errorf("a job should have workers on both sides of the cut: it is at %s", places))
		}
		across = append(across, j)
	}
	must(s.hold(s.at("sophia", true), deedCutSite, ask("cut", "site", "sophia"), ask("heal", "site", "sophia"), func() error {
		return told(func() { s.apart(ctx, across) })
	}))
	begin := time.Now()
	s.know(ctx, 90*time.Second, s.nodes)
	s.row("healed: all know all again", since(begin), "90 s", true)
	begin = time.Now()
	s.end(ctx, 60*time.Second, across...)
	s.row("the two jobs that had lost ranks have ended right", since(begin), "60 s", true)
}

// used waits until no more slots are used or held at all nodes than so many.
func (s *sixSites) used(ctx context.Context, slots int) {
	_, err := lab.Until(ctx, 15*time.Second, fmt.Sprintf("%d slots are used", slots), func(ctx context.Context) string {
		busy := 0
		for _, n := range s.nodes {
			info, err := n.Client.Node(ctx)
			if err != nil {
				return fmt.Sprintf("%s: %v", n.Name, err)
			}
			busy += info.Busy
		}
		if busy > slots {
			return fmt.Sprintf("%d are used or held", busy)
		}
		return ""
	})
	must(err)
}

// apart is what happens while the site is cut off.
func (s *sixSites) apart(ctx context.Context, across []*order) {
	begin := time.Now()
	// Two nodes need a minute or more to give up all ten: some are enough.
	given := make(chan error, 1)
	var took time.Duration
	go func() {
		given <- told(func() {
			took = s.ofAll(ctx, 90*time.Second, s.nodes, "have given the other side up", func(n *lab.Node, members []api.NodeInfo) string {
				alone := s.siteOf(n.Name) == s.siteOf("sophia-1")
				others := slices.DeleteFunc(members, func(m api.NodeInfo) bool { return (s.siteOf(m.Name) == s.siteOf("sophia-1")) == alone })
				if len(others) > 7 || len(others) > 0 && !alone {
					return fmt.Sprintf("still knows %d of the other side", len(others))
				}
				return ""
			})
		})
	}()
	s.ended(ctx, "three jobs submitted on both sides right after a site was cut off have ended right",
		map[string]int{"nancy-2": 3, "bordeaux-1": 2, "sophia-2": 1})
	for _, j := range across {
		s.becomes(ctx, j, 60*time.Second, "runs on its own side only", func(st jobs.Status) bool {
			return running(st) >= 3 && (s.places(st) == "sophia" || !strings.Contains(s.places(st), "sophia"))
		})
	}
	s.row("the ranks that two jobs had on the other side run on their own", since(begin), "120 s", true)
	s.cutHost(ctx)
	s.thin(ctx)
	must(<-given)
	s.row("the ten nodes have given up the two, and the two some of the ten", precise(took), "90 s", true)
	s.ended(ctx, "a job on each side after that has ended right", map[string]int{"sophia-1": 1, "grenoble-2": 1})
}

// cutHost cuts a host off that runs ranks of a malleable job, while sophia is cut
// off, too.
func (s *sixSites) cutHost(ctx context.Context) {
	j := s.job(ctx, "lyon-1", 2, 8)
	st := s.runs(ctx, j, 8)
	victim, lost := "", map[int]bool{} // ranks
	for _, w := range st.Workers {
		if w.Name != j.origin {
			victim = w.Name
		}
	}
	for _, w := range st.Workers {
		if w.Name == victim {
			lost[w.Rank] = true
		}
	}
	must(s.hold([]*lab.Node{s.node(victim)}, deedCut, ask("cut", "host", victim), ask("heal", "host", victim), func() error {
		return told(func() {
			begin := time.Now()
			s.becomes(ctx, j, 60*time.Second, "has all its ranks again without "+victim, func(st jobs.Status) bool {
				return running(st) >= 8 &&
					!slices.ContainsFunc(st.Workers, func(w jobs.WorkerStatus) bool { return w.Name == victim || lost[w.Rank] && w.Attempt < 2 })
			})
			s.row(fmt.Sprintf("%s cut off: its %d ranks of a malleable job run elsewhere", victim, len(lost)), since(begin), "60 s", true)
			s.end(ctx, 30*time.Second, j)
		})
	}))
	begin := time.Now()
	s.know(ctx, 90*time.Second, s.at("sophia", false))
	s.row("healed: the ten know each other again", since(begin), "90 s", true)
}

// crash takes a host's power away, and starts its node again as it was.
func (s *sixSites) crash(ctx context.Context) {
	const victim = "bordeaux-2"
	begin := time.Now()
	s.torment(ctx, torment{deed: deedCrash, hosts: []string{victim}})
	s.know(ctx, 60*time.Second, s.nodes)
	s.row(victim+" crashed and started again without an address: all know all", since(begin), "60 s", true)
}

// checksums submits a job whose workers check their input and leave files.
func (s *sixSites) checksums(ctx context.Context, host string, size, n int) *order {
	return s.job(ctx, host, n, n, func(j *order) {
		j.prog.In, j.prog.Out = size, 10_000
		j.spec.Outputs = []string{"out-*"}
	})
}

// loss runs jobs with files between sites while packets get lost.
func (s *sixSites) loss(ctx context.Context) {
	const size = 3 * siteSlots
	before := s.lostPackets()
	s.ask("loss", "5")
	begin := time.Now()
	var list []*order
	for _, host := range []string{"nancy-1", "grenoble-1", "sophia-2"} {
		list = append(list, s.checksums(ctx, host, 1<<20, size))
	}
	for _, j := range list {
		if places := s.places(s.runs(ctx, j, size)); !strings.Contains(places, "+") {
			must(fmt.Errorf("a job of %d should be at several sites: it is at %s", size, places))
		}
	}
	s.end(ctx, 60*time.Second, list...)
	took, lost := since(begin), s.lostPackets()-before
	s.row("packets lost while the next row was measured", fmt.Sprint(lost), "more than 50", lost > 50)
	s.row(fmt.Sprintf("5 %% of the packets lost: three jobs of %d with 1 MiB of input, each at several sites, have ended right", size), took, "60 s", true)
	s.know(ctx, 60*time.Second, s.nodes)
	s.ask("loss", "0")
}

// lostPackets asks the lab how many packets it has lost so far.
func (s *sixSites) lostPackets() (count int) {
	out := s.ask("show")
	_, rest, _ := strings.Cut(out, " carried, ")
	if _, err := fmt.Sscanf(rest, "%d lost", &count); err != nil {
		must(fmt.Errorf("lab show does not tell lost packets: %q", out))
	}
	return count
}

// thin limits a host's cable and sends files from it.
func (s *sixSites) thin(ctx context.Context) {
	const mbit, size = 20, 4 << 20
	s.ask("rate", "host", "rennes-1", fmt.Sprint(mbit))
	begin := time.Now()
	s.end(ctx, 60*time.Second, s.checksums(ctx, "rennes-1", size, 2*siteSlots))
	took := time.Since(begin)
	least := time.Duration(float64(size) * 8 / mbit * float64(time.Microsecond))
	s.row(fmt.Sprintf("4 MiB of input from a host with a cable of %d Mbit/s to the workers of its site", mbit),
		precise(took), "more than "+precise(least), took > least)
	s.ask("rate", "host", "rennes-1", "0")
}

// besideHostile has jobs run beside one of each hostile kind, whose limits have to
// hold.
func (s *sixSites) besideHostile(ctx context.Context, act func()) {
	begin := time.Now()
	rnd := rand.New(rand.NewPCG(0, 3))
	var list []*order
	for _, k := range hostile() {
		list = append(list, s.job(ctx, "lyon-1", 1, 1, func(j *order) {
			j.kind = k.name
			k.make(j, rnd)
			j.prog.Gate, j.cancel, j.ends = "", 0, j.ends[:1]
		}))
	}
	act()
	var ends []string
	right := true
	for _, j := range list {
		st := s.becomes(ctx, j, 60*time.Second, "ends", func(st jobs.Status) bool { return st.State.Final() })
		s.judge(ctx, s.node(j.origin), j, st)
		right = right && j.ends[0] == end{st.State, st.ExitCode}
		ends = append(ends, fmt.Sprintf("%s: %d", j.kind, st.ExitCode))
	}
	s.row("meanwhile each hostile job was ended at its limit", strings.Join(ends, ", ")+", in "+since(begin), "124 by time, 137 by room", right)
}
