package primary

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

// talk is a conversation with one primary: the test plays all other nodes.
type talk struct {
	t   *testing.T
	p   *Primary
	now time.Time
	log []record.Event
	groupTalk
}

func newTalk(t *testing.T, spec jobs.Spec) *talk {
	t.Helper()
	if spec.Slots == 0 {
		spec.Slots = 1
	}
	if spec.Args == nil {
		spec.Args = []string{"prog"}
	}
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	self := vicinity.Member{ID: jobtest.Node(0), Name: "origin", Addrs: []string{"10.0.0.1:5444"}}
	c := &talk{t: t, now: jobtest.Start, p: New(jobs.ID("aaaaa").At(self.ID), self, rand.New(rand.NewPCG(1, 2)))}
	c.p.Submit(c.now, spec, 7)
	c.declined()
	return c
}

// declined tells the primary that its own node, which it asks before others, has no room.
func (c *talk) declined() {
	effects := len(c.p.Out.Effects)
	c.p.Out.Effects = slices.DeleteFunc(c.p.Out.Effects, func(e Effect) bool {
		_, asks := e.(DoAsk)
		return asks
	})
	if len(c.p.Out.Effects) < effects {
		c.p.Answered(c.now, vicinity.Member{ID: c.p.self.ID}, 1, wire.Answer{Job: c.p.Rec.ID, Reason: wire.ReasonBusy})
	}
}

// step takes what the primary wants done, and keeps its events.
func (c *talk) step() []Effect {
	c.declined()
	st := c.p.Take()
	c.log = append(c.log, st.Events...)
	return st.Effects
}

// only returns the effects of one kind since the last call of step.
func only[T Effect](c *talk) []T {
	var out []T
	for _, e := range c.step() {
		if v, ok := e.(T); ok {
			out = append(out, v)
		}
	}
	return out
}

func (c *talk) after(d time.Duration) {
	c.now = c.now.Add(d)
	c.p.Tick(c.now)
	c.declined()
}

// offer lets node n offer workers in answer to the latest flood, not before
// nearer ones have had their time.
func (c *talk) offer(n, workers int) { c.offerOf(n, workers, uint64(n)+1) }

// offerAgain is offer by a node of which the latest was taken.
func (c *talk) offerAgain(n, workers int) { c.offerOf(n, workers, uint64(n)+1<<32) }

func (c *talk) offerOf(n, workers int, key uint64) {
	if at := c.p.Search.FloodedAt.Add(2 * time.Duration(n) * time.Millisecond); c.now.Before(at) {
		c.now = at
	}
	c.p.Answered(c.now, vicinity.Member{ID: jobtest.Node(n), Name: "n"}, time.Duration(n)*time.Millisecond,
		wire.Answer{Job: c.p.Rec.ID, Round: len(c.p.Search.Rounds), Key: key, Workers: workers, Capacity: workers})
	c.declined()
}

// report sends a report of node n on ranks that are all in one state.
func (c *talk) report(n int, state jobs.WorkerState, code int, ras ...jobs.RankAttempt) wire.Ack {
	rep := wire.Report{Job: c.p.Rec.ID}
	have := map[jobs.RankAttempt]wire.Written{}
	for _, ra := range ras {
		w := wire.WorkerReport{RankAttempt: ra, State: state}
		if state == jobs.WorkerEnded {
			w.Exit = &work.Exit{Code: code, Cause: work.Exited}
		}
		rep.Workers = append(rep.Workers, w)
		have[ra] = wire.Written{}
	}
	var ack wire.Ack
	c.p.Reported(c.now, jobtest.Node(n), rep, have, 0)
	for _, e := range c.step() {
		if a, ok := e.(DoAnswer); ok {
			ack = a.Ack
		}
	}
	return ack
}

