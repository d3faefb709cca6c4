// Package topology decides how many workers of each group of a job go to each host, so that the
// links between the groups hold. It is pure: the same offers give the same answer, in whatever
// order they are listed.
//
// The constraints are (1) to (5) of P. Bar et al., Running parallel applications with topology-aware
// grid middleware (QosCosGrid): each group gets as many workers as it wants, no host more than it has
// room for, all of them where they fit, and links bound the distance of each pair.
//
// How it searches: what bounds make of distances is yes or no, so hosts that no bound tells apart are
// one unit with the room of all. A flow from groups to units, which knows of links and clusters only
// what was decided so far, says what could be had at best, or that there is too little. If its answer
// happens to keep all constraints it is the best one; if not, one decision that mends something is
// tried, and then its opposite. Groups that want the same are taken for each other: what is of no use
// for one is not tried for the next. So it looks for the largest share of their ranges that all groups
// can have, beginning anew at other centres where it does not get on; and then for anything better,
// until it has seen everything or its effort is used up. Infeasible is said only if it has seen
// everything, or the flow found too little room.
//
// All functions may be called from any goroutine; a problem is not changed.
package topology

import (
	"cmp"
	"time"
)

// MaxGroups bounds the groups of a problem.
const MaxGroups = 64

// Amounts is slots, memory (bytes), disk (bytes), GPUs.
type Amounts [4]int64

// Host is what one host offers.
type Host struct {
	Name    string        // for messages, and where two are equal otherwise
	Free    Amounts       // room for any mix of the groups' workers
	Workers int           // at most so many new workers in all; 0 = no bound
	Fits    uint64        // bit g: it fulfils the conditions of group g
	Cluster int           // the number of its cluster
	Near    time.Duration // from the origin; 0 or less = not known, taken as farther than all others
	Clock   int64         // 0 = not known
	Power   int64         // 0 = not known
	// Has is the workers of each group that are there already, and stay; nil = none. They take no
	// room of Free. A new worker keeps to the bounds with them, but they are not judged among themselves.
	Has []int
}

// Alike is in what the hosts of a group are to be like each other.
type Alike uint8

// A group of AlikeClock or AlikePower gets hosts that differ as little in that as can be, and of those the strongest;
// it gets no fewer workers for that.
const (
	AlikeNot Alike = iota
	AlikeClock
	AlikePower
)

// Group is workers that want the same.
type Group struct {
	Name     string
	Min, Max int     // workers wanted beyond those in Has; Max >= Min >= 0
	Takes    Amounts // of each worker
	Alike    Alike
	Clusters int // at most so many clusters; 0 = no bound, 1 = unsplit
}

// OneHost is a MaxRTT that only workers of one host keep.
const OneHost = time.Nanosecond

// Link bounds the distance between any two workers of its groups, also of one group, also on one host.
// The smallest link that holds the groups of both is the one that counts; where there is none there is no bound.
// Within a host the round trip is 0, and bandwidth unlimited: MinRTT or MaxBandwidth forbid two on one.
type Link struct {
	Name         string
	Groups       uint64        // bit g; the sets of a problem's links are nested or disjoint, and differ
	MinRTT       time.Duration // 0 = no bound, as below
	MaxRTT       time.Duration
	MinBandwidth int64 // Mbit/s
	MaxBandwidth int64
}

// Weights says what a job is worth: the sum of both, weighted. Neither is negative. Zero means {1, 0}.
type Weights struct {
	Satisfaction float64 // for each group, the share that it gets of its Max
	Utilisation  float64 // the share that the job gets of all slots that are offered
}

// Problem is what is wanted, and what there is.
type Problem struct {
	Hosts     []Host
	Groups    []Group // at most MaxGroups
	Links     []Link
	RTT       func(a, b int) time.Duration // between two different hosts, both ways the same; negative = not known, which no bound allows
	Bandwidth func(a, b int) int64         // as RTT, in Mbit/s; 0 = not known, which no bound allows; nil = none is known
	Weights   Weights
	Effort    int // bounds the search, in steps of about 8 ns; 0 = DefaultEffort
}

// DefaultEffort takes about 50 ms.
const DefaultEffort = 6_000_000

