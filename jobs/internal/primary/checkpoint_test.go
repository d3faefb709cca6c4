package primary

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// made has node n report that nodes keep a checkpoint of a rank, and returns the answer and what nodes hear.
func (c *talk) made(n int, rank jobs.RankAttempt, number int, holders ...int) (ack *wire.CheckpointAck, told []string) {
	c.t.Helper()
	m := &jobs.Checkpoint{Number: number, Epoch: int64(number), Dir: "state", Manifest: transfer.HashOf([]byte{byte(number)}), Files: 1}
	for _, h := range holders {
		m.Holders = append(m.Holders, jobtest.Node(h))
	}
	return c.saved(n, wire.WorkerReport{RankAttempt: rank, State: jobs.WorkerRunning, Checkpoint: &wire.CheckpointReport{Made: m}})
}

func (c *talk) saved(n int, w wire.WorkerReport) (ack *wire.CheckpointAck, told []string) {
	c.t.Helper()
	rep := wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{w}}
	if err := rep.Check(); err != nil {
		c.t.Fatal(err)
	}
	c.p.Reported(c.now, jobtest.Node(n), rep, nil, 0)
	for _, e := range c.step() {
		switch e := e.(type) {
		case DoAnswer:
			ack = e.Ack.Workers[0].Checkpoint
		case DoKeep:
			told = append(told, heard(e))
		}
	}
	return ack, told
}

func heard(e DoKeep) string {
	text := ""
	for n := range 20 {
		if jobtest.Node(n) == e.To {
			text = fmt.Sprint(n, ": ", e.Keep.Needed)
		}
	}
	if e.Keep.All {
		text += " and nothing else"
	}
	return text
}

// heardAfter lists what nodes hear after a time in which all participants speak.
func (c *talk) heardAfter(d time.Duration) (told []string) {
	end := c.now.Add(d)
	for c.now.Before(end) {
		for id := range c.p.Parts {
			c.p.Heard(c.now, id)
		}
		c.after(min(time.Second, end.Sub(c.now)))
	}
	for _, e := range only[DoKeep](c) {
		told = append(told, heard(e))
	}
	return told
}

// saving is a malleable job with ranks at nodes 1 and 2.
func saving(t *testing.T) *talk {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 3})
	c.step()
	c.offer(1, 1)
	c.offer(2, 1)
	c.step()
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(1, 1))
	c.report(1, jobs.WorkerRunning, 0, wiretest.RA(0, 1))
	c.report(2, jobs.WorkerRunning, 0, wiretest.RA(1, 1))
	c.state(jobs.Running, -1)
	return c
}

// Nodes let go of what is known here and not needed; what is not known here may be the newest by the time that they hear.
func TestKeepersHearWhatIsNeeded(t *testing.T) {
	c := saving(t)
	want := func(when string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: nodes hear %q, want %q", when, got, want)
		}
	}
	ack, told := c.made(1, wiretest.RA(0, 1), 4, 5, 6, 1)
	if want("the first", told); ack == nil || ack.Known != 4 || ack.Oldest != 4 {
		t.Errorf("its worker hears %+v", ack)
	}
	ack, told = c.made(1, wiretest.RA(0, 1), 5, 6, 7, 1)
	if want("the next, at another node", told, "5: [{0 6}]"); ack == nil || ack.Known != 5 || ack.Oldest != 5 {
		t.Errorf("its worker hears %+v", ack)
	}
	ack, told = c.made(1, wiretest.RA(0, 1), 4, 5, 6, 1)
	if want("an old one", told); ack == nil || ack.Known != 5 {
		t.Errorf("its worker hears %+v", ack)
	}
	if ack, told = c.made(2, wiretest.RA(0, 1), 6, 5, 6, 1); ack != nil || told != nil {
		t.Errorf("of a node that does not have the rank: its worker hears %+v, nodes %q", ack, told)
	}
	_, told = c.made(2, wiretest.RA(1, 1), 1, 8, 2)
	want("another rank", told)
	want("now and then", c.heardAfter(wire.RenewKeep), "1: [{0 5} {1 2}]", "2: [{0 6} {1 1}]", "5: [{0 6} {1 2}]", "6: [{0 5} {1 2}]", "7: [{0 5} {1 2}]", "8: [{0 6} {1 1}]")
	want("again", c.heardAfter(wire.RenewKeep), "1: [{0 5} {1 2}]", "2: [{0 6} {1 1}]", "6: [{0 5} {1 2}]", "7: [{0 5} {1 2}]", "8: [{0 6} {1 1}]")
	c.p.Cancel(c.now, "cancelled by a user", true)
	told = nil
	for range 60 {
		told = append(told, c.heardAfter(time.Second)...)
	}
	if len(told) != 5 || told[0] != "1: [] and nothing else" {
		t.Errorf("when the job has ended nodes hear %q", told)
	}
}

