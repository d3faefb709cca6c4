package jobs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/golden"
	"zorilla/jobs/process"
	"zorilla/node/trust"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// checked is a message that the program checks when it has decoded it.
type checked[T any] interface {
	*T
	check() error
}

// peerMessage is a message as it travels between nodes over HTTP/2.
func peerMessage[T any, P checked[T]](v T) golden.Message {
	return golden.Message{Bytes: codec.MustMarshal(v), Decode: func(b []byte) (any, error) {
		m := P(new(T))
		if err := codec.Unmarshal(b, m); err != nil {
			return nil, err
		}
		return m, m.check()
	}}
}

// goldenSpec uses most of what a job can ask for.
func goldenSpec() Spec {
	kill := false
	return Spec{Key: "once", Name: "golden", Args: []string{"./prog", "{}"}, Env: map[string]string{"K": "V"}, Inputs: transfer.HashOf([]byte("in")), Outputs: []string{"out-*"},
		Min: 2, Max: 4, Slots: 2, Disk: 1 << 30, GPUs: 1, Where: "slots >= 2", Memory: 1 << 29, Walltime: codec.Duration(time.Hour), GiveUp: codec.Duration(time.Minute), Priority: -3,
		Strategy: "compact", MaxRTT: codec.Duration(30 * time.Millisecond), Search: Search{Mode: SearchPaper, Radius: 2, Wait: codec.Duration(time.Second), Factor: 1.5},
		After: []Dependency{{Kind: AfterOK, Job: testJob}}, Retries: 2, KillOnBadExit: &kill, MaxFails: 1, SignalOnChange: "USR1"}
}

// goldenNode signs for testNode's places in the messages below.
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
	job, to := ID("k7f3q").At(me.ID()), testNode(1)
	sign := func(domain string, v any) []byte {
		msg := codec.MustMarshal(v)
		return append(me.Sign(domain, msg), msg...)
	}
	ad := func(b []byte) (any, error) {
		return decodeAdvertisement(b, func(from vicinity.ID, msg, sig []byte) error { return trust.Verify(SignatureDomain, from, msg, sig) })
	}
	pack := func(b []byte) (any, error) {
		return decodePacket(b, func(msg, sig []byte) error { return trust.Verify(PacketDomain, me.ID(), msg, sig) })
	}
	at := []byte{0, 7, 0, 0, 0, 9, 1, 0}
	return map[string]golden.Message{
		"advertisement": {Decode: ad, Bytes: sign(SignatureDomain, Advertisement{Job: job, Addrs: []string{"10.0.0.7:5444"}, Round: 2, Wanted: 40, Slots: 2, Memory: 1 << 30,
			Disk: 1 << 20, GPUs: 1, Where: "slots >= 2", Priority: -3, Stamp: 0x1234, Near: true, Life: 60_000, Signed: 1_795_341_600_000})},
		"offer":   {Decode: pack, Bytes: sign(PacketDomain, packet{To: to, Answer: &Answer{Job: testJob, Round: 2, Key: 1 << 40, Workers: 3, Capacity: 8, Hops: 2, Rim: true, Onward: 7, At: at}})},
		"decline": {Decode: pack, Bytes: sign(PacketDomain, packet{To: to, Answer: &Answer{Job: testJob, Round: 2, Capacity: 8, Reason: "no free slots", Free: 90_000, Hops: 1, Onward: 7}})},
		"yield":   {Decode: pack, Bytes: sign(PacketDomain, packet{To: to, Yield: job, Forget: true, Signed: 1_795_341_600_000})},
	}
}

