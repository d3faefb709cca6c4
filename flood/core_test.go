package flood

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

var begin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// testCore is node 0 with the given neighbours. Payloads that begin with "bad"
// fail the check.
func testCore(t *testing.T, change func(*Config), neighbours ...int) *Core {
	t.Helper()
	var ids []vicinity.ID
	for _, n := range neighbours {
		ids = append(ids, node(n))
	}
	cfg := Config{
		Self:       node(0),
		Neighbours: func() []vicinity.ID { return ids },
		Check: func(_ vicinity.ID, payload []byte) error {
			if bytes.HasPrefix(payload, []byte("bad")) {
				return errors.New("bad signature")
			}
			return nil
		},
		Rand: rand.New(rand.NewPCG(1, 2)),
	}
	if change != nil {
		change(&cfg)
	}
	return NewCore(cfg)
}

// message returns a copy of message n from origin 9 that comes from a node.
func message(n, from int, ttl uint8, payload string) Message {
	return Message{ID: MessageID{byte(n), byte(n >> 8)}, Origin: node(9), TTL: ttl, Hops: 1, LastHop: node(from), Life: time.Minute, Payload: []byte(payload)}
}

func receive(c *Core, now time.Time, m Message) Out {
	return c.Receive(now, 0, m.LastHop, encode(m))
}

func wantTo(t *testing.T, what string, out Out, nodes ...int) {
	t.Helper()
	var want []vicinity.ID
	for _, n := range nodes {
		want = append(want, node(n))
	}
	if len(out.To) != len(want) {
		t.Fatalf("%s: sent to %v, want %v", what, out.To, want)
	}
	for i := range want {
		if out.To[i] != want[i] {
			t.Fatalf("%s: sent to %v, want %v", what, out.To, want)
		}
	}
}

func wantStats(t *testing.T, c *Core, want Stats) {
	t.Helper()
	s := c.Stats()
	if s != want {
		t.Fatalf("stats are %+v\nwant      %+v", s, want)
	}
	if s.Received != s.Duplicates+s.Delivered+s.Malformed+s.Refused+s.Limited+s.Expired {
		t.Fatalf("received copies do not add up: %+v", s)
	}
}

func TestStartSendsToAllNeighbours(t *testing.T) {
	c := testCore(t, nil, 1, 2)
	_, out, err := c.Start(begin, 3, time.Second, []byte("hi"))
	if err != nil {
		t.Fatal(err)
	}
	wantTo(t, "start", out, 1, 2)
	m, err := decode(out.Packet)
	if err != nil || m.Origin != node(0) || m.LastHop != node(0) || m.TTL != 3 || m.Hops != 1 || m.Life != time.Second || string(m.Payload) != "hi" || out.Deliver != nil {
		t.Fatalf("got %+v, %v", m, err)
	}
	m.LastHop = node(2)
	if out := receive(c, begin, m); out.Deliver != nil || out.To != nil || out.Err != nil {
		t.Fatalf("own message came back: %+v", out)
	}
	wantStats(t, c, Stats{Originated: 1, Sent: 2, Received: 1, Duplicates: 1})
}

// Who knows the others asks those whom it chooses.
func TestStartSendsToNobodyBeforeItIsExtended(t *testing.T) {
	c := testCore(t, nil, 1, 2)
	fl, out, err := c.Start(begin, 0, time.Second, []byte("hi"))
	if err != nil || len(out.To) != 0 || fl.Copies != 0 {
		t.Fatalf("sends to %v, %d copies, %v", out.To, fl.Copies, err)
	}
	copies := c.Extend(begin, fl, []Reach{{Node: node(7), Hops: 1, Last: true}})
	if len(copies) != 1 {
		t.Fatalf("extended by %+v", copies)
	}
	wantTo(t, "extended", copies[0], 7)
	if m, err := decode(copies[0].Packet); err != nil || m.TTL != 1 || string(m.Payload) != "hi" {
		t.Errorf("got %+v, %v", m, err)
	}
	wantStats(t, c, Stats{Originated: 1, Sent: 1, Extended: 1})
}

