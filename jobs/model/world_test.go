package model_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/model"
	"zorilla/testnet/sim"
	"zorilla/vicinity"
)

// world is a few nodes at a few sites, audited after every step. Without further ado
// nothing is lost in it, and nobody fails. All that it does follows from its seed.
type world struct {
	*sim.Grid
	net    *sim.Overlay
	seed   uint64
	slots  []int
	sites  int
	clocks []time.Duration                          // how far they are ahead at first
	unable []bool                                   // to start workers
	lose   func(from, to int, m model.Message) bool // nil = nothing beside what the noise takes
	hangs  []bool                                   // their disks do
	fate   func(jobs.ID, *jobs.Spec, jobs.RankAttempt) model.Fate
	audit  *model.Audit
	watch  func(node int) // sees nodes that have done something; nil = nobody does
	trace  trace
}

// noise is what a calm network adds to the truth.
var noise = sim.Noise{Jitter: 0.2, Queue: 100 * time.Microsecond}

// ahead are all clocks, so that they show a year that a deadline may be in, and one that is wrong no time before all time.
const ahead = 40 * 365 * 24 * time.Hour

// newWorld returns idle nodes with so many slots each, at sites up to 50 ms apart.
// Links are ideal, so that eight nodes flood to all others.
func newWorld(seed uint64, slots ...int) *world {
	return newWorldAt(sites(seed, len(slots)), seed, slots...)
}

// sites draws where so many nodes are.
func sites(seed uint64, n int) sim.Layout {
	draw := rand.New(rand.NewPCG(seed, 1))
	layout := sim.Plane(n, 1+draw.IntN(n), seed)
	clear(layout.Sizes)
	for range n {
		layout.Sizes[draw.IntN(len(layout.Sizes))]++
	}
	return layout
}

// newWorldAt is newWorld with sites of its own.
func newWorldAt(layout sim.Layout, seed uint64, slots ...int) *world {
	return newWorldOn(layout, func(o *sim.Overlay) sim.Graph { return sim.Ideal(o, seed) }, seed, slots...)
}

// newWorldOn is newWorldAt with links of its own.
func newWorldOn(layout sim.Layout, graph func(*sim.Overlay) sim.Graph, seed uint64, slots ...int) *world {
	n := len(slots)
	w := &world{seed: seed, slots: slots, sites: len(layout.Sizes), clocks: make([]time.Duration, n), unable: make([]bool, n), hangs: make([]bool, n), audit: model.NewAudit()}
	for i := range w.clocks {
		w.clocks[i] = ahead
	}
	w.net = sim.NewOverlay(sim.OverlayConfig{Layout: layout, Seed: seed, Noise: noise, Idle: true})
	w.fate = sim.Lasting(time.Millisecond, 0)
	w.Grid = sim.NewGrid(sim.GridConfig{
		Overlay: w.net, Graph: graph(w.net), Seed: seed, Watch: w,
		Slots: func(i int) int { return slots[i] },
		Clock: func(i int) time.Duration { return w.clocks[i] },
		Fate:  func(job jobs.ID, spec *jobs.Spec, ra jobs.RankAttempt) model.Fate { return w.fate(job, spec, ra) },
		Hangs: func(i int) bool { return w.hangs[i] },
		Lose: func(from, to int, m model.Message) bool {
			if m.Answers() > 0 {
				w.audit.Sends(w.Local(from), w.Jobs(from), m)
			}
			return w.lose != nil && w.lose(from, to, m)
		},
		Unable: func(i int) string {
			if w.unable[i] {
				return "no more processes"
			}
			return ""
		},
	})
	w.audit.Note = w.note
	w.audit.SetClocks(func(id vicinity.ID) time.Duration {
		i, _ := w.net.Index(id)
		return w.Clock(i)
	})
	w.audit.SetApart(func(a, b vicinity.ID) time.Duration {
		i, _ := w.net.Index(a)
		k, _ := w.net.Index(b)
		return w.net.RTT(i, k)
	})
	return w
}

// Acted, Arrives, Arrived and Killed have the audit look at what happens.
func (w *world) Acted(node int) {
	w.audit.Look(w.Local(node), w.Jobs(node))
	if w.watch != nil {
		w.watch(node)
	}
}

func (w *world) Arrives(from, to int, m model.Message) {
	if w.trace.on {
		w.note(w.net.ID(to), m.Job, "from %s: %s", w.net.ID(from).Short(), m.Describe())
	}
	w.audit.Arrives(w.Local(to), w.net.ID(from), w.Jobs(to), m, func() { w.Do(to, (*model.Model).Tick) })
}

func (w *world) Arrived(_, to int, m model.Message) { w.audit.Arrived(w.Jobs(to), m) }

func (w *world) Killed(node int, machine bool, left *model.Remains) {
	w.note(w.net.ID(node), "", "killed, with its machine: %v", machine)
	w.audit.Killed(w.net.ID(node), machine, left)
}

