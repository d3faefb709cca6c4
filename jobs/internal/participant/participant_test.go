package participant

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/docs/tables"
	"zorilla/jobs"
	"zorilla/jobs/internal/claims"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// hand drives a participant, and is its executor.
type hand struct {
	t      *testing.T
	now    time.Time
	origin vicinity.ID
	job    jobs.ID
	p      Participant
}

func newHand(t *testing.T, slots int) *hand {
	c := claims.New(vicinity.Member{ID: jobtest.Node(1), Slots: slots}, rand.New(rand.NewPCG(1, 2)))
	origin := jobtest.Node(2)
	return &hand{t: t, now: jobtest.Start, origin: origin, job: jobs.ID("aaaaa").At(origin),
		p: Participant{Claims: c, Orphan: OrphanLimit, Works: map[jobs.ID]*Work{}}}
}

// grant offers and grants so many ranks, from a first one on.
func (h *hand) grant(spec jobs.Spec, first, n int) error {
	h.t.Helper()
	spec.Args, spec.Slots, spec.Min, spec.Max = []string{"prog"}, 1, 8, 8
	ad := wiretest.Ad(h.origin, "aaaaa", n, 1)
	ad.Job = h.job
	a := h.p.Claims.Advertised(h.now, ad)
	g := &wire.Grant{Job: h.job, Key: a.Key, Spec: spec}
	for i := range n {
		g.Ranks = append(g.Ranks, jobs.RankAttempt{Rank: first + i, Attempt: 1})
	}
	err := h.p.Granted(h.now, h.origin, g)
	h.p.Tick(h.now)
	return err
}

