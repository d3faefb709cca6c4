package model

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"zorilla/internal/seeds"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/placement"
)

// storm is a world with jobs of all kinds in which everything that can go wrong
// does for a time; then it heals, and all must come to an end.
type storm struct {
	*world
	length time.Duration
	jobs   []jobs.ID
	tall   map[jobs.ID]bool // that need more than there is
	kills, failures, stops, cuts, owners, fits, drains,
	cancels time.Duration // between such events; 0 = never
	bury   bool      // nodes may be gone for good
	gentle bool      // nothing lasts long enough for workers to be given up
	calmed time.Time // then all have spoken with each other since the last node was killed
}

func newStorm(seed uint64, length time.Duration) *storm {
	draw := rand.New(rand.NewPCG(seed, 0))
	sometimes := func(p float64, f func()) {
		if draw.Float64() < p {
			f()
		}
	}
	slots := make([]int, 2+draw.IntN(6))
	for i := range slots {
		slots[i] = 1 + draw.IntN(4)
	}
	s := &storm{world: newWorld(seed, slots...), length: length, tall: map[jobs.ID]bool{}}
	every := func(d time.Duration) time.Duration { return d/2 + time.Duration(draw.Int64N(int64(2*d))) }
	sometimes(0.6, func() { s.weather.loss = draw.Float64() * 0.4 })
	sometimes(0.3, func() { s.weather.double = draw.Float64() * 0.3 })
	sometimes(0.3, func() { s.weather.late = draw.Float64() * 0.3 })
	sometimes(0.4, func() { s.weather.broken = draw.Float64() * 0.3 })
	sometimes(0.3, func() { s.weather.stalled = draw.Float64() * 0.1 })
	sometimes(0.6, func() { s.weather.disk = time.Duration(1 + draw.Int64N(int64(50*time.Millisecond))) })
	sometimes(0.5, func() { s.kills = every(10 * time.Second) })
	sometimes(0.3, func() { s.failures = every(20 * time.Second) })
	sometimes(0.3, func() { s.stops = every(20 * time.Second) })
	sometimes(0.4, func() { s.cuts = every(20 * time.Second) })
	sometimes(0.3, func() { s.owners = every(20 * time.Second) })
	sometimes(0.5, func() { s.cancels = every(20 * time.Second) })
	sometimes(0.1, func() { s.bury = true })
	sometimes(0.3, func() { s.fits = every(10 * time.Second) })
	sometimes(0.3, func() { s.drains = every(20 * time.Second) })
	sometimes(0.3, s.soften)
	for _, p := range s.nodes {
		sometimes(0.5, func() { p.skew = s.clock() })
		p.core = New(s.config(p)) // now that the weather is known
	}
	s.world.fate = s.fate
	return s
}

// soften leaves only what must cost no worker that has started: packets that are
// lost, connections that break, and nodes that are killed and come back soon.
func (s *storm) soften() {
	s.failures, s.stops, s.cuts, s.fits, s.drains, s.bury = 0, 0, 0, 0, 0, false
	s.weather.stalled, s.weather.broken = 0, min(s.weather.broken, 0.1)
	s.gentle, s.audit.gentle = true, true
}

// clock returns how wrong a clock is: seconds, or hours.
func (s *storm) clock() time.Duration {
	d := 20 * time.Second
	if s.chance(0.2) {
		d = 5 * time.Hour
	}
	return s.upTo(2*d) - d
}

// fate is the same for a worker whenever it is asked.
func (s *storm) fate(job jobs.ID, spec *jobs.Spec, ra jobs.RankAttempt) Fate {
	h := fnv.New64a()
	fmt.Fprint(h, job, ra.Rank, ra.Attempt)
	draw := rand.New(rand.NewPCG(s.seed, h.Sum64()))
	f := Fate{Prepare: time.Duration(draw.Int64N(int64(100 * time.Millisecond)))}
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
		f.Output = draw.IntN(3 * modelReport)
	}
	if draw.IntN(2) == 0 {
		f.Stop = time.Duration(draw.Int64N(int64(participant.StopGrace)))
	}
	return f
}

func (s *storm) capacity() (all, most int) {
	for _, p := range s.nodes {
		all += p.slots
		most = max(most, p.slots)
	}
	return all, most
}

