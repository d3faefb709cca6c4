// Package placement decides which node gets which ranks of a job. It is pure:
// the same offers give the same places, in whatever order they are listed.
//
// The strategies spread and concentrate, the test of feasibility and the
// numbering of ranks are those of S. Genaud and C. Rattanapoka, Large-Scale
// Experiment of Co-allocation Strategies for Peer-to-Peer SuperComputing in
// P2P-MPI, sections 4.2 and 4.3: n ranks with r replicas each, of which no two
// of one rank share a node. All functions may be called from any goroutine.
package placement

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Offer is what one node would take.
type Offer struct {
	Node    string        // no two offers are of one node
	RTT     time.Duration // from the origin; 0 or less = unknown, taken as farther than all others
	Workers int           // at most; an offer of 0 or less is passed over
}

// Strategy names a way to choose among offers.
type Strategy string

// The strategies. Nearest and Concentrate both fill the nearest nodes to the
// brim, which is what makes the mean RTT smallest, and so give the same places;
// Nearest is the promise (distance), Concentrate the algorithm of the paper.
const (
	Nearest     Strategy = "nearest"     // smallest mean RTT; the default
	Spread      Strategy = "spread"      // as many nodes as possible, the nearest of them, evenly filled
	Concentrate Strategy = "concentrate" // as many workers per node as it takes, nearest nodes first
	Compact     Strategy = "compact"     // smallest worst round trip between two nodes, see Wish.Place
	Bandwidth   Strategy = "bandwidth"   // as nearest, by how long the job's input takes to each node, see Timed
	Maheve      Strategy = "maheve"      // by a task graph, one task to a node, see package mapping
)

var (
	// ErrStrategy is wrapped where a strategy is not one of the above.
	ErrStrategy = errors.New("unknown strategy")
	// ErrInfeasible is wrapped where the offers are not enough.
	ErrInfeasible = errors.New("not enough offers")
	// ErrInvalid is wrapped where no offers could make sense of the arguments.
	ErrInvalid = errors.New("invalid placement")
)

// MaxPlaces bounds ranks times replicas.
const MaxPlaces = 10_000_000

// Strategies returns all strategies, the default first.
func Strategies() []Strategy {
	return []Strategy{Nearest, Spread, Concentrate, Compact, Bandwidth, Maheve}
}

// Check returns an error that lists the choices if s is not a strategy. Empty
// means the default.
func (s Strategy) Check() error {
	if s == "" || slices.Contains(Strategies(), s) {
		return nil
	}
	var names []string
	for _, known := range Strategies() {
		names = append(names, string(known))
	}
	return fmt.Errorf("%w %.40q: choose one of %s", ErrStrategy, string(s), strings.Join(names, ", "))
}

// Place gives each rank of a job its offer: assign[rank] is an index into
// offers. The ranks of a node are contiguous, and nearer nodes have lower ranks.
func Place(strategy Strategy, offers []Offer, workers int) (assign []int, err error) {
	replicas, err := PlaceReplicas(strategy, offers, workers, 1)
	if err != nil {
		return nil, err
	}
	return replicas[0], nil
}

// PlaceReplicas is Place for n ranks with r replicas each: assign[replica][rank]
// is an index into offers. No two replicas of a rank are on one node. Compact is
// the one strategy that needs more: see Wish.
func PlaceReplicas(strategy Strategy, offers []Offer, n, r int) (assign [][]int, err error) {
	if err := strategy.Check(); err != nil {
		return nil, err
	}
	if strategy == Compact || strategy == Maheve {
		return nil, fmt.Errorf("%w: %s needs the distances between nodes", ErrInvalid, strategy)
	}
	list, err := shortList(offers, n, r)
	if err != nil {
		return nil, err
	}
	return deal(strategy, list, n, r), nil
}

// Speed is how many bytes a second come from the origin to a node; 0 = not known. Where it
// is only known that there are that many at least, Least is true.
type Speed struct {
	Rate  float64
	Least bool
}

