package model

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/agenda"
	"zorilla/jobs/internal/jobtest"
	"zorilla/vicinity"
)

// world is a network of Cores in virtual time, in which every flood goes to
// everybody. Without further ado nothing is lost in it, and nobody fails; see
// weather for what may happen. All that it does follows from its seed.
type world struct {
	seed    uint64
	rnd     *rand.Rand
	now     time.Time
	nodes   []*place
	byID    map[vicinity.ID]*place
	queue   happenings
	number  uint64
	weather weather
	fate    func(jobs.ID, *jobs.Spec, jobs.RankAttempt) Fate
	audit   *audit
	tracer  tracer
	watch   func(p *place) // sees nodes that have done something; nil = nobody does
	pinging bool           // the sweep for members that are gone is due

	owed []owing
}

// place is where a node is, whether it lives or not.
type place struct {
	id      vicinity.ID
	slots   int
	core    *Model   // nil = it does not run
	remains *Remains // then
	life    int      // how often it was started
	next    time.Time
	skew    time.Duration // of its clock
	island  int           // of the partition
	gone    bool          // for good
	leaving bool
	unable  bool                // to start workers
	silent  map[vicinity.ID]int // for how many sweeps others could not be reached
}

// weather is what the network and the disks do.
type weather struct {
	loss    float64       // of packets
	double  float64       // of packets
	late    float64       // packets that come up to a second later
	broken  float64       // requests whose connection breaks, before they arrive or after
	stalled float64       // requests and replies that come up to 20 s later
	disk    time.Duration // at most, until an event is durable
}

type happening struct {
	at     time.Time
	number uint64
	what   func()
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, k int) bool {
	return h[i].at.Before(h[k].at) || h[i].at.Equal(h[k].at) && h[i].number < h[k].number
}
func (h happenings) Swap(i, k int) { h[i], h[k] = h[k], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// newWorld returns idle nodes with so many slots each.
func newWorld(seed uint64, slots ...int) *world {
	w := &world{seed: seed, rnd: rand.New(rand.NewPCG(seed, 1)), now: jobtest.Start, byID: map[vicinity.ID]*place{}, audit: newAudit()}
	w.fate = func(jobs.ID, *jobs.Spec, jobs.RankAttempt) Fate { return Fate{Prepare: time.Millisecond} }
	for i, n := range slots {
		p := &place{id: jobtest.Node(i), slots: n, silent: map[vicinity.ID]int{}}
		w.nodes, w.byID[p.id] = append(w.nodes, p), p
		p.core = New(w.config(p))
	}
	return w
}

func (w *world) config(p *place) Config {
	cfg := Config{
		Self: vicinity.Member{ID: p.id, Slots: p.slots, Addrs: []string{"10.0.0.1:5444"}},
		Rand: rand.New(rand.NewPCG(w.seed, w.rnd.Uint64())),
		Flood: func(_ time.Time, ad Advert) flood.Flood {
			w.tracer.note(w, p, ad.Job, "flood %d", ad.Round)
			for _, to := range w.nodes {
				if to != p {
					w.packet(p, to, func() { w.advertised(to, ad) })
				}
			}
			return flood.Flood{Copies: len(w.nodes) - 1}
		},
		Members: func() int { return len(w.nodes) - w.missed(p) },
		Member: func(id vicinity.ID) (vicinity.Member, time.Duration, bool) {
			to := w.byID[id]
			return vicinity.Member{ID: id, Slots: to.slots}, 2 * w.latency(p, to), true
		},
		Unable: func() string {
			if p.unable {
				return "no more processes"
			}
			return ""
		},
		Fate: func(job jobs.ID, spec *jobs.Spec, ra jobs.RankAttempt) Fate { return w.fate(job, spec, ra) },
		Origin: func(job jobs.ID) (vicinity.ID, bool) {
			for _, o := range w.nodes {
				if o.id == job.Origin() {
					return o.id, true
				}
			}
			return "", false
		},
	}
	if w.weather.disk > 0 {
		cfg.Disk = func() time.Duration { return time.Duration(w.rnd.Int64N(int64(w.weather.disk))) }
	}
	return cfg
}

// local is the time by a node's own clock.
func (w *world) local(p *place) time.Time { return w.now.Add(p.skew) }

// latency is how long a packet travels at least: up to 8 ms, the same for ever.
func (w *world) latency(a, b *place) time.Duration {
	if a == b {
		return 50 * time.Microsecond
	}
	x, y := []byte(a.id)[:4], []byte(b.id)[:4]
	mix := uint64(0)
	for i := range x {
		mix = mix*31 + uint64(x[i]^y[i]) + uint64(x[i])*uint64(y[i])
	}
	return 500*time.Microsecond + time.Duration(mix*7919%7500)*time.Microsecond
}

func (w *world) after(d time.Duration, what func()) {
	w.number++
	heap.Push(&w.queue, happening{w.now.Add(d), w.number, what})
}

// upTo returns a random length of time.
func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rnd.Int64N(int64(d) + 1)) }

func (w *world) chance(p float64) bool { return p > 0 && w.rnd.Float64() < p }

// reachable reports whether messages get from one node to another.
func (w *world) reachable(a, b *place) bool { return a == b || a.island == b.island }

// packet sends what may be lost.
func (w *world) packet(from, to *place, arrive func()) {
	copies := 1
	if w.chance(w.weather.double) {
		copies = 2
	}
	for range copies {
		if w.chance(w.weather.loss) || !w.reachable(from, to) {
			continue
		}
		d := w.latency(from, to) + w.upTo(time.Millisecond)
		if w.chance(w.weather.late) {
			d += w.upTo(time.Second)
		}
		w.after(d, func() {
			if to.core != nil && w.reachable(from, to) {
				arrive()
			}
		})
	}
}