// peerMessages are those over HTTP/2.
func peerMessages() map[string]golden.Message {
	ranks := []RankAttempt{{0, 1}, {3, 2}}
	files := RankOutput{Rank: 3, Attempt: 2, Manifest: transfer.HashOf([]byte("out")), Files: 2, Bytes: 71}
	exit := process.Exit{Code: 3, Cause: process.Exited, Detail: "it said so", Started: start, Ended: start.Add(time.Second), CPU: 0.5, Peak: 1 << 20}
	results := packResults([]process.TaskResult{{Place: 4, Stdout: 10, Took: time.Second}, {Place: 5, Code: 2, Stderr: 3, Files: 99, Took: time.Millisecond}})
	first := Start{Job: testJob, Ranks: ranks, Size: 4, Epoch: 2, Master: "10.0.0.1", Hosts: []Host{{Node: testNode(1), Addr: "10.0.0.1", Ranks: []int{0, 3}}}}
	ack := golden.Message{Bytes: codec.MustMarshal(Ack{Known: true, State: Running, Reason: "it runs", Start: &first, Table: &Table{Epoch: 2, File: "10.0.0.1 slots=2\n"}, Workers: []WorkerAck{
		{RankAttempt: ranks[0], Stdout: 10, Stderr: 4, AheadOut: 3, AheadErr: 2, Stop: true, Tasks: &WorkerTasksAck{Results: 6, Before: 9, Ranges: []process.TaskRange{{From: 20, Count: 3}}, Last: true}},
		{RankAttempt: ranks[1], Drop: true, Done: true}}}),
		Decode: func(b []byte) (any, error) { var a Ack; return &a, codec.Unmarshal(b, &a) }}
	measured := golden.Message{Bytes: codec.MustMarshal(Measured{RTT: []int64{20_000, 0}}),
		Decode: func(b []byte) (any, error) { var m Measured; err := codec.Unmarshal(b, &m); return m.times(2), err }}
	report := peerMessage(Report{Job: testJob, Addrs: []string{"10.0.0.8:5444"}, Away: 2 * time.Minute, Epoch: 2,
		Output: []Output{{Rank: 0, Attempt: 1, Stream: process.Stderr, Offset: 7, Data: []byte("text")}},
		Workers: []WorkerReport{
			{RankAttempt: ranks[0], State: WorkerRunning, Stdout: 10, Stderr: 11, Fetched: 5, Cached: 6, Tasks: &WorkerTasks{From: 4, Ended: 6, Added: 9, Results: results}},
			{RankAttempt: ranks[1], State: WorkerEnded, Exit: &exit, Output: &files, Warn: []string{"a link was left out"}},
			{RankAttempt: RankAttempt{1, 1}, State: WorkerLost, Declined: true, Reason: "no such user"}}})
	plain := report.Decode
	report.Decode = func(b []byte) (any, error) { // with the results of tasks unpacked
		v, err := plain(b)
		if err != nil {
			return nil, err
		}
		rs, err := unpackResults(v.(*Report).Workers[0].Tasks.Results)
		return map[string]any{"report": v, "results": rs}, err
	}
	return map[string]golden.Message{
		"grant":    peerMessage(Grant{Job: testJob, Addrs: []string{"10.0.0.7:5444"}, Key: 1 << 40, Ranks: ranks, Spec: goldenSpec(), Stamp: 0x1234, Holders: []vicinity.ID{testNode(2)}}),
		"start":    peerMessage(first),
		"release":  peerMessage(Release{Job: testJob, Ranks: ranks, Stop: true}),
		"measure":  peerMessage(Measure{Job: testJob, Nodes: []vicinity.ID{testNode(1), testNode(2)}}),
		"measured": measured,
		"ack":      ack,
		"report":   report,
	}
}

// TestGoldenMessages reads what nodes of earlier versions send.
func TestGoldenMessages(t *testing.T) {
	golden.Messages(t, "packets", signedMessages(t))
	golden.Messages(t, "peer", peerMessages())
}

// TestGoldenClaims reads what earlier versions wrote into the directories of their
// workers: of one that runs, one that is prepared and one that did not begin.
func TestGoldenClaims(t *testing.T) {
	claim := claimRecord{Version: claimVersion, Job: testJob, Addrs: []string{"10.0.0.7:5444"}, RankAttempt: RankAttempt{3, 2}, Spec: goldenSpec(), GPUs: []int{1},
		Stamp: 0x1234, Since: start, At: start.Add(time.Minute)}
	runs, lost := claim, claim
	runs.Start = &Start{Job: testJob, Ranks: []RankAttempt{{3, 2}}, Size: 4, Epoch: 2, Master: "10.0.0.1", Hosts: []Host{{Node: testNode(1), Addr: "10.0.0.1", Ranks: []int{0, 3}}}}
	lost.Lost, lost.GPUs = "no such user", nil
	decode := func(b []byte) (any, error) {
		root := filepath.Join(t.TempDir(), rootName(testJob, RankAttempt{3, 2}))
		if err := os.Mkdir(root, 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(root, claimFile), b, 0o600); err != nil {
			return nil, err
		}
		return loadClaim(root)
	}
	messages := map[string]golden.Message{}
	for name, c := range map[string]claimRecord{"runs": runs, "prepared": claim, "lost": lost} {
		messages[name] = golden.Message{Bytes: codec.Seal(codec.MustMarshal(c)), Decode: decode}
	}
	golden.Messages(t, "claims", messages)
}