// job makes up a job.
func (s *storm) job() (spec jobs.Spec, tall bool) {
	all, most := s.capacity()
	spec = jobs.Spec{Slots: 1, Priority: s.rnd.IntN(3) - 1, Retries: max(0, s.rnd.IntN(6)-2)}
	if s.chance(0.25) {
		spec.Slots = 1 + s.rnd.IntN(most)
	}
	room := 0
	for _, p := range s.nodes {
		room += p.slots / spec.Slots
	}
	spec.Min = 1 + s.rnd.IntN(max(1, min(room, 1+s.rnd.IntN(room))))
	spec.Max = spec.Min
	switch s.rnd.IntN(10) {
	case 0:
		spec.Min, tall = room+1+s.rnd.IntN(3), true
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
		spec.MaxRTT = 9e9 // which only nodes break that cannot be measured
	}
	if copies := 2 + s.rnd.IntN(2); s.chance(0.2) && spec.Min == spec.Max && s.room(spec.Slots, spec.Min, copies) == nil {
		spec.Replicas = copies
	}
	if n := len(s.jobs); n > 0 && s.chance(0.1) {
		kind := []jobs.DependencyKind{jobs.AfterOK, jobs.AfterAny, jobs.AfterNotOK}[s.rnd.IntN(3)]
		spec.After = []jobs.Dependency{{Kind: kind, Job: s.jobs[s.rnd.IntN(n)]}}
	}
	return spec, tall
}

// room says whether the nodes could hold so many ranks in so many copies if
// they were idle.
func (s *storm) room(slots, ranks, copies int) error {
	var offers []placement.Offer
	for _, p := range s.nodes {
		if !p.gone {
			offers = append(offers, placement.Offer{Node: string(p.id), Workers: p.slots / slots})
		}
	}
	return placement.Feasible(offers, ranks, copies)
}

// strike has something happen again and again, as long as the storm lasts.
func (s *storm) strike(every time.Duration, what func(p *place)) {
	if every == 0 {
		return
	}
	s.after(s.upTo(2*every), func() {
		if s.now.Sub(jobtest.Start) >= s.length {
			return
		}
		if list := s.alive(); len(list) > 0 {
			what(list[s.rnd.IntN(len(list))])
		}
		s.strike(every, what)
	})
}

// back starts a node again after a time.
func (s *storm) back(p *place) {
	if s.bury && s.chance(0.3) && len(s.alive()) > 0 {
		p.gone = true
		return
	}
	d := s.upTo(8 * time.Second)
	if s.gentle {
		d = s.upTo(4 * time.Second)
	} else if s.chance(0.3) {
		d = s.upTo(40 * time.Second)
	}
	s.after(d, func() {
		if p.core == nil {
			skew := p.skew
			if s.chance(0.2) {
				skew = s.clock()
			}
			s.revive(p, skew)
		}
	})
}

func (s *storm) rage() {
	s.strike(s.length/time.Duration(5+s.rnd.IntN(20)), func(p *place) {
		spec, tall := s.job()
		id, err := s.submit(p, spec)
		if err != nil {
			s.audit.fail("", "submit: %v", err)
			return
		}
		s.jobs = append(s.jobs, id)
		s.tall[id] = tall
	})
	s.strike(s.kills, func(p *place) {
		if len(p.core.writing) == 0 && s.chance(0.7) { // rather while something is written down
			return
		}
		if s.gentle && s.now.Before(s.calmed) {
			return
		}
		s.calmed = s.now.Add(wire.PartLease)
		s.kill(p, false)
		s.back(p)
	})
	s.strike(s.failures, func(p *place) {
		s.kill(p, true)
		s.back(p)
	})
	s.strike(s.stops, func(p *place) {
		s.stop(p)
		s.after(wire.LeaveWait+time.Millisecond, func() { s.back(p) })
	})
	s.strike(s.cuts, func(*place) {
		s.part(true)
		s.after(s.upTo(20*time.Second), func() { s.part(false) })
	})
	s.strike(s.fits, func(p *place) {
		p.unable = true
		s.after(s.upTo(10*time.Second), func() { p.unable = false })
	})
	s.strike(s.owners, func(p *place) {
		s.limit(p, jobs.Limits{Paused: s.chance(0.3), MaxJobs: s.rnd.IntN(4), MaxWorkersPerJob: s.rnd.IntN(3)})
	})
	s.strike(s.drains, func(p *place) {
		s.drain(p, s.chance(0.5))
		s.after(s.upTo(10*time.Second), func() { s.undrain(p) })
	})
	s.strike(s.cancels, func(p *place) {
		if len(p.core.Jobs()) > 0 {
			s.cancel(p, p.core.Jobs()[s.rnd.IntN(len(p.core.Jobs()))])
		}
	})
	s.wait(s.length)
}

// calm heals everything, and checks that all comes to an end.
func (s *storm) calm() {
	s.weather = weather{disk: s.weather.disk}
	s.part(false)
	for _, p := range s.nodes {
		p.unable = false
		if p.core != nil {
			s.limit(p, jobs.Limits{})
			s.undrain(p)
		} else if !p.gone {
			s.after(0, func() {
				if p.core == nil {
					s.revive(p, p.skew)
				}
			})
		}
	}
	s.tracer.until = s.now.Add(5 * time.Minute).Sub(jobtest.Start)
	if !s.run(2*time.Hour, s.over) {
		s.unfinished("has not ended two hours after the network has healed")
	}
	for _, p := range s.alive() {
		for _, id := range slices.Clone(p.core.Jobs()) {
			s.cancel(p, id) // what waits for more than there is
		}
	}
	if !s.run(2*time.Hour, s.empty) {
		s.leftovers()
	}
}