// Verdict is how a search ended.
type Verdict uint8

// NotFound says nothing about whether there is an answer; the other two are certain.
const (
	NotFound Verdict = iota
	Found
	Infeasible
)

// Result is an answer, or why there is none.
type Result struct {
	Verdict Verdict
	Counts  [][]int // new workers by host and group; nil unless found
	Utility float64
	Bound   float64 // no answer has a higher utility
	Proven  bool    // no answer has a higher one than this
	Why     string  // for people, one line, unless found
	Steps   int     // of Effort that were used
}

// holds reports whether the bounds of a link hold between a worker on each of two hosts, or two on one.
func (p *Problem) holds(l *Link, a, b int) bool {
	if a == b {
		return l.MinRTT <= 0 && l.MaxBandwidth <= 0
	}
	if l.MinRTT > 0 || l.MaxRTT > 0 {
		rtt := p.rtt(a, b)
		if rtt < 0 || rtt < l.MinRTT || l.MaxRTT > 0 && rtt > l.MaxRTT {
			return false
		}
	}
	if l.MinBandwidth > 0 || l.MaxBandwidth > 0 {
		bandwidth := p.bandwidth(a, b)
		if bandwidth <= 0 || bandwidth < l.MinBandwidth || l.MaxBandwidth > 0 && bandwidth > l.MaxBandwidth {
			return false
		}
	}
	return true
}

func (p *Problem) rtt(a, b int) time.Duration {
	if p.RTT == nil {
		return -1
	}
	return p.RTT(a, b)
}

func (p *Problem) bandwidth(a, b int) int64 {
	if p.Bandwidth == nil {
		return 0
	}
	return p.Bandwidth(a, b)
}

// maxRemembered bounds the hosts whose distances are remembered, to 32 MB.
const maxRemembered = 2000

// remembered returns the same problem, which asks for each round trip at most once or twice: to find out may take long.
func (p *Problem) remembered() *Problem {
	n := len(p.Hosts)
	if n > maxRemembered || p.RTT == nil {
		return p
	}
	q := *p
	known := make([]time.Duration, n*n) // 2 more than it is; 0 = not asked for
	q.RTT = func(a, b int) time.Duration {
		d := &known[a*n+b]
		if *d == 0 {
			*d = max(p.RTT(a, b), -1) + 2
		}
		return *d - 2
	}
	return &q
}

// bounded reports whether there is anything that it forbids.
func (l *Link) bounded() bool {
	return l.MinRTT > 0 || l.MaxRTT > 0 || l.MinBandwidth > 0 || l.MaxBandwidth > 0
}

// link returns the smallest link that holds both groups, or nil.
func (p *Problem) link(g, g2 int) *Link {
	var best *Link
	for i := range p.Links {
		if l := &p.Links[i]; l.Groups>>g&1 == 1 && l.Groups>>g2&1 == 1 && (best == nil || size(l.Groups) < size(best.Groups)) {
			best = l
		}
	}
	return best
}

// has returns how many workers of a group are on a host already.
func (h *Host) has(g int) int {
	if g < len(h.Has) {
		return h.Has[g]
	}
	return 0
}

// value returns what a worker of each group adds to the utility.
func (p *Problem) value() []float64 {
	w := p.Weights
	if w == (Weights{}) {
		w.Satisfaction = 1
	}
	slots := 0.0
	for i := range p.Hosts {
		slots += float64(max(0, p.Hosts[i].Free[0]))
	}
	list := make([]float64, len(p.Groups))
	for g := range p.Groups {
		if p.Groups[g].Max > 0 {
			list[g] = w.Satisfaction / float64(p.Groups[g].Max)
		}
		if slots > 0 {
			list[g] += w.Utilisation * float64(p.Groups[g].Takes[0]) / slots
		}
	}
	return list
}

// nearer orders hosts: the nearest first, those of unknown distance last.
func nearer(a, b *Host) int {
	if known := a.Near > 0; known != (b.Near > 0) {
		if known {
			return -1
		}
		return 1
	} else if known && a.Near != b.Near {
		return cmp.Compare(a.Near, b.Near)
	}
	return cmp.Compare(a.Name, b.Name)
}