// run lets time pass until a condition holds, and reports whether it ever did.
// It stops when something is wrong.
func (w *world) run(limit time.Duration, until func() bool) bool {
	done := false
	w.Run(limit, func() bool { done = w.audit.Wrong == "" && until(); return done || w.audit.Wrong != "" })
	return done
}

func (w *world) wait(d time.Duration) { w.run(d, func() bool { return false }) }

// upTo returns a random length of time.
func (w *world) upTo(d time.Duration) time.Duration {
	return time.Duration(w.net.Rand().Int64N(int64(d) + 1))
}

// submit submits a job at a node, which must live.
func (w *world) submit(node int, spec jobs.Spec) (jobs.ID, error) {
	spec.Args, spec.Slots = []string{"prog"}, max(1, spec.Slots)
	id, err := w.Submit(node, spec)
	w.note(w.net.ID(node), id, "submitted: -n %d..%d -c %d priority %d, %d retries", spec.Min, spec.Max, spec.Slots, spec.Priority, spec.Retries)
	return id, err
}

func (w *world) cancel(node int, id jobs.ID) {
	w.note(w.net.ID(node), id, "cancelled")
	w.Do(node, func(m *model.Model, now time.Time) model.Actions { return m.Cancel(now, id) })
}

func (w *world) resize(node int, id jobs.ID, q jobs.Resize) {
	if w.note(w.net.ID(node), id, "%d workers are asked for, without %v", q.Workers, q.Release); len(q.Move) > 0 {
		w.note(w.net.ID(node), id, "asks for %v", q.Move)
	}
	w.Do(node, func(m *model.Model, now time.Time) model.Actions { return m.Resize(now, id, q) })
}

func (w *world) limit(node int, l jobs.Limits) {
	w.note(w.net.ID(node), "", "limits: paused %v, %d jobs, %d workers per job, %v", l.Paused, l.MaxJobs, l.MaxWorkersPerJob, l.TimeLimits)
	w.Do(node, func(m *model.Model, now time.Time) model.Actions { return m.Limit(now, l) })
}

// stop ends a node as SIGTERM does.
func (w *world) stop(node int) {
	w.note(w.net.ID(node), "", "is being stopped")
	w.Stop(node, wire.LeaveWait)
}

func (w *world) revive(node int, clock time.Duration) {
	w.note(w.net.ID(node), "", "started again, clock %v ahead", clock.Round(time.Millisecond))
	w.Revive(node, clock)
}

// state is what the origin of a job says of it, or has written down.
func (w *world) state(id jobs.ID) jobs.State {
	if m := w.origin(id); m != nil {
		return m.State(id)
	}
	return ""
}

// origin returns the node where a job was submitted; nil = it does not run.
func (w *world) origin(id jobs.ID) *model.Model {
	i, _ := w.net.Index(id.Origin())
	return w.Jobs(i)
}

func (w *world) ended(ids ...jobs.ID) func() bool {
	return func() bool {
		return !slices.ContainsFunc(ids, func(id jobs.ID) bool { return !w.state(id).Final() })
	}
}

// idle reports whether no node that lives uses or holds slots, or works for
// anybody.
func (w *world) idle() bool {
	return !slices.ContainsFunc(w.net.Live(), func(i int) bool {
		c := w.Jobs(i).Core()
		return len(c.Part.Works) > 0 || c.Claims.HeldSlots() > 0
	})
}

// sound fails the test if something was wrong.
func (w *world) sound(t testing.TB) {
	t.Helper()
	if w.audit.Wrong != "" {
		t.Fatalf("seed %d, %v: %s", w.seed, w.net.Elapsed(), w.audit.Wrong)
	}
}

// trace keeps what happens, for people.
type trace struct {
	on    bool
	until time.Duration // 0 = for ever
	lines []traceLine
}

type traceLine struct {
	at   time.Duration
	node vicinity.ID
	job  jobs.ID // "" = all
	text string
}

// note keeps what happens at a node.
func (w *world) note(node vicinity.ID, job jobs.ID, format string, args ...any) {
	if at := w.net.Elapsed(); w.trace.on && (w.trace.until == 0 || at <= w.trace.until) {
		w.trace.lines = append(w.trace.lines, traceLine{at, node, job, fmt.Sprintf(format, args...)})
	}
}

// about returns the last so many lines on a job, and on all that happens to
// nodes; "" = on all jobs.
func (t *trace) about(job jobs.ID, most int) string {
	var lines []traceLine
	for _, l := range t.lines {
		if l.job == job || l.job == "" || job == "" {
			lines = append(lines, l)
		}
	}
	var text strings.Builder
	for _, l := range lines[max(0, len(lines)-most):] {
		fmt.Fprintf(&text, "%12v %s %s %s\n", l.at.Round(10*time.Microsecond), l.node.Short(), l.job, l.text)
	}
	return text.String()
}
