package model_test

import (
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"zorilla/internal/seeds"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/model"
	"zorilla/testnet/sim"
)

// storm is a world with jobs of all kinds in which everything that can go wrong
// does for a time; then it heals, and all must come to an end.
type storm struct {
	*world
	rnd    *rand.Rand
	apart  *rand.Rand // for groups, so that storms have the same events without
	spares *rand.Rand // for which jobs have spares, likewise
	notice *rand.Rand // for which notice programs have of their end, likewise
	haste  *rand.Rand // for how long jobs wait for silent nodes, likewise
	moving *rand.Rand // for ranks that users move, likewise
	timing *rand.Rand // for starts that are promised, likewise
	length time.Duration
	jobs   []jobs.ID
	books  bool // jobs have walltimes, and some their starts promised
	kills, failures, stops, cuts, owners, fits, drains,
	cancels, sizes, freezes time.Duration // between such events; 0 = never
	far    bool          // the first site is a second or two from all others
	bury   bool          // nodes may be gone for good
	gone   []bool        // for good
	gentle bool          // nothing lasts long enough for workers to be given up
	calmed time.Duration // then all have spoken with each other since the last node was killed
}

func newStorm(seed uint64, length time.Duration) *storm {
	draw := rand.New(rand.NewPCG(seed, 0))
	sometimes := func(p float64, f func()) {
		if draw.Float64() < p {
			f()
		}
	}
	nodes := 2 + draw.IntN(6)
	sometimes(0.03, func() { nodes += 10 }) // then floods take several hops
	slots := make([]int, nodes)
	for i := range slots {
		slots[i] = 1 + draw.IntN(4)
	}
	layout, away := sites(seed, nodes), rand.New(rand.NewPCG(seed, 2))
	distant := away.Float64() < 0.1
	if distant {
		far := time.Second + time.Duration(away.Int64N(int64(1400*time.Millisecond)))
		for k := 1; k < len(layout.Sizes); k++ {
			layout.RTT[0][k], layout.RTT[k][0] = far, far
		}
	}
	s := &storm{world: newWorldAt(layout, seed, slots...), far: distant, length: length, gone: make([]bool, len(slots))}
	s.rnd, s.apart, s.haste = s.net.Rand(), rand.New(rand.NewPCG(seed, 3)), rand.New(rand.NewPCG(seed, 4))
	s.moving, s.notice, s.spares = rand.New(rand.NewPCG(seed, 5)), rand.New(rand.NewPCG(seed, 6)), rand.New(rand.NewPCG(seed, 7))
	s.timing = rand.New(rand.NewPCG(seed, 8))
	s.books = s.timing.Float64() < 0.7
	storm := noise
	every := func(d time.Duration) time.Duration { return d/2 + time.Duration(draw.Int64N(int64(2*d))) }
	sometimes(0.6, func() { storm.Loss = draw.Float64() * 0.4 })
	sometimes(0.3, func() { storm.Doubled = draw.Float64() * 0.3 })
	sometimes(0.3, func() { storm.Spike, storm.Spikes = time.Second, draw.Float64()*0.3 })
	sometimes(0.4, func() { s.Faults.Broken = draw.Float64() * 0.3 })
	sometimes(0.3, func() { s.Faults.Stalled = draw.Float64() * 0.1 })
	sometimes(0.6, func() { s.Faults.Disk = time.Duration(1 + draw.Int64N(int64(50*time.Millisecond))) })
	sometimes(0.5, func() { s.kills = every(10 * time.Second) })
	sometimes(0.3, func() { s.failures = every(20 * time.Second) })
	sometimes(0.3, func() { s.stops = every(20 * time.Second) })
	sometimes(0.4, func() { s.cuts = every(20 * time.Second) })
	sometimes(0.3, func() { s.owners = every(20 * time.Second) })
	sometimes(0.5, func() { s.cancels = every(20 * time.Second) })
	sometimes(0.1, func() { s.bury = true })
	sometimes(0.3, func() { s.fits = every(10 * time.Second) })
	sometimes(0.3, func() { s.drains = every(20 * time.Second) })
	sometimes(0.6, func() { s.sizes = every(time.Second) })
	if away.Float64() < 0.4 { // drawn apart, so that storms without are what they were
		s.freezes = 10*time.Second + time.Duration(away.Int64N(int64(20*time.Second)))
	}
	sometimes(0.3, s.soften)
	for i := range s.clocks {
		sometimes(0.5, func() { s.clocks[i] += s.wrong() })
	}
	s.net.SetNoise(storm)
	s.world.fate = s.fate
	s.audit.SetOrphan(func(id jobs.ID) bool {
		home, _ := s.net.Index(id.Origin())
		return s.gone[home]
	})
	return s
}

