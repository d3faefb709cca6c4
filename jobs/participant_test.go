package jobs

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/jobs/process"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// hand drives a participant, and is its executor.
type hand struct {
	t      *testing.T
	now    time.Time
	origin vicinity.ID
	job    ID
	p      participant
}

func newHand(t *testing.T, slots int) *hand {
	c := newClaims(vicinity.Member{ID: testNode(1), Slots: slots}, rand.New(rand.NewPCG(1, 2)))
	origin := testNode(2)
	return &hand{t: t, now: start, origin: origin, job: ID("aaaaa").At(origin),
		p: participant{claims: c, orphan: orphanLimit, works: map[ID]*work{}}}
}

// grant offers and grants so many ranks, from a first one on.
func (h *hand) grant(spec Spec, first, n int) error {
	h.t.Helper()
	spec.Args, spec.Slots, spec.Min, spec.Max = []string{"prog"}, 1, 8, 8
	ad := testAd(h.origin, "aaaaa", n, 1)
	ad.Job = h.job
	a := h.p.claims.advertised(h.now, ad)
	g := &Grant{Job: h.job, Key: a.Key, Spec: spec}
	for i := range n {
		g.Ranks = append(g.Ranks, RankAttempt{first + i, 1})
	}
	err := h.p.granted(h.now, h.origin, g)
	h.p.tick(h.now)
	return err
}

// take returns what the participant wants done of a kind.
func take[E effect](h *hand) (list []E) {
	h.p.tick(h.now)
	h.p.out = slices.DeleteFunc(h.p.out, func(e effect) bool {
		x, ok := e.(E)
		if ok {
			list = append(list, x)
		}
		return ok
	})
	return list
}

// ready grants so many ranks and prepares them.
func (h *hand) ready(n int) {
	h.t.Helper()
	if err := h.grant(Spec{}, 0, n); err != nil {
		h.t.Fatal(err)
	}
	for _, e := range take[doClaim](h) {
		h.p.claimed(h.now, e.worker, nil, h.now)
	}
	for _, e := range take[doLay](h) {
		h.p.laid(h.now, e.worker, nil, h.now)
	}
}

// start lets ranks run.
func (h *hand) start(ranks ...int) {
	h.t.Helper()
	m := &Start{Job: h.job, Size: 8}
	for _, r := range ranks {
		m.Ranks = append(m.Ranks, RankAttempt{r, 1})
	}
	h.p.started(h.now, m)
	run := take[doRun](h)
	if len(run) != len(ranks) {
		h.t.Fatalf("%d workers run, want %d", len(run), len(ranks))
	}
	for _, e := range run {
		h.p.begun(h.now, e.worker, 1)
	}
}

func (h *hand) id(rank int) workerID { return workerID{h.job, RankAttempt{rank, 1}} }

// report takes the report that is on its way, and answers it; nil = it fails.
func (h *hand) report(ack *Ack) Report {
	h.t.Helper()
	list := take[doReport](h)
	if len(list) != 1 {
		h.t.Fatalf("%d reports", len(list))
	}
	if rep := list[0].report; ack == nil {
		h.p.unheard(h.now, h.job)
	} else {
		ack.Known = true
		h.p.acknowledged(h.now, &rep, false, *ack)
	}
	return list[0].report
}

func (h *hand) used(want int) {
	h.t.Helper()
	if used := h.p.claims.used.slots; used != want {
		h.t.Errorf("%d slots are in use, want %d", used, want)
	}
}

// exit ends a worker's process, and has its files stored.
func (h *hand) exit(rank int) {
	h.p.exited(h.now, h.id(rank), process.Exit{Cause: process.Exited}, false, h.now)
	for _, e := range take[doGather](h) {
		h.p.gathered(h.now, e.worker, nil, nil, nil)
	}
}