func (c *talk) state(want jobs.State, code int) {
	c.t.Helper()
	if st := c.p.Status(); st.State != want || st.ExitCode != code {
		c.t.Fatalf("the job is %s with %d (%s), want %s with %d", st.State, st.ExitCode, st.Reason, want, code)
	}
}

func TestRigidJobRunsWhenAllOfItIsOffered(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 3, Max: 3})
	floods := only[DoFlood](c)
	if len(floods) != 1 || floods[0].Radius != 1 || floods[0].Ad.Wanted != 3 {
		t.Fatalf("got floods %+v, want one of radius 1 for 3 workers", floods)
	}
	c.offer(2, 2)
	if g := only[DoGrant](c); len(g) != 0 {
		t.Fatalf("granted %+v before all of it was offered", g)
	}
	c.state(jobs.Pending, -1)
	c.offer(1, 2)
	grants := only[DoGrant](c)
	if len(grants) != 2 || grants[0].To != jobtest.Node(1) || len(grants[0].Grant.Ranks) != 2 || len(grants[1].Grant.Ranks) != 1 {
		t.Fatalf("got grants %+v, want two ranks for the nearer node and one for the other", grants)
	}
	c.state(jobs.Staging, -1)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1), wiretest.RA(1, 1))
	c.state(jobs.Staging, -1)
	c.p.Reported(c.now, jobtest.Node(2), wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(2, 1), State: jobs.WorkerReady}}}, nil, 0)
	c.state(jobs.Running, -1)
	// Who is ready last hears of START by the answer, all others by a message.
	told := c.step()
	if len(told) != 2 || told[0].(DoStart).To != jobtest.Node(1) || len(told[0].(DoStart).Start.Ranks) != 2 || !slices.Equal(told[1].(DoAnswer).Ack.Start.Ranks, []jobs.RankAttempt{wiretest.RA(2, 1)}) {
		t.Fatalf("told %+v, want START to node 1 and in the answer to node 2", told)
	}
	// A ready worker whose START was lost asks again.
	if ack := c.report(2, jobs.WorkerReady, 0, wiretest.RA(2, 1)); ack.Start == nil || ack.Start.Size != 3 || len(ack.Start.Hosts) != 2 {
		t.Fatalf("got %+v, want START with the rank table", ack)
	}
	c.report(1, jobs.WorkerEnded, 0, wiretest.RA(0, 1), wiretest.RA(1, 1))
	if ack := c.report(2, jobs.WorkerEnded, 3, wiretest.RA(2, 1)); !ack.Workers[0].Done {
		t.Fatalf("got %+v, want the worker to be done", ack)
	}
	c.state(jobs.Failed, 3)
	if r := c.p.Status().Reason; !strings.Contains(r, "rank 2") {
		t.Errorf("the reason %q does not name the rank", r)
	}
}

func TestShortJobGivesOffersBack(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 4, Max: 4, Search: jobs.Search{Mode: jobs.SearchPaper}})
	c.step()
	c.offer(1, 1)
	c.after(search.KeepOffers)
	effects := c.step() // the timer of the paper is due at the same time: ask again, one hop further
	if len(effects) != 1 || effects[0].(DoFlood).Radius != 2 {
		t.Fatalf("got %+v, want a flood with radius 2", effects)
	}
	c.offer(1, 1)
	c.after(search.KeepOffers)
	if y := only[DoYield](c); len(y) != 1 || y[0].To != jobtest.Node(1) {
		t.Fatalf("got %+v, want the offer to be given back while the job waits", y)
	}
	c.after(time.Second)
	if f := only[DoFlood](c); len(f) != 1 || f[0].Radius != 2 {
		t.Fatalf("got floods %+v: one that reached nobody new is not made larger", f)
	}
}

