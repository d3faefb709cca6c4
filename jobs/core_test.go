package jobs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/vicinity"
)

// cores is a network of Cores, a millisecond apart, in which every flood
// reaches everybody.
type cores struct {
	t     *testing.T
	rnd   *rand.Rand
	now   time.Time
	nodes map[vicinity.ID]*Core // nil = dead
	order []vicinity.ID
	queue []coreEvent // in order of time
	loss  float64     // of packets
	trace string
}

type coreEvent struct {
	at   time.Time
	from vicinity.ID
	msg  Message // or payload, an advertisement
	ad   []byte
}

func newCores(t *testing.T, seed uint64, nodes, slots int, run time.Duration) *cores {
	w := &cores{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), now: start, nodes: map[vicinity.ID]*Core{}}
	for i := range nodes {
		id := testNode(i)
		w.order = append(w.order, id)
		w.nodes[id] = NewCore(CoreConfig{
			Flood:   func(_ time.Time, ad Advert) flood.Flood { return w.flood(id, ad.Payload) },
			Members: func() int { return nodes },
			Member: func(id vicinity.ID) (vicinity.Member, time.Duration, bool) {
				return vicinity.Member{ID: id}, time.Millisecond, true
			},
			Self: vicinity.Member{ID: id, Slots: slots, Addrs: []string{"10.0.0.1:5444"}}, Rand: rand.New(rand.NewPCG(seed, uint64(i))),
			Prepare: time.Millisecond, Schedule: flood.Schedule{}, Runtime: func(*Spec) time.Duration { return run },
		})
	}
	return w
}

func (w *cores) submit(node int, spec Spec) ID {
	w.t.Helper()
	spec.Args, spec.Slots = []string{"prog"}, 1
	id, out, err := w.nodes[testNode(node)].Submit(w.now, spec)
	if err != nil {
		w.t.Fatal(err)
	}
	w.perform(testNode(node), out)
	return id
}

func (w *cores) flood(from vicinity.ID, payload []byte) flood.Flood {
	for _, to := range w.order {
		if to != from {
			w.post(coreEvent{from: from, msg: Message{To: to}, ad: payload})
		}
	}
	return flood.Flood{Copies: len(w.order) - 1}
}

func (w *cores) perform(from vicinity.ID, out Actions) {
	for _, m := range out.Messages {
		w.post(coreEvent{from: from, msg: m})
	}
}

func (w *cores) post(e coreEvent) {
	if e.msg.Kind == Packet && w.rnd.Float64() < w.loss {
		return
	}
	e.at = w.now.Add(time.Millisecond + time.Duration(w.rnd.IntN(1000))*time.Microsecond)
	i := len(w.queue)
	for i > 0 && w.queue[i-1].at.After(e.at) {
		i--
	}
	w.queue = append(w.queue, coreEvent{})
	copy(w.queue[i+1:], w.queue[i:])
	w.queue[i] = e
}

// run lets time pass until a condition holds, and reports whether it ever did.
func (w *cores) run(limit time.Duration, until func() bool) bool {
	w.t.Helper()
	for end := w.now.Add(limit); !until(); {
		at, who := end, vicinity.ID("")
		for _, id := range w.order {
			if c := w.nodes[id]; c != nil {
				if next := c.Next(); !next.IsZero() && next.Before(at) {
					at, who = next, id
				}
			}
		}
		switch {
		case len(w.queue) > 0 && !w.queue[0].at.After(at):
			e := w.queue[0]
			w.queue = w.queue[1:]
			w.now, who = e.at, e.msg.To
			w.arrive(e)
		case who != "":
			if at.After(w.now) {
				w.now = at
			}
			w.perform(who, w.nodes[who].Tick(w.now))
		default:
			w.now = end
			return until()
		}
		w.check(who)
	}
	return true
}

func (w *cores) arrive(e coreEvent) {
	c := w.nodes[e.msg.To]
	switch {
	case c == nil:
	case e.ad != nil:
		w.perform(e.msg.To, c.Advertised(w.now, flood.Message{TTL: 1, Hops: 1, Payload: e.ad}))
	default:
		w.perform(e.msg.To, c.Receive(w.now, e.from, e.msg))
	}
}

// check compares what a node's claims say with its workers and holds.
func (w *cores) check(id vicinity.ID) {
	w.t.Helper()
	c := w.nodes[id]
	if c == nil {
		return
	}
	used, held := c.Slots()
	sumUsed, sumHeld := 0, 0
	for _, h := range c.Holdings() {
		if h.State == "" {
			sumHeld += h.Slots
		} else {
			sumUsed += h.Slots
		}
	}
	if used != sumUsed || held != sumHeld || used > c.cfg.Self.Slots {
		w.t.Fatalf("node %s: %d slots of %d used and %d held, but its workers and holds have %+v", id.Short(), used, c.cfg.Self.Slots, held, c.Holdings())
	}
	w.trace += fmt.Sprintf("%v %s %d %d\n", w.now.Sub(start), id.Short(), used, held)
}

