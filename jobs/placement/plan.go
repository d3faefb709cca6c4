package placement

import (
	"errors"
	"fmt"
	"slices"
)

// Demand is what one job wants of the offers: Most workers, of which it takes at least Least, or
// none. Copies of ranks count as workers each.
type Demand struct {
	Wish  // how; Ranks is not used
	Least int
	Most  int // at least Least
}

// Allocation is what a job gets: the index of an offer for each worker, copy by copy and in each by
// rank; or nothing, and why.
type Allocation struct {
	Offers []int
	Err    error // as of Wish.Place
}

// Plan gives offers to jobs, one after the other. What one has got is no longer there for those after
// it. Its zero value has no offers.
type Plan struct {
	offers []Offer
}

// NewPlan returns one in which nothing is given away. The offers are not changed.
func NewPlan(offers []Offer) *Plan { return &Plan{slices.Clone(offers)} }

// Allocate gives a job as many workers as it can, of all that are left. The functions of its wish get
// indices of the offers that the plan was made of.
func (p *Plan) Allocate(d Demand) (a Allocation) {
	a.Offers, a.Err = p.most(d)
	for _, i := range a.Offers {
		p.offers[i].Workers--
	}
	return a
}

func (p *Plan) most(d Demand) (assign []int, err error) {
	most := 0
	for _, o := range p.offers {
		most += max(0, min(o.Workers, d.Most))
	}
	if most < d.Least || most == 0 {
		return nil, fmt.Errorf("%w: %d workers wanted, room for %d", ErrInfeasible, max(1, d.Least), most)
	}
	most = min(most, d.Most)
	if assign, err = p.try(d, most); err == nil || !errors.Is(err, ErrApart) || d.Least >= most {
		return assign, err
	}
	low := d.Least // the most that can be placed is looked for by halves
	if assign, err = p.try(d, low); err != nil {
		return nil, err
	}
	for high := most; high-low > 1; {
		mid := low + (high-low)/2
		if more, err := p.try(d, mid); err == nil {
			assign, low = more, mid
		} else {
			high = mid
		}
	}
	return assign, nil
}

func (p *Plan) try(d Demand, workers int) ([]int, error) {
	w := d.Wish
	w.Ranks = workers / max(1, w.Replicas)
	list, err := w.Place(p.offers)
	if err != nil {
		return nil, err
	}
	return slices.Concat(list...), nil
}
