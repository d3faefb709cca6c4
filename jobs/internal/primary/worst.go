package primary

import (
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/placement"
)

// maxWorst is of how many nodes the worst pair is reported.
const maxWorst = 128

// worstPair returns the worst pair of the job's nodes, nil of one node, of very
// many, and where nothing is known.
func (p *lifecycle) worstPair() *jobs.WorstPair {
	nodes := p.Rec.Nodes()
	if len(nodes) < 2 || len(nodes) > maxWorst {
		return nil
	}
	all := make([]int, len(nodes))
	for i := range all {
		all[i] = i
	}
	a, b, rtt := placement.Worst(all, func(a, b int) time.Duration {
		d, _ := p.Search.Between(nodes[a], nodes[b])
		return d
	})
	if rtt >= jobs.MaxApart {
		return nil
	}
	w := &jobs.WorstPair{A: nodes[a], B: nodes[b], NameA: p.Rec.NameOf(nodes[a]), NameB: p.Rec.NameOf(nodes[b]), RTT: codec.Duration(rtt)}
	_, sure := p.Search.Between(w.A, w.B)
	w.Estimated, w.Links = !sure, p.linkPairs()
	return w
}
