package search

import (
	"maps"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// Spare is an offer that the job keeps.
type Spare struct {
	Node    vicinity.ID
	Name    string
	Key     uint64
	RTT     time.Duration
	Workers int
}

// FromSpares gives spares to ranks that were lost, as many as there are: each the one that it would get as a
// replacement.
func (s *nodeAnswers) FromSpares(spec *jobs.Spec, d Demand, spares []Spare, between func(a, b vicinity.ID) time.Duration) (list []Choice) {
	offers, room := make([]placement.Offer, len(spares)), 0
	for i, o := range spares {
		offers[i] = placement.Offer{Node: string(o.Node), RTT: o.RTT, Workers: o.Workers}
		room += o.Workers
	}
	d.Wanted = min(d.Wanted, room)
	d.Lost = d.Lost[:min(len(d.Lost), d.Wanted)]
	near := newNearness(d.Lost, offers, between)
	if near == nil {
		return nil
	}
	var assign []int
	var err error
	if spec.Mapped() {
		assign, err = mapped(spec, &d, offers, s.powerOf, between)
	} else {
		assign, err = near.each(placement.Demand{Most: d.Wanted}, offers, offers)
	}
	if err != nil {
		return nil
	}
	places := map[int][]int{}
	for place, i := range assign {
		places[i] = append(places[i], place)
	}
	for _, i := range slices.Sorted(maps.Keys(places)) {
		o := spares[i]
		list = append(list, Choice{Node: o.Node, Name: o.Name, Key: o.Key, RTT: o.RTT, Places: places[i], Replaced: near.replaced(o.Node, places[i])})
	}
	return list
}