// Timed returns the offers with the time in which so many bytes come to each node in place of
// the round trip, for Bandwidth: the round trip and the bytes at the node's speed. A speed
// that is not known, or at least what it is, is taken for the median of those that are, or of
// those at least if there are no others; if none is known nothing is changed. Speeds is one
// for each offer; that of the origin itself is infinite.
func Timed(offers []Offer, bytes int64, speeds []Speed) []Offer {
	var sure, least []float64
	for _, s := range speeds {
		switch {
		case s.Rate <= 0 || math.IsInf(s.Rate, 1):
		case s.Least:
			least = append(least, s.Rate)
		default:
			sure = append(sure, s.Rate)
		}
	}
	known := sure
	if len(known) == 0 {
		known = least
	}
	if len(known) == 0 || bytes <= 0 {
		return offers
	}
	slices.Sort(known)
	usual := known[len(known)/2]
	timed := slices.Clone(offers)
	for i, s := range speeds {
		if s.Rate <= 0 || s.Least {
			s.Rate = max(s.Rate, usual)
		}
		took := min(float64(bytes)/s.Rate*float64(time.Second), float64(maxTime))
		timed[i].RTT = min(max(timed[i].RTT, 0), maxTime) + time.Duration(took)
		if offers[i].RTT <= 0 {
			timed[i].RTT = 0 // what is not known stays last
		}
	}
	return timed
}

// maxTime bounds how long a transfer is said to take: the sum of two must not overflow.
const maxTime = 1000 * time.Hour

// deal gives the hosts in order, which have room for it, n ranks r times over.
func deal(strategy Strategy, list []host, n, r int) (assign [][]int) {
	list = list[:min(len(list), n*r)]
	var used []int
	if strategy == Spread {
		used = spread(list, n*r)
	} else {
		used = concentrate(list, n*r)
	}
	assign = make([][]int, r)
	for i := range assign {
		assign[i] = make([]int, n)
	}
	// Ranks 0 to n-1, r times over, along the list: a node takes at most n of
	// them in a row, so all its ranks differ.
	place := 0
	for i, host := range list {
		for range used[i] {
			assign[place/n][place%n] = host.index
			place++
		}
	}
	return assign
}

// host is an offer on the short list ("slist" in the paper).
type host struct {
	index    int // into the offers
	capacity int // c = min(P, n)
}

// shortList returns the nearest n*r offers, as more would never be used, if
// they meet both conditions of section 4.2.
func shortList(offers []Offer, n, r int) ([]host, error) {
	if n < 1 || r < 1 || n > MaxPlaces/r {
		return nil, fmt.Errorf("%w: %d workers with %d replicas: want at least 1 of each and %d in all", ErrInvalid, n, r, MaxPlaces)
	}
	names := make(map[string]bool, len(offers))
	var list []host
	for i, o := range offers {
		if names[o.Node] {
			return nil, fmt.Errorf("%w: two offers of node %.40q", ErrInvalid, o.Node)
		}
		names[o.Node] = true
		if o.Workers > 0 {
			list = append(list, host{i, min(o.Workers, n)})
		}
	}
	slices.SortFunc(list, func(a, b host) int { return nearer(offers[a.index], offers[b.index]) })
	list = list[:min(len(list), n*r)]
	if len(list) < r {
		return nil, fmt.Errorf("%w: %d replicas need %d nodes, %d offered", ErrInfeasible, r, r, len(list))
	}
	room := 0
	for _, h := range list {
		room += h.capacity
	}
	if room < n*r {
		return nil, fmt.Errorf("%w: %d workers wanted, room for %d on %d nodes", ErrInfeasible, n*r, room, len(list))
	}
	return list, nil
}

// nearer orders by RTT, unknown last, then by name.
func nearer(a, b Offer) int {
	if known := a.RTT > 0; known != (b.RTT > 0) {
		if known {
			return -1
		}
		return 1
	} else if known && a.RTT != b.RTT {
		return cmp.Compare(a.RTT, b.RTT)
	}
	return strings.Compare(a.Node, b.Node)
}

// concentrate fills one host after the other.
func concentrate(list []host, places int) (used []int) {
	used = make([]int, len(list))
	for i, h := range list {
		used[i] = min(h.capacity, places)
		places -= used[i]
	}
	return used
}

// spread deals one place to each host in turn. Hosts that are full leave the
// round, so that the work is one step per place.
func spread(list []host, places int) (used []int) {
	used = make([]int, len(list))
	round := make([]int, len(list))
	for i := range list {
		round[i] = i
	}
	for places > 0 {
		open := round[:0]
		for _, i := range round {
			if places == 0 {
				return used
			}
			used[i]++
			places--
			if used[i] < list[i].capacity {
				open = append(open, i)
			}
		}
		round = open
	}
	return used
}
