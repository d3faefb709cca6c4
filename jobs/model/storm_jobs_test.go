package model_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/model"
	"zorilla/jobs/placement"
	"zorilla/jobs/placement/mapping"
	"zorilla/jobs/placement/topology"
)

// fate is the same for a worker whenever it is asked.
func (s *storm) fate(job jobs.ID, spec *jobs.Spec, ra jobs.RankAttempt) model.Fate {
	h := fnv.New64a()
	fmt.Fprint(h, job, ra.Rank, ra.Attempt)
	draw := rand.New(rand.NewPCG(s.seed, h.Sum64()))
	f := model.Fate{Prepare: time.Duration(draw.Int64N(int64(100 * time.Millisecond)))}
	f.Run = time.Duration(1 + draw.Int64N(int64([]time.Duration{time.Second, 5 * time.Second, 30 * time.Second}[draw.IntN(3)])))
	if draw.IntN(20) == 0 {
		f.Prepare = time.Duration(draw.Int64N(int64(15 * time.Second)))
	}
	if draw.IntN(20) == 0 {
		f.Unfit = "its inputs could not be fetched"
	}
	if draw.IntN(8) == 0 {
		f.Code = 1 + draw.IntN(3)
	}
	if draw.IntN(2) == 0 {
		f.Output = draw.IntN(3 * model.ReportSize)
	}
	if draw.IntN(2) == 0 {
		f.Stop = time.Duration(draw.Int64N(int64(participant.StopGrace)))
	}
	f.Saves = s.saves(job, ra)
	return f
}

// saves is how often a worker makes a checkpoint: those of a job about as often, but for one now and then.
func (s *storm) saves(job jobs.ID, ra jobs.RankAttempt) time.Duration {
	h := fnv.New64a()
	fmt.Fprint(h, job)
	draw := rand.New(rand.NewPCG(s.seed, h.Sum64()))
	if draw.IntN(10) >= 4 {
		return 0
	}
	every := time.Duration(1 + draw.Int64N(int64([]time.Duration{300 * time.Millisecond, 2 * time.Second}[draw.IntN(2)])))
	for range ra.Rank + 1 {
		draw.IntN(10)
	}
	if draw.IntN(10) == 0 {
		every *= 5
	}
	return every
}

func (s *storm) capacity() (all, most int) {
	for _, n := range s.slots {
		all += n
		most = max(most, n)
	}
	return all, most
}