func TestStartRefusesArguments(t *testing.T) {
	c := testCore(t, nil, 1)
	for name, f := range map[string]func() error{
		"radius -1": func() error { _, _, err := c.Start(begin, -1, time.Second, nil); return err },
		"radius 33": func() error { _, _, err := c.Start(begin, 33, time.Second, nil); return err },
		"no life":   func() error { _, _, err := c.Start(begin, 1, 0, nil); return err },
		"long life": func() error { _, _, err := c.Start(begin, 1, 2*time.Hour, nil); return err },
		"payload":   func() error { _, _, err := c.Start(begin, 1, time.Second, make([]byte, MaxPayload+1)); return err },
	} {
		if err := f(); !errors.Is(err, ErrArgument) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	wantStats(t, c, Stats{})
}

func TestForwardsToAllButSenderAndOrigin(t *testing.T) {
	c := testCore(t, nil, 1, 2, 3, 9)
	out := receive(c, begin, message(1, 2, 2, "x"))
	wantTo(t, "first copy", out, 1, 3)
	if out.Deliver == nil || out.Deliver.TTL != 2 || out.Deliver.Hops != 1 || out.Deliver.LastHop != node(2) {
		t.Fatalf("delivered %+v", out.Deliver)
	}
	m, err := decode(out.Packet)
	if err != nil || m.TTL != 1 || m.Hops != 2 || m.LastHop != node(0) || m.Origin != node(9) || m.Life != time.Minute {
		t.Fatalf("forwarded %+v, %v", m, err)
	}
	// "If the TTL reaches zero it is not forwarded anymore."
	last := receive(c, begin, message(2, 2, 1, "x"))
	wantTo(t, "TTL 1", last)
	if last.Deliver == nil {
		t.Fatal("a message with TTL 1 was not delivered")
	}
	wantStats(t, c, Stats{Received: 2, Delivered: 2, Forwarded: 2})
}

func TestDuplicates(t *testing.T) {
	c := testCore(t, nil, 1, 2, 3)
	wantTo(t, "first", receive(c, begin, message(1, 1, 3, "x")), 2, 3)
	wantTo(t, "same TTL", receive(c, begin, message(1, 2, 3, "x")))
	wantTo(t, "lower TTL", receive(c, begin, message(1, 3, 1, "x")))
	wantTo(t, "higher TTL, but the others have had that much", receive(c, begin, message(1, 3, 5, "x")))
	out := receive(c, begin, message(1, 3, 6, "x"))
	wantTo(t, "higher TTL", out, 1, 2)
	if out.Deliver != nil {
		t.Fatal("delivered twice")
	}
	wantTo(t, "higher TTL again", receive(c, begin, message(1, 2, 6, "x")))
	wantStats(t, c, Stats{Received: 6, Delivered: 1, Duplicates: 5, Forwarded: 4})
}

func TestAlteredCopyDoesNotHideTheGenuineOne(t *testing.T) {
	c := testCore(t, nil, 1, 2)
	if out := receive(c, begin, message(1, 1, 3, "bad")); !errors.Is(out.Err, ErrRefused) || out.To != nil || out.Deliver != nil {
		t.Fatalf("forged copy: %+v", out)
	}
	if out := receive(c, begin, message(1, 2, 3, "x")); out.Deliver == nil {
		t.Fatal("the genuine message was dropped")
	}
	// Asked once: the second forged copy is known.
	receive(c, begin, message(1, 2, 9, "bad"))
	wantStats(t, c, Stats{Received: 3, Refused: 1, Delivered: 1, Duplicates: 1, Forwarded: 1})
}

// What comes too late goes no further, but is held against nobody, and judged
// anew when it comes again.
func TestLateMessagesAreNobodysFault(t *testing.T) {
	late := true
	c := testCore(t, func(cfg *Config) {
		cfg.Check = func(vicinity.ID, []byte) error {
			if late {
				return ErrLate
			}
			return nil
		}
	}, 1, 2)
	for i := range 100 {
		if out := receive(c, begin, message(i, 1, 3, "x")); out.Err != nil || out.To != nil || out.Deliver != nil {
			t.Fatalf("a late message: %+v", out)
		}
	}
	late = false
	if out := receive(c, begin, message(1, 1, 3, "x")); out.Deliver == nil || out.To == nil {
		t.Fatalf("later it is on time: %+v", out)
	}
	wantStats(t, c, Stats{Received: 101, Expired: 100, Delivered: 1, Forwarded: 1})
}

func TestRefusedMessagesCostTheNeighbour(t *testing.T) {
	checks := 0
	c := testCore(t, func(cfg *Config) {
		check := cfg.Check
		cfg.Check = func(id vicinity.ID, p []byte) error { checks++; return check(id, p) }
	}, 1, 2)
	for i := range 100 {
		receive(c, begin, message(i, 1, 3, "bad"))
	}
	if checks != refusalBurst {
		t.Fatalf("%d signatures checked for a neighbour that forges, want %d", checks, refusalBurst)
	}
	if out := receive(c, begin, message(200, 2, 1, "x")); out.Deliver == nil {
		t.Fatal("another neighbour pays for it")
	}
	if out := receive(c, begin.Add(time.Minute), message(201, 1, 1, "x")); out.Deliver == nil {
		t.Fatal("never forgiven")
	}
}

func TestOriginThatFloodsWithoutEndIsCutDown(t *testing.T) {
	c := testCore(t, func(cfg *Config) { cfg.Rate, cfg.Burst = 10, 20 }, 1, 2)
	delivered := 0
	for i := range 1000 { // a thousand in 10 seconds
		if out := receive(c, begin.Add(time.Duration(i)*10*time.Millisecond), message(i, 1, 3, "x")); out.Deliver != nil {
			delivered++
		} else if !errors.Is(out.Err, ErrTooFast) || out.To != nil {
			t.Fatalf("got %+v", out)
		}
	}
	if delivered < 115 || delivered > 121 {
		t.Fatalf("%d of 1000 delivered, want 20 + 10 per second", delivered)
	}
	other := message(2000, 1, 3, "x")
	other.Origin = node(8)
	if out := receive(c, begin, other); out.Deliver == nil {
		t.Fatal("another origin pays for it")
	}
	for range 20 {
		if _, _, err := c.Start(begin, 1, time.Second, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := c.Start(begin, 1, time.Second, nil); !errors.Is(err, ErrTooFast) {
		t.Fatalf("own floods beyond what others take: %v", err)
	}
}

func TestLifeEnds(t *testing.T) {
	c := testCore(t, nil, 1, 2)
	m := message(1, 1, 3, "x")
	m.Life = time.Second
	out := c.Receive(begin, 400*time.Millisecond, m.LastHop, encode(m))
	if out.Deliver == nil || out.Deliver.Life != 600*time.Millisecond {
		t.Fatalf("delivered %+v", out.Deliver)
	}
	if sent, err := decode(out.Packet); err != nil || sent.Life != 600*time.Millisecond {
		t.Fatalf("forwarded %+v, %v", sent, err)
	}
	m.ID[7] = 1
	if out := c.Receive(begin, time.Second, m.LastHop, encode(m)); out.Deliver != nil || out.To != nil {
		t.Fatalf("an expired message lives: %+v", out)
	}
	wantStats(t, c, Stats{Received: 2, Delivered: 1, Forwarded: 1, Expired: 1})
}

func TestMalformedIsCounted(t *testing.T) {
	c := testCore(t, nil, 1)
	for _, out := range []Out{
		c.Receive(begin, 0, node(1), []byte("junk")),
		c.Receive(begin, 0, node(2), encode(message(1, 1, 3, "x"))), // 2 says that it is 1
	} {
		if !errors.Is(out.Err, codec.ErrMalformed) || out.To != nil || out.Deliver != nil {
			t.Fatalf("got %+v", out)
		}
	}
	wantStats(t, c, Stats{Received: 2, Malformed: 2})
}

func TestSeenSetIsBounded(t *testing.T) {
	s := newSeenSet(3)
	key := func(n int) seenKey { return seenKey{byte(n)} }
	for n := range 5 {
		s.add(begin, key(n), time.Minute, seenEntry{best: uint8(n)})
	}
	if len(s.entries) != 3 || len(s.order) != 3 || s.get(key(1)) != nil || s.get(key(2)) == nil {
		t.Fatalf("holds %v", s.order)
	}
	s.add(begin.Add(time.Minute), key(6), time.Minute, seenEntry{})
	if s.get(key(4)) == nil {
		t.Fatal("forgot a message before its life and the margin were over")
	}
	s.add(begin.Add(time.Minute+seenMargin), key(7), time.Minute, seenEntry{})
	if len(s.entries) != 2 || s.get(key(4)) != nil {
		t.Fatalf("still holds %v", s.order)
	}
}

func TestLimiterIsBounded(t *testing.T) {
	l := newLimiter(1, 1, 2)
	for n := range 10 {
		if !l.take(begin, node(n)) {
			t.Fatalf("node %d: nothing in a fresh bucket", n)
		}
	}
	if len(l.buckets) != 2 || l.recent.Len() != 2 {
		t.Fatalf("%d buckets", len(l.buckets))
	}
	if l.take(begin, node(9)) || !l.empty(begin, node(9)) || l.empty(begin.Add(time.Second), node(9)) {
		t.Fatal("the last bucket is not the one that was used last")
	}
}

func BenchmarkReceiveFirstCopy(b *testing.B) {
	c := NewCore(Config{
		Self: node(0), Neighbours: func() []vicinity.ID { return []vicinity.ID{node(1), node(2), node(3)} },
		Check: func(vicinity.ID, []byte) error { return nil }, Rate: 1e12, Burst: 1e12,
	})
	m := message(1, 1, 3, string(make([]byte, 500)))
	for b.Loop() {
		m.ID[3]++
		if m.ID[3] == 0 {
			m.ID[4]++
		}
		c.Receive(begin, 0, m.LastHop, encode(m))
	}
}

func TestEndlessTTLIsCutAndCounted(t *testing.T) {
	c := testCore(t, nil, 1, 2)
	out := receive(c, begin, message(1, 1, 255, "x"))
	if m, err := decode(out.Packet); err != nil || m.TTL != MaxRadius-1 || m.cut {
		t.Fatalf("sent on %+v, %v", m, err)
	}
	receive(c, begin, message(2, 1, MaxRadius, "x"))
	wantStats(t, c, Stats{Received: 2, Delivered: 2, Forwarded: 2, Cut: 1})
}

// What the origin sends once more is delivered once more, and not for ever; what anybody
// else sends, or was checked and is late by now, is not.
func TestAskedAgain(t *testing.T) {
	late := false
	c := testCore(t, func(cfg *Config) {
		cfg.Check = func(vicinity.ID, []byte) error {
			if late {
				return ErrLate
			}
			return nil
		}
	}, 1, 2, 9)
	again := message(1, 9, 2, "x")
	again.Again = true
	out := receive(c, begin, again)
	if out.Deliver == nil || out.Deliver.Again || len(out.To) != 2 {
		t.Fatalf("the first copy is lost, and the second gives %+v", out)
	}
	if m, err := decode(out.Packet); err != nil || m.Again {
		t.Fatalf("it goes on as %+v, %v", m, err)
	}
	for range maxAgain {
		if out := receive(c, begin, again); out.Deliver == nil || !out.Deliver.Again || out.To != nil || out.Deliver.Onward != 2 {
			t.Fatalf("the answer is lost, and asking again gives %+v", out)
		}
	}
	if out := receive(c, begin, again); out.Deliver != nil {
		t.Fatal("it is delivered without end")
	}
	plain, other := message(2, 9, 2, "y"), message(2, 1, 2, "y")
	receive(c, begin, plain)
	if out := receive(c, begin, plain); out.Deliver != nil {
		t.Fatal("a copy that came twice is delivered twice")
	}
	other.Again = true
	if out := receive(c, begin, other); out.Deliver != nil {
		t.Fatal("a neighbour has it delivered again")
	}
	plain.Again, late = true, true
	if out := receive(c, begin, plain); out.Deliver != nil {
		t.Fatal("what is late by now is delivered again")
	}
	wantStats(t, c, Stats{Received: 9, Delivered: 2, Duplicates: 7, Forwarded: 4})
}

func TestExtendSaysWhoIsAskedAgain(t *testing.T) {
	c := testCore(t, nil, 1, 2)
	f, _, err := c.Start(begin, 1, time.Minute, []byte("hi"))
	if err != nil {
		t.Fatal(err)
	}
	list := c.Extend(begin, f, []Reach{{Node: node(1), Hops: 1, Again: true}, {Node: node(3), Hops: 2}, {Node: node(4), Hops: 1}})
	if len(list) != 3 {
		t.Fatalf("got %+v, want three packets", list)
	}
	for i, want := range []struct {
		to, hops int
		again    bool
	}{{4, 1, false}, {1, 1, true}, {3, 2, false}} {
		wantTo(t, "extend", list[i], want.to)
		if m, err := decode(list[i].Packet); err != nil || int(m.Hops) != want.hops || m.Again != want.again || m.TTL != 2 {
			t.Errorf("node %d is sent %+v, %v", want.to, m, err)
		}
	}
}
