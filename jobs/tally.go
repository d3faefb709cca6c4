package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Tally sums up the latest answers of all nodes to a job's advertisements.
type Tally struct {
	Asked    int            `json:"asked"`    // distinct nodes that answered
	Offered  int            `json:"offered"`  // of these, those that offered
	Declined map[string]int `json:"declined"` // the others, by reason
}

// MaxReasons bounds the reasons that a tally tells apart; what comes after them
// is in OtherReasons.
const (
	MaxReasons   = 32
	OtherReasons = "declined for other reasons"
)

// Clone returns a copy that its user may change.
func (t *Tally) Clone() Tally {
	c := *t
	c.Declined = map[string]int{}
	maps.Copy(c.Declined, t.Declined)
	return c
}

// Reasons lists the reasons, the most frequent first.
func (t Tally) Reasons() []string {
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
	for _, r := range t.Reasons() {
		parts = append(parts, fmt.Sprintf("%d %s", t.Declined[r], r))
	}
	return fmt.Sprintf("%d asked: %s", t.Asked, strings.Join(parts, ", "))
}
