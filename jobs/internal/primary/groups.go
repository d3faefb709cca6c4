package primary

import (
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// preferences is how long groups wait for room in few clusters.
type preferences struct {
	split []bool    // groups that may be anywhere since they have waited for long enough
	ends  time.Time // when the next may; zero = none will
}

// look finds out which groups have waited for long enough.
func (p *preferences) look(now time.Time, rec *record.Record) {
	list := rec.Spec.Groups
	if *p = (preferences{}); len(list) == 0 || rec.Wanted() == 0 {
		return
	}
	p.split = make([]bool, len(list))
	since := rec.Eligible
	if rec.Started.IsZero() { // else ranks that were lost have waited, and others of their group may be split already
		since = timers.Later(since, rec.Lacking)
	}
	for i := range list {
		prefer := time.Duration(list[i].Prefer)
		if at := since.Add(prefer); prefer > 0 && now.Before(at) {
			p.ends = timers.Earlier(p.ends, at)
		} else if prefer > 0 {
			p.split[i] = true
		}
	}
}

// groupsWanted is what a job with groups wants of a search, nil for others.
func (p *lifecycle) groupsWanted() *search.Groups {
	n := len(p.Rec.Spec.Groups)
	if n == 0 {
		return nil
	}
	g := &search.Groups{Split: p.split}
	if len(g.Split) != n { // nobody has looked yet
		g.Split = make([]bool, n)
	}
	g.Least, g.Most, g.Has = p.Rec.GroupsWanted()
	return g
}

// shape is how many workers the job is to have.
func (l *ledger) shape() jobs.Shape {
	s := jobs.Shape{Asked: l.Rec.Asked}
	for i, g := range l.Rec.AsSubmitted().Groups {
		group := jobs.GroupStatus{Name: g.Name, Min: g.Min, Max: g.Max}
		if !l.Rec.SizesOpen() {
			group.Workers = l.Rec.Spec.Groups[i].Max
		}
		s.Groups = append(s.Groups, group)
	}
	return s
}

// linkPairs returns the worst pair of each link that bounds round trips.
func (p *lifecycle) linkPairs() (list []jobs.LinkPair) {
	t := &p.Rec.Spec.Topology
	nodes := make([][]vicinity.ID, len(t.Groups))
	for rank := range p.Rec.Ranks {
		group, _ := p.Rec.Spec.GroupOf(rank)
		if k := &p.Rec.Ranks[rank]; group >= 0 && k.Node != "" && !slices.Contains(nodes[group], k.Node) {
			nodes[group] = append(nodes[group], k.Node)
		}
	}
	for i := range t.Links {
		l, worst := &t.Links[i], jobs.LinkPair{Link: t.Links[i].Name}
		if l.MinRTT == 0 && l.MaxRTT == 0 {
			continue
		}
		for g := range t.Groups {
			for h := range g + 1 {
				if t.Ruling(g, h) == i {
					p.farthest(&worst.WorstPair, nodes[g], nodes[h])
				}
			}
		}
		if worst.A != "" {
			list = append(list, worst)
		}
	}
	return list
}

// farthest makes two nodes the worst pair that are farther apart.
func (p *lifecycle) farthest(worst *jobs.WorstPair, some, others []vicinity.ID) {
	for _, a := range some {
		for _, b := range others {
			rtt, sure := p.Search.Between(a, b)
			if a != b && rtt < jobs.MaxApart && codec.Duration(rtt) > worst.RTT {
				*worst = jobs.WorstPair{A: a, B: b, NameA: p.Rec.NameOf(a), NameB: p.Rec.NameOf(b), RTT: codec.Duration(rtt), Estimated: !sure}
			}
		}
	}
}

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
