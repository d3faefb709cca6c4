package wire_test

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/golden"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
	"zorilla/node/trust"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// checked is a message that the program checks when it has decoded it.
type checked[T any] interface {
	*T
	Check() error
}

// peerMessage is a message as it travels between nodes over HTTP/2.
func peerMessage[T any, P checked[T]](v T) golden.Message {
	return golden.Message{Bytes: codec.MustMarshal(v), Decode: func(b []byte) (any, error) {
		m := P(new(T))
		if err := codec.Unmarshal(b, m); err != nil {
			return nil, err
		}
		return m, m.Check()
	}}
}

// goldenNode signs for Node's places in the messages below.
func goldenNode(t *testing.T) *trust.Identity {
	id, err := trust.NewIdentity(bytes.NewReader(bytes.Repeat([]byte{7}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// signedMessages are those that travel as single packets.
func signedMessages(t *testing.T) map[string]golden.Message {
	me := goldenNode(t)
	job, to := jobs.ID("k7f3q").At(me.ID()), jobtest.Node(1)
	sign := func(domain string, v any) []byte {
		msg := codec.MustMarshal(v)
		return append(me.Sign(domain, msg), msg...)
	}
	ad := func(b []byte) (any, error) {
		return wire.DecodeAdvertisement(b, func(from vicinity.ID, msg, sig []byte) error {
			return trust.Verify(wire.SignatureDomain, from, msg, sig)
		})
	}
	pack := func(b []byte) (any, error) {
		return wire.DecodePacket(b, func(msg, sig []byte) error { return trust.Verify(wire.PacketDomain, me.ID(), msg, sig) })
	}
	at := []byte{0, 7, 0, 0, 0, 9, 1, 0}
	return map[string]golden.Message{
		"advertisement": {Decode: ad, Bytes: sign(wire.SignatureDomain, wire.Advertisement{Job: job, Addrs: []string{"10.0.0.7:5444"}, Round: 2, Wanted: 40,
			Needs: jobs.Needs{Slots: 2, Memory: 1 << 30, Disk: 1 << 20, GPUs: 1}, Where: "slots >= 2", Priority: -3, Stamp: 0x1234, Near: true, Life: 60_000, Signed: 1_795_341_600_000})},
		"offer": {Decode: pack, Bytes: sign(wire.PacketDomain, wire.Packet{To: to, Answer: &wire.Answer{Job: wiretest.Job, Round: 2, Key: 1 << 40, Workers: 3, Capacity: 8, Hops: 2, Rim: true, Onward: 7, At: at}})},
		"advertisement-kinds": {Decode: ad, Bytes: sign(wire.SignatureDomain, wire.Advertisement{Job: job, Addrs: []string{"10.0.0.7:5444"}, Round: 2, Wanted: 6, Needs: jobs.Needs{Slots: 2}, Where: "version >= 8", Stamp: 0x1234,
			Kinds: []jobs.Kind{{Needs: jobs.Needs{Slots: 2, Memory: 1 << 30, Disk: 1 << 20, GPUs: 1}, Where: "clock >= 2000"}, {Needs: jobs.Needs{Slots: 4}}}, Near: true, Life: 60_000, Signed: 1_795_341_600_000})},
		"offer-kinds": {Decode: pack, Bytes: sign(wire.PacketDomain, wire.Packet{To: to, Answer: &wire.Answer{Job: wiretest.Job, Round: 2, Key: 1 << 40, Workers: 5, Capacity: 8, Hops: 2, Onward: 7, At: at,
			Room: &wire.Room{Slots: 11, Memory: 3 << 30, Disk: 5 << 20, GPUs: 2}, Fits: 3}})},
		"decline":  {Decode: pack, Bytes: sign(wire.PacketDomain, wire.Packet{To: to, Answer: &wire.Answer{Job: wiretest.Job, Round: 2, Capacity: 8, Reason: "no free slots", Free: 90_000, Hops: 1, Onward: 7}})},
		"granting": {Decode: pack, Bytes: sign(wire.PacketDomain, wire.Packet{To: to, Grant: job, Key: 1 << 40, Workers: 3, Signed: 1_795_341_600_000})},
		"recall":   {Decode: pack, Bytes: sign(wire.PacketDomain, wire.Packet{To: to, Recall: job, Signed: 1_795_341_600_000})},
		"yield":    {Decode: pack, Bytes: sign(wire.PacketDomain, wire.Packet{To: to, Yield: job, Forget: true, Signed: 1_795_341_600_000})},
	}
}

// peerMessages are those over HTTP/2.
func peerMessages() map[string]golden.Message {
	ranks := []jobs.RankAttempt{{Rank: 0, Attempt: 1}, {Rank: 3, Attempt: 2}}
	files := jobs.RankOutput{Rank: 3, Attempt: 2, Manifest: transfer.HashOf([]byte("out")), Files: 2, Bytes: 71}
	exit := work.Exit{Code: 3, Cause: work.Exited, Detail: "it said so", Started: jobtest.Start, Ended: jobtest.Start.Add(time.Second), CPU: 0.5, Peak: 1 << 20}
	results := wire.PackResults([]process.TaskResult{{Place: 4, Stdout: 10, Took: time.Second}, {Place: 5, Code: 2, Stderr: 3, Files: 99, Took: time.Millisecond}})
	first := wire.Start{Job: wiretest.Job, Ranks: ranks, Size: 4, Epoch: 2, Master: "10.0.0.1", Hosts: []wire.Host{{Node: jobtest.Node(1), Addr: "10.0.0.1", Ranks: []int{0, 3}}}}
	ack := golden.Message{Bytes: codec.MustMarshal(wire.Ack{Known: true, State: jobs.Running, Reason: "it runs", Start: &first, Table: &wire.Table{Epoch: 2, File: "10.0.0.1 slots=2\n"}, Workers: []wire.WorkerAck{
		{RankAttempt: ranks[0], Stdout: 10, Stderr: 4, AheadOut: 3, AheadErr: 2, Stop: true, Tasks: &wire.WorkerTasksAck{Results: 6, Before: 9, Ranges: []process.TaskRange{{From: 20, Count: 3}}, Last: true}},
		{RankAttempt: ranks[1], Drop: true, Done: true}}}),
		Decode: func(b []byte) (any, error) { var a wire.Ack; return &a, codec.Unmarshal(b, &a) }}
	measured := golden.Message{Bytes: codec.MustMarshal(wire.Measured{RTT: []int64{20_000, 0}}),
		Decode: func(b []byte) (any, error) {
			var m wire.Measured
			err := codec.Unmarshal(b, &m)
			return m.Times(2), err
		}}
	report := peerMessage(wire.Report{Job: wiretest.Job, Addrs: []string{"10.0.0.8:5444"}, Away: 2 * time.Minute, Epoch: 2,
		Output: []jobs.Output{{Rank: 0, Attempt: 1, Stream: work.Stderr, Offset: 7, Data: []byte("text")}},
		Workers: []wire.WorkerReport{
			{RankAttempt: ranks[0], State: jobs.WorkerRunning, Stdout: 10, Stderr: 11, Fetched: 5, Cached: 6, Tasks: &wire.WorkerTasks{From: 4, Ended: 6, Added: 9, Results: results}},
			{RankAttempt: ranks[1], State: jobs.WorkerEnded, Exit: &exit, Output: &files, Warn: []string{"a link was left out"}},
			{RankAttempt: jobs.RankAttempt{Rank: 1, Attempt: 1}, State: jobs.WorkerLost, Declined: true, Reason: "no such user"}}})
	plain := report.Decode
	report.Decode = func(b []byte) (any, error) { // with the results of tasks unpacked
		v, err := plain(b)
		if err != nil {
			return nil, err
		}
		rs, err := wire.UnpackResults(v.(*wire.Report).Workers[0].Tasks.Results)
		return map[string]any{"report": v, "results": rs}, err
	}
	return map[string]golden.Message{
		"grant":        peerMessage(wire.Grant{Job: wiretest.Job, Addrs: []string{"10.0.0.7:5444"}, Key: 1 << 40, Ranks: ranks, Spec: wiretest.GoldenSpec(), Stamp: 0x1234, Holders: []vicinity.ID{jobtest.Node(2)}}),
		"grant-groups": peerMessage(wire.Grant{Job: wiretest.Job, Addrs: []string{"10.0.0.7:5444"}, Key: 1 << 40, Ranks: ranks, Spec: goldenGroups(), Stamp: 0x1234}),
		"start":        peerMessage(first),
		"release":      peerMessage(wire.Release{Job: wiretest.Job, Ranks: ranks, Stop: true}),
		"measure":      peerMessage(wire.Measure{Job: wiretest.Job, Nodes: []vicinity.ID{jobtest.Node(1), jobtest.Node(2)}}),
		"measured":     measured,
		"ack":          ack,
		"report":       report,
	}
}

// checkpointMessages are those over HTTP/2 that tell of checkpoints.
func checkpointMessages() map[string]golden.Message {
	ra := jobs.RankAttempt{Rank: 3, Attempt: 2}
	c := jobs.Checkpoint{Number: 4, Epoch: 300, Dir: "state", Manifest: transfer.HashOf([]byte("state")), Files: 2, Bytes: 71,
		Holders: []vicinity.ID{jobtest.Node(2), jobtest.Node(3)}, Short: "only 1 of 2 nodes that should keep it are there"}
	durable := c
	durable.At = jobtest.Start
	return map[string]golden.Message{
		"keep": peerMessage(wire.Keep{Job: wiretest.Job, Needed: []wire.Needed{{Rank: 0, Oldest: 7}, {Rank: 3, Oldest: 2}},
			New: &wire.Kept{Rank: 3, Number: 4, Manifest: c.Manifest, Bytes: 71, Holders: []vicinity.ID{jobtest.Node(1)}}}),
		"keep-none": peerMessage(wire.Keep{Job: wiretest.Job, All: true}),
		"grant-resume": peerMessage(wire.Grant{Job: wiretest.Job, Addrs: []string{"10.0.0.7:5444"}, Key: 1 << 40, Ranks: []jobs.RankAttempt{{Rank: 0, Attempt: 2}, ra},
			Spec: wiretest.GoldenSpec(), Stamp: 0x1234, Resume: []wire.Resume{{Rank: 0, Last: 5}, {Rank: 3, Last: 4, From: &durable}}}),
		"report-checkpoint": peerMessage(wire.Report{Job: wiretest.Job, Addrs: []string{"10.0.0.8:5444"}, Workers: []wire.WorkerReport{
			{RankAttempt: ra, State: jobs.WorkerRunning, Checkpoint: &wire.CheckpointReport{Made: &c}},
			{RankAttempt: jobs.RankAttempt{Rank: 1, Attempt: 2}, State: jobs.WorkerLost, Declined: true, Reason: "no node has given it", Checkpoint: &wire.CheckpointReport{Missing: 3}}}}),
		"ack-checkpoint": {Bytes: codec.MustMarshal(wire.Ack{Known: true, State: jobs.Running, Workers: []wire.WorkerAck{
			{RankAttempt: ra, Checkpoint: &wire.CheckpointAck{Known: 4, Oldest: 2}}}}),
			Decode: func(b []byte) (any, error) { var a wire.Ack; return &a, codec.Unmarshal(b, &a) }},
	}
}

// noticeMessages are those over HTTP/2 that tell of a signal before the end.
func noticeMessages() map[string]golden.Message {
	ranks := []jobs.RankAttempt{{Rank: 3, Attempt: 2}}
	spec := jobs.Spec{Args: []string{"./prog"}, Min: 1, Max: 4, Slots: 1, Walltime: codec.Duration(time.Hour), Notices: jobs.Notices{Signal: "USR1@90s"}}
	return map[string]golden.Message{
		"grant-notice":   peerMessage(wire.Grant{Job: wiretest.Job, Addrs: []string{"10.0.0.7:5444"}, Key: 1 << 40, Ranks: ranks, Spec: spec, Stamp: 0x1234}),
		"release-notice": peerMessage(wire.Release{Job: wiretest.Job, Ranks: ranks, Stop: true, Notice: true}),
		"ack-notice": {Bytes: codec.MustMarshal(wire.Ack{Known: true, State: jobs.Running, Workers: []wire.WorkerAck{{RankAttempt: ranks[0], Stop: true, Notice: true}}}),
			Decode: func(b []byte) (any, error) { var a wire.Ack; return &a, codec.Unmarshal(b, &a) }},
	}
}

// goldenGroups uses most of what groups and links can say.
func goldenGroups() jobs.Spec {
	return jobs.Spec{Args: []string{"./prog"}, Min: 4, Max: 4, Slots: 1, Topology: groups.Topology{
		Groups: []groups.Group{
			{Name: "sea", Args: []string{"./sea", "-x"}, Env: map[string]string{"K": "V"}, Min: 3, Max: 3, Slots: groups.Range{Min: 2, Max: 64}, Memory: groups.Range{Min: 1 << 30, Max: 1 << 36},
				Disk: groups.Range{Min: 1 << 20, Max: 1 << 40}, GPUs: groups.Range{Min: 1, Max: 4}, Clock: groups.Range{Min: 2000, Max: 3000}, Power: groups.Range{Min: 800, Max: 1200},
				Where: "slots >= 2", Homogeneous: groups.Clock, Clusters: 1, Prefer: codec.Duration(10 * time.Minute), Restart: groups.RestartGroup},
			{Name: "air", Min: 1, Max: 1},
		},
		Links: []groups.Link{{Name: "all", Groups: []string{"sea", "air"}, MinRTT: codec.Duration(time.Millisecond), MaxRTT: codec.Duration(30 * time.Millisecond),
			Bandwidth: groups.Range{Min: 100, Max: 10_000}}},
		Utility: groups.Utility{Satisfaction: 1, Utilisation: 0.1},
	}}
}

// TestGoldenMessages reads what nodes of earlier versions send.
func TestGoldenMessages(t *testing.T) {
	golden.Messages(t, "packets", signedMessages(t))
	peers := peerMessages()
	maps.Copy(peers, checkpointMessages())
	maps.Copy(peers, noticeMessages())
	golden.Messages(t, "peer", peers)
}