// soften leaves only what must cost no worker that has started: packets that are
// lost, connections that break, and nodes that are killed and come back soon.
func (s *storm) soften() {
	if s.far { // who comes back has to connect, and may be heard too late
		return
	}
	s.failures, s.stops, s.cuts, s.fits, s.drains, s.freezes, s.bury = 0, 0, 0, 0, 0, 0, false
	s.Faults.Stalled, s.Faults.Broken = 0, min(s.Faults.Broken, 0.1)
	s.gentle, s.audit.Gentle = true, true
}

// wrong returns how wrong a clock is: seconds, or hours.
func (s *storm) wrong() time.Duration {
	d := 20 * time.Second
	if s.chance(0.2) {
		d = 5 * time.Hour
	}
	return s.upTo(2*d) - d
}

func (s *storm) chance(p float64) bool { return s.rnd.Float64() < p }

// strike has something happen again and again, as long as the storm lasts.
func (s *storm) strike(every time.Duration, what func(node int)) {
	if every == 0 {
		return
	}
	s.net.Schedule(s.upTo(2*every), func() {
		if s.net.Elapsed() >= s.length {
			return
		}
		if list := s.Alive(); len(list) > 0 {
			what(list[s.rnd.IntN(len(list))])
		}
		s.strike(every, what)
	})
}

// back starts a node again after a time.
func (s *storm) back(node int) {
	if s.bury && s.chance(0.3) && len(s.Alive()) > 0 {
		s.gone[node] = true
		return
	}
	d := s.upTo(8 * time.Second)
	if s.gentle {
		d = s.upTo(4 * time.Second)
	} else if s.chance(0.3) {
		d = s.upTo(40 * time.Second)
	}
	s.net.Schedule(d, func() {
		if !s.net.Up(node) {
			clock := s.Clock(node)
			if s.chance(0.2) {
				clock = ahead + s.wrong()
			}
			s.revive(node, clock)
		}
	})
}

func (s *storm) rage() {
	s.strike(s.length/time.Duration(5+s.rnd.IntN(20)), func(node int) {
		spec, times := s.job(), 1
		if s.chance(0.3) { // they take turns to search, if they are rigid
			times, spec.Strategy, spec.MaxRTT, spec.Graph = 2+s.rnd.IntN(8), "", 0, nil
			if spec.Rigid() && spec.Retries == 0 {
				spec.Spares = 0
			}
		}
		for range times {
			s.promise(node, &spec)
			id, err := s.submit(node, spec)
			if err != nil {
				s.audit.Fail("", "submit: %v", err)
				return
			}
			s.jobs = append(s.jobs, id)
		}
	})
	s.strike(s.kills, func(node int) {
		if !s.Jobs(node).Writing() && s.chance(0.7) { // rather while something is written down
			return
		}
		if s.gentle && s.net.Elapsed() < s.calmed {
			return
		}
		s.calmed = s.net.Elapsed() + wire.PartLease
		s.Kill(node, false)
		s.back(node)
	})
	s.strike(s.failures, func(node int) {
		s.Kill(node, true)
		s.back(node)
	})
	s.strike(s.stops, func(node int) {
		s.stop(node)
		s.net.Schedule(wire.LeaveWait+time.Millisecond, func() { s.back(node) })
	})
	s.strike(s.cuts, func(int) {
		s.cut()
		s.net.Schedule(s.upTo(20*time.Second), s.net.Heal)
	})
	s.strike(s.fits, func(node int) {
		s.unable[node] = true
		s.net.Schedule(s.upTo(10*time.Second), func() { s.unable[node] = false })
	})
	s.strike(s.freezes, s.freeze)
	s.strike(s.owners, func(node int) {
		s.limit(node, jobs.Limits{Paused: s.chance(0.3), MaxJobs: s.rnd.IntN(4), MaxWorkersPerJob: s.rnd.IntN(3)})
	})
	s.strike(s.drains, func(node int) {
		s.drain(node, s.chance(0.5))
		s.net.Schedule(s.upTo(10*time.Second), func() { s.undrain(node) })
	})
	s.strike(s.cancels, func(node int) {
		if list := s.Jobs(node).Jobs(); len(list) > 0 {
			s.cancel(node, list[s.rnd.IntN(len(list))])
		}
	})
	s.strike(s.sizes, func(node int) {
		if list := s.Jobs(node).Jobs(); len(list) > 0 {
			s.resizeOne(node, list[s.rnd.IntN(len(list))])
		}
	})
	s.moveSome()
	s.cancelBooked()
	s.lend()
	s.wait(s.length)
}

