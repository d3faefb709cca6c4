package search

import (
	"time"

	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// choice is what a plan gives to the first demand that is left.
type choice struct {
	demand *Demand
	number int               // of the demand in its list
	offers []placement.Offer // all that stood
	assign []int             // an offer for each worker
	worst  time.Duration     // distance of the farthest
	sizes  []int             // of a job with groups: workers of each
	hoped  bool              // of a job with groups: it depends on round trips that are shorter or longer than estimated
	near   *nearness         // to where ranks were lost; nil = none were
	any    bool              // any other node that answers may be better, not only a nearer one
}

// farthest is the distance of the farthest node that ranks were assigned to.
func farthest(offers []placement.Offer, assign []int) (worst time.Duration) {
	for _, i := range assign {
		worst = max(worst, offers[i].RTT)
	}
	return worst
}

// nodes lists the node of each worker.
func (c *choice) nodes() (list []vicinity.ID) {
	for _, i := range c.assign {
		list = append(list, vicinity.ID(c.offers[i].Node))
	}
	return list
}
