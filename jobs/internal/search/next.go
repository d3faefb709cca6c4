package search

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/vicinity"
)

// What a search and its job say to each other, in plain values.

// Demand is what a job wants of a search.
type Demand struct {
	Wanted int           // workers; 0 = none
	Least  int           // of them are taken at once, or none
	Placed bool          // nodes work for the job
	Nodes  []vicinity.ID // that the job has; only where the choice depends on them, see jobs.Spec.JointChoice
	Groups *Groups       // of a job with groups; nil = all workers are alike
	Lost   losses        // near where each of the wanted workers is to be: where it was lost, or To; "" = anywhere; it may be shorter
	To     []vicinity.ID // nodes of Lost that are wanted themselves
	Left   []vicinity.ID // nodes that none of the wanted workers may have
	Spares *Spares       // they are spares; nil = ranks
	behind int           // workers that the demands after it want
}

// Spares is where a job has what its spares are to be near.
type Spares struct {
	Ranks map[vicinity.ID]int // ranks at each node
	Has   map[vicinity.ID]int // spares
}

// Groups is what a job with groups wants of its nodes.
type Groups struct {
	Least, Most []int                 // workers that each group looks for
	Has         map[vicinity.ID][]int // workers of each group that nodes have, and keep
	Split       []bool                // groups that need not keep to few clusters any more
}

// equal reports whether the same is wanted.
func (g *Groups) equal(o *Groups) bool {
	return slices.Equal(g.Least, o.Least) && slices.Equal(g.Most, o.Most) && slices.Equal(g.Split, o.Split) &&
		maps.EqualFunc(g.Has, o.Has, func(a, b []int) bool { return slices.Equal(a, b) })
}

// all is for how many workers nodes are asked.
func (d *Demand) all() int { return min(d.Wanted+d.behind, jobs.MaxRanks) }

// Next is what a search wants to be done now, in this order, and what it waits
// for then.
type Next struct {
	Measure []Measurement
	Grant   []Choice
	Spares  bool          // Grant is for spares
	Sizes   []int         // of Grant: workers of each group, whose ranks come in the order of the groups; nil = there are none
	Release []Returned    // offers that are given back
	Recall  []vicinity.ID // nodes that hold for others what would be taken
	Over    bool          // these need not offer again
	Flood   jobs.Round    // to be advertised; Number 0 = none, Radius 0 = to this node alone
	Direct  bool          // it is sent to nobody else before it is extended
	Plan    bool          // it asks for Answer.Steps
	Extend  []flood.Reach // nodes beyond which the latest flood is carried
	Err     error         // no nodes can satisfy the job, and nothing is to be done
	Outlook
}

// Measurement asks a node for its round trips to others.
type Measurement struct {
	From  vicinity.ID // this node itself, or another one
	Nodes []vicinity.ID
}

// Choice is an offer that is taken.
type Choice struct {
	Demand int // which of the list it is for
	Node   vicinity.ID
	Name   string
	Key    uint64
	RTT    time.Duration
	Places []int // which of the wanted ranks it gets, from 0
	// Replaced says of each of these where it was lost, zero of one that was not; nil = none was.
	Replaced []jobs.Replaced
}

// Returned is an offer that is given back.
type Returned struct {
	Node vicinity.ID
	Key  uint64 // of the hold
}

// Outlook is what a search waits for, and why.
type Outlook struct {
	Until time.Time // when next is due; zero = only after an input
	Flood time.Time // when the next flood is due
	Why
}

// Why is what keeps a search from the workers that are wanted.
type Why struct {
	Wanted  int
	Spares  bool   // which they are, no ranks
	least   int    // of them are taken at once
	asked   bool   // somebody has answered
	room    int    // for so many workers of the job, at all nodes that have answered
	unheard int    // members that have never answered, though there was time for it
	apart   string // why the nodes that offer are too far apart, or too few; "" = they are not
	never   string // why no member can ever run the job; "" = some may
}

// Text says it in one line; answers is what the nodes have answered.
func (w Why) Text(answers jobs.Tally) string {
	noun := "worker"
	if w.Spares {
		noun = "spare"
	}
	if w.Wanted != 1 {
		noun += "s"
	}
	switch {
	case !w.asked:
		return fmt.Sprintf("looking for %d %s", w.Wanted, noun)
	case w.never != "":
		return fmt.Sprintf("waiting for %d %s: %s; %s", w.Wanted, noun, answers, w.never)
	case w.room < w.least:
		text := fmt.Sprintf("waiting for %d %s: %s; together they have room for %d", w.Wanted, noun, answers, w.room)
		if w.unheard > 0 {
			text += fmt.Sprintf("; no answer from %s: 'zorilla doctor' looks for the cause", units.Count(w.unheard, "other member", "other members"))
		}
		return text
	case w.apart != "":
		return fmt.Sprintf("waiting for %d %s: %s; %s", w.Wanted, noun, answers, w.apart)
	}
	return fmt.Sprintf("waiting for %d %s: %s", w.Wanted, noun, answers)
}
