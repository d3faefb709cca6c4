package vicinity

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// talk is a conversation with one core, node 0. Members are called by number.
type talk struct {
	t    testing.TB
	core *Core
	now  time.Time
	sent []Packet
}

// newTalk starts a core that knows members 1 to n.
func newTalk(t testing.TB, near, far, n int) *talk {
	k := &talk{t: t, now: time.Unix(1000, 0)}
	k.core = NewCore(CoreConfig{Self: testID(0), Near: near, Far: far, Rand: seeded(1, 2), Roster: new(Roster)}, k.now)
	for i := 1; i <= n; i++ {
		k.join(i)
	}
	return k
}

func (k *talk) took(p []Packet) { k.sent = append(k.sent, p...) }

func (k *talk) join(i int) {
	k.core.cfg.Roster.Add(testID(i))
	k.took(k.core.Join(k.now, testID(i)))
}

func (k *talk) leave(i int) {
	k.core.cfg.Roster.Remove(testID(i))
	k.took(k.core.Leave(k.now, testID(i)))
}

func (k *talk) hear(i int, m message) { k.took(k.core.Receive(k.now, testID(i), m.encode())) }

// after lets time pass, with all ticks that are due.
func (k *talk) after(d time.Duration) {
	end := k.now.Add(d)
	for n := 0; !k.core.Next().After(end); n++ {
		if n > 100_000 {
			k.t.Fatal("the core is never done")
		}
		k.now = k.core.Next()
		k.took(k.core.Tick(k.now))
	}
	k.now = end
}

// said takes the messages sent to a member, of one kind.
func (k *talk) said(i int, as kind) []message {
	var list []message
	k.sent = slices.DeleteFunc(k.sent, func(p Packet) bool {
		m, err := decode(p.Payload)
		if err != nil {
			k.t.Fatal(err)
		}
		if p.To == testID(i) && m.Kind == as {
			list = append(list, m)
			return true
		}
		return false
	})
	return list
}

// one takes the single message of a kind sent to a member.
func (k *talk) one(i int, as kind) message {
	k.t.Helper()
	list := k.said(i, as)
	if len(list) != 1 {
		k.t.Fatalf("%d messages of kind %d to member %d, want 1", len(list), as, i)
	}
	return list[0]
}

// answer lets a member answer the ping it got, rtt after it.
func (k *talk) answer(i int, rtt time.Duration, says claim) {
	k.t.Helper()
	ping := k.one(i, kindPing)
	k.now = k.now.Add(rtt)
	k.hear(i, message{Kind: kindPong, Nonce: ping.Nonce, Link: says})
}

func (k *talk) links() string {
	var parts []string
	for _, x := range k.core.Neighbours() {
		for i := range 50 {
			if testID(i) == x.ID {
				parts = append(parts, fmt.Sprintf("%d:%v%s", i, x.RTT, map[bool]string{true: "!"}[x.Far]))
			}
		}
	}
	return strings.Join(parts, " ")
}

func (k *talk) want(links string) {
	k.t.Helper()
	if got := k.links(); got != links {
		k.t.Errorf("links %q, want %q", got, links)
	}
}

const ms = time.Millisecond

func TestFirstMembersAreLinkedAtOnce(t *testing.T) {
	k := newTalk(t, 2, 1, 2)
	if p := k.one(1, kindPing); p.Link != claimNear {
		t.Errorf("the ping to member 1 is %+v", p)
	}
	k.answer(2, 3*ms, claimNear)
	if len(k.core.Neighbours()) != 2 {
		t.Errorf("links %s", k.links())
	}
	if got, ok := k.core.RTT(testID(2)); !ok || got != 3*ms {
		t.Errorf("RTT %v %v", got, ok)
	}
}

func TestLinkAskedForIsAccepted(t *testing.T) {
	k := newTalk(t, 1, 1, 20)
	k.hear(5, message{Kind: kindPing, Nonce: 77, Link: claimFar})
	pong := k.one(5, kindPong)
	if pong.Nonce != 77 || pong.Link == claimNone || pong.Ack == 0 {
		t.Errorf("the pong is %+v", pong)
	}
	k.now = k.now.Add(4 * ms)
	k.hear(5, message{Kind: kindAck, Nonce: pong.Ack})
	if !strings.Contains(k.links(), "5:4ms") {
		t.Errorf("a ping does not teach the answerer: links %s", k.links())
	}
}

func TestLinksOfOthersAreBounded(t *testing.T) {
	k := newTalk(t, 1, 1, 40)
	refused := 0
	for i := 1; i <= 40; i++ {
		k.hear(i, message{Kind: kindPing, Nonce: 1, Link: claimNear})
		if k.one(i, kindPong).Link == claimNone {
			refused++
		}
	}
	if n := len(k.core.links.list); n != 4 || refused < 36 {
		t.Errorf("%d links, %d refused; want 4 links", n, refused)
	}
	// Its own wishes still find room, and who must go is told.
	k.after(2 * time.Second)
	if n := len(k.core.links.list); n > 4 {
		t.Errorf("%d links", n)
	}
}

