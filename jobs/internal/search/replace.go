package search

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// A rank that was lost runs again near where it was: what it tells the others, and its checkpoints, have the
// least way from there. A node of the same cluster comes first, then the nearest; how far both are from here
// counts no more. So nodes near there are asked as well as those near by, in the same round. One that is moved to
// a node is looked for in the same way near that, which is the nearest to itself.

const (
	// batchBeside is how many nodes near each lost one are asked at first because of that: twice as many
	// follow, and so on up to maxBeside, as long as none of them offers that is in its cluster.
	batchBeside = 8
	maxBeside   = 64
	// oneCluster is beyond what is one cluster by any measure of vicinity.Group, and maxClustered bounds
	// how many nodes are put into clusters for a choice.
	oneCluster   = 8 * time.Millisecond
	maxClustered = 256
	// otherCluster is what a node counts as farther that is in another cluster.
	otherCluster = time.Hour
	// besideWait bounds the wait for the nodes near lost ones, and how long after a flood more of them are asked.
	besideWait = 250 * time.Millisecond
	// maxPaired bounds for how many ranks it is looked which of the nodes that they get is nearest to which.
	maxPaired = 512
)

// losses is where ranks were lost; "" = nowhere.
type losses []vicinity.ID

// nodes lists them, each once.
func (l losses) nodes() []vicinity.ID {
	seen := map[vicinity.ID]bool{}
	for _, id := range l {
		if id != "" {
			seen[id] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// at is where one of them was lost.
func (l losses) at(place int) vicinity.ID {
	if place < len(l) {
		return l[place]
	}
	return ""
}

// beside is which nodes are asked since they are near those where ranks were lost.
type beside struct {
	round int                       // of the flood that they are asked in
	list  []vicinity.Measured       // who comes next
	batch int                       // how many of them
	until map[vicinity.ID]time.Time // they may answer who were asked
}

// begin returns the first nodes to be asked in a round, of those whose round trips are given, once for each round.
func (b *beside) begin(now time.Time, round int, d *Demand, known map[vicinity.ID]time.Duration, between apartOf) []vicinity.Measured {
	if b.round == round {
		return nil
	}
	from := d.Lost.nodes()
	*b = beside{round: round, batch: batchBeside * len(from), until: map[vicinity.ID]time.Time{}}
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(id vicinity.ID) bool {
		return slices.Contains(from, id) && !slices.Contains(d.To, id)
	})
	orders := make([][]vicinity.ID, len(from))
	for i, id := range from {
		orders[i] = nearestTo(id, ids, between)
	}
	for i := range ids { // by turns, the nearest of each lost one
		for _, order := range orders {
			if id := order[i]; len(b.list) < maxBeside && !slices.ContainsFunc(b.list, func(m vicinity.Measured) bool { return m.ID == id }) {
				b.list = append(b.list, vicinity.Measured{ID: id, RTT: known[id]})
			}
		}
	}
	return b.next(now)
}

// nearestTo sorts nodes by how far they are from one of them.
func nearestTo(from vicinity.ID, nodes []vicinity.ID, between apartOf) []vicinity.ID {
	far := make(map[vicinity.ID]time.Duration, len(nodes))
	for _, id := range nodes {
		far[id] = between(from, id)
	}
	return slices.SortedStableFunc(slices.Values(nodes), func(a, b vicinity.ID) int { return cmp.Compare(far[a], far[b]) })
}

// next returns who is to be asked now.
func (b *beside) next(now time.Time) []vicinity.Measured {
	n := min(b.batch, len(b.list))
	list := b.list[:n]
	b.list, b.batch = b.list[n:], min(2*b.batch, maxBeside)
	for _, m := range list {
		b.until[m.ID] = now.Add(min(m.RTT+m.RTT/4+10*time.Millisecond, besideWait))
	}
	return list
}

// better returns until when nodes may yet answer in a round that are nearer to the lost ones than those which the
// ranks would get, zero if nobody will; reached have answered. If nobody will, and the round is no older than
// it takes to ask others, these are to be asked now.
func (b *beside) better(now, flooded time.Time, round int, reached map[vicinity.ID]bool, near *nearness,
	assign []vicinity.ID) (at time.Time, more []vicinity.Measured) {
	if near == nil || b.round != round {
		return at, nil
	}
	worst := time.Duration(0)
	for place, id := range assign {
		if from := near.lost.at(place); from != "" {
			worst = max(worst, near.of(from, id))
		}
	}
	await := func() {
		for id, until := range b.until {
			if !reached[id] && now.Before(until) && near.least(id) < worst {
				at = timers.Later(at, until)
			}
		}
	}
	if await(); at.IsZero() && worst > otherCluster && now.Before(flooded.Add(besideWait)) {
		more = b.next(now)
		await()
	}
	return at, more
}

// apartOf is how far two nodes are from each other.
type apartOf func(a, b vicinity.ID) time.Duration

// nearness is how near nodes are to those where ranks were lost.
type nearness struct {
	between apartOf
	lost    losses
	from    []vicinity.ID       // the nodes of lost
	cluster map[vicinity.ID]int // of those that are near enough to be in one with a lost node
}

// newNearness finds out which of the nodes that offer are in a cluster with the lost ones; nil if none were.
func newNearness(lost losses, offers []placement.Offer, between apartOf) *nearness {
	k := &nearness{between: between, lost: lost, from: lost.nodes(), cluster: map[vicinity.ID]int{}}
	if len(k.from) == 0 {
		return nil
	}
	far := map[vicinity.ID]time.Duration{}
	for _, o := range offers {
		id := vicinity.ID(o.Node)
		least := between(k.from[0], id)
		for _, from := range k.from[1:] {
			least = min(least, between(from, id))
		}
		if least <= oneCluster && !slices.Contains(k.from, id) {
			far[id] = least
		}
	}
	list := slices.SortedFunc(maps.Keys(far), func(a, b vicinity.ID) int { return cmp.Or(cmp.Compare(far[a], far[b]), cmp.Compare(a, b)) })
	list = append(list[:min(len(list), maxClustered)], k.from...)
	for number, group := range vicinity.Group(len(list), func(a, b int) time.Duration { return between(list[a], list[b]) }) {
		for _, i := range group {
			k.cluster[list[i]] = number
		}
	}
	return k
}

// of is how far a node counts from a lost one.
func (k *nearness) of(from, id vicinity.ID) time.Duration {
	rtt := k.between(from, id)
	if !k.same(from, id) {
		rtt += otherCluster
	}
	return max(rtt, 1)
}

// same reports whether a node is in the cluster of a lost one.
func (k *nearness) same(from, id vicinity.ID) bool {
	number, ok := k.cluster[id]
	return ok && number == k.cluster[from]
}

// replaced says of ranks that get a node where each was lost; nil = none was.
func (k *nearness) replaced(to vicinity.ID, places []int) (list []jobs.Replaced) {
	if k == nil {
		return nil
	}
	for i, place := range places {
		from := k.lost.at(place)
		if from == "" {
			continue
		}
		if list == nil {
			list = make([]jobs.Replaced, len(places))
		}
		list[i] = jobs.Replaced{From: from, Same: k.same(from, to)}
		if rtt := k.between(from, to); rtt < jobs.MaxApart {
			list[i].RTT = codec.Duration(rtt)
		}
	}
	return list
}

// least is how far a node counts from the nearest of the lost ones.
func (k *nearness) least(id vicinity.ID) time.Duration {
	least := k.of(k.from[0], id)
	for _, from := range k.from[1:] {
		least = min(least, k.of(from, id))
	}
	return least
}

// weighed returns the offers by how near they are to a lost node, or with "" to the nearest of these.
func (k *nearness) weighed(offers []placement.Offer, from vicinity.ID) []placement.Offer {
	list := slices.Clone(offers)
	for i := range list {
		if id := vicinity.ID(list[i].Node); from == "" {
			list[i].RTT = k.least(id)
		} else {
			list[i].RTT = k.of(from, id)
		}
	}
	return list
}

// replace gives offers to the wanted workers, each that was lost one near where it was; weighed are the
// offers as they count for the others. Where the choice of one depends on the others', all are chosen
// together, those first that each would have by itself.
func (k *nearness) replace(wish placement.Demand, offers, weighed []placement.Offer, joint bool) ([]int, error) {
	if !joint {
		return k.each(wish, offers, weighed)
	}
	alone, err := k.each(placement.Demand{Least: wish.Least, Most: wish.Most}, offers, weighed)
	if err != nil {
		return nil, err
	}
	list := k.weighed(offers, "")
	for _, i := range alone {
		list[i].RTT = 1
	}
	got := placement.NewPlan(list).Allocate(wish)
	if got.Err == nil {
		k.pair(got.Offers, offers)
	}
	return got.Offers, got.Err
}

// each gives each of the wanted workers an offer by itself.
func (k *nearness) each(wish placement.Demand, offers, weighed []placement.Offer) ([]int, error) {
	room := 0
	for _, o := range offers {
		room += max(0, o.Workers)
	}
	total := min(room, wish.Most)
	if total < wish.Least || total == 0 {
		return nil, fmt.Errorf("%w: %d workers wanted, room for %d", placement.ErrInfeasible, max(1, wish.Least), room)
	}
	places := map[vicinity.ID][]int{} // by where they were
	var order []vicinity.ID           // new ones last
	for i := range total {
		from := k.lost.at(i)
		if places[from] = append(places[from], i); len(places[from]) == 1 && from != "" {
			order = append(order, from)
		}
	}
	if len(places[""]) > 0 {
		order = append(order, "")
	}
	assign, left := make([]int, total), slices.Clone(offers)
	for _, from := range order {
		list := weighed
		if from != "" {
			list = k.weighed(offers, from)
		}
		wish.Least, wish.Most = len(places[from]), len(places[from])
		chosen, err := allocate(wish, list, left, offers)
		if err != nil {
			return nil, err
		}
		for n, i := range chosen {
			assign[places[from][n]] = i
			left[i].Workers--
		}
	}
	return assign, nil
}

// allocate chooses among what is left of all offers, by the weight of each; to spread a job, first among those
// of which nothing is taken.
func allocate(wish placement.Demand, weighed, left, all []placement.Offer) ([]int, error) {
	list := slices.Clone(weighed)
	for i := range list {
		if list[i].Workers = left[i].Workers; wish.Strategy == placement.Spread && left[i].Workers < all[i].Workers {
			list[i].Workers = 0
		}
	}
	got := placement.NewPlan(list).Allocate(wish)
	if got.Err == nil || wish.Strategy != placement.Spread {
		return got.Offers, got.Err
	}
	for i := range list {
		list[i].Workers = left[i].Workers
	}
	got = placement.NewPlan(list).Allocate(wish)
	return got.Offers, got.Err
}

// pair deals chosen offers to the ranks so that each that was lost gets the nearest one that is left.
func (k *nearness) pair(assign []int, offers []placement.Offer) {
	if len(assign) > maxPaired {
		return
	}
	for place := range assign {
		from, best := k.lost.at(place), place
		if from == "" {
			continue
		}
		far := func(n int) time.Duration { return k.of(from, vicinity.ID(offers[assign[n]].Node)) }
		for n := range assign {
			if (n > place || k.lost.at(n) == "") && far(n) < far(best) {
				best = n
			}
		}
		assign[place], assign[best] = assign[best], assign[place]
	}
}
