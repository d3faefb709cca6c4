package primary

import (
	"strings"
	"testing"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

// FuzzPeerMessages gives any bytes to the decoders of all peer messages, and
// what is accepted to a primary and to the functions behind the handlers.
func FuzzPeerMessages(f *testing.F) {
	spec := jobs.Spec{Args: []string{"prog"}, Min: 2, Max: 2, Slots: 1}
	f.Add(codec.MustMarshal(wire.Grant{Job: wiretest.Job, Key: 1, Ranks: []jobs.RankAttempt{{Rank: 0, Attempt: 1}}, Spec: spec}))
	f.Add(codec.MustMarshal(wire.Start{Job: wiretest.Job, Ranks: []jobs.RankAttempt{{Rank: 0, Attempt: 1}}, Size: 2, Hosts: []wire.Host{{Node: jobtest.Node(1), Addr: "10.0.0.1", Ranks: []int{0, 1}}}}))
	f.Add(codec.MustMarshal(wire.Measure{Job: wiretest.Job, Nodes: []vicinity.ID{jobtest.Node(1)}}))
	f.Add(codec.MustMarshal(wire.Measured{RTT: []int64{20_000, 0}}))
	f.Add(codec.MustMarshal(wire.Report{Job: wiretest.Job, Addrs: []string{"10.0.0.1:5444"}, Workers: []wire.WorkerReport{{RankAttempt: jobs.RankAttempt{Rank: 0, Attempt: 1}, State: jobs.WorkerEnded, Exit: &work.Exit{Code: 3}}}}))
	f.Add(codec.MustMarshal(wire.Resize{Job: wiretest.Job, By: wiretest.RA(0, 1), Resize: jobs.Resize{Workers: 2, Release: []int{1}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var z wire.Resize
		if codec.Unmarshal(b, &z) == nil && z.Check() == nil {
			c := crowd(t, 1, 4, 2)
			if size, err := c.p.Resize(c.now, jobtest.Node(1), &z); err == nil && (size.Wanted < 1 || size.Wanted > 4 || size.Have < 1) {
				t.Fatalf("%+v makes %+v", z, size)
			}
		}
		var g wire.Grant
		if codec.Unmarshal(b, &g) == nil && g.Check() == nil && !g.Job.Valid() {
			t.Fatal("a grant for no job")
		}
		var s wire.Start
		if codec.Unmarshal(b, &s) == nil && s.Check() == nil {
			wire.MasterOf(s)
			if err := (&wire.Table{Epoch: 1, File: wire.HostFile(s.Hosts)}).Check(); err != nil {
				t.Fatalf("the host file of %+v: %v", s.Hosts, err)
			}
		}
		if again := (&wire.Table{Epoch: 1, File: string(b)}); again.Check() == nil && strings.Count(again.File, "\n") != strings.Count(again.File, " slots=") {
			t.Fatalf("a host file with other lines: %q", again.File)
		}
		var r wire.Release
		if codec.Unmarshal(b, &r) == nil && r.Check() == nil && !r.Job.Valid() {
			t.Fatal("a release of no job")
		}
		var m wire.Measure
		if codec.Unmarshal(b, &m) == nil && m.Check() == nil && (!m.Job.Valid() || len(m.Nodes) > wire.MaxMeasured) {
			t.Fatal("a measurement for no job, or of too many nodes")
		}
		var d wire.Measured
		if codec.Unmarshal(b, &d) == nil {
			for _, rtt := range d.Times(len(d.RTT)) {
				if rtt < 0 || rtt > jobs.MaxApart {
					t.Fatalf("a round trip of %v", rtt)
				}
			}
		}
		var rep wire.Report
		if codec.Unmarshal(b, &rep) != nil || rep.Check() != nil {
			return
		}
		c := newTalk(t, spec)
		c.offer(1, 2)
		c.step()
		c.p.Reported(c.now, jobtest.Node(1), rep, nil, 0)
		c.p.Status()
	})
}

// FuzzEvents replays any bytes as a journal's entry.
func FuzzEvents(f *testing.F) {
	f.Add(codec.MustMarshal(record.Event{Kind: record.Granted, Node: jobtest.Node(1), Ranks: []jobs.RankAttempt{{Rank: 0, Attempt: 1}}}))
	f.Add(codec.MustMarshal(record.Event{Kind: record.Submitted, Spec: &jobs.Spec{Args: []string{"a"}, Min: 1, Max: 4, Slots: 1}}))
	f.Add(codec.MustMarshal(record.Event{Kind: record.Moved, Node: jobtest.Node(2), Ranks: []jobs.RankAttempt{{Rank: 0, Attempt: 1}}}))
	f.Add(codec.MustMarshal(record.Event{Kind: record.Resized, Sizing: record.Sizing{Size: 1}, Ranks: []jobs.RankAttempt{{Rank: 1, Attempt: 1}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var ev record.Event
		if codec.Unmarshal(b, &ev) != nil {
			return
		}
		c := newTalk(t, jobs.Spec{Min: 1, Max: 2})
		if ev.Sound(&c.p.Rec) && len(c.p.Rec.Ranks) < 100 {
			c.p.Rec.Apply(ev)
			c.p.Status()
			c.p.Tick(c.now)
		}
	})
}