// take returns what the participant wants done of a kind.
func take[E Effect](h *hand) (list []E) {
	h.p.Tick(h.now)
	h.p.Out = slices.DeleteFunc(h.p.Out, func(e Effect) bool {
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
	if err := h.grant(jobs.Spec{}, 0, n); err != nil {
		h.t.Fatal(err)
	}
	for _, e := range take[DoClaim](h) {
		h.p.Claimed(h.now, e.Worker, nil, h.now)
	}
	for _, e := range take[DoLay](h) {
		h.p.Laid(h.now, e.Worker, nil, h.now)
	}
}

// start lets ranks run.
func (h *hand) start(ranks ...int) {
	h.t.Helper()
	m := &wire.Start{Job: h.job, Size: 8}
	for _, r := range ranks {
		m.Ranks = append(m.Ranks, jobs.RankAttempt{Rank: r, Attempt: 1})
	}
	h.p.Started(h.now, m)
	run := take[DoRun](h)
	if len(run) != len(ranks) {
		h.t.Fatalf("%d workers run, want %d", len(run), len(ranks))
	}
	for _, e := range run {
		h.p.Begun(h.now, e.Worker, 1)
	}
}

func (h *hand) id(rank int) WorkerID {
	return WorkerID{h.job, jobs.RankAttempt{Rank: rank, Attempt: 1}}
}

// report takes the report that is on its way, and answers it; nil = it fails.
func (h *hand) report(ack *wire.Ack) wire.Report {
	h.t.Helper()
	list := take[DoReport](h)
	if len(list) != 1 {
		h.t.Fatalf("%d reports", len(list))
	}
	if rep := list[0].Report; ack == nil {
		h.p.Unheard(h.now, h.job)
	} else {
		ack.Known = true
		h.p.Acknowledged(h.now, &rep, false, *ack)
	}
	return list[0].Report
}

func (h *hand) used(want int) {
	h.t.Helper()
	if used := h.p.Claims.Used.Slots; used != want {
		h.t.Errorf("%d slots are in use, want %d", used, want)
	}
}

// exit ends a worker's process, and has its files stored.
func (h *hand) exit(rank int) { h.exits(rank, work.Exit{Cause: work.Exited}) }

func (h *hand) exits(rank int, exit work.Exit) {
	h.p.Exited(h.now, h.id(rank), exit, false, h.now)
	for _, e := range take[DoGather](h) {
		h.p.Gathered(h.now, e.Worker, nil, nil, nil)
	}
}

func wantRow(t *testing.T, name, reason string) {
	t.Helper()
	if err := tables.Check("../../../docs/exit-codes.md", name, tables.Seen{Reason: reason}); err != nil {
		t.Error(err)
	}
}

func TestGrantsAreRefused(t *testing.T) {
	h := newHand(t, 4)
	h.ready(2)
	if err := h.grant(jobs.Spec{}, 1, 1); !errors.Is(err, jobs.ErrRefused) || !strings.Contains(err.Error(), "is here already") {
		t.Errorf("a rank that is here: %v", err)
	}
	h.used(2)
	h.p.Works[h.job].Want(h.now, WantDrop, nil)
	if len(take[DoCancelWork](h)) != 1 {
		t.Error("what is fetched for nobody goes on")
	}
	if err := h.grant(jobs.Spec{}, 3, 1); !errors.Is(err, jobs.ErrRefused) || !strings.Contains(err.Error(), "are not gone yet") {
		t.Errorf("while all workers go: %v", err)
	} else {
		wantRow(t, "its earlier workers are not gone yet", wire.WhyRefused(err))
	}
	h.used(0)
	h = newHand(t, 4)
	if err := h.grant(jobs.Spec{Inputs: transfer.Hash{1}}, 0, 1); err != nil {
		t.Fatal(err)
	}
	h.p.Fetched(h.now, h.job, errors.New("nobody has them"))
	if err := h.grant(jobs.Spec{Inputs: transfer.Hash{1}}, 1, 1); !errors.Is(err, jobs.ErrRefused) {
		t.Errorf("while its inputs cannot be had: %v", err)
	}
	h = newHand(t, 4)
	h.p.Leave(h.now, time.Minute)
	if err := h.grant(jobs.Spec{}, 0, 1); !errors.Is(err, jobs.ErrRefused) || !strings.Contains(err.Error(), wire.ReasonLeaving) {
		t.Errorf("by a node that leaves: %v", err)
	}
}

// What would be refused is not offered: a job waits in the queue until its earlier
// workers are gone.
func TestNothingIsOfferedWhileEarlierWorkersGo(t *testing.T) {
	h := newHand(t, 4)
	h.ready(2)
	h.p.Works[h.job].Want(h.now, WantDrop, nil)
	h.used(0)
	ad := wiretest.Ad(h.origin, "aaaaa", 2, 2)
	ad.Job = h.job
	if a := h.p.Claims.Advertised(h.now, ad); a.Workers != 0 || a.Reason != wire.ReasonBusy {
		t.Errorf("%+v", a)
	}
	for _, e := range take[DoRemove](h) {
		h.p.Removed(h.now, e.Worker)
	}
	h.report(&wire.Ack{})
	h.p.Tick(h.now)
	if list := h.p.Claims.Offers(h.now); len(list) != 1 || list[0].Answer.Workers != 2 {
		t.Errorf("then it is offered %+v", list)
	}
}

// What an answer to a report says of workers is done, once.
func TestAnswersAreObeyed(t *testing.T) {
	h := newHand(t, 4)
	h.ready(4)
	h.p.Works[h.job].Spec.Outputs = []string{"out"}
	h.start(0, 1, 2)
	h.report(&wire.Ack{Workers: []wire.WorkerAck{
		{RankAttempt: jobs.RankAttempt{Rank: 0, Attempt: 1}, Stop: true},
		{RankAttempt: jobs.RankAttempt{Rank: 1, Attempt: 1}, Drop: true},
		{RankAttempt: jobs.RankAttempt{Rank: 3, Attempt: 1}, Drop: true},
	}})
	ends := take[DoEnd](h)
	if want := []DoEnd{{h.id(1), false, 0, StopGrace}, {h.id(0), true, 0, StopGrace}}; !slices.Equal(ends, want) {
		t.Fatalf("ended %v, want %v", ends, want)
	}
	if gone := take[DoRemove](h); len(gone) != 1 || gone[0].Worker != h.id(3) {
		t.Fatalf("removed %v", gone)
	}
	h.used(3)
	h.report(&wire.Ack{Workers: []wire.WorkerAck{{RankAttempt: jobs.RankAttempt{Rank: 0, Attempt: 1}, Stop: true}}})
	if len(take[DoEnd](h)) != 0 {
		t.Error("a worker is told twice to end")
	}
	for _, rank := range []int{0, 1} {
		h.p.Exited(h.now, h.id(rank), work.Exit{Code: 143, Cause: work.Stopped}, false, h.now)
	}
	if stored := take[DoGather](h); len(stored) != 1 || stored[0].Worker != h.id(0) {
		t.Errorf("stored files of %v", stored)
	}
	if gone := take[DoRemove](h); len(gone) != 1 || gone[0].Worker != h.id(1) {
		t.Errorf("removed %v", gone)
	}
	h.used(2)
}

// A worker that has ended takes its job out of the queue: it does not grow any more.
func TestEndedWorkerLeavesTheQueue(t *testing.T) {
	h := newHand(t, 2)
	h.ready(2)
	h.start(0, 1)
	h.p.Claims.Advertised(h.now, func() wire.Advertisement { ad := wiretest.Ad(h.origin, "aaaaa", 3, 1); ad.Job = h.job; return ad }())
	if len(h.p.Claims.Queue) != 1 {
		t.Fatal("the job is not in the queue")
	}
	h.exit(0)
	if len(h.p.Claims.Queue) != 0 {
		t.Error("the job is in the queue still")
	}
	h.used(1)
}

// One that its origin has let go does not, though its process ended by itself before it could be
// stopped: the job may wait here to be tried again.
func TestReleasedWorkerLeavesItsJobQueued(t *testing.T) {
	h := newHand(t, 2)
	h.ready(2)
	h.start(0, 1)
	h.p.Works[h.job].Want(h.now, WantDrop, []jobs.RankAttempt{h.id(0).RankAttempt, h.id(1).RankAttempt})
	ad := wiretest.Ad(h.origin, "aaaaa", 2, 1)
	ad.Job = h.job
	h.p.Claims.Advertised(h.now, ad)
	h.exit(0)
	h.exit(1)
	if len(h.p.Claims.Queue) != 1 {
		t.Error("the job is not in the queue")
	}
	h.used(0)
}

// An origin that is silent costs what has not started its lease, and what runs the
// orphan limit.
func TestSilentOrigin(t *testing.T) {
	h := newHand(t, 3)
	h.ready(3)
	h.start(0)
	for h.now.Sub(jobtest.Start) <= wire.PartLease {
		h.report(nil)
		h.now = h.now.Add(wire.ReportEvery)
	}
	h.used(3)
	h.report(nil)
	parked := take[DoPark](h)
	if len(parked) != 2 || parked[0].Claim.Lost != reasonSilent || len(take[DoEnd](h)) != 0 {
		t.Fatalf("gave back %+v", parked)
	}
	for _, e := range parked {
		h.p.Parked(h.now, e.Worker, nil)
	}
	h.used(1)
	h.now = jobtest.Start.Add(OrphanLimit + wire.ReportEvery)
	h.report(nil)
	if ends := take[DoEnd](h); len(ends) != 1 || ends[0].Worker != h.id(0) {
		t.Errorf("ended %v", ends)
	}
}

// A worker of an earlier life has its slot and its GPU; of one that did not begin only
// the news is left.
func TestAdoptedWorkersCount(t *testing.T) {
	h := newHand(t, 4)
	h.p.Claims.Has.GPUs = 2
	spec := jobs.Spec{Args: []string{"prog"}, Slots: 1, Min: 8, Max: 8, GPUs: 1}
	record := func(rank int) ClaimRecord {
		return ClaimRecord{Version: claimVersion, Job: h.job, RankAttempt: jobs.RankAttempt{Rank: rank, Attempt: 1}, Spec: spec, At: h.now, GPUs: []int{rank}}
	}
	running, ready, lost := record(0), record(1), record(2)
	running.Start, lost.Lost, lost.GPUs = &wire.Start{Job: h.job, Size: 8, Ranks: []jobs.RankAttempt{{Rank: 0, Attempt: 1}}}, "no room", nil
	for _, c := range []ClaimRecord{running, ready, lost} {
		h.p.Adopt(h.now, c)
	}
	h.used(2)
	if free := h.p.Claims.TakeGPUs(1); len(free) != 0 {
		t.Errorf("GPU %v is free", free)
	}
	if a, c := take[DoAdopt](h), take[DoClaim](h); len(a) != 1 || a[0].Worker != h.id(0) || len(c) != 1 || c[0].Worker != h.id(1) {
		t.Fatalf("adopts %v, prepares %v", a, c)
	}
	rep := h.report(&wire.Ack{})
	if s := []jobs.WorkerState{rep.Workers[0].State, rep.Workers[1].State, rep.Workers[2].State}; !slices.Equal(s, []jobs.WorkerState{jobs.WorkerRunning, jobs.WorkerPreparing, jobs.WorkerLost}) || !rep.Workers[2].Declined {
		t.Errorf("reported %+v", rep.Workers)
	}
}

// A node that stops waits until the origins know of the workers as they are now.
func TestOriginKnowsWhoIsLeft(t *testing.T) {
	h := newHand(t, 2)
	h.ready(2)
	h.start(0)
	h.report(&wire.Ack{})
	h.report(&wire.Ack{})
	h.p.Leave(h.now, time.Minute)
	w := h.p.Works[h.job]
	first := take[DoReport](h)[0].Report
	for _, k := range w.Workers {
		if !k.Detached || k.Parted {
			t.Errorf("rank %d is away: %v, its origin knows: %v", k.Rank, k.Detached, k.Parted)
		}
	}
	w.Workers[0].State = jobs.WorkerEnded // meanwhile
	h.p.Acknowledged(h.now, &first, false, wire.Ack{Known: true})
	if w.Workers[0].Parted || !w.Workers[1].Parted || first.Away != time.Minute {
		t.Errorf("the origin knows of rank 0: %v, of rank 1: %v", w.Workers[0].Parted, w.Workers[1].Parted)
	}
	w.tell(h.now)
	h.report(&wire.Ack{})
	if !w.Workers[0].Parted {
		t.Error("the origin does not know of rank 0")
	}
}

// An eviction goes before a START that comes at the same time.
func TestEvictionGoesFirst(t *testing.T) {
	h := newHand(t, 1)
	if err := h.grant(jobs.Spec{}, 0, 1); err != nil {
		t.Fatal(err)
	}
	h.p.Claimed(h.now, h.id(0), nil, h.now)
	h.p.Started(h.now, &wire.Start{Job: h.job, Size: 8, Ranks: []jobs.RankAttempt{{Rank: 0, Attempt: 1}}})
	h.p.EvictAll(h.now, WantEvict, wire.ReasonDraining)
	h.p.Laid(h.now, h.id(0), nil, h.now)
	if len(take[DoRun](h)) != 0 || len(take[DoPark](h)) != 1 {
		t.Error("it runs")
	}
}

// The origin is told why a worker was ended here, and whether it had begun.
func TestEvictedWorkersSayWhy(t *testing.T) {
	h := newHand(t, 2)
	h.ready(2)
	h.start(0)
	h.report(&wire.Ack{})
	h.p.EvictAll(h.now, WantEvict, wire.ReasonDraining)
	h.p.Exited(h.now, h.id(0), work.Exit{Code: 143, Cause: work.Stopped}, false, h.now)
	h.p.Parked(h.now, take[DoPark](h)[0].Worker, nil)
	h.used(0)
	h.report(&wire.Ack{})
	for _, k := range h.report(&wire.Ack{}).Workers {
		if k.State != jobs.WorkerLost || k.Reason != wire.ReasonDraining || k.Declined != (k.Rank == 1) {
			t.Errorf("told %+v", k)
		}
	}
}

// Nothing of a job is forgotten while its inputs are being fetched: what is fetched
// would stay for ever.
func TestForgetWaitsForTheInputs(t *testing.T) {
	h := newHand(t, 1)
	if err := h.grant(jobs.Spec{Inputs: transfer.Hash{1}}, 0, 1); err != nil {
		t.Fatal(err)
	}
	h.p.Claimed(h.now, h.id(0), nil, h.now)
	h.report(&wire.Ack{Workers: []wire.WorkerAck{{RankAttempt: jobs.RankAttempt{Rank: 0, Attempt: 1}, Drop: true}}})
	h.p.Removed(h.now, take[DoRemove](h)[0].Worker)
	h.report(&wire.Ack{})
	if len(take[DoCancelWork](h)) != 1 || len(take[DoForgetWork](h)) != 0 {
		t.Fatal("it is forgotten")
	}
	h.p.Fetched(h.now, h.job, errors.New("cancelled"))
	if len(take[DoForgetWork](h)) != 1 || len(h.p.Works) != 0 {
		t.Error("it is not forgotten")
	}
}

// A node that cannot start workers gives them back; one that can tries again, and
// then blames the worker.
func TestWorkersThatCannotBeStarted(t *testing.T) {
	h := newHand(t, 1)
	h.ready(1)
	for again := range maxAgain + 1 {
		h.p.Started(h.now, &wire.Start{Job: h.job, Size: 8, Ranks: []jobs.RankAttempt{{Rank: 0, Attempt: 1}}})
		e := take[DoRun](h)[0]
		h.p.NotBegun(h.now, e.Worker, "no such file", h.now)
		h.p.Tried(h.now, take[DoTry](h)[0].Worker, "")
		if again < maxAgain {
			h.p.Claimed(h.now, take[DoClaim](h)[0].Worker, nil, h.now)
			h.p.Laid(h.now, take[DoLay](h)[0].Worker, nil, h.now)
		}
	}
	if rep := take[DoReport](h); len(rep) == 0 || h.p.Works[h.job].Workers[0].exit.Code != jobs.CodeZorilla {
		t.Error("it has not failed")
	}
	h.used(0)
	h = newHand(t, 1)
	h.ready(1)
	h.p.Started(h.now, &wire.Start{Job: h.job, Size: 8, Ranks: []jobs.RankAttempt{{Rank: 0, Attempt: 1}}})
	h.p.NotBegun(h.now, take[DoRun](h)[0].Worker, "no such file", h.now)
	h.p.Tried(h.now, take[DoTry](h)[0].Worker, "no more processes")
	if parked := take[DoPark](h); len(parked) != 1 || parked[0].Claim.Lost != notStarted+"no more processes" {
		t.Errorf("parked %+v", parked)
	}
}
