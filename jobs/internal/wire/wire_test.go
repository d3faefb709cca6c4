package wire_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/where"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
)

// TestAdvertisementBytes pins the layout: nodes of different versions must
// agree on it.
func TestAdvertisementBytes(t *testing.T) {
	ad := wiretest.Ad(jobtest.Node(1), "k7f3q", 40, 0x1234)
	ad.Addrs, ad.Memory, ad.Priority = []string{"10.0.0.7:5444"}, 1<<20, -1
	ad.Signed = 1732233728000
	// A map of ten: j, a, r, w, c, m, p, s, l, t.
	const want = "8aa16ad9216b37663371407a6161626161616161616161616161616161616161616161616161" +
		"a16191ad31302e302e302e373a35343434a17201a17728a16301a16dce00100000a170ffa173cd1234a16ccdea60a174cf00000193512d1000"
	if got := hex.EncodeToString(codec.MustMarshal(ad)); got != want {
		t.Fatalf("got %s", got)
	}
	full := wiretest.Ad(jobtest.Node(1), "k7f3q", jobs.MaxRanks, 1<<63)
	full.Slots, full.Memory, full.Disk, full.GPUs, full.Priority = jobs.MaxSlots, 1<<60, 1<<60, jobs.MaxGPUs, -100
	full.Where, full.Near, full.Round, full.Life = strings.Repeat("x", where.MaxLength), true, math.MaxInt, wire.MaxLife.Milliseconds()
	full.Signed = math.MaxInt64
	for range wire.MaxAddrs {
		full.Addrs = append(full.Addrs, "[2001:db8:1111:2222:3333:4444:5555:6666]:65535")
	}
	if n := wire.SignatureLen + len(codec.MustMarshal(full)); n > flood.MaxPayload {
		t.Fatalf("the largest advertisement takes %d bytes: it does not fit into a flood's packet", n)
	}
}

func TestSenselessMessagesAreRefused(t *testing.T) {
	good := wiretest.Ad(jobtest.Node(1), "k7f3q", 4, 1)
	for name, change := range map[string]func(*wire.Advertisement){
		"no job":          func(a *wire.Advertisement) { a.Job = "" },
		"path as a job":   func(a *wire.Advertisement) { a.Job = "../..@zaaba" },
		"short origin":    func(a *wire.Advertisement) { a.Job = jobs.ID(a.Job.Short()) },
		"nobody wanted":   func(a *wire.Advertisement) { a.Wanted = 0 },
		"too many wanted": func(a *wire.Advertisement) { a.Wanted = 1 << 40 },
		"no slots":        func(a *wire.Advertisement) { a.Slots = 0 },
		"negative memory": func(a *wire.Advertisement) { a.Memory = -1 },
		"eternal":         func(a *wire.Advertisement) { a.Life = 1 << 50 },
		"not an address":  func(a *wire.Advertisement) { a.Addrs = []string{"localhost; rm -rf /"} },
		"too many paths": func(a *wire.Advertisement) {
			a.Mounts = strings.Fields("/1:ro /2:ro /3:ro /4:ro /5:ro /6:ro /7:ro /8:ro /9:ro")
		},
		"another network": func(a *wire.Advertisement) { a.Net = "all" },
		"two networks":    func(a *wire.Advertisement) { a.Net, a.Among = jobs.NetHost, true },
		"a network of version 4 in the field of version 3": func(a *wire.Advertisement) { a.Net = jobs.NetJob },
		"a relative path": func(a *wire.Advertisement) { a.Mounts = []string{"../etc:ro"} },
		"no clean path":   func(a *wire.Advertisement) { a.Mounts = []string{"/data/../etc:ro"} },
		"no ending":       func(a *wire.Advertisement) { a.Mounts = []string{"/data"} },
		"too much of both": func(a *wire.Advertisement) {
			a.Mounts, a.Where = []string{"/data:ro"}, strings.Repeat("x", where.MaxLength-9)
		},
		"too many adresses": func(a *wire.Advertisement) { a.Addrs = make([]string, 100) },
	} {
		ad := good
		change(&ad)
		b := append(make([]byte, wire.SignatureLen), codec.MustMarshal(ad)...)
		if _, err := wire.DecodeAdvertisement(b, wiretest.Genuine); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	b := append(make([]byte, wire.SignatureLen), codec.MustMarshal(good)...)
	if _, err := wire.DecodeAdvertisement(b, wiretest.Genuine); err != nil {
		t.Errorf("a good one is refused: %v", err)
	}
}

func FuzzDecodePacket(f *testing.F) {
	signed := func(p wire.Packet) []byte { return append(make([]byte, wire.SignatureLen), codec.MustMarshal(p)...) }
	f.Add(signed(wire.Packet{To: jobtest.Node(1), Answer: &wire.Answer{Job: wiretest.Job, Round: 1, Key: 7, Workers: 2, Capacity: 4, Hops: 2, Rim: true, Onward: 9, At: []byte{1, 2, 3, 4}}}))
	f.Add(signed(wire.Packet{To: jobtest.Node(1), Yield: wiretest.Job, Forget: true}))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := wire.DecodePacket(b, func(_, _ []byte) error { return nil })
		if err != nil {
			return
		}
		again, err := wire.DecodePacket(signed(p), func(_, _ []byte) error { return nil })
		if err != nil || !bytes.Equal(codec.MustMarshal(again), codec.MustMarshal(p)) {
			t.Fatalf("%+v does not survive the way: %v", p, err)
		}
	})
}