func TestRefusalLeadsToAnother(t *testing.T) {
	k := newTalk(t, 1, 1, 2)
	for i := 3; i < 30; i++ {
		k.join(i)
	}
	k.answer(1, ms, claimNone)
	if strings.Contains(k.links(), "1:") {
		t.Fatalf("the refused link is kept: %s", k.links())
	}
	k.after(time.Second)
	if k.core.peers.get(testID(1)).link != nil {
		t.Errorf("asked again at once: %s", k.links())
	}
	if len(k.core.links.list) < 2 {
		t.Errorf("links %s", k.links())
	}
}

func TestDropEndsTheLink(t *testing.T) {
	k := newTalk(t, 2, 1, 1)
	k.answer(1, ms, claimNear)
	k.want("1:1ms")
	k.hear(1, message{Kind: kindDrop})
	k.want("")
}

func TestOtherEndThatForgotIsLetGo(t *testing.T) {
	k := newTalk(t, 2, 1, 1)
	k.answer(1, ms, claimNear)
	k.hear(1, message{Kind: kindPing, Nonce: 9}) // may be older than the link
	k.want("1:1ms")
	k.after(linger + time.Second)
	k.hear(1, message{Kind: kindPing, Nonce: 9})
	k.want("")
}

func TestSilentLinkIsGivenUp(t *testing.T) {
	k := newTalk(t, 2, 1, 1)
	k.answer(1, ms, claimNear)
	k.after(keepAlive + 12*time.Second)
	if l := k.core.peers.known[testID(1)].link; l != nil && l.confirmed {
		t.Errorf("links %s", k.links())
	}
	if len(k.said(1, kindPing)) < maxTries || len(k.said(1, kindDrop)) == 0 {
		t.Error("gave up without asking again, or without a word")
	}
}

func TestLinkThatNobodyWantsIsDropped(t *testing.T) {
	k := newTalk(t, 1, 1, 10)
	k.hear(5, message{Kind: kindPing, Nonce: 1, Link: claimNear})
	if l := k.core.peers.known[testID(5)].link; l == nil || l.want.wants() {
		t.Fatalf("link %+v, want one that only the other end wants", l)
	}
	k.hear(5, message{Kind: kindPing, Nonce: 2, Link: claimHeld})
	// In one step, so that the core has no time to choose it itself.
	k.took(k.core.Tick(k.now.Add(linger)))
	k.one(5, kindDrop)
}

func TestNeighbourIsReplacedOnlyByAClearlyNearerOne(t *testing.T) {
	k := newTalk(t, 1, 1, 2)
	k.answer(1, 10*ms, claimNear)
	k.core.Observe(k.now, testID(1), 10*ms)
	for i := 3; i <= 12; i++ {
		k.join(i)
	}
	near := func() (id ID) {
		for _, l := range k.core.links.list {
			if l.want == claimNear {
				id = l.peer.id
			}
		}
		return id
	}
	k.took(k.core.Tick(k.now.Add(500 * ms)))
	if near() != testID(1) {
		t.Fatalf("links %s", k.links())
	}
	k.now = k.now.Add(600 * ms)
	k.took(k.core.Observe(k.now, testID(7), 9*ms))
	k.took(k.core.Tick(k.now.Add(300 * ms)))
	if near() != testID(1) {
		t.Errorf("replaced for a trifle: %s", k.links())
	}
	k.now = k.now.Add(300 * ms)
	k.took(k.core.Observe(k.now, testID(8), 2*ms))
	k.took(k.core.Tick(k.now.Add(300 * ms)))
	if near() != testID(8) {
		t.Errorf("not replaced by a clearly nearer one: %s", k.links())
	}
	if k.core.peers.known[testID(1)].link == nil {
		t.Error("the old link went before the new one was there")
	}
}

func TestLostNeighbourIsReplacedAtOnce(t *testing.T) {
	k := newTalk(t, 2, 1, 30)
	k.after(3 * time.Second)
	first := k.core.Neighbours()[0].ID
	for i := range 31 {
		if testID(i) == first {
			k.leave(i)
		}
	}
	if n := len(k.core.Neighbours()); n < 3 {
		t.Errorf("%d links after a loss, want 3", n)
	}
}

func TestListsBringCandidates(t *testing.T) {
	k := newTalk(t, 1, 1, 2)
	k.answer(1, ms, claimNear)
	for i := 3; i < 45; i++ {
		k.join(i)
	}
	k.after(300 * ms)
	k.core.near.list = nil
	k.hear(1, message{Kind: kindSwap, Names: []named{{testID(40), 300}, {testID(0), 1}, {testID(99), 1}, {testID(41), 50_000}}})
	if list := k.one(1, kindList); len(list.Names) != 0 {
		t.Errorf("the list names %+v: the receiver itself, or somebody unmeasured", list.Names)
	}
	if len(k.core.near.list) != 1 || k.core.near.list[0].id != testID(40) {
		t.Fatalf("candidates %+v, want member 40: not the node itself, no stranger, none that must be far", k.core.near.list)
	}
	k.after(1500 * ms)
	if len(k.said(40, kindPing)) != 1 {
		t.Error("the candidate was not pinged once")
	}
}