// freeze has a node's disk hang, of which it may know.
func (s *storm) freeze(node int) {
	s.note(s.net.ID(node), "", "its disk hangs")
	s.hangs[node], s.audit.Hangs = true, true
	tell := func(yes bool) {
		if s.net.Up(node) && s.hangs[node] != yes {
			s.Do(node, func(m *model.Model, now time.Time) model.Actions { return m.Answers(now, yes) })
		}
	}
	if s.chance(0.5) {
		s.net.Schedule(10*time.Second, func() { tell(false) })
	}
	s.net.Schedule(s.upTo(3*time.Minute), func() {
		s.hangs[node] = false
		tell(true)
	})
}

// cut cuts some sites off.
func (s *storm) cut() {
	var off []int
	for site := range s.sites {
		if s.chance(0.4) {
			off = append(off, site)
		}
	}
	s.note("", "", "sites %v of %d are cut off", off, s.sites)
	s.net.Cut(off...)
}

// drain lets a node take no new workers; with evict it ends those that it has.
func (s *storm) drain(node int, evict bool) {
	s.note(s.net.ID(node), "", "drains, evicts: %v", evict)
	s.Do(node, func(m *model.Model, now time.Time) model.Actions { return m.Drain(now, evict) })
}

// undrain lets it take workers again, if it lives.
func (s *storm) undrain(node int) {
	if s.net.Up(node) && !s.Leaving(node) {
		s.note(s.net.ID(node), "", "does not drain any more")
		s.Do(node, (*model.Model).Undrain)
	}
}

// calm heals everything, and checks that all comes to an end.
func (s *storm) calm() {
	s.Faults = sim.Faults{Disk: s.Faults.Disk}
	s.net.SetNoise(noise)
	s.net.Heal()
	clear(s.unable)
	clear(s.hangs)
	for i := range s.slots {
		if s.net.Up(i) {
			s.Do(i, func(m *model.Model, now time.Time) model.Actions { return m.Answers(now, true) })
			s.limit(i, jobs.Limits{})
			s.undrain(i)
		} else if !s.gone[i] {
			s.revive(i, s.Clock(i))
		}
	}
	s.trace.until = s.net.Elapsed() + 5*time.Minute
	if !s.run(2*time.Hour, s.over) {
		s.unfinished("has not ended two hours after the network has healed")
	}
	for _, i := range s.Alive() {
		for _, id := range s.Jobs(i).Jobs() {
			s.cancel(i, id) // what waits for more than there is
		}
	}
	if !s.run(2*time.Hour, s.empty) {
		s.leftovers()
	}
	if !s.run(wire.KeepLease+wire.RenewKeep, s.keptNothing) {
		s.leftKept()
	}
	if !s.run(wire.BookLease, s.nothingBooked) {
		s.leftBooked()
	}
}

// over reports whether all jobs have ended that can.
func (s *storm) over() bool {
	for i, gone := range s.gone {
		if s.Leaving(i) || !gone && !s.net.Up(i) {
			return false
		}
	}
	return !slices.ContainsFunc(s.jobs, func(id jobs.ID) bool { return !s.state(id).Final() && !s.waits(id) })
}