func TestQueueOfferMakesTheJobAskAgain(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2})
	c.offer(1, 1)
	c.p.Answered(c.now, vicinity.Member{ID: jobtest.Node(2)}, 0, wire.Answer{Job: c.p.Rec.ID, Round: 1, Capacity: 1, Reason: wire.ReasonBusy})
	c.after(time.Second)
	c.after(1900 * time.Millisecond)
	c.step()
	c.p.Answered(c.now, vicinity.Member{ID: jobtest.Node(2)}, 0, wire.Answer{Job: c.p.Rec.ID, Key: 9, Workers: 1, Capacity: 1})
	c.after(150 * time.Millisecond)
	if f := only[DoFlood](c); len(f) == 0 {
		t.Fatal("an offer from a queue did not lead to a flood")
	}
	c.offer(1, 1)
	c.offer(2, 1)
	c.after(search.MaxNearerWait)
	if g := only[DoGrant](c); len(g) != 2 {
		t.Fatalf("got grants %+v", g)
	}
}

func TestRefusedGrantReleasesTheGang(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2})
	c.offer(1, 1)
	c.offer(2, 1)
	c.step()
	c.p.GrantFailed(c.now, jobtest.Node(2), []jobs.RankAttempt{wiretest.RA(1, 1)}, wire.ReasonLate)
	if r := only[DoRelease](c); len(r) != 2 {
		t.Fatalf("got releases %+v, want both nodes released", r)
	}
	c.state(jobs.Pending, -1)
	c.said(1, "given back: "+jobs.Label("n", jobtest.Node(2))+": "+wire.ReasonLate)
	c.said(2, wire.ReasonLate)
	if ack := c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1)); !ack.Workers[0].Drop {
		t.Fatalf("got %+v: a worker of the released gang is not wanted", ack)
	}
	c.after(1500 * time.Millisecond)
	c.offer(1, 1)
	c.offer(3, 1)
	g := only[DoGrant](c)
	if len(g) != 2 || g[0].Grant.Ranks[0].Attempt != 2 {
		t.Fatalf("got grants %+v, want second attempts", g)
	}
}

func TestLostNodeEndsARigidJob(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2})
	c.offer(1, 1)
	c.offer(2, 1)
	c.step()
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(1, 1))
	c.now = c.now.Add(wire.PartLease - time.Second)
	c.report(1, jobs.WorkerRunning, 0, wiretest.RA(0, 1))
	c.after(2 * time.Second)
	c.state(jobs.NodeFail, jobs.CodeZorilla)
	if r := only[DoRelease](c); len(r) != 1 || r[0].To != jobtest.Node(1) {
		t.Fatalf("got releases %+v, want the other node released", r)
	}
}

func TestLostNodeIsReplacedInAMalleableJob(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 1, Max: 3})
	c.offer(1, 1)
	c.offer(2, 1)
	if g := only[DoGrant](c); len(g) != 2 {
		t.Fatalf("got grants %+v, want each offer taken at once", g)
	}
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.state(jobs.Running, -1)
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(1, 1))
	c.p.MemberGone(c.now, jobtest.Node(2))
	c.after(goneGrace)
	if w := c.p.Rec.Wanted(); w != 2 {
		t.Fatalf("%d workers wanted, want the lost one and the one that was never found", w)
	}
	c.said(2, "lost")
	c.report(1, jobs.WorkerEnded, 0, wiretest.RA(0, 1))
	if w := c.p.Rec.Wanted(); w != 1 {
		t.Fatalf("%d workers wanted, want only the lost one: the job has stopped growing", w)
	}
	c.state(jobs.Running, -1)
	c.after(time.Second)
	c.offer(3, 2)
	g := only[DoGrant](c)
	if len(g) != 1 || g[0].Grant.Ranks[0] != wiretest.RA(1, 2) {
		t.Fatalf("got grants %+v, want rank 1 again under its number", g)
	}
	if w := c.p.Status().Workers; w[0].Replaced != nil || w[1].Replaced == nil || w[1].Replaced.From != jobtest.Node(2) {
		t.Errorf("ranks were lost at %+v, %+v", w[0].Replaced, w[1].Replaced)
	}
	if ack := c.report(2, jobs.WorkerEnded, 0, wiretest.RA(1, 1)); !ack.Workers[0].Drop {
		t.Fatalf("got %+v: the lost worker came back, but was superseded", ack)
	}
	c.report(3, jobs.WorkerReady, 0, wiretest.RA(1, 2))
	c.report(3, jobs.WorkerEnded, 0, wiretest.RA(1, 2))
	c.state(jobs.Completed, 0)
}