func TestGrantsAreRefused(t *testing.T) {
	h := newHand(t, 4)
	h.ready(2)
	if err := h.grant(Spec{}, 1, 1); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "is here already") {
		t.Errorf("a rank that is here: %v", err)
	}
	h.used(2)
	h.p.want(h.now, h.p.works[h.job], wantDrop, nil)
	if len(take[doCancelWork](h)) != 1 {
		t.Error("what is fetched for nobody goes on")
	}
	if err := h.grant(Spec{}, 3, 1); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "are not gone yet") {
		t.Errorf("while all workers go: %v", err)
	}
	h.used(0)
	h = newHand(t, 4)
	if err := h.grant(Spec{Inputs: transfer.Hash{1}}, 0, 1); err != nil {
		t.Fatal(err)
	}
	h.p.fetched(h.now, h.job, errors.New("nobody has them"))
	if err := h.grant(Spec{Inputs: transfer.Hash{1}}, 1, 1); !errors.Is(err, ErrRefused) {
		t.Errorf("while its inputs cannot be had: %v", err)
	}
	h = newHand(t, 4)
	h.p.leave(h.now, time.Minute)
	if err := h.grant(Spec{}, 0, 1); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "is leaving") {
		t.Errorf("by a node that leaves: %v", err)
	}
}

// What an answer to a report says of workers is done, once.
func TestAnswersAreObeyed(t *testing.T) {
	h := newHand(t, 4)
	h.ready(4)
	h.p.works[h.job].spec.Outputs = []string{"out"}
	h.start(0, 1, 2)
	h.report(&Ack{Workers: []WorkerAck{
		{RankAttempt: RankAttempt{0, 1}, Stop: true},
		{RankAttempt: RankAttempt{1, 1}, Drop: true},
		{RankAttempt: RankAttempt{3, 1}, Drop: true},
	}})
	ends := take[doEnd](h)
	if want := []doEnd{{h.id(1), false}, {h.id(0), true}}; !slices.Equal(ends, want) {
		t.Fatalf("ended %v, want %v", ends, want)
	}
	if gone := take[doRemove](h); len(gone) != 1 || gone[0].worker != h.id(3) {
		t.Fatalf("removed %v", gone)
	}
	h.used(3)
	h.report(&Ack{Workers: []WorkerAck{{RankAttempt: RankAttempt{0, 1}, Stop: true}}})
	if len(take[doEnd](h)) != 0 {
		t.Error("a worker is told twice to end")
	}
	for _, rank := range []int{0, 1} {
		h.p.exited(h.now, h.id(rank), process.Exit{Code: 143, Cause: process.Stopped}, false, h.now)
	}
	if stored := take[doGather](h); len(stored) != 1 || stored[0].worker != h.id(0) {
		t.Errorf("stored files of %v", stored)
	}
	if gone := take[doRemove](h); len(gone) != 1 || gone[0].worker != h.id(1) {
		t.Errorf("removed %v", gone)
	}
	h.used(2)
}

// A worker that has ended takes its job out of the queue: it does not grow any more.
func TestEndedWorkerLeavesTheQueue(t *testing.T) {
	h := newHand(t, 2)
	h.ready(2)
	h.start(0, 1)
	h.p.claims.advertised(h.now, func() Advertisement { ad := testAd(h.origin, "aaaaa", 3, 1); ad.Job = h.job; return ad }())
	if len(h.p.claims.queue) != 1 {
		t.Fatal("the job is not in the queue")
	}
	h.exit(0)
	if len(h.p.claims.queue) != 0 {
		t.Error("the job is in the queue still")
	}
	h.used(1)
}

// An origin that is silent costs what has not started its lease, and what runs the
// orphan limit.
func TestSilentOrigin(t *testing.T) {
	h := newHand(t, 3)
	h.ready(3)
	h.start(0)
	for h.now.Sub(start) <= partLease {
		h.report(nil)
		h.now = h.now.Add(reportEvery)
	}
	h.used(3)
	h.report(nil)
	parked := take[doPark](h)
	if len(parked) != 2 || parked[0].claim.Lost != reasonSilent || len(take[doEnd](h)) != 0 {
		t.Fatalf("gave back %+v", parked)
	}
	for _, e := range parked {
		h.p.parked(h.now, e.worker, nil)
	}
	h.used(1)
	h.now = start.Add(orphanLimit + reportEvery)
	h.report(nil)
	if ends := take[doEnd](h); len(ends) != 1 || ends[0].worker != h.id(0) {
		t.Errorf("ended %v", ends)
	}
}