// What travels with the longest expression, or as many paths instead, fits into a flood.
func TestAdvertisementWithEverythingFits(t *testing.T) {
	full := wiretest.Ad(jobtest.Node(1), "k7f3q", jobs.MaxRanks, 1<<63)
	full.Slots, full.Memory, full.Disk, full.GPUs, full.Priority = jobs.MaxSlots, 1<<60, 1<<60, jobs.MaxGPUs, -100
	full.Round, full.Life, full.Near, full.Signed = math.MaxInt, wire.MaxLife.Milliseconds(), true, math.MaxInt64
	full.Length, full.Plan = jobs.MaxTime.Milliseconds(), true
	full.Net = jobs.NetNone
	for range wire.MaxAddrs {
		full.Addrs = append(full.Addrs, "[2001:db8:1111:2222:3333:4444:5555:6666]:65535")
	}
	for i := range jobs.MaxMounts {
		full.Mounts = append(full.Mounts, fmt.Sprintf("/%d%s:ro", i, strings.Repeat("x", 20)))
	}
	full.Where = strings.Repeat("x", where.MaxLength-jobs.SizeOfMounts(full.Mounts))
	for what, change := range map[string]func(){"both": func() {}, "no paths": func() {
		full.Where, full.Mounts = strings.Repeat("x", where.MaxLength), nil
	}} {
		change()
		b := append(make([]byte, wire.SignatureLen), codec.MustMarshal(full)...)
		if _, err := wire.DecodeAdvertisement(b, wiretest.Genuine); err != nil || len(b) > flood.MaxPayload {
			t.Errorf("%s: %v; the largest advertisement takes %d bytes of %d", what, err, len(b), flood.MaxPayload)
		}
	}
}

func TestGrantsOfFarNodesMayTakeLonger(t *testing.T) {
	for rtt, want := range map[time.Duration]time.Duration{
		-1: wire.GrantTimeout, 0: wire.GrantTimeout, 100 * time.Millisecond: wire.GrantTimeout + 300*time.Millisecond,
		2 * time.Second: wire.PartLease, math.MaxInt64: wire.PartLease,
	} {
		if d := wire.GrantWithin(rtt); d != want {
			t.Errorf("%v away: %v, want %v", rtt, d, want)
		}
	}
}

// The command of a job at its end is for its origin alone: who could send one to another node
// would have it run by whoever submits the job again there.
func TestGrantWithACommandForAnotherNode(t *testing.T) {
	g := &wire.Grant{Job: wiretest.Job, Key: 1, Ranks: []jobs.RankAttempt{{Attempt: 1}}, Spec: wiretest.GoldenSpec()}
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	if g.Spec.OnEnd = "true"; g.Check() == nil {
		t.Error("accepted")
	}
}

// What a worker used is told to people, and summed up: it is a number, and not less than nothing.
func TestWhatWorkersUsedIsChecked(t *testing.T) {
	for name, e := range map[string]work.Exit{"": {CPU: 1, Peak: 2, Read: 3, Written: 4, Left: &work.Left{Tasks: 1, Name: "x"}}, "time": {CPU: -1}, "no number": {CPU: math.NaN()}, "for ever": {CPU: math.Inf(1)}, "memory": {Peak: -1}, "read": {Read: -1}, "written": {Written: -1}, "left": {Left: &work.Left{}}, "task": {Left: &work.Left{Tasks: 1, Task: -1}}, "name": {Left: &work.Left{Tasks: 1, Name: "a\nb"}}, "long name": {Left: &work.Left{Tasks: 1, Name: strings.Repeat("x", 501)}}} {
		r := wire.Report{Job: wiretest.Job, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(0, 1), State: jobs.WorkerEnded, Exit: &e}}}
		if err := r.Check(); (err == nil) != (name == "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// What is said of spares makes sense: they are in the place of ranks, and there are some.
func TestSparesOfMessagesAreChecked(t *testing.T) {
	grant := *wiretest.Grant(wiretest.Ad(jobtest.Node(1), "k7f3q", 4, 1), 7, 0)
	grant.Spec = jobs.Spec{Args: []string{"prog"}, Min: 1, Max: 4, Slots: 1}
	for spares, good := range map[int]bool{-1: false, 0: false, 1: true, jobs.MaxRanks: true, jobs.MaxRanks + 1: false} {
		if grant.Spares = spares; (grant.Check() == nil) != good {
			t.Errorf("a grant of %d spares: %v", spares, grant.Check())
		}
		rep := wire.Report{Job: wiretest.Job, Spares: &wire.Spares{Key: 7, Workers: spares}}
		if (rep.Check() == nil) != good {
			t.Errorf("a report of %d spares: %v", spares, rep.Check())
		}
	}
	if grant.Spares, grant.Ranks = 1, []jobs.RankAttempt{wiretest.RA(0, 1)}; grant.Check() == nil {
		t.Error("ranks and spares in one grant are taken")
	}
	rep := wire.Report{Job: wiretest.Job, Spares: &wire.Spares{Workers: 1}}
	if rep.Check() == nil {
		t.Error("spares without a key are taken")
	}
	for _, m := range []wire.Release{{Job: wiretest.Job, Spares: true, Ranks: []jobs.RankAttempt{wiretest.RA(0, 1)}}, {Job: wiretest.Job, Spares: true, Stop: true}} {
		if m.Check() == nil {
			t.Errorf("%+v is taken", m)
		}
	}
}
