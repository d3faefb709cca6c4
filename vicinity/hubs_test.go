package vicinity

import (
	"slices"
	"testing"
	"time"
)

// Who refuses is asked again ever more rarely, and the network stays calm meanwhile.
func TestRefusedWishes(t *testing.T) {
	k := newTalk(t, 1, 1, 4)
	k.hear(1, message{Kind: kindPing, Nonce: 1, Link: claimNear})
	rtts := []time.Duration{2: ms, 1: 10 * ms, 3: 11 * ms, 4: 12 * ms} // 2 is full
	type answer struct {
		at   time.Time
		from int
		m    message
	}
	var due []answer
	asked, begin := 0, k.now
	for k.now.Sub(begin) < 20*time.Minute {
		next := k.core.Next()
		slices.SortFunc(due, func(a, b answer) int { return a.at.Compare(b.at) })
		if len(due) > 0 && due[0].at.Before(next) {
			k.now = due[0].at
			k.hear(due[0].from, due[0].m)
			due = due[1:]
		} else {
			k.now = next
			k.took(k.core.Tick(k.now))
		}
		for i := 1; i <= 4; i++ {
			for _, ping := range k.said(i, kindPing) {
				says := claimNear
				if i == 2 {
					says = claimNone
					if ping.Link.wants() {
						asked++
					}
				}
				due = append(due, answer{k.now.Add(rtts[i]), i, message{Kind: kindPong, Nonce: ping.Nonce, Link: says}})
			}
		}
		k.sent = nil
		if k.now.Sub(begin) > 3*time.Minute && k.core.pace.pause < calmPause {
			t.Fatalf("after %v a round every %v", k.now.Sub(begin), k.core.pace.pause)
		}
	}
	if asked < 4 || asked > 12 {
		t.Errorf("it was asked %d times in 20 minutes", asked)
	}
}

// A node that has no room takes the nearer of those who ask for its nearness.
func TestNearerOnesAreTaken(t *testing.T) {
	k := newTalk(t, 1, 1, 40)
	ask := func(i int, rtt time.Duration, as claim) claim {
		k.core.Observe(k.now, testID(i), rtt)
		k.hear(i, message{Kind: kindPing, Nonce: 1, Link: as})
		return k.one(i, kindPong).Link
	}
	far := 0
	for i := 10; !k.core.links.full(); i++ {
		ask(i, time.Duration(i)*ms, claimNear)
		far = i
	}
	if got := ask(30, 50*ms, claimNear); got != claimNone {
		t.Errorf("one that is farther than all is taken: %d", got)
	}
	if got := ask(31, 5*ms, claimFar); got != claimNone {
		t.Errorf("one that wants a random link is taken: %d", got)
	}
	if k.hear(33, message{Kind: kindPing, Nonce: 1, Link: claimNear}); k.one(33, kindPong).Link != claimNone {
		t.Error("one that is not measured is taken")
	}
	if got := ask(32, 5*ms, claimNear); got != claimHeld {
		t.Errorf("one that is nearer is not taken: %d", got)
	}
	if len(k.said(far, kindDrop)) != 1 {
		t.Errorf("the farthest, %d, is not dropped: links %s", far, k.links())
	}
}
