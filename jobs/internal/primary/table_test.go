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
)

// knows reports running ranks of node n whose programs know an epoch, and
// returns the table that comes back.
func (c *talk) knows(n int, epoch int64, ras ...jobs.RankAttempt) *wire.Table {
	rep := wire.Report{Job: c.p.Rec.ID, Epoch: epoch}
	for _, ra := range ras {
		rep.Workers = append(rep.Workers, wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerRunning})
	}
	var ack wire.Ack
	c.p.Reported(c.now, jobtest.Node(n), rep, nil, 0)
	for _, e := range c.step() {
		if a, ok := e.(DoAnswer); ok {
			ack = a.Ack
		}
	}
	return ack.Table
}

// growing is a malleable job with rank 0 at node 1 and then rank 1 at node 2.
func growing(t *testing.T, spec jobs.Spec) *talk {
	t.Helper()
	c := newTalk(t, spec)
	c.offer(1, 1)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.offer(2, 1)
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(1, 1))
	return c
}

// wantTable compares what was told.
func (c *talk) wantTable(got *wire.Table, epoch int64, want ...wire.Host) {
	c.t.Helper()
	same := func(a, b wire.Host) bool { return a.Node == b.Node && slices.Equal(a.Ranks, b.Ranks) }
	if got == nil || got.Epoch != epoch || !slices.EqualFunc(got.Hosts, want, same) {
		c.t.Fatalf("got the table %+v, want epoch %d with %+v", got, epoch, want)
	}
}

func at(n int, ranks ...int) wire.Host { return wire.Host{Node: jobtest.Node(n), Ranks: ranks} }

func TestTableIsToldUntilItIsKnown(t *testing.T) {
	c := growing(t, jobs.Spec{Min: 1, Max: 3})
	c.wantTable(c.knows(1, 1, wiretest.RA(0, 1)), 2, at(1, 0), at(2, 1))
	c.wantTable(c.knows(1, 1, wiretest.RA(0, 1)), 2, at(1, 0), at(2, 1)) // the answer was lost
	if got := c.knows(1, 2, wiretest.RA(0, 1)); got != nil {
		t.Fatalf("told %+v to who knows it", got)
	}
	if got := c.knows(1, 0, wiretest.RA(0, 1)); got != nil {
		t.Fatalf("told %+v to a node that does not ask", got)
	}
	c.p.MemberGone(c.now, jobtest.Node(2))
	c.after(goneGrace)
	c.wantTable(c.knows(1, 2, wiretest.RA(0, 1)), 3, at(1, 0))
	c.after(time.Second)
	c.step()
	c.offer(3, 1)
	c.after(search.MaxNearerWait)
	c.report(3, jobs.WorkerReady, 0, wiretest.RA(1, 2))
	c.after(tableEvery)
	c.wantTable(c.knows(1, 3, wiretest.RA(0, 1)), 4, at(1, 0), at(3, 1))
	if got := c.knows(2, 2, wiretest.RA(1, 1)); got != nil {
		t.Fatalf("told %+v to who was lost", got)
	}
	// The end of a rank is no change, and nobody is told of the end of all.
	c.report(3, jobs.WorkerEnded, 0, wiretest.RA(1, 2))
	if got := c.knows(1, 4, wiretest.RA(0, 1)); got != nil || c.p.Rec.Epoch != 4 {
		t.Fatalf("told %+v, epoch %d", got, c.p.Rec.Epoch)
	}
}

func TestChangesAreToldTogether(t *testing.T) {
	c := growing(t, jobs.Spec{Min: 1, Max: 20})
	c.knows(1, 1, wiretest.RA(0, 1))
	for n := 3; n < 9; n++ {
		c.offer(n, 1)
		c.after(search.MaxNearerWait / 4)
		c.report(n, jobs.WorkerReady, 0, wiretest.RA(n-1, 1))
	}
	sent := c.p.table.sentAt
	if epoch := c.p.Rec.Epoch; epoch < 5 || c.now.After(sent.Add(tableEvery)) {
		t.Fatalf("%v after the first change: epoch %d", c.now.Sub(sent), epoch)
	}
	if got := c.knows(1, 2, wiretest.RA(0, 1)); got != nil {
		t.Fatalf("%v after the first change: told %+v", c.now.Sub(sent), got)
	}
	c.now = sent.Add(tableEvery)
	if got := c.knows(1, 2, wiretest.RA(0, 1)); got == nil || got.Epoch != c.p.Rec.Epoch {
		t.Fatalf("after a second: told %+v, want epoch %d", got, c.p.Rec.Epoch)
	}
	c.now = c.now.Add(-time.Hour) // a clock that is set back delays nothing for long
	c.p.MemberGone(c.now, jobtest.Node(2))
	c.after(goneGrace + wire.PartLease)
	if got := c.knows(1, 2, wiretest.RA(0, 1)); got == nil {
		t.Fatal("told nothing after the clock was set back")
	}
}