func TestGiveUpAndCancel(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 1000, Max: 1000, GiveUp: codec.Duration(30 * time.Second)})
	c.offer(1, 2)
	for range 29 {
		c.after(time.Second)
	}
	c.state(jobs.Pending, -1)
	c.after(time.Second)
	c.state(jobs.Failed, jobs.CodeZorilla)
	if r := c.p.Status().Reason; !strings.Contains(r, "gave up after 30s") || !strings.Contains(r, "room for 2") {
		t.Errorf("the reason %q does not say why", r)
	}
	c = newTalk(t, jobs.Spec{Min: 1, Max: 1})
	c.p.Cancel(c.now, "cancelled by a user", false)
	c.state(jobs.Cancelled, jobs.CodeCancelled)
	c.p.Cancel(c.now, "again", true)
	if e := c.p.Explain(c.now); e.Summary != "cancelled by a user" {
		t.Errorf("got %q", e.Summary)
	}
}

func TestExitWaitsForAllOutput(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 1, Max: 1})
	c.offer(1, 1)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	rep := wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(0, 1), State: jobs.WorkerEnded, Stdout: 10, Exit: &work.Exit{Cause: work.Exited}}}}
	c.p.Reported(c.now, jobtest.Node(1), rep, map[jobs.RankAttempt]wire.Written{wiretest.RA(0, 1): {Stdout: 7}}, 0)
	c.state(jobs.Running, -1)
	c.p.Reported(c.now, jobtest.Node(1), rep, map[jobs.RankAttempt]wire.Written{wiretest.RA(0, 1): {Stdout: 10}}, 0)
	c.state(jobs.Completed, 0)
}

func TestWalltimeIsATimeout(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2, Walltime: codec.Duration(time.Minute)})
	c.offer(1, 2)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1), wiretest.RA(1, 1))
	rep := wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{
		{RankAttempt: wiretest.RA(0, 1), State: jobs.WorkerEnded, Exit: &work.Exit{Code: 137, Cause: work.Signalled}},
		{RankAttempt: wiretest.RA(1, 1), State: jobs.WorkerEnded, Exit: &work.Exit{Code: 124, Cause: work.Walltime}}}}
	c.p.Reported(c.now, jobtest.Node(1), rep, map[jobs.RankAttempt]wire.Written{}, 0)
	c.state(jobs.Timeout, jobs.CodeTimeout)
}

// TestStateIsAFunctionOfTheEvents replays what was journalled and compares.
func TestStateIsAFunctionOfTheEvents(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 1, Max: 2})
	c.offer(1, 1)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.offer(2, 1)
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(1, 1))
	c.report(1, jobs.WorkerEnded, 2, wiretest.RA(0, 1))
	c.step()
	again := New(c.p.Rec.ID, c.p.self, rand.New(rand.NewPCG(1, 2)))
	for _, ev := range c.log {
		var back record.Event
		if err := codec.Unmarshal(codec.MustMarshal(ev), &back); err != nil {
			t.Fatal(err)
		}
		if !back.Sound(&again.Rec) {
			t.Fatalf("%+v is not sound", back)
		}
		again.Rec.Apply(back)
	}
	a, b := c.p.Status(), again.Status()
	if a.State != b.State || len(a.Workers) != len(b.Workers) || a.Workers[0].Exit.Code != b.Workers[0].Exit.Code || a.Workers[1].State != b.Workers[1].State || !a.Started.Equal(b.Started) {
		t.Fatalf("replayed:\n%+v\nwas:\n%+v", b, a)
	}
	again.Resume(c.now)
	c.p = again
	c.report(2, jobs.WorkerEnded, 0, wiretest.RA(1, 1))
	c.state(jobs.Failed, 2)
}