func (w *world) advertised(to *place, ad Advert) {
	w.perform(to, to.core.Advertised(w.local(to), flood.Message{TTL: 1, Hops: 1, Payload: ad.Payload}))
}

// post brings a message of a core to another one.
func (w *world) post(from *place, m Message) {
	to := w.byID[m.To]
	if m.Kind == Packet {
		w.packet(from, to, func() { w.receive(from, to, m) })
		return
	}
	if r, ok := m.body.(reply); ok {
		w.owed = slices.DeleteFunc(w.owed, func(o owing) bool { return o.from == to && o.number == r.number })
	}
	d, life := w.latency(from, to)+w.upTo(time.Millisecond), to.life
	breaks := from != to && m.Kind == Request && w.chance(w.weather.broken)
	switch {
	case from == to:
	case breaks && w.chance(0.5): // before it arrives
		w.fails(from, m, d)
		return
	case breaks:
		w.fails(from, m, d)
	case w.chance(w.weather.stalled):
		d += w.upTo(20 * time.Second)
	case !w.reachable(from, to) && w.chance(0.5): // it is sent again until the network has healed
		d += w.upTo(time.Minute)
	}
	w.after(d, func() {
		switch {
		case !w.reachable(from, to): // nobody says that it is lost
		case to.core == nil || to.life != life:
			w.fails(from, m, d)
		default:
			w.receive(from, to, m)
		}
	})
}

// fails tells who asks that its connection is broken.
func (w *world) fails(from *place, m Message, after time.Duration) {
	r, ok := m.body.(request)
	if !ok || r.number == 0 {
		return
	}
	life := from.life
	w.after(after, func() {
		if from.core != nil && from.life == life {
			w.perform(from, from.core.Receive(w.local(from), m.To, Message{To: from.id, Kind: Reply, Job: m.Job, body: reply{number: r.number, failed: true}}))
		}
	})
}

// owing is a request that has arrived and is not answered: its connection
// breaks with the node.
type owing struct {
	from, to *place
	number   uint64
	m        Message
}

func (w *world) receive(from, to *place, m Message) {
	if r, ok := m.body.(request); ok && r.number > 0 && from != to {
		w.owed = append(w.owed, owing{from, to, r.number, m})
	}
	w.tracer.message(w, from, to, m)
	w.audit.before(w, from, to, m)
	w.perform(to, to.core.Receive(w.local(to), from.id, m))
	w.audit.after(w, to, m)
}

// perform does what a node wants done, and looks at what it has become.
func (w *world) perform(p *place, out Actions) {
	for _, m := range out.Messages {
		w.post(p, m)
	}
	w.settle(p)
	w.audit.look(w, p)
	if w.watch != nil {
		w.watch(p)
	}
}

func (w *world) settle(p *place) {
	p.next = time.Time{}
	if p.core != nil {
		if at := p.core.Next(); !at.IsZero() {
			p.next = agenda.Later(at.Add(-p.skew), w.now)
		}
	}
}

// run lets time pass until a condition holds, and reports whether it ever did.
// It stops when something is wrong.
func (w *world) run(limit time.Duration, until func() bool) bool {
	for end := w.now.Add(limit); !until(); {
		if w.audit.wrong != "" {
			return false
		}
		at, who := end, (*place)(nil)
		for _, p := range w.nodes {
			if !p.next.IsZero() && p.next.Before(at) {
				at, who = p.next, p
			}
		}
		switch {
		case len(w.queue) > 0 && !w.queue[0].at.After(at):
			h := heap.Pop(&w.queue).(happening)
			w.now = agenda.Later(w.now, h.at)
			h.what()
		case who != nil:
			w.now = agenda.Later(w.now, at)
			w.perform(who, who.core.Tick(w.local(who)))
		default:
			w.now = end
			return until()
		}
	}
	return true
}

func (w *world) wait(d time.Duration) { w.run(d, func() bool { return false }) }

// submit submits a job at a node, which must live.
func (w *world) submit(p *place, spec jobs.Spec) (jobs.ID, error) {
	spec.Args, spec.Slots = []string{"prog"}, max(1, spec.Slots)
	id, out, err := p.core.Submit(w.local(p), spec)
	if err == nil {
		w.tracer.note(w, p, id, "submitted: -n %d..%d -c %d priority %d, %d retries", spec.Min, spec.Max, spec.Slots, spec.Priority, spec.Retries)
		w.perform(p, out)
	}
	return id, err
}

// state is what the origin of a job says of it, or has written down.
func (w *world) state(id jobs.ID) jobs.State {
	for _, p := range w.nodes {
		if p.core != nil && p.core.core.Jobs[id] != nil {
			return p.core.State(id)
		}
	}
	return ""
}

func (w *world) ended(ids ...jobs.ID) func() bool {
	return func() bool {
		return !slices.ContainsFunc(ids, func(id jobs.ID) bool { return !w.state(id).Final() })
	}
}

// idle reports whether no node that lives uses or holds slots, or works for
// anybody.
func (w *world) idle() bool {
	return !slices.ContainsFunc(w.nodes, func(p *place) bool {
		return p.core != nil && (len(p.core.core.Part.Works) > 0 || p.core.core.Claims.HeldSlots() > 0)
	})
}

// sound fails the test if something was wrong.
func (w *world) sound(t testing.TB) {
	t.Helper()
	if w.audit.wrong != "" {
		t.Fatalf("seed %d, %v: %s", w.seed, w.now.Sub(jobtest.Start), w.audit.wrong)
	}
}
