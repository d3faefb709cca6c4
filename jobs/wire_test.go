package jobs

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

func genuine(vicinity.ID, []byte, []byte) error { return nil }

// TestAdvertisementBytes pins the layout: nodes of different versions must
// agree on it.
func TestAdvertisementBytes(t *testing.T) {
	ad := testAd(testNode(1), "k7f3q", 40, 0x1234)
	ad.Addrs, ad.Memory, ad.Priority = []string{"10.0.0.7:5444"}, 1<<20, -1
	ad.Signed = 1732233728000
	// A map of ten: j, a, r, w, c, m, p, s, l, t.
	const want = "8aa16ad9216b37663371407a6161626161616161616161616161616161616161616161616161" +
		"a16191ad31302e302e302e373a35343434a17201a17728a16301a16dce00100000a170ffa173cd1234a16ccdea60a174cf00000193512d1000"
	if got := hex.EncodeToString(codec.MustMarshal(ad)); got != want {
		t.Fatalf("got %s", got)
	}
	full := testAd(testNode(1), "k7f3q", MaxRanks, 1<<63)
	full.Slots, full.Memory, full.Disk, full.GPUs, full.Priority = MaxSlots, 1<<60, 1<<60, MaxGPUs, -100
	full.Where, full.Near, full.Round, full.Life = strings.Repeat("x", MaxWhere), true, math.MaxInt, maxLife.Milliseconds()
	full.Signed = math.MaxInt64
	for range maxAddrs {
		full.Addrs = append(full.Addrs, "[2001:db8:1111:2222:3333:4444:5555:6666]:65535")
	}
	if n := signatureLen + len(codec.MustMarshal(full)); n > flood.MaxPayload {
		t.Fatalf("the largest advertisement takes %d bytes: it does not fit into a flood's packet", n)
	}
}

func TestSenselessMessagesAreRefused(t *testing.T) {
	good := testAd(testNode(1), "k7f3q", 4, 1)
	for name, change := range map[string]func(*Advertisement){
		"no job":            func(a *Advertisement) { a.Job = "" },
		"path as a job":     func(a *Advertisement) { a.Job = "../..@zaaba" },
		"short origin":      func(a *Advertisement) { a.Job = ID(a.Job.Short()) },
		"nobody wanted":     func(a *Advertisement) { a.Wanted = 0 },
		"too many wanted":   func(a *Advertisement) { a.Wanted = 1 << 40 },
		"no slots":          func(a *Advertisement) { a.Slots = 0 },
		"negative memory":   func(a *Advertisement) { a.Memory = -1 },
		"eternal":           func(a *Advertisement) { a.Life = 1 << 50 },
		"not an address":    func(a *Advertisement) { a.Addrs = []string{"localhost; rm -rf /"} },
		"too many adresses": func(a *Advertisement) { a.Addrs = make([]string, 100) },
	} {
		ad := good
		change(&ad)
		b := append(make([]byte, signatureLen), codec.MustMarshal(ad)...)
		if _, err := decodeAdvertisement(b, genuine); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	b := append(make([]byte, signatureLen), codec.MustMarshal(good)...)
	if _, err := decodeAdvertisement(b, genuine); err != nil {
		t.Errorf("a good one is refused: %v", err)
	}
}

func FuzzDecodeAdvertisement(f *testing.F) {
	f.Add(append(make([]byte, signatureLen), codec.MustMarshal(testAd(testNode(1), "k7f3q", 4, 1))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		ad, err := decodeAdvertisement(b, genuine)
		if err != nil {
			return
		}
		c := newClaims(vicinity.Member{ID: testNode(0), Slots: 4, Memory: 1 << 30}, testRand())
		if a := c.advertised(start, ad); a.check() != nil {
			t.Fatalf("the answer %+v is not sound", a)
		}
	})
}

func FuzzDecodePacket(f *testing.F) {
	signed := func(p packet) []byte { return append(make([]byte, signatureLen), codec.MustMarshal(p)...) }
	f.Add(signed(packet{To: testNode(1), Answer: &Answer{Job: testJob, Round: 1, Key: 7, Workers: 2, Capacity: 4, Hops: 2, Rim: true, Onward: 9, At: []byte{1, 2, 3, 4}}}))
	f.Add(signed(packet{To: testNode(1), Yield: testJob, Forget: true}))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodePacket(b, func(_, _ []byte) error { return nil })
		if err != nil {
			return
		}
		again, err := decodePacket(signed(p), func(_, _ []byte) error { return nil })
		if err != nil || !bytes.Equal(codec.MustMarshal(again), codec.MustMarshal(p)) {
			t.Fatalf("%+v does not survive the way: %v", p, err)
		}
	})
}

