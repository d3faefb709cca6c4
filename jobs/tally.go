package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Tally sums up the latest answers of all nodes to a job's advertisements.
type Tally struct {
	Asked    int            `json:"asked"`    // distinct nodes that answered
	Offered  int            `json:"offered"`  // of these, those that offered
	Declined map[string]int `json:"declined"` // the others, by reason
}

// maxReasons bounds the reasons that a tally tells apart; what comes after them
// is in otherReasons.
const (
	maxReasons   = 32
	otherReasons = "declined for other reasons"
)

// tally sums up what nodes have answered. After a restart of the origin it is
// what the journal says, until somebody answers anew.
func (p *primary) tally() Tally {
	if len(p.answers) == 0 && p.rec.tally != nil {
		t := *p.rec.tally
		t.Declined = map[string]int{}
		maps.Copy(t.Declined, p.rec.tally.Declined)
		return t
	}
	t := Tally{Asked: len(p.answers), Declined: map[string]int{}}
	for _, a := range p.answers {
		if a.Reason == "" {
			t.Offered++
			continue
		}
		t.Declined[a.Reason]++
	}
	if len(t.Declined) > maxReasons {
		for _, r := range t.reasons()[maxReasons-1:] {
			t.Declined[otherReasons] += t.Declined[r]
			delete(t.Declined, r)
		}
	}
	return t
}

// startEvent is a START for the journal. The first one tells why it was not
// sooner.
func (p *primary) startEvent(now time.Time, ready []RankAttempt) event {
	ev := event{Kind: evStarted, At: now, Ranks: ready, Worst: p.worstPair()}
	if p.rec.started.IsZero() {
		t := p.tally()
		ev.Tally = &t
	}
	return ev
}

// reasons lists the reasons, the most frequent first.
func (t Tally) reasons() []string {
	return slices.SortedFunc(maps.Keys(t.Declined), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.Declined[b], t.Declined[a]), strings.Compare(a, b))
	})
}

// String tells it in one line: "12 asked: 5 offered, 7 busy".
func (t Tally) String() string {
	parts := []string{}
	if t.Offered > 0 {
		parts = append(parts, fmt.Sprintf("%d offered", t.Offered))
	}
	for _, r := range t.reasons() {
		parts = append(parts, fmt.Sprintf("%d %s", t.Declined[r], r))
	}
	return fmt.Sprintf("%d asked: %s", t.Asked, strings.Join(parts, ", "))
}
