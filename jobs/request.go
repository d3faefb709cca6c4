package jobs

import (
	"time"

	"zorilla/jobs/groups"
	"zorilla/jobs/placement/topology"
)

// Request is what a job with groups asks of the allocator, without hosts: so many workers of each group,
// at least and at most. Groups for which split is set need not keep to few clusters any more.
func (s *Spec) Request(least, most []int, split []bool) *topology.Problem {
	p := &topology.Problem{Weights: topology.Weights{Satisfaction: s.Utility.Satisfaction, Utilisation: s.Utility.Utilisation}}
	for i := range s.Groups {
		g, needs := &s.Groups[i], s.NeedsOf(i)
		group := topology.Group{Name: g.Name, Min: least[i], Max: most[i],
			Takes: topology.Amounts{int64(needs.Slots), needs.Memory, needs.Disk, int64(needs.GPUs)}}
		switch g.Homogeneous {
		case groups.Clock:
			group.Alike = topology.AlikeClock
		case groups.Power:
			group.Alike = topology.AlikePower
		}
		if !split[i] {
			group.Clusters = g.Clusters
		}
		p.Groups = append(p.Groups, group)
	}
	for i := range s.Links {
		l := &s.Links[i]
		link := topology.Link{Name: l.Name, MinRTT: time.Duration(l.MinRTT), MaxRTT: time.Duration(l.MaxRTT),
			MinBandwidth: l.Bandwidth.Min, MaxBandwidth: l.Bandwidth.Max}
		for k := range s.Groups {
			if l.Has(s.Groups[k].Name) {
				link.Groups |= 1 << k
			}
		}
		p.Links = append(p.Links, link)
	}
	return p
}