// FuzzPeerMessages gives any bytes to the decoders of all peer messages, and
// what is accepted to a primary and to the functions behind the handlers.
func FuzzPeerMessages(f *testing.F) {
	spec := Spec{Args: []string{"prog"}, Min: 2, Max: 2, Slots: 1}
	f.Add(codec.MustMarshal(Grant{Job: testJob, Key: 1, Ranks: []RankAttempt{{0, 1}}, Spec: spec}))
	f.Add(codec.MustMarshal(Start{Job: testJob, Ranks: []RankAttempt{{0, 1}}, Size: 2, Hosts: []Host{{Node: testNode(1), Addr: "10.0.0.1", Ranks: []int{0, 1}}}}))
	f.Add(codec.MustMarshal(Measure{Job: testJob, Nodes: []vicinity.ID{testNode(1)}}))
	f.Add(codec.MustMarshal(Measured{RTT: []int64{20_000, 0}}))
	f.Add(codec.MustMarshal(Report{Job: testJob, Addrs: []string{"10.0.0.1:5444"}, Workers: []WorkerReport{{RankAttempt: RankAttempt{0, 1}, State: WorkerEnded, Exit: &process.Exit{Code: 3}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var g Grant
		if codec.Unmarshal(b, &g) == nil && g.check() == nil && !g.Job.Valid() {
			t.Fatal("a grant for no job")
		}
		var s Start
		if codec.Unmarshal(b, &s) == nil && s.check() == nil {
			masterOf(s)
			if err := (&Table{Epoch: 1, File: hostFile(s.Hosts)}).check(); err != nil {
				t.Fatalf("the host file of %+v: %v", s.Hosts, err)
			}
		}
		if again := (&Table{Epoch: 1, File: string(b)}); again.check() == nil && strings.Count(again.File, "\n") != strings.Count(again.File, " slots=") {
			t.Fatalf("a host file with other lines: %q", again.File)
		}
		var r Release
		if codec.Unmarshal(b, &r) == nil && r.check() == nil && !r.Job.Valid() {
			t.Fatal("a release of no job")
		}
		var m Measure
		if codec.Unmarshal(b, &m) == nil && m.check() == nil && (!m.Job.Valid() || len(m.Nodes) > maxMeasured) {
			t.Fatal("a measurement for no job, or of too many nodes")
		}
		var d Measured
		if codec.Unmarshal(b, &d) == nil {
			for _, rtt := range d.times(len(d.RTT)) {
				if rtt < 0 || rtt > maxApart {
					t.Fatalf("a round trip of %v", rtt)
				}
			}
		}
		var rep Report
		if codec.Unmarshal(b, &rep) != nil || rep.check() != nil {
			return
		}
		c := newTalk(t, spec)
		c.offer(1, 2)
		c.step()
		c.p.reported(c.now, testNode(1), rep, nil, 0)
		c.p.status()
	})
}

// FuzzEvents replays any bytes as a journal's entry.
func FuzzEvents(f *testing.F) {
	f.Add(codec.MustMarshal(event{Kind: evGranted, Node: testNode(1), Ranks: []RankAttempt{{0, 1}}}))
	f.Add(codec.MustMarshal(event{Kind: evSubmitted, Spec: &Spec{Args: []string{"a"}, Min: 1, Max: 4, Slots: 1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var ev event
		if codec.Unmarshal(b, &ev) != nil {
			return
		}
		c := newTalk(t, Spec{Min: 1, Max: 2})
		if ev.sound(&c.p.rec) && len(c.p.rec.ranks) < 100 {
			c.p.rec.apply(ev)
			c.p.status()
			c.p.tick(c.now)
		}
	})
}