// A worker of an earlier life has its slot and its GPU; of one that did not begin only
// the news is left.
func TestAdoptedWorkersCount(t *testing.T) {
	h := newHand(t, 4)
	h.p.claims.has.gpus = 2
	spec := Spec{Args: []string{"prog"}, Slots: 1, Min: 8, Max: 8, GPUs: 1}
	record := func(rank int) claimRecord {
		return claimRecord{Version: claimVersion, Job: h.job, RankAttempt: RankAttempt{rank, 1}, Spec: spec, At: h.now, GPUs: []int{rank}}
	}
	running, ready, lost := record(0), record(1), record(2)
	running.Start, lost.Lost, lost.GPUs = &Start{Job: h.job, Size: 8, Ranks: []RankAttempt{{0, 1}}}, "no room", nil
	for _, c := range []claimRecord{running, ready, lost} {
		h.p.adopt(h.now, c)
	}
	h.used(2)
	if free := h.p.claims.takeGPUs(1); len(free) != 0 {
		t.Errorf("GPU %v is free", free)
	}
	if a, c := take[doAdopt](h), take[doClaim](h); len(a) != 1 || a[0].worker != h.id(0) || len(c) != 1 || c[0].worker != h.id(1) {
		t.Fatalf("adopts %v, prepares %v", a, c)
	}
	rep := h.report(&Ack{})
	if s := []WorkerState{rep.Workers[0].State, rep.Workers[1].State, rep.Workers[2].State}; !slices.Equal(s, []WorkerState{WorkerRunning, WorkerPreparing, WorkerLost}) || !rep.Workers[2].Declined {
		t.Errorf("reported %+v", rep.Workers)
	}
}

// A node that stops waits until the origins know of the workers as they are now.
func TestOriginKnowsWhoIsLeft(t *testing.T) {
	h := newHand(t, 2)
	h.ready(2)
	h.start(0)
	h.report(&Ack{})
	h.report(&Ack{})
	h.p.leave(h.now, time.Minute)
	w := h.p.works[h.job]
	first := take[doReport](h)[0].report
	for _, k := range w.workers {
		if !k.away || k.parted {
			t.Errorf("rank %d is away: %v, its origin knows: %v", k.Rank, k.away, k.parted)
		}
	}
	w.workers[0].state = WorkerEnded // meanwhile
	h.p.acknowledged(h.now, &first, false, Ack{Known: true})
	if w.workers[0].parted || !w.workers[1].parted || first.Away != time.Minute {
		t.Errorf("the origin knows of rank 0: %v, of rank 1: %v", w.workers[0].parted, w.workers[1].parted)
	}
	h.p.tell(h.now, w)
	h.report(&Ack{})
	if !w.workers[0].parted {
		t.Error("the origin does not know of rank 0")
	}
}

// An eviction goes before a START that comes at the same time.
func TestEvictionGoesFirst(t *testing.T) {
	h := newHand(t, 1)
	if err := h.grant(Spec{}, 0, 1); err != nil {
		t.Fatal(err)
	}
	h.p.claimed(h.now, h.id(0), nil, h.now)
	h.p.started(h.now, &Start{Job: h.job, Size: 8, Ranks: []RankAttempt{{0, 1}}})
	h.p.evictAll(h.now, reasonDraining)
	h.p.laid(h.now, h.id(0), nil, h.now)
	if len(take[doRun](h)) != 0 || len(take[doPark](h)) != 1 {
		t.Error("it runs")
	}
}

// The origin is told why a worker was ended here, and whether it had begun.
func TestEvictedWorkersSayWhy(t *testing.T) {
	h := newHand(t, 2)
	h.ready(2)
	h.start(0)
	h.report(&Ack{})
	h.p.evictAll(h.now, reasonDraining)
	h.p.exited(h.now, h.id(0), process.Exit{Code: 143, Cause: process.Stopped}, false, h.now)
	h.p.parked(h.now, take[doPark](h)[0].worker, nil)
	h.used(0)
	h.report(&Ack{})
	for _, k := range h.report(&Ack{}).Workers {
		if k.State != WorkerLost || k.Reason != reasonDraining || k.Declined != (k.Rank == 1) {
			t.Errorf("told %+v", k)
		}
	}
}