// A large job must not drown its origin in tables.
func TestTablesOfLargeJobsAreRare(t *testing.T) {
	for _, hosts := range []int{1, 100, 1000, 10_000, jobs.MaxRanks} {
		pace := tablePace(hosts)
		if rate := float64(hosts) * float64(hosts) * tableLine / pace.Seconds(); rate > tableRate*1.01 || pace < tableEvery {
			t.Errorf("%d hosts: every %v, %.0f bytes a second", hosts, pace, rate)
		}
	}
	if line := len(wire.HostFile([]wire.Host{{Addr: "192.168.100.200", Ranks: make([]int, 64)}})); line > tableLine {
		t.Errorf("a line takes %d bytes", line)
	}
	if tablePace(300) != tableEvery {
		t.Errorf("300 hosts are told every %v", tablePace(300))
	}
}

// A restarted origin goes on with the epoch of before, and a gang that starts
// again has a later one.
func TestEpochsOnlyGrow(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2, Failing: jobs.Failing{Retries: 1}})
	c.offer(1, 1)
	c.offer(2, 1)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(1, 1))
	if c.p.Rec.Epoch != 1 {
		t.Fatalf("the first START has epoch %d", c.p.Rec.Epoch)
	}
	c.report(1, jobs.WorkerEnded, 3, wiretest.RA(0, 1))
	c.report(2, jobs.WorkerEnded, 143, wiretest.RA(1, 1))
	c.after(time.Second)
	c.step()
	c.offer(3, 2)
	c.after(search.MaxNearerWait)
	c.report(3, jobs.WorkerReady, 0, wiretest.RA(0, 2))
	ack := c.report(3, jobs.WorkerReady, 0, wiretest.RA(1, 2))
	if ack = c.report(3, jobs.WorkerReady, 0, wiretest.RA(1, 2)); ack.Start == nil || ack.Start.Epoch != 3 || ack.Start.MasterNode != jobtest.Node(3) {
		t.Fatalf("the second START is %+v", ack.Start)
	}
	c.step()
	again := New(c.p.Rec.ID, c.p.self, rand.New(rand.NewPCG(1, 2)))
	for _, ev := range c.log {
		var back record.Event
		if err := codec.Unmarshal(codec.MustMarshal(ev), &back); err != nil {
			t.Fatal(err)
		}
		again.Rec.Apply(back)
	}
	if again.Rec.Epoch != c.p.Rec.Epoch {
		t.Errorf("after a restart the epoch is %d, was %d", again.Rec.Epoch, c.p.Rec.Epoch)
	}
}

// Nobody is told of an array: its tasks do not know of each other.
func TestArraysHaveNoTable(t *testing.T) {
	spec := arrayOf(4)
	c := running(t, spec)
	c.p.Rec.Epoch = 7
	if got := c.knows(1, 1, wiretest.RA(0, 1)); got != nil {
		t.Fatalf("told %+v", got)
	}
}

func TestHostFile(t *testing.T) {
	hosts := []wire.Host{{Node: jobtest.Node(1), Addr: "10.0.0.1", Ranks: []int{0, 2}}, {Node: jobtest.Node(2), Ranks: []int{1}}, {Node: jobtest.Node(3), Addr: "fe80::1", Ranks: []int{3}}}
	want := "10.0.0.1 slots=2\nfe80::1 slots=1\n"
	if got := wire.HostFile(hosts); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, bad := range []wire.Table{{Epoch: 0, File: want, Hosts: nil}, {Epoch: 1, File: "10.0.0.1 slots=2", Hosts: nil}, {Epoch: 1, File: "host slots=2\n", Hosts: nil}, {Epoch: 1, File: "10.0.0.1 slots=0\n", Hosts: nil}, {Epoch: 1, File: "10.0.0.1\n", Hosts: nil}, {Epoch: 1, File: "\n", Hosts: nil}} {
		if bad.Check() == nil {
			t.Errorf("accepted %+v", bad)
		}
	}
}

func TestSignalOnChangeIsChecked(t *testing.T) {
	for name, ok := range map[string]bool{"": true, "USR1": true, "WINCH": true, "KILL": false, "STOP": false, "10": false, "usr1": false} {
		spec := jobs.Spec{Args: []string{"a"}, Min: 1, Max: 2, Slots: 1, Notices: jobs.Notices{SignalOnChange: name}}
		if err := spec.Validate(); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "want HUP, INT") {
			t.Errorf("%q: %v", name, err)
		}
	}
	copies := jobs.Spec{Args: []string{"a"}, Min: 2, Max: 2, Slots: 1, Replicas: 2, Notices: jobs.Notices{SignalOnChange: "HUP"}}
	if err := copies.Validate(); err == nil || !strings.Contains(err.Error(), "--replicas") {
		t.Errorf("a job with copies: %v", err)
	}
	spec := arrayOf(3)
	spec.Args, spec.Slots, spec.SignalOnChange = []string{"a"}, 1, "HUP"
	if spec.Validate() == nil {
		t.Error("an array with a signal was accepted")
	}
}