// over reports whether all jobs have ended that can.
func (s *storm) over() bool {
	for _, p := range s.nodes {
		if p.leaving || p.core == nil && !p.gone {
			return false
		}
	}
	return !slices.ContainsFunc(s.jobs, func(id jobs.ID) bool { return !s.state(id).Final() && !s.waits(id) })
}

// waits reports whether a job has a true reason to wait, or nobody to answer
// for it, or was never accepted.
func (s *storm) waits(id jobs.ID) bool {
	if s.audit.jobs[id] == nil {
		return true
	}
	for _, p := range s.nodes {
		switch {
		case p.gone && p.id == id.Origin():
			return true
		case p.core == nil || p.core.core.Jobs[id] == nil:
			continue
		}
		rec := &p.core.core.Jobs[id].Core.Rec
		if len(p.core.core.Jobs[id].Core.Unmet()) > 0 {
			return slices.ContainsFunc(rec.Spec.After, func(d jobs.Dependency) bool { return s.waits(d.Job) })
		}
		room := 0
		for _, p := range s.nodes {
			if !p.gone {
				room += p.slots / rec.Spec.Slots
			}
		}
		short := room < rec.Spec.Min || rec.Replicated() && s.room(rec.Spec.Slots, rec.Spec.Min, rec.Spec.Replicas) != nil
		return short && rec.State == jobs.Pending || room == 0
	}
	return false
}

func (s *storm) unfinished(what string) {
	for _, id := range s.jobs {
		if !s.state(id).Final() && !s.waits(id) {
			s.audit.fail(id, "job %s is %q and %s; %s", id, s.state(id), what, s.picture(id))
		}
	}
}

// picture tells what a job waits for, and what nodes do instead.
func (s *storm) picture(id jobs.ID) string {
	text := ""
	for _, p := range s.nodes {
		if p.core == nil {
			continue
		}
		if st, ok := p.core.Status(id); ok {
			text = st.Reason + ";" + text
		}
		text += fmt.Sprintf(" %s has %d slots, %d of them held or used", p.id.Short(), p.slots, p.core.core.Claims.HeldSlots())
		for _, h := range p.core.Holdings() {
			text += fmt.Sprintf(" [%s %d.%d %s]", h.Job, h.Rank.Rank, h.Rank.Attempt, h.State)
		}
	}
	return text
}

// empty reports whether nothing is left of any job.
func (s *storm) empty() bool {
	return s.idle() && !slices.ContainsFunc(s.alive(), func(p *place) bool {
		return len(p.core.core.Claims.Queue) > 0 || len(p.core.asked) > 0
	})
}

func (s *storm) leftovers() {
	for _, p := range s.alive() {
		for _, q := range p.core.core.Claims.Queue {
			s.audit.fail(q.Ad.Job, "node %s still queues job %s", p.id.Short(), q.Ad.Job)
		}
		for _, h := range p.core.Holdings() {
			s.audit.fail(h.Job, "node %s still has slots for job %s: %+v", p.id.Short(), h.Job, h)
		}
		for _, k := range p.core.core.Part.All() {
			s.audit.fail(k.Job, "node %s still works for job %s", p.id.Short(), k.Job)
		}
	}
}

// weathered runs the storm of a seed; trace is about what was wrong.
func weathered(seed uint64, length time.Duration, traced bool) *storm {
	s := newStorm(seed, length)
	s.tracer.on = traced
	s.rage()
	if s.audit.wrong == "" {
		s.calm()
	}
	return s
}

// TestStorms runs jobs of all kinds through loss, delays, broken connections,
// cut links, killed and stopped nodes, failed machines, wrong clocks and whims
// of owners. ZORILLA_SEEDS=FROM-TO and ZORILLA_STORM=DURATION choose other
// seeds, and how long each lasts.
func TestStorms(t *testing.T) {
	from, to := seeds.Range(t, 200)
	length := time.Minute
	if text := os.Getenv("ZORILLA_STORM"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			t.Fatalf("ZORILLA_STORM=%s: want a duration", text)
		}
		length = d
	}
	try := make(chan uint64)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for seed := range try {
				s := weathered(seed, length, false)
				if s.audit.wrong == "" {
					continue
				}
				s = weathered(seed, length, true)
				t.Errorf("seed %d: after %v: %s\n%sthe same again: ZORILLA_SEEDS=%d-%d ZORILLA_STORM=%v go test -run TestStorms ./jobs/model",
					seed, s.now.Sub(jobtest.Start), s.audit.wrong, s.tracer.about(s.audit.about, 120), seed, seed, length)
			}
		})
	}
	for seed := from; seed <= to && !t.Failed(); seed++ {
		try <- seed
	}
	close(try)
	group.Wait()
}
