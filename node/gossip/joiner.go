package gossip

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/vicinity"
)

const (
	seedPause   = 500 * time.Millisecond
	formerPause = 5 * time.Second
	alonePause  = 30 * time.Second // at most, between tries of one address while alone
	calmPause   = 2 * time.Minute  // at most, otherwise
	restPause   = time.Minute      // after an address has answered, doubled each time
	maxRest     = 15 * time.Minute
	maxHeard    = 2 * time.Second // a beacon is answered within this time

	maxSeeds   = 128
	maxFormers = 32
	maxHeards  = 64
	maxSaved   = 32
)

// joiner decides which addresses to try when. It is a core: no goroutine, no
// clock; it belongs to the goroutine of Run.
type joiner struct {
	rnd     *rand.Rand
	own     []string
	targets map[string]*target
	members map[vicinity.ID][]string // their addresses
	live    map[string]int           // how many members have this address
}

type targetKind int

const (
	seed   targetKind = iota // told by the owner; kept for good
	former                   // was a member's; the latest 32 are kept
	heard                    // from a beacon; tried once
)

type target struct {
	addr  string
	kind  targetKind
	since time.Time
	next  time.Time     // when to try again
	pause time.Duration // before the try after that
	busy  bool
}

func newJoiner(now time.Time, rnd *rand.Rand, own, seeds []string) *joiner {
	j := &joiner{rnd: rnd, own: own, targets: map[string]*target{}, members: map[vicinity.ID][]string{}, live: map[string]int{}}
	for _, s := range seeds {
		if len(j.targets) < maxSeeds {
			j.add(s, seed, now, now, seedPause)
		}
	}
	return j
}

// add takes note of an address; one that is known already is not changed.
func (j *joiner) add(addr string, k targetKind, now, next time.Time, pause time.Duration) {
	if j.targets[addr] == nil && !slices.Contains(j.own, addr) {
		j.targets[addr] = &target{addr: addr, kind: k, since: now, next: next, pause: pause}
	}
}

// Joined says that a member is there, or has other addresses than before.
func (j *joiner) Joined(m vicinity.Member) {
	j.forget(m.ID)
	j.members[m.ID] = m.Addrs
	for _, a := range m.Addrs {
		j.live[a]++
	}
}

// Left says that a member is gone.
func (j *joiner) Left(now time.Time, m vicinity.Member) {
	j.forget(m.ID)
	addr := m.Addrs[0]
	if t := j.targets[addr]; t != nil {
		t.next, t.pause = now.Add(j.jitter(formerPause)), formerPause
	} else {
		j.add(addr, former, now, now.Add(j.jitter(formerPause)), formerPause)
		j.bound(former, maxFormers)
	}
	if len(j.members) == 0 {
		for _, t := range j.targets {
			t.next, t.pause = now.Add(j.jitter(seedPause)), seedPause
		}
	}
}

func (j *joiner) forget(id vicinity.ID) {
	for _, a := range j.members[id] {
		if j.live[a]--; j.live[a] == 0 {
			delete(j.live, a)
		}
	}
	delete(j.members, id)
}

// Heard says that a node that is no member has sent a beacon. Where others are
// about, they are given time to introduce it.
func (j *joiner) Heard(now time.Time, addr string) {
	next := now
	if len(j.members) > 0 {
		next = now.Add(time.Duration(j.rnd.Int64N(int64(maxHeard))))
	}
	j.add(addr, heard, now, next, seedPause)
	j.bound(heard, maxHeards)
}

// bound drops the oldest of a kind.
func (j *joiner) bound(k targetKind, most int) {
	var list []*target
	for _, t := range j.targets {
		if t.kind == k && !t.busy {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *target) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.addr, b.addr))
	})
	for _, t := range list[:max(len(list)-most, 0)] {
		delete(j.targets, t.addr)
	}
}

// Next returns an address to try now, which Done must be told of. Without one
// it returns when to ask again; the zero time means never.
func (j *joiner) Next(now time.Time) (addr string, wake time.Time) {
	var best *target
	for _, t := range j.targets {
		switch {
		case t.busy:
		case j.live[t.addr] > 0:
			if t.kind != seed { // it came back, or somebody was faster
				delete(j.targets, t.addr)
			}
		case best == nil || t.next.Before(best.next) || t.next.Equal(best.next) && t.addr < best.addr:
			best = t
		}
	}
	switch {
	case best == nil:
		return "", time.Time{}
	case best.next.After(now):
		return "", best.next
	}
	best.busy = true
	return best.addr, time.Time{}
}

// Done says how a try ended.
func (j *joiner) Done(now time.Time, addr string, ok bool) {
	t := j.targets[addr]
	if t == nil {
		return
	}
	t.busy = false
	if t.kind == heard {
		delete(j.targets, addr) // there will be another beacon
		return
	}
	if ok {
		// It is not a member's address as members see it, or will be soon.
		t.pause = min(max(2*t.pause, restPause), maxRest)
		t.next = now.Add(j.jitter(t.pause))
		return
	}
	most := alonePause
	if len(j.members) > 0 {
		most = calmPause
	}
	t.next = now.Add(j.jitter(min(t.pause, most)))
	t.pause = min(2*t.pause, most)
}

// jitter spreads d by a quarter, so that nodes do not act in step.
func (j *joiner) jitter(d time.Duration) time.Duration {
	return d - d/8 + time.Duration(j.rnd.Int64N(int64(d/4)+1))
}

// saved returns addresses that are worth trying after a restart, always in the
// same order: those of members, or of those that were tried in vain if there
// are none.
func saved(members []vicinity.Member, seeds []string) []string {
	if len(members) == 0 {
		return seeds[:min(len(seeds), maxSaved)]
	}
	// IDs are hashes, so the first ones by ID are a sample of all places.
	var list []string
	for _, m := range members[:min(len(members), maxSaved)] {
		list = append(list, m.Addrs[0])
	}
	return list
}