func (w *cores) ended(ids ...ID) func() bool {
	return func() bool {
		for _, id := range ids {
			for _, n := range w.order {
				if c := w.nodes[n]; c != nil && c.jobs[id] != nil && !c.State(id).Final() {
					return false
				}
			}
		}
		return true
	}
}

func (w *cores) idle() bool {
	for _, c := range w.nodes {
		if c != nil && (len(c.works) > 0 || c.claims.heldSlots() > 0) {
			return false
		}
	}
	return true
}

func TestCoresRunAJob(t *testing.T) {
	w := newCores(t, 1, 5, 2, 10*time.Second)
	id := w.submit(0, Spec{Min: 7, Max: 7})
	if !w.run(time.Minute, w.ended(id)) {
		t.Fatal("the job did not end")
	}
	st, _ := w.nodes[testNode(0)].Status(id)
	if st.State != Completed || len(st.Workers) != 7 || st.Started.Sub(start) > time.Second || st.Ended.Sub(st.Started) < 10*time.Second {
		t.Fatalf("it is %s (%s), started after %v, ran %v", st.State, st.Reason, st.Started.Sub(start), st.Ended.Sub(st.Started))
	}
	if !w.run(20*time.Second, w.idle) {
		t.Fatal("slots are still in use")
	}
	if _, _, err := w.nodes[testNode(0)].Submit(w.now, Spec{}); !errors.Is(err, ErrInvalid) {
		t.Fatalf("an empty job: %v", err)
	}
}

// Jobs from everywhere, packets that get lost, and more work than room: every
// job ends, and no slot is used twice on the way.
func TestCoresShareSlots(t *testing.T) {
	for seed := range uint64(5) {
		w := newCores(t, seed, 6, 2, time.Second)
		w.loss = 0.1
		var ids []ID
		for i := range 18 {
			ids = append(ids, w.submit(i%6, Spec{Min: 1 + i%4, Max: 1 + i%4 + i%3}))
		}
		if !w.run(20*time.Minute, w.ended(ids...)) || !w.run(time.Minute, w.idle) {
			t.Fatalf("seed %d: not all jobs ended, or slots are still in use", seed)
		}
	}
}

func TestCoresReplaceALostNode(t *testing.T) {
	w := newCores(t, 3, 4, 2, time.Minute)
	id := w.submit(0, Spec{Min: 4, Max: 6})
	running := func() bool {
		st, _ := w.nodes[testNode(0)].Status(id)
		return st.State == Running && len(st.Workers) == 6
	}
	if !w.run(10*time.Second, running) {
		t.Fatal("it does not run")
	}
	w.run(time.Second, func() bool { return false })
	victim := vicinity.ID("")
	st, _ := w.nodes[testNode(0)].Status(id)
	for _, k := range st.Workers {
		if k.Node != testNode(0) {
			victim = k.Node
		}
	}
	w.nodes[victim] = nil
	w.perform(testNode(0), w.nodes[testNode(0)].MemberGone(w.now, victim))
	if !w.run(5*time.Minute, w.ended(id)) {
		t.Fatal("the job did not end")
	}
	if st, _ = w.nodes[testNode(0)].Status(id); st.State != Completed || len(st.Warnings) == 0 {
		t.Fatalf("it is %s, warnings %q", st.State, st.Warnings)
	}
}

func TestCoreCancel(t *testing.T) {
	w := newCores(t, 4, 3, 2, 0)
	id := w.submit(1, Spec{Min: 5, Max: 5})
	w.run(5*time.Second, func() bool { return false })
	c := w.nodes[testNode(1)]
	if used, _ := c.Slots(); c.State(id) != Running || used != 2 {
		t.Fatalf("it is %s with %d slots in use at the origin", c.State(id), used)
	}
	w.perform(testNode(1), c.Cancel(w.now, id))
	if !w.run(5*time.Second, w.idle) || c.State(id) != Cancelled {
		t.Fatalf("it is %s, and slots are in use", c.State(id))
	}
}

// A run can be repeated: what a Core does depends on nothing but its inputs.
func TestCoresAreDeterministic(t *testing.T) {
	var traces [2]string
	for i := range traces {
		w := newCores(t, 9, 5, 3, 3*time.Second)
		w.loss = 0.2
		for n := range 10 {
			w.submit(n%5, Spec{Min: 1 + n%3, Max: 4})
		}
		w.run(time.Minute, func() bool { return false })
		traces[i] = w.trace
	}
	if traces[0] != traces[1] || len(traces[0]) < 1000 {
		t.Fatalf("two runs with one seed differ (%d and %d bytes of trace)", len(traces[0]), len(traces[1]))
	}
}
