package placement

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Wish is how a job wants to be placed: as PlaceReplicas does it, and by the
// round trips between its own nodes.
type Wish struct {
	Strategy Strategy // "" = Nearest
	Ranks    int
	Replicas int // 0 = 1
	// MaxRTT bounds the round trip between any two nodes; 0 = no bound.
	MaxRTT time.Duration
	// Between is the round trip between the nodes of two offers, the same both
	// ways; of an offer with itself it is the one to the farthest node that the
	// job has already, or 0. Only Compact and MaxRTT ask for it.
	Between func(a, b int) time.Duration
}

// ErrApart is wrapped where enough is offered, but by nodes too far apart.
var ErrApart = errors.New("nodes too far apart")

const (
	// MaxNodes is how many nodes, the nearest, Compact and MaxRTT choose from.
	MaxNodes = 512
	// effort bounds a search among sets of nodes, in nodes looked at.
	effort = 200_000
	// visitEffort is that of a set that is looked at as a whole, for each node.
	visitEffort = 16
	// maxCentres is how many nodes sets are built around, without effort.
	maxCentres = 128
)

// Slack is by how much more than the smallest worst pair Compact takes where
// that brings the job nearer to its origin: less differs by noise only.
func Slack(worst time.Duration) time.Duration { return max(worst/32, 200*time.Microsecond) }

// Pairwise reports whether round trips between nodes count.
func (w *Wish) Pairwise() bool { return w.Strategy == Compact || w.MaxRTT > 0 }

// Place is PlaceReplicas under a wish. Its errors wrap ErrApart too.
//
// Compact chooses, but for Slack, nodes whose worst pair is at most twice the
// smallest one possible: all nodes of a job are within the worst pair of each
// of them, so the narrowest circle around a node that holds enough has at most
// that radius, and two nodes in it are at most two radii apart, as round trips
// obey the triangle inequality. From there it searches for a better choice;
// among up to 14 nodes, and where nodes are at sites, it finds the best.
//
// No two nodes of any choice are farther apart than MaxRTT. Where only a search
// among very many sets of nodes would find a choice, there may be an error though
// there is one: none for which half of MaxRTT would be enough.
func (w Wish) Place(offers []Offer) (assign [][]int, err error) {
	w.Replicas = max(1, w.Replicas)
	if !w.Pairwise() {
		return PlaceReplicas(w.Strategy, offers, w.Ranks, w.Replicas)
	}
	if err := w.Strategy.Check(); err != nil {
		return nil, err
	}
	f, err := w.field(offers)
	if err != nil {
		return nil, err
	}
	if w.Strategy == Compact {
		best, worst := f.closest()
		if w.MaxRTT > 0 && worst > w.MaxRTT {
			return nil, f.apart(worst)
		}
		within := worst + Slack(worst)
		if w.MaxRTT > 0 {
			within = min(within, w.MaxRTT)
		}
		return f.choose(within, best), nil
	}
	if assign = f.choose(w.MaxRTT, nil); assign != nil {
		return assign, nil
	}
	best, worst := f.closest()
	if worst > w.MaxRTT {
		return nil, f.apart(worst)
	}
	return f.assign(best), nil
}

// Worst returns the two of some offers that are farthest apart, lower first,
// and the round trip between them; -1, -1 and 0 of fewer than two.
func Worst(offers []int, between func(a, b int) time.Duration) (a, b int, rtt time.Duration) {
	a, b = -1, -1
	list := slices.Compact(slices.Sorted(slices.Values(offers)))
	for i, x := range list {
		for _, y := range list[:i] {
			if d := between(y, x); a < 0 || d > rtt {
				a, b, rtt = y, x, d
			}
		}
	}
	return a, b, rtt
}

// field is the hosts to choose from, nearest first, and how far apart they are.
type field struct {
	Wish
	offers []Offer
	hosts  []host
	rtt    [][]time.Duration
	places int // wanted
	left   int // of effort
}

func (w Wish) field(offers []Offer) (*field, error) {
	if _, err := shortList(offers, w.Ranks, w.Replicas); err != nil {
		return nil, err
	}
	f := &field{Wish: w, offers: offers, places: w.Ranks * w.Replicas}
	for i, o := range offers {
		if o.Workers > 0 {
			f.hosts = append(f.hosts, host{i, min(o.Workers, w.Ranks)})
		}
	}
	slices.SortFunc(f.hosts, func(a, b host) int { return nearer(offers[a.index], offers[b.index]) })
	f.hosts = f.hosts[:min(len(f.hosts), MaxNodes)]
	all := make([]int, len(f.hosts))
	f.rtt = make([][]time.Duration, len(f.hosts))
	for i := range f.hosts {
		all[i] = i
		f.rtt[i] = make([]time.Duration, len(f.hosts))
		for k := range i + 1 {
			f.rtt[i][k] = w.Between(f.hosts[i].index, f.hosts[k].index)
			f.rtt[k][i] = f.rtt[i][k]
		}
	}
	if !f.enough(all) {
		return nil, fmt.Errorf("%w: %d workers wanted, the nearest %d nodes have no room for them", ErrInfeasible, f.places, MaxNodes)
	}
	return f, nil
}