func TestGrantWhoseAnswerWasLost(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2})
	c.offer(1, 1)
	c.offer(2, 1)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(1, 1))
	c.p.GrantFailed(c.now, jobtest.Node(2), []jobs.RankAttempt{wiretest.RA(1, 1)}, "")
	if st := c.p.Status(); st.Workers[1].State != jobs.WorkerRunning {
		t.Fatalf("rank 1 is %s: its node has reported since, so that it has the grant", st.Workers[1].State)
	}
}

func TestMalleableJobThatCannotStartHoldsNothing(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 3})
	c.offer(1, 1)
	c.offer(2, 1)
	c.step()
	c.p.GrantFailed(c.now, jobtest.Node(2), []jobs.RankAttempt{wiretest.RA(1, 1)}, wire.ReasonLate)
	if r := only[DoRelease](c); len(r) != 2 {
		t.Fatalf("got releases %+v: two such jobs would wait for each other's slots for ever", r)
	}
	c.state(jobs.Pending, -1)
}

func TestRankThatIsMissingKeepsTheJobRunning(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 1, Max: 2})
	c.offer(1, 1)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.offer(2, 1)
	c.report(1, jobs.WorkerEnded, 0, wiretest.RA(0, 1))
	c.p.GrantFailed(c.now, jobtest.Node(2), []jobs.RankAttempt{wiretest.RA(1, 1)}, wire.ReasonLate)
	c.state(jobs.Running, -1)
	if r := c.p.Status().Reason; !strings.Contains(r, "waiting for 1 worker") {
		t.Errorf("the reason is %q", r)
	}
}

func TestNodeThatCannotStartAWorkerIsAvoided(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 1, Max: 2})
	c.offer(1, 1)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.report(1, jobs.WorkerLost, 0, wiretest.RA(0, 1))
	c.after(2 * time.Second)
	c.offer(1, 1)
	if g := only[DoGrant](c); len(g) != 0 {
		t.Fatalf("granted %+v to the node that could not start the rank just now", g)
	}
}

func TestGivingUpWhileStagingSaysSo(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2, GiveUp: codec.Duration(5 * time.Second)})
	c.offer(1, 2)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.after(5 * time.Second)
	c.state(jobs.Failed, jobs.CodeZorilla)
	if r := c.p.Status().Reason; !strings.Contains(r, "1 of 2 workers are ready") {
		t.Errorf("the reason is %q", r)
	}
}

// All ranks of one START are told one size, whoever hears of it how, though the job
// grows at the same time.
func TestOneStartHasOneSize(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 4})
	c.offer(1, 1)
	c.offer(2, 1)
	c.after(time.Second)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.step()
	far := vicinity.Member{ID: jobtest.Node(3), Name: "n"}
	c.p.Answered(c.now, far, 50*time.Millisecond, wire.Answer{Job: c.p.Rec.ID, Round: len(c.p.Search.Rounds), Key: 9, Workers: 1, Capacity: 1})
	c.now = c.now.Add(time.Second) // it is chosen at the next look
	c.p.Reported(c.now, jobtest.Node(2), wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(1, 1), State: jobs.WorkerReady}}}, nil, 0)
	var sizes []int
	granted := 0
	for _, e := range c.step() {
		switch e := e.(type) {
		case DoStart:
			sizes = append(sizes, e.Start.Size)
		case DoAnswer:
			sizes = append(sizes, e.Ack.Start.Size)
		case DoGrant:
			granted++
		}
	}
	if !slices.Equal(sizes, []int{2, 2}) || granted != 1 {
		t.Errorf("told sizes %v, granted to %d", sizes, granted)
	}
}