// Nothing of a job is forgotten while its inputs are being fetched: what is fetched
// would stay for ever.
func TestForgetWaitsForTheInputs(t *testing.T) {
	h := newHand(t, 1)
	if err := h.grant(Spec{Inputs: transfer.Hash{1}}, 0, 1); err != nil {
		t.Fatal(err)
	}
	h.p.claimed(h.now, h.id(0), nil, h.now)
	h.report(&Ack{Workers: []WorkerAck{{RankAttempt: RankAttempt{0, 1}, Drop: true}}})
	h.p.removed(h.now, take[doRemove](h)[0].worker)
	h.report(&Ack{})
	if len(take[doCancelWork](h)) != 1 || len(take[doForgetWork](h)) != 0 {
		t.Fatal("it is forgotten")
	}
	h.p.fetched(h.now, h.job, errors.New("cancelled"))
	if len(take[doForgetWork](h)) != 1 || len(h.p.works) != 0 {
		t.Error("it is not forgotten")
	}
}

// A node that cannot start workers gives them back; one that can tries again, and
// then blames the worker.
func TestWorkersThatCannotBeStarted(t *testing.T) {
	h := newHand(t, 1)
	h.ready(1)
	for again := range maxAgain + 1 {
		h.p.started(h.now, &Start{Job: h.job, Size: 8, Ranks: []RankAttempt{{0, 1}}})
		e := take[doRun](h)[0]
		h.p.notBegun(h.now, e.worker, "no such file", h.now)
		h.p.tried(h.now, take[doTry](h)[0].worker, "")
		if again < maxAgain {
			h.p.claimed(h.now, take[doClaim](h)[0].worker, nil, h.now)
			h.p.laid(h.now, take[doLay](h)[0].worker, nil, h.now)
		}
	}
	if rep := take[doReport](h); len(rep) == 0 || h.p.works[h.job].workers[0].exit.Code != CodeZorilla {
		t.Error("it has not failed")
	}
	h.used(0)
	h = newHand(t, 1)
	h.ready(1)
	h.p.started(h.now, &Start{Job: h.job, Size: 8, Ranks: []RankAttempt{{0, 1}}})
	h.p.notBegun(h.now, take[doRun](h)[0].worker, "no such file", h.now)
	h.p.tried(h.now, take[doTry](h)[0].worker, "no more processes")
	if parked := take[doPark](h); len(parked) != 1 || parked[0].claim.Lost != notStarted+"no more processes" {
		t.Errorf("parked %+v", parked)
	}
}

// A release of everything ends what is held, too, and what waits; of a job of another
// origin it ends nothing.
func TestReleaseEndsTheHold(t *testing.T) {
	w := newWorld(1, 2, 2)
	c := w.nodes[0].core.core
	origin := w.nodes[1].id
	ad := testAd(origin, "aaaaa", 3, 1)
	if a := c.claims.advertised(w.now, ad); a.Workers != 2 || len(c.claims.queue) != 1 {
		t.Fatalf("%+v", a)
	}
	c.released(w.now, testNode(7), &Release{Job: ad.Job})
	if len(c.claims.holds) != 1 || len(c.claims.queue) != 1 {
		t.Error("a stranger has released it")
	}
	c.released(w.now, origin, &Release{Job: ad.Job})
	if len(c.claims.holds) != 0 || len(c.claims.queue) != 0 {
		t.Error("it is held, or waits")
	}
}

// What a primary wants done waits for the events before it, and for what it left before.
func TestEffectsWaitForTheirEvents(t *testing.T) {
	w := newWorld(1, 2)
	c := w.nodes[0].core.core
	j := c.newJob(ID("aaaaa").At(c.self.ID))
	c.add(j)
	ev := event{Kind: evSubmitted, At: w.now, Spec: &Spec{Args: []string{"prog"}, Min: 1, Max: 1, Slots: 1}}
	leave := func(number uint64, events ...event) {
		j.core.out.events = append(j.core.out.events, events...)
		j.core.do(doAnswer{number: number})
		c.flush(w.now, j)
	}
	done := func() (numbers []uint64) {
		list, _ := c.advance(w.now)
		for _, a := range list {
			if e, ok := a.effect.(doAnswer); ok {
				numbers = append(numbers, e.number)
			}
		}
		return numbers
	}
	leave(1, ev)
	leave(2)
	leave(3, ev)
	if n := done(); len(n) != 0 {
		t.Errorf("done before anything is durable: %v", n)
	}
	c.recorded(w.now, j.core.rec.id, 3)
	if n := done(); len(n) != 0 {
		t.Errorf("done before the first is durable: %v", n)
	}
	c.recorded(w.now, j.core.rec.id, 1)
	if n := done(); !slices.Equal(n, []uint64{1, 2, 3}) {
		t.Errorf("done: %v", n)
	}
}
