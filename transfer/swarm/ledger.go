package swarm

import (
	"math/rand/v2"
	"slices"
	"time"
)

// giveAgain is how long the receiver of a chunk has to pass it on before
// somebody else, who insists, gets it from here too.
const giveAgain = time.Second

// maxGiven bounds how many receivers an answer names.
const maxGiven = 16

// Ledger is what a holder has given of one tree to whom. It is not safe for use
// by several goroutines.
type Ledger struct {
	rnd   *rand.Rand
	given []gift
	names []string // of receivers
	index map[string]uint32
}

// gift is what became of one chunk.
type gift struct {
	times uint32
	to    uint32 // the last one
	under uint32 // how many of them are being sent
	at    time.Time
}

// NewLedger returns a ledger for so many chunks.
func NewLedger(chunks int, rnd *rand.Rand) *Ledger {
	return &Ledger{rnd: rnd, given: make([]gift, chunks), index: make(map[string]uint32)}
}

// Pick chooses which of the chunks in want asker is given, and notes that: one
// that nobody was given yet; or what asker itself was given last, some time ago, and
// so has lost; or, if asker insists, the one given least often that others have had
// some time to pass on. Else the chunk is -1, and given reports who was given
// some of those wanted. What becomes of a chunk is told by Sent or Undo.
func (l *Ledger) Pick(now time.Time, asker string, want Set, insist bool) (chunk int, given []string) {
	me := l.receiver(asker)
	best, rank := -1, [2]int64{}
	var who []uint32
	l.each(want, func(i int) bool {
		g := &l.given[i]
		var r [2]int64
		switch {
		case g.times == 0:
			best = i
			return false
		case g.to == me && (g.under > 0 || now.Sub(g.at) < giveAgain):
			return true // asked for before it came
		case g.to == me:
			r = [2]int64{0, 0}
		case insist && now.Sub(g.at) >= giveAgain:
			r = [2]int64{int64(g.times), g.at.UnixNano()}
		default:
			if len(who) < maxGiven && !slices.Contains(who, g.to) {
				who = append(who, g.to)
			}
			return true
		}
		if best < 0 || r[0] < rank[0] || r[0] == rank[0] && r[1] < rank[1] {
			best, rank = i, r
		}
		return true
	})
	if best >= 0 {
		g := &l.given[best]
		*g = gift{g.times + 1, me, g.under + 1, now}
		return best, nil
	}
	for _, n := range who {
		given = append(given, l.names[n])
	}
	return -1, given
}

// each calls f with the chunks of a set in rising order from a random one on,
// until f returns false.
func (l *Ledger) each(s Set, f func(i int) bool) {
	n := len(l.given)
	if n == 0 {
		return
	}
	start := l.rnd.IntN(n)
	for k := 0; k < n; {
		i := (start + k) % n
		if i/64 >= len(s) {
			k += n - i // on from the beginning
			continue
		}
		if s[i/64]>>(i%64) == 0 {
			k += min(64-i%64, n-i)
			continue
		}
		if s.Has(i) && !f(i) {
			return
		}
		k++
	}
}

func (l *Ledger) receiver(name string) uint32 {
	n, ok := l.index[name]
	if !ok {
		n = uint32(len(l.names))
		l.names = append(l.names, name)
		l.index[name] = n
	}
	return n
}

// Sent notes that a chunk which Pick chose was sent.
func (l *Ledger) Sent(now time.Time, chunk int) {
	g := &l.given[chunk]
	g.under--
	g.at = now
}

// Undo notes that asker did not get all of a chunk that Pick chose.
func (l *Ledger) Undo(asker string, chunk int) {
	g := &l.given[chunk]
	g.under--
	if g.times > 0 && g.to == l.receiver(asker) {
		g.times--
	}
}