// A checkpoint that no node gives is not needed any more: the rank begins with an older one, or anew, at whatever node.
func TestACheckpointThatIsGone(t *testing.T) {
	c := saving(t)
	c.made(1, wiretest.RA(0, 1), 4, 5, 1)
	c.made(1, wiretest.RA(0, 1), 5, 1) // only its own node has it
	c.p.Reported(c.now, jobtest.Node(1), wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(0, 1), State: jobs.WorkerLost, Reason: "its machine failed"}}}, nil, 0)
	for attempt, from := range []int{2: 5, 3: 4, 4: 0} {
		if attempt < 2 {
			continue
		}
		c.step()
		c.after(time.Second)
		c.offerOf(3, 1, uint64(100+attempt))
		grants := only[DoGrant](c)
		if len(grants) != 1 || len(grants[0].Grant.Resume) != 1 {
			t.Fatalf("attempt %d: granted %+v", attempt, grants)
		}
		if err := grants[0].Grant.Check(); err != nil {
			t.Error(err)
		}
		r, number := grants[0].Grant.Resume[0], 0
		if r.From != nil {
			number = r.From.Number
		}
		if r.Last != 5 || number != from {
			t.Errorf("attempt %d begins with %d of %d, want %d", attempt, number, r.Last, from)
		}
		c.saved(3, wire.WorkerReport{RankAttempt: wiretest.RA(0, attempt), State: jobs.WorkerLost, Declined: true, Reason: "it is gone",
			Checkpoint: &wire.CheckpointReport{Missing: max(1, from)}})
	}
	gone := slices.DeleteFunc(c.p.Status().Warnings, func(text string) bool { return !strings.Contains(text, "none of the nodes") })
	if len(gone) != 2 {
		t.Errorf("the warnings are %q, want one for each that is gone", gone)
	}
}

// Nothing begins anew of a job that is about to end.
func TestACheckpointThatIsGoneOfAJobThatEnds(t *testing.T) {
	c := saving(t)
	c.made(1, wiretest.RA(0, 1), 1, 5, 1)
	c.report(1, jobs.WorkerLost, 0, wiretest.RA(0, 1))
	c.after(2 * time.Second)
	c.offerAgain(3, 1)
	if g := only[DoGrant](c); len(g) != 1 || len(g[0].Grant.Resume) != 1 || g[0].Grant.Resume[0].From == nil {
		t.Fatalf("granted %+v", g)
	}
	c.p.Cancel(c.now, "cancelled by a user", false)
	c.step()
	before := len(c.log)
	c.saved(3, wire.WorkerReport{RankAttempt: wiretest.RA(0, 2), State: jobs.WorkerLost, Declined: true, Reason: "it is gone", Checkpoint: &wire.CheckpointReport{Missing: 1}})
	if slices.ContainsFunc(c.log[before:], func(ev record.Event) bool { return ev.Kind == record.Declined }) {
		t.Errorf("it starts again: %+v", c.log[before:])
	}
	if c.p.Rec.State.Final() {
		t.Errorf("it is %s, and a rank runs", c.p.Rec.State)
	}
}

