package jobs

import (
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// maxWorst is of how many nodes the worst pair is told.
const maxWorst = 128

// WorstPair is the two nodes of a job that are farthest apart.
type WorstPair struct {
	A     vicinity.ID    `json:"a"`
	B     vicinity.ID    `json:"b"`
	NameA string         `json:"name_a,omitempty"`
	NameB string         `json:"name_b,omitempty"`
	RTT   codec.Duration `json:"rtt"`
	// Estimated is set where the round trip was worked out from the places of
	// the nodes, not measured.
	Estimated bool `json:"estimated,omitempty"`
}

// worstPair returns the worst pair of the job's nodes, nil of one node, of very
// many, and where nothing is known.
func (p *lifecycle) worstPair() *WorstPair {
	nodes := p.rec.nodes()
	if len(nodes) < 2 || len(nodes) > maxWorst {
		return nil
	}
	all := make([]int, len(nodes))
	for i := range all {
		all[i] = i
	}
	a, b, rtt := placement.Worst(all, func(a, b int) time.Duration {
		d, _ := p.search.between(nodes[a], nodes[b])
		return d
	})
	if rtt >= maxApart {
		return nil
	}
	w := &WorstPair{A: nodes[a], B: nodes[b], NameA: p.rec.nameOf(nodes[a]), NameB: p.rec.nameOf(nodes[b]), RTT: codec.Duration(rtt)}
	_, sure := p.search.between(w.A, w.B)
	w.Estimated = !sure
	return w
}

// String tells it in one line.
func (w *WorstPair) String() string {
	about := ""
	if w.Estimated {
		about = "about "
	}
	return fmt.Sprintf("%s%v: %s - %s", about, time.Duration(w.RTT).Round(10*time.Microsecond), label(w.NameA, w.A), label(w.NameB, w.B))
}
