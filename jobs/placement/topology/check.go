package topology

import (
	"fmt"
	"time"
)

// Check returns an error that names the first constraint that an answer breaks.
func (p *Problem) Check(counts [][]int) error {
	if len(counts) != len(p.Hosts) {
		return fmt.Errorf("counts of %d hosts, there are %d", len(counts), len(p.Hosts))
	}
	total := make([]int, len(p.Groups))
	for i := range p.Hosts {
		if err := p.checkHost(i, counts[i], total); err != nil {
			return err
		}
	}
	for g := range p.Groups {
		group := &p.Groups[g]
		if total[g] < group.Min || total[g] > group.Max {
			return fmt.Errorf("group %s has %d workers, it wants %d to %d", group.Name, total[g], group.Min, group.Max)
		}
		if err := p.checkClusters(g, counts); err != nil {
			return err
		}
	}
	return p.checkLinks(counts)
}

func (p *Problem) checkHost(i int, counts, total []int) error {
	h := &p.Hosts[i]
	if len(counts) != len(p.Groups) {
		return fmt.Errorf("%s has counts of %d groups, there are %d", h.Name, len(counts), len(p.Groups))
	}
	var takes Amounts
	workers := 0
	for g, n := range counts {
		if n < 0 || n > 0 && !has(h.Fits, g) {
			return fmt.Errorf("%s has %d workers of group %s, which it does not fit", h.Name, n, p.Groups[g].Name)
		}
		for r := range takes {
			takes[r] += int64(n) * p.Groups[g].Takes[r]
		}
		workers += n
		total[g] += n
	}
	for r := range takes {
		if takes[r] > max(0, h.Free[r]) {
			return fmt.Errorf("%s is to give %d of resource %d, it has %d", h.Name, takes[r], r, h.Free[r])
		}
	}
	if h.Workers > 0 && workers > h.Workers {
		return fmt.Errorf("%s has %d workers, it takes %d", h.Name, workers, h.Workers)
	}
	return nil
}

func (p *Problem) checkClusters(g int, counts [][]int) error {
	most := p.Groups[g].Clusters
	if most == 0 {
		return nil
	}
	used, old := map[int]bool{}, map[int]bool{}
	for i := range p.Hosts {
		if h := &p.Hosts[i]; h.has(g) > 0 {
			used[h.Cluster], old[h.Cluster] = true, true
		} else if counts[i][g] > 0 {
			used[h.Cluster] = true
		}
	}
	if len(used) > max(most, len(old)) {
		return fmt.Errorf("group %s is in %d clusters, it wants %d at most", p.Groups[g].Name, len(used), most)
	}
	return nil
}

// checkLinks looks at each pair of workers of which one is new.
func (p *Problem) checkLinks(counts [][]int) error {
	for g := range p.Groups {
		for g2 := range p.Groups {
			l := p.link(g, g2)
			if l == nil || !l.bounded() {
				continue
			}
			for a := range p.Hosts {
				if counts[a][g] == 0 {
					continue
				}
				for b := range p.Hosts {
					there := counts[b][g2] + p.Hosts[b].has(g2)
					if a == b && g == g2 {
						there-- // a worker is no pair with itself
					}
					if there > 0 && !p.holds(l, a, b) {
						return fmt.Errorf("link %s wants %s: %s", l.Name, l.wants(), p.pair(l, a, b))
					}
				}
			}
		}
	}
	return nil
}

// wants returns the bounds of a link in words.
func (l *Link) wants() (text string) {
	list := []struct {
		is   bool
		text string
	}{
		{l.MaxRTT > OneHost, length(l.MaxRTT) + " at most"},
		{l.MaxRTT == OneHost, "one node"},
		{l.MinRTT > 0, length(l.MinRTT) + " at least"},
		{l.MinBandwidth > 0, fmt.Sprintf("%d Mbit/s at least", l.MinBandwidth)},
		{l.MaxBandwidth > 0, fmt.Sprintf("%d Mbit/s at most", l.MaxBandwidth)},
	}
	for _, w := range list {
		if w.is && text != "" {
			text += " and "
		}
		if w.is {
			text += w.text
		}
	}
	return text
}

// pair returns what is between two hosts, or two workers of one, of what a link bounds.
func (p *Problem) pair(l *Link, a, b int) string {
	if a == b {
		return "two workers on " + p.Hosts[a].Name + " are 0ms apart"
	}
	if p.Hosts[a].Name > p.Hosts[b].Name {
		a, b = b, a
	}
	between := p.Hosts[a].Name + " and " + p.Hosts[b].Name
	if l.MinRTT > 0 || l.MaxRTT > 0 {
		switch rtt := p.rtt(a, b); {
		case rtt < 0:
			return "the round trip between " + between + " is not known"
		case rtt < l.MinRTT || l.MaxRTT > 0 && rtt > l.MaxRTT:
			return between + " are " + length(rtt) + " apart"
		}
	}
	if bandwidth := p.bandwidth(a, b); bandwidth > 0 {
		return fmt.Sprintf("%s have %d Mbit/s between them", between, bandwidth)
	}
	return "the bandwidth between " + between + " is not known"
}

// length returns a round trip for people, in milliseconds.
func length(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return fmt.Sprintf("%.4gms", d.Seconds()*1000)
}