// The nodes that a record has hear again what is needed when the origin was started again.
func TestKeepersHearFromAnOriginThatIsStartedAgain(t *testing.T) {
	c := saving(t)
	c.made(1, wiretest.RA(0, 1), 4, 5, 1)
	again := &talk{t: t, now: c.now, p: New(c.p.Rec.ID, vicinity.Member{ID: jobtest.Node(0)}, jobtest.Rand())}
	for _, ev := range c.log {
		again.p.Rec.Apply(ev)
	}
	again.p.Resume(again.now)
	if got := again.heardAfter(time.Second); !slices.Equal(got, []string{"1: [{0 4}]", "5: [{0 4}]"}) {
		t.Errorf("nodes hear %q", got)
	}
}

// The journal has the checkpoints of a rank behind all else, and the newest alone: what an attempt began with is told with its grant.
func TestAnOriginThatIsStartedAgainKnowsWhatRanksBeganWith(t *testing.T) {
	c := saving(t)
	c.made(1, wiretest.RA(0, 1), 4, 5, 1)
	c.report(1, jobs.WorkerLost, 0, wiretest.RA(0, 1))
	c.after(2 * time.Second)
	c.offerAgain(3, 1)
	c.step()
	c.report(3, jobs.WorkerReady, 0, wiretest.RA(0, 2))
	c.report(3, jobs.WorkerRunning, 0, wiretest.RA(0, 2))
	c.made(3, wiretest.RA(0, 2), 5, 6, 3)
	var again record.Record
	saved := func(ev record.Event) bool { return ev.Kind == record.Checkpointed }
	for _, ev := range slices.DeleteFunc(slices.Clone(c.log), saved) {
		again.Apply(ev)
	}
	for _, ev := range c.log {
		if saved(ev) {
			again.Apply(ev)
		}
	}
	for rank := range c.p.Rec.Ranks {
		live, replayed := c.p.Rec.Ranks[rank].Resumed, again.Ranks[rank].Resumed
		if want := []int{4, 0, 0}[rank]; live != want || replayed != want {
			t.Errorf("rank %d began with %d, and with %d as the journal tells, want %d", rank, live, replayed, want)
		}
	}
	if k := &again.Ranks[0]; k.Last != 5 || k.Attempt != 2 {
		t.Errorf("attempt %d made %d", k.Attempt, k.Last)
	}
}

// Those that keep a checkpoint are named as nodes are elsewhere: members, the origin itself, and the rank's own node although it is gone.
func TestKeepersHaveNames(t *testing.T) {
	c := saving(t)
	c.p.self.Name = "origin"
	c.made(1, wiretest.RA(0, 1), 4, 5, 6, 0, 1)
	c.p.Member = func(id vicinity.ID) (m vicinity.Member, ok bool) {
		if ok = id == jobtest.Node(5); ok {
			m = vicinity.Member{ID: id, Name: "lima"}
		}
		return m, ok
	}
	var want []string
	for i, name := range []string{"lima", "", "origin", "n"} {
		want = append(want, jobs.Label(name, jobtest.Node([]int{5, 6, 0, 1}[i])))
	}
	st := c.p.Status()
	if got := st.Workers[0].Keepers; !slices.Equal(got, want) {
		t.Errorf("it is kept by %q, want %q", got, want)
	}
	if got := st.Workers[1].Keepers; got != nil {
		t.Errorf("what the other rank has not made is kept by %q", got)
	}
}

// The origin informs nodes that keep checkpoints for an earlier node of a rank: the present one may not have them dropped.
func TestKeepersForAnEarlierNodeHear(t *testing.T) {
	c := saving(t)
	c.made(1, wiretest.RA(0, 1), 1, 5, 6, 9)
	if _, told := c.made(1, wiretest.RA(0, 1), 2, 5, 6, 1); !slices.Equal(told, []string{"5: [{0 2}]", "6: [{0 2}]", "9: [{0 3}]"}) {
		t.Errorf("nodes hear %q", told)
	}
	if _, told := c.made(1, wiretest.RA(0, 1), 3, 5, 6, 1); told != nil {
		t.Errorf("of the same node: nodes hear %q", told)
	}
}