// waits reports whether a job has a true reason to wait, or nobody to answer
// for it, or was never accepted.
func (s *storm) waits(id jobs.ID) bool {
	home, _ := s.net.Index(id.Origin())
	if !s.audit.Accepted(id) || s.gone[home] {
		return true
	}
	m := s.origin(id)
	if m == nil || m.Core().Jobs[id] == nil {
		return false
	}
	job := m.Core().Jobs[id].Primary
	if len(job.Unmet()) > 0 {
		return slices.ContainsFunc(job.Rec.Spec.After, func(d jobs.Dependency) bool { return s.waits(d.Job) })
	}
	spec, room := job.Rec.AsSubmitted(), 0
	if len(spec.Groups) > 0 && !s.feasible(spec) {
		return true
	}
	for i, n := range s.slots {
		if !s.gone[i] {
			room += n / spec.Slots
		}
	}
	if s.strands(spec, &job.Rec) {
		return true
	}
	short := room < spec.Min || (job.Rec.Replicated() || spec.OnePerNode) && s.room(spec) != nil
	return short && job.Rec.State == jobs.Pending || room == 0
}

func (s *storm) unfinished(what string) {
	for _, id := range s.jobs {
		if !s.state(id).Final() && !s.waits(id) {
			s.audit.Fail(id, "job %s is %q and %s; %s", id, s.state(id), what, s.picture(id))
		}
	}
}

// empty reports whether nothing is left of any job.
func (s *storm) empty() bool {
	return s.idle() && !slices.ContainsFunc(s.Alive(), func(i int) bool {
		return len(s.Jobs(i).Core().Claims.Queue) > 0 || s.Jobs(i).Core().Claims.Booked() > 0 || s.Jobs(i).Asking()
	})
}

func (s *storm) leftovers() {
	for _, i := range s.Alive() {
		m, name := s.Jobs(i), s.net.ID(i).Short()
		for _, q := range m.Core().Claims.Queue {
			s.audit.Fail(q.Ad.Job, "node %s still queues job %s", name, q.Ad.Job)
		}
		for _, h := range m.Holdings() {
			s.audit.Fail(h.Job, "node %s still has slots for job %s: %+v", name, h.Job, h)
		}
		for _, b := range m.Core().Claims.Calendar.Bookings() {
			s.audit.Fail(b.Job, "node %s has a booking of job %s until %v", name, b.Job, b.Lease)
		}
		for id := range m.Core().Claims.Spares {
			s.audit.Fail(id, "node %s still has spares of job %s", name, id)
		}
		for _, k := range m.Core().Part.All() {
			s.audit.Fail(k.Job, "node %s still works for job %s", name, k.Job)
		}
	}
}

// weathered runs the storm of a seed; trace is about what was wrong.
func weathered(seed uint64, length time.Duration, traced bool) *storm {
	s := newStorm(seed, length)
	s.trace.on = traced
	s.rage()
	if s.audit.Wrong == "" {
		s.calm()
	}
	return s
}

// TestStorms runs jobs of all kinds through loss, delays, broken connections,
// cut links, killed and stopped nodes, failed machines, wrong clocks and whims
// of owners. ZORILLA_SEEDS=FROM-TO and ZORILLA_STORM=DURATION choose other
// seeds, and how long each lasts. A storm is one goroutine: for the race detector
// there is only what several have in common.
func TestStorms(t *testing.T) {
	from, to := seeds.Range(t, uint64(seeds.Fewer(seeds.Larger(200, 100), 4)))
	length := time.Minute
	if text := os.Getenv("ZORILLA_STORM"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			t.Fatalf("ZORILLA_STORM=%s: want a duration", text)
		}
		length = d
	}
	try, totals := make(chan uint64), sumPromises()
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for seed := range try {
				s := weathered(seed, length, false)
				totals.one <- s.audit.Promises
				if s.audit.Wrong == "" {
					continue
				}
				s = weathered(seed, length, true)
				t.Errorf("seed %d: after %v: %s\n%sthe same again: ZORILLA_SEEDS=%d-%d ZORILLA_STORM=%v go test -run TestStorms ./jobs/model",
					seed, s.net.Elapsed(), s.audit.Wrong, s.trace.about(s.audit.About, 120), seed, seed, length)
			}
		})
	}
	for seed := from; seed <= to && !t.Failed(); seed++ {
		try <- seed
	}
	close(try)
	group.Wait()
	close(totals.one)
	t.Logf("promised starts: %+v", <-totals.all)
}