// job makes up a job.
func (s *storm) job() jobs.Spec {
	all, most := s.capacity()
	spec := jobs.Spec{Slots: 1, Priority: s.rnd.IntN(3) - 1, Failing: jobs.Failing{Retries: max(0, s.rnd.IntN(6)-2)}}
	if s.chance(0.25) {
		spec.Slots = 1 + s.rnd.IntN(most)
	}
	room := 0
	for _, n := range s.slots {
		room += n / spec.Slots
	}
	spec.Min = 1 + s.rnd.IntN(max(1, min(room, 1+s.rnd.IntN(room))))
	spec.Max = spec.Min
	switch s.rnd.IntN(10) {
	case 0:
		spec.Min = room + 1 + s.rnd.IntN(3) // more than there is
		spec.Max = spec.Min + s.rnd.IntN(2)
	case 1, 2, 3:
		spec.Max = spec.Min + 1 + s.rnd.IntN(all)
	}
	if s.chance(0.1) {
		no := false
		spec.KillOnBadExit = &no
	}
	if s.chance(0.1) {
		spec.MaxFails = 1
	}
	if s.chance(0.1) {
		spec.Walltime = 5e9
	}
	if s.chance(0.1) {
		spec.GiveUp = 20e9
	}
	if s.chance(0.2) {
		spec.Outputs = []string{"out-*"}
	}
	if s.chance(0.1) {
		spec.Search.Mode = jobs.SearchPaper
	}
	if s.chance(0.2) {
		spec.Strategy = []string{"spread", "compact"}[s.rnd.IntN(2)]
	}
	if s.chance(0.1) {
		if !s.far { // else too many cannot be measured
			spec.MaxRTT = 9e9 // which only nodes break that cannot be measured
		}
	}
	if copies := 2 + s.rnd.IntN(2); s.chance(0.2) && spec.Min == spec.Max && s.holds(spec.Slots, spec.Min, copies, false) == nil {
		spec.Replicas = copies
	}
	if n := len(s.jobs); n > 0 && s.chance(0.1) {
		kind := []jobs.DependencyKind{jobs.AfterOK, jobs.AfterAny, jobs.AfterNotOK}[s.rnd.IntN(3)]
		spec.After = []jobs.Dependency{{Kind: kind, Job: s.jobs[s.rnd.IntN(n)]}}
	}
	if s.notice.Float64() < 0.3 {
		spec.Signal = []string{"USR1@1s", "USR1@4s"}[s.notice.IntN(2)]
	}
	if s.haste.Float64() < 0.5 {
		spec.LostAfter = codec.Duration([]time.Duration{2 * time.Second, 2 * time.Second, 5 * time.Second, 30 * time.Second}[s.haste.IntN(4)])
		if s.gentle { // nodes are away for longer than 2 s, and that must cost nothing
			spec.LostAfter = max(spec.LostAfter, codec.Duration(wire.PartLease))
		}
	}
	// It is drawn before groups are, so that both come together.
	single := s.apart.Float64() < 0.15
	if s.apart.Float64() < 0.2 {
		spec = s.groups(spec)
	}
	spec.OnePerNode = single
	if mapped := s.apart.Float64() < 0.4; mapped && single && spec.Min == spec.Max && spec.Min >= 3 && len(spec.Groups) == 0 &&
		spec.Replicas == 0 && spec.Search.Adaptive() {
		spec.Strategy, spec.MaxRTT, spec.Graph = "maheve", 0, &mapping.Listed{Name: fmt.Sprintf("ring:%d", spec.Min)}
	}
	s.reserve(&spec)
	if single && spec.Replicas > 1 && s.room(&spec) != nil {
		spec.Replicas = 0
	}
	return spec
}

// reserve gives a job spares, and mostly has it leave room for them.
func (s *storm) reserve(spec *jobs.Spec) {
	n, small := 1+s.spares.IntN(4), s.spares.Float64() < 0.8
	if s.spares.Float64() >= 0.3 || spec.Replicas > 0 || len(spec.Groups) > 0 {
		return
	}
	if small && !spec.Mapped() {
		spec.Min = (spec.Min + 2) / 3
		spec.Max = spec.Min + 1
	}
	if !spec.Rigid() || spec.Retries > 0 {
		spec.Spares = min(n, spec.Max)
	}
}

// groups makes a job one of groups with links between them.
func (s *storm) groups(spec jobs.Spec) jobs.Spec {
	draw := s.apart
	spec.Strategy, spec.MaxRTT, spec.Replicas, spec.Search.Mode, spec.Slots = "", 0, 0, "", 1
	_, most := s.capacity()
	var names []string
	for i := range 1 + draw.IntN(4) {
		g := groups.Group{Name: fmt.Sprintf("g%d", i), Min: 1 + draw.IntN(3)}
		g.Max = g.Min + draw.IntN(3)
		if draw.IntN(3) == 0 {
			g.Slots.Min = int64(1 + draw.IntN(most))
		}
		g.Restart = []string{"", groups.RestartRank, groups.RestartGroup, groups.RestartJob}[draw.IntN(4)]
		if draw.IntN(4) == 0 {
			g.Clusters, g.Prefer = 1, codec.Duration(draw.Int64N(int64(10*time.Second)))
		}
		if draw.IntN(3) == 0 {
			spec.Links = append(spec.Links, groups.Link{Name: "in-" + g.Name, Groups: []string{g.Name}, MaxRTT: s.bound()})
		}
		names, spec.Groups = append(names, g.Name), append(spec.Groups, g)
	}
	if len(names) > 1 && draw.IntN(2) == 0 {
		spec.Links = append(spec.Links, groups.Link{Name: "all", Groups: names, MaxRTT: s.bound()})
	}
	spec.Min, spec.Max = spec.Topology.Least(), spec.Topology.Most()
	return spec
}