func (f *field) apart(worst time.Duration) error {
	return fmt.Errorf("%w: the closest that have room for %d workers are up to %v apart, want %v",
		ErrApart, f.places, worst.Round(10*time.Microsecond), f.MaxRTT)
}

// enough reports whether hosts meet both conditions of the paper's section 4.2.
func (f *field) enough(hosts []int) bool {
	room := 0
	for _, i := range hosts {
		room += f.hosts[i].capacity
	}
	return len(hosts) >= f.Replicas && room >= f.places
}

// worst is the largest round trip between hosts, and to those that the job has.
func (f *field) worst(hosts []int) (worst time.Duration) {
	for n, i := range hosts {
		for _, k := range hosts[:n+1] {
			worst = max(worst, f.rtt[i][k])
		}
	}
	return worst
}

// ball returns the narrowest circle around a host that holds enough.
func (f *field) ball(centre int) (hosts []int, radius time.Duration) {
	type away struct {
		rtt  time.Duration
		host int
	}
	order := make([]away, len(f.hosts))
	for i := range f.hosts {
		order[i] = away{max(f.rtt[centre][i], f.rtt[i][i], f.rtt[centre][centre]), i}
	}
	order[centre].rtt = 0 // first of all
	slices.SortFunc(order, func(a, b away) int { return cmp.Or(cmp.Compare(a.rtt, b.rtt), cmp.Compare(a.host, b.host)) })
	room := 0
	radius = f.rtt[centre][centre]
	for _, a := range order {
		hosts = append(hosts, a.host)
		room, radius = room+f.hosts[a.host].capacity, max(radius, a.rtt)
		if len(hosts) >= f.Replicas && room >= f.places {
			break // all together are enough
		}
	}
	return hosts, radius
}

// closest returns hosts whose worst pair is small, and that round trip: at
// most twice the smallest, the smallest where the search comes to its end.
func (f *field) closest() (best []int, worst time.Duration) {
	radii := make([]time.Duration, len(f.hosts))
	least, centre := time.Duration(math.MaxInt64), 0
	for i := range f.hosts {
		if _, radii[i] = f.ball(i); radii[i] < least {
			least, centre = radii[i], i
		}
	}
	best, _ = f.ball(centre)
	worst = f.worst(best)
	// Round trips that the worst pair could be; no choice is below least.
	var steps []time.Duration
	for i := range f.rtt {
		for _, d := range f.rtt[i][:i+1] {
			if d >= least && d < worst {
				steps = append(steps, d)
			}
		}
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	for len(steps) > 0 {
		mid := len(steps) / 2
		if found := f.some(steps[mid], radii); found != nil {
			best, worst = found, f.worst(found)
			steps = steps[:mid]
			continue
		}
		steps = steps[mid+1:]
	}
	return best, worst
}

// some returns hosts of which no two are farther apart than within, if they can
// be found. Who needs a wider circle than that is left out.
func (f *field) some(within time.Duration, radii []time.Duration) (found []int) {
	g := f.graph(within)
	for i := range f.hosts {
		if radii[i] > within {
			g.leave(i)
		}
	}
	f.groups(g, func(hosts []int) bool {
		if f.enough(hosts) {
			found = slices.Clone(hosts)
		}
		return found != nil
	})
	return found
}

// choose returns the best places by the strategy among sets of hosts of which
// no two are farther apart than within, and among one that is known; nil if it
// finds none.
func (f *field) choose(within time.Duration, known []int) (assign [][]int) {
	var best [2]time.Duration
	f.groups(f.graph(within), func(hosts []int) bool {
		if !f.enough(hosts) {
			return false
		}
		if a := f.assign(hosts); assign == nil || slices.Compare(f.cost(a), best[:]) < 0 {
			assign, best = a, [2]time.Duration(f.cost(a))
		}
		return false
	})
	if known != nil {
		if a := f.assign(known); assign == nil || slices.Compare(f.cost(a), best[:]) < 0 {
			assign = a
		}
	}
	return assign
}

// assign places the job on some of the hosts, which have room for it.
func (f *field) assign(hosts []int) [][]int {
	order := slices.Clone(hosts)
	slices.Sort(order)
	list := make([]host, 0, len(order))
	for _, i := range order {
		list = append(list, f.hosts[i])
	}
	return deal(f.Strategy, list, f.Ranks, f.Replicas)
}

// cost is what the strategy wants to be small, the first number first.
func (f *field) cost(assign [][]int) []time.Duration {
	sum, used := time.Duration(0), map[int]bool{}
	for _, ranks := range assign {
		for _, i := range ranks {
			rtt := f.offers[i].RTT
			if rtt <= 0 {
				rtt = time.Hour
			}
			sum += min(rtt, time.Hour) / time.Duration(f.places)
			used[i] = true
		}
	}
	if f.Strategy == Spread {
		return []time.Duration{-time.Duration(len(used)), sum}
	}
	return []time.Duration{0, sum}
}