func TestWrongAnswersMeasureNothing(t *testing.T) {
	k := newTalk(t, 2, 1, 2)
	ping := k.one(1, kindPing)
	k.hear(2, message{Kind: kindPong, Nonce: ping.Nonce, Link: claimNear}) // not the one asked
	k.hear(1, message{Kind: kindPong, Nonce: ping.Nonce + 1, Link: claimNear})
	k.hear(1, message{Kind: kindAck, Nonce: ping.Nonce})
	k.now = k.now.Add(5 * ms)
	k.hear(1, message{Kind: kindPong, Nonce: ping.Nonce, Link: claimNear})
	k.now = k.now.Add(-ms)
	k.hear(1, message{Kind: kindPong, Nonce: ping.Nonce, Link: claimNear}) // once more
	if rtt, _ := k.core.RTT(testID(1)); rtt != 5*ms {
		t.Errorf("RTT %v, want 5ms", rtt)
	}
	if _, ok := k.core.RTT(testID(2)); ok {
		t.Error("member 2 was measured by another's pong")
	}
	for _, bad := range []time.Duration{-1, maxRTT + 1, math.MaxInt64, math.MinInt64} {
		k.took(k.core.Observe(k.now, testID(2), bad))
	}
	if _, ok := k.core.RTT(testID(2)); ok {
		t.Error("an absurd sample was taken")
	}
}

func TestStrangersMalformedAndFloodsAreCounted(t *testing.T) {
	k := newTalk(t, 2, 1, 2)
	k.hear(9, message{Kind: kindPing, Nonce: 1})
	k.hear(0, message{Kind: kindPing, Nonce: 1})
	k.took(k.core.Receive(k.now, testID(1), []byte{0xc1}))
	k.sent = nil
	for i := range 100 {
		k.hear(2, message{Kind: kindPing, Nonce: uint64(i + 1)})
	}
	s := k.core.Stats()
	if s.Strangers != 2 || s.Malformed != 1 || s.Excess != 100-maxBurst || s.Received != 103 {
		t.Errorf("stats %+v", s)
	}
	if n := len(k.said(2, kindPong)); n != maxBurst {
		t.Errorf("%d pongs to one who floods", n)
	}
	k.now = k.now.Add(time.Second)
	k.hear(2, message{Kind: kindPing, Nonce: 1})
	k.one(2, kindPong)
}

// A clock that jumps back, or a queue that mixes up inputs, makes no sample
// negative and no timer wait.
func TestTimeOnlyGoesOn(t *testing.T) {
	k := newTalk(t, 2, 1, 2)
	ping := k.one(1, kindPing)
	now := k.now
	k.now = now.Add(-time.Hour)
	k.hear(1, message{Kind: kindPong, Nonce: ping.Nonce, Link: claimNear})
	if rtt, ok := k.core.RTT(testID(1)); !ok || rtt != minRTT {
		t.Errorf("RTT %v %v", rtt, ok)
	}
	k.now = now
	k.after(5 * time.Second)
	if len(k.said(2, kindPing)) < 2 {
		t.Error("the timer stood still")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	k := newTalk(t, 2, 1, 0)
	k.core.cfg.Peers = 30
	for i := 1; i <= 500; i++ {
		k.join(i)
		k.took(k.core.Observe(k.now, testID(i), time.Duration(1+(i*7)%500)*ms))
		k.hear(i, message{Kind: kindPing, Nonce: 1})
		k.after(50 * ms)
	}
	c := k.core
	if len(c.peers.list) > 30 || len(c.peers.known) != len(c.peers.list) || len(c.pings.pending) > maxPending || len(c.near.list) > maxCandidates {
		t.Errorf("%d peers, %d known, %d pending, %d candidates", len(c.peers.list), len(c.peers.known), len(c.pings.pending), len(c.near.list))
	}
	if near := c.peers.ranked()[0].rtt; near > 2*ms {
		t.Errorf("the nearest of 500 was forgotten; now it is %v", near)
	}
}

func TestCalmNetworkSlowsDown(t *testing.T) {
	k := newTalk(t, 2, 1, 0)
	for i := 1; i <= 3; i++ {
		k.join(i)
	}
	heed := func(d time.Duration) (swaps int) { // all members answer
		for end := k.now.Add(d); k.now.Before(end); k.after(100 * ms) {
			for i := 1; i <= 3; i++ {
				swaps += len(k.said(i, kindSwap))
				for _, p := range k.said(i, kindPing) {
					k.hear(i, message{Kind: kindPong, Nonce: p.Nonce, Link: claimNear})
				}
			}
		}
		return swaps
	}
	if n := heed(15 * time.Second); n < 12 || n > 18 {
		t.Errorf("%d swaps in the first 15 s", n)
	}
	heed(60 * time.Second)
	if n := heed(100 * time.Second); n < 3 || n > 8 {
		t.Errorf("%d swaps in 100 calm seconds", n)
	}
	k.leave(2)
	if n := heed(10 * time.Second); n < 6 {
		t.Errorf("%d swaps in the 10 s after a loss", n)
	}
}