// bound is how far apart nodes may be: within a site, or about any; 0 = any, where too many cannot be measured.
func (s *storm) bound() codec.Duration {
	if s.far {
		return 0
	}
	return codec.Duration([]time.Duration{5 * time.Millisecond, 30 * time.Millisecond, 9 * time.Second}[s.apart.IntN(3)])
}

// feasible reports whether the nodes that are there for good could run a job with groups if they were
// idle, with some room for what is measured wrongly.
func (s *storm) feasible(spec *jobs.Spec) bool {
	p := topology.Problem{RTT: func(a, b int) time.Duration { return s.net.RTT(a, b) }, Bandwidth: func(a, b int) int64 { return 0 }}
	for i, n := range s.slots {
		if s.gone[i] {
			n = 0
		}
		h := topology.Host{Name: fmt.Sprint(i), Free: topology.Amounts{int64(n)}, Fits: 1<<len(spec.Groups) - 1}
		if spec.OnePerNode {
			h.Workers = 1
		}
		p.Hosts = append(p.Hosts, h)
	}
	for i, g := range spec.Groups {
		t := topology.Group{Name: g.Name, Min: g.Min, Max: g.Max, Takes: topology.Amounts{int64(spec.NeedsOf(i).Slots)}}
		if g.Prefer == 0 { // what a cluster is depends on what is measured
			t.Clusters = g.Clusters
		}
		p.Groups = append(p.Groups, t)
	}
	for _, l := range spec.Links {
		t := topology.Link{Name: l.Name, MaxRTT: time.Duration(l.MaxRTT) * 2 / 3}
		for k, g := range spec.Groups {
			if l.Has(g.Name) {
				t.Groups |= 1 << k
			}
		}
		p.Links = append(p.Links, t)
	}
	for i := range p.Hosts {
		p.Hosts[i].Cluster = s.net.Site(i)
	}
	return p.Solve().Verdict == topology.Found
}

// room says whether the nodes could hold a job at its start if they were idle.
func (s *storm) room(spec *jobs.Spec) error {
	return s.holds(spec.Slots, spec.Min, spec.Copies(), spec.OnePerNode)
}

// holds is room for so many ranks in so many copies, perhaps with one worker at a node.
func (s *storm) holds(slots, ranks, copies int, single bool) error {
	var offers []placement.Offer
	for i, n := range s.slots {
		workers := n / slots
		if single {
			workers = min(workers, 1)
		}
		if !s.gone[i] {
			offers = append(offers, placement.Offer{Node: string(s.net.ID(i)), Workers: workers})
		}
	}
	_, err := placement.PlaceReplicas(placement.Nearest, offers, ranks, copies)
	return err
}

// keptNothing reports whether no node keeps a checkpoint.
func (s *storm) keptNothing() bool {
	return !slices.ContainsFunc(s.Alive(), func(i int) bool { return s.Jobs(i).Keeps() > 0 })
}

func (s *storm) leftKept() {
	for _, i := range s.Alive() {
		if n := s.Jobs(i).Keeps(); n > 0 {
			s.audit.Fail("", "node %s keeps %d checkpoints of jobs that have ended", s.net.ID(i).Short(), n)
		}
	}
}

// picture tells what a job waits for, and what nodes do instead.
func (s *storm) picture(id jobs.ID) string {
	text := ""
	for _, i := range s.net.Live() {
		m := s.Jobs(i)
		if st, ok := m.Status(id); ok {
			text = st.Reason + ";" + text
		}
		text += fmt.Sprintf(" %s has %d slots, %d of them held or used", s.net.ID(i).Short(), s.slots[i], m.Core().Claims.HeldSlots())
		for _, h := range m.Holdings() {
			text += fmt.Sprintf(" [%s %d.%d %s]", h.Job, h.Rank.Rank, h.Rank.Attempt, h.State)
		}
	}
	return text
}
