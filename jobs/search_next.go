package jobs

import (
	"fmt"
	"time"

	"zorilla/flood"
	"zorilla/vicinity"
)

// What a search and its job say to each other, in plain values.

// demand is what a job wants of its search.
type demand struct {
	wanted int           // workers; 0 = none
	least  int           // of them are taken at once, or none
	nodes  []vicinity.ID // that the job has; only where the choice depends on them, see Spec.grouped
}

// next is what a search wants to be done now, in this order, and what it waits
// for then.
type next struct {
	measure []measurement
	grant   []choice
	release []vicinity.ID // nodes whose offers are given back
	over    bool          // these need not offer again
	flood   Round         // to be advertised; Number 0 = none
	extend  []flood.Reach // nodes beyond which the latest flood is carried
	err     error         // no nodes can satisfy the job, and nothing is to be done
	outlook
}

// measurement asks a node for its round trips to others.
type measurement struct {
	from  vicinity.ID // this node itself, or another one
	nodes []vicinity.ID
}

// choice is an offer that is taken.
type choice struct {
	node   vicinity.ID
	name   string
	key    uint64
	rtt    time.Duration
	places []int // which of the wanted ranks it gets, from 0
}

// outlook is what a search waits for, and why.
type outlook struct {
	until time.Time // when next is due; zero = only after an input
	flood time.Time // when the next flood is due
	why
}

// why is what keeps a search from the workers that are wanted.
type why struct {
	wanted int
	least  int    // of them are taken at once
	asked  bool   // somebody has answered
	room   int    // for so many workers of the job, at all nodes that have answered
	apart  string // why the nodes that offer are too far apart, or too few; "" = they are not
}

// text says it in one line; answers is what the nodes have answered.
func (w why) text(answers Tally) string {
	noun := "workers"
	if w.wanted == 1 {
		noun = "worker"
	}
	switch {
	case !w.asked:
		return fmt.Sprintf("looking for %d %s", w.wanted, noun)
	case w.room < w.least:
		return fmt.Sprintf("waiting for %d %s: %s; together they have room for %d", w.wanted, noun, answers, w.room)
	case w.apart != "":
		return fmt.Sprintf("waiting for %d %s: %s; %s", w.wanted, noun, answers, w.apart)
	}
	return fmt.Sprintf("waiting for %d %s: %s", w.wanted, noun, answers)
}
