package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
)

// A host has so many slots, and the ranks of a job take so many together: so a job of any size needs six
// hosts, all that Orsay has, or half of them and all three of Bordeaux, and an island does not fit on one.
const (
	slotsOfHost = 48
	slotsOfJob  = 256
)

const (
	orsay    = "orsay"
	bordeaux = "bordeaux"
	rennes   = "rennes"
)

// islands is how many there are; each has a quarter of the ranks.
const islands = 4

// perParticle is what a step takes at each site, by the clocks of the paper, 2.4, 2.6 and 2.5 GHz. Orsay is the
// slowest.
var perParticle = map[string]string{orsay: "10", bordeaux: "9.23", rennes: "9.6"}

// part is so many ranks at a site.
type part struct {
	site  string
	ranks int
}

// one is a program in one arrangement of its ranks.
type one struct {
	program, arrangement string
	spec                 jobs.Spec
	sites                []string // of each rank; none: Zorilla chooses, see whole
	iterations           int      // or steps
}

// cases lists what is to be run. Those of a program and size, which are compared, are beside each other.
func (o *options) cases() (list []one) {
	if o.quick {
		list = append(islandCases(16, 50), bodyCases(2, part{bordeaux, 4}, part{orsay, 8}, part{rennes, 4})...)
	}
	for _, n := range []int{16, 32, 64, 128} {
		if !o.quick && n <= o.most {
			list = append(list, islandCases(n, 300)...)
		}
	}
	for _, parts := range [][]part{
		{{bordeaux, 8}, {orsay, 16}, {rennes, 8}},
		{{bordeaux, 24}, {orsay, 32}, {rennes, 8}},
		{{bordeaux, 64}, {orsay, 64}},
	} {
		if !o.quick && total(parts) <= o.most {
			list = append(list, bodyCases(10, parts...)...)
		}
	}
	return list
}

func total(parts []part) (n int) {
	for _, p := range parts {
		n += p.ranks
	}
	return n
}

// islandCases are those of figure 5. Ranks of "good" and "bad" are at three hosts of Orsay and three of
// Bordeaux, so that two islands fit at each site; those of "single" are at the six of Orsay.
func islandCases(n, iterations int) (list []one) {
	job := func(arrangement, where string) one {
		spec := mpi(n, []string{"./islands.openmpi", strconv.Itoa(iterations)})
		spec.Where = where
		return one{program: "islands", arrangement: arrangement, iterations: iterations, spec: spec}
	}
	const six = `site == "bordeaux" || name in ["orsay-1", "orsay-2", "orsay-3"]`
	good, bad, single := job("good", six), job("bad", six), job("single", at(orsay))
	var names, halves []string
	for i := range islands {
		name := fmt.Sprintf("island%d", i)
		whole := groups.Group{Name: name, Min: n / islands, Max: n / islands, Clusters: 1}
		inside := groups.Link{Name: name, Groups: []string{name}, MaxRTT: codec.Duration(5 * time.Millisecond)}
		for _, c := range []*one{&good, &single} {
			c.spec.Groups, c.spec.Links = append(c.spec.Groups, whole), append(c.spec.Links, inside)
		}
		names = append(names, name)
		split := groups.Link{Name: name}
		for _, site := range []string{orsay, bordeaux} {
			half := groups.Group{Name: name + "-" + site, Min: n / islands / 2, Max: n / islands / 2, Where: at(site)}
			bad.spec.Groups, split.Groups = append(bad.spec.Groups, half), append(split.Groups, half.Name)
			bad.sites = append(bad.sites, slices.Repeat([]string{site}, half.Max)...)
		}
		bad.spec.Links, halves = append(bad.spec.Links, split), append(halves, split.Groups...)
	}
	for c, all := range map[*one][]string{&good: names, &single: names, &bad: halves} {
		c.spec.Links = append(c.spec.Links, groups.Link{Name: "all", Groups: all, MaxRTT: codec.Duration(30 * time.Millisecond)})
	}
	single.sites = slices.Repeat([]string{orsay}, n)
	return []one{good, bad, single}
}

// bodyCases are those of figure 6: ranks at several sites, and as many at Orsay. Each rank has a plane of the
// mesh at least.
func bodyCases(steps int, parts ...part) (list []one) {
	for _, c := range []struct {
		arrangement string
		parts       []part
	}{{"sites", parts}, {"slowest", []part{{orsay, total(parts)}}}} {
		job := one{program: "nbody", arrangement: c.arrangement, iterations: steps, spec: mpi(total(parts), nil)}
		for _, p := range c.parts {
			job.spec.Groups = append(job.spec.Groups, groups.Group{Name: p.site, Min: p.ranks, Max: p.ranks, Where: at(p.site),
				Args: []string{"./nbody.openmpi", strconv.Itoa(steps), perParticle[p.site], "128", strconv.Itoa(max(64, job.spec.Max))}})
			job.sites = append(job.sites, slices.Repeat([]string{p.site}, p.ranks)...)
		}
		list = append(list, job)
	}
	return list
}

// paperJob is that of the paper's table 1.
func paperJob(program string) jobs.Spec {
	spec := mpi(6, []string{"./" + program})
	links := []groups.Link{}
	all := groups.Link{Name: "PCG4"}
	for i := range 3 {
		g := groups.Group{Name: fmt.Sprintf("PG%d", i+1), Min: 2, Max: 2}
		spec.Groups, all.Groups = append(spec.Groups, g), append(all.Groups, g.Name)
		links = append(links, groups.Link{Name: fmt.Sprintf("PCG%d", i+1), Groups: []string{g.Name}})
	}
	spec.Links = append(links, all)
	return spec
}

// A job waits so long for its nodes, and runs so long, at most.
const (
	startLimit = 30 * time.Second
	runLimit   = 90 * time.Second
)

func mpi(n int, args []string) jobs.Spec {
	return jobs.Spec{Args: args, Min: n, Max: n, Slots: slotsOfJob / n, Access: jobs.Access{MPI: true},
		GiveUp: codec.Duration(startLimit), Walltime: codec.Duration(runLimit)}
}

func at(site string) string { return fmt.Sprintf("site == %q", site) }

// misplaced returns what is wrong with the sites of a run's ranks, or "".
func (c *one) misplaced(sites []string) string {
	if c.sites != nil {
		if !slices.Equal(c.sites, sites) {
			return fmt.Sprintf("ranks at %v", count(sites))
		}
		return ""
	}
	if len(sites) != c.spec.Max {
		return fmt.Sprintf("%d ranks", len(sites))
	}
	each := len(sites) / islands
	for i := range islands {
		if island := sites[i*each : (i+1)*each]; len(count(island)) > 1 {
			return fmt.Sprintf("island %d at %v", i, count(island))
		}
	}
	if !slices.Contains(sites, orsay) || !slices.Contains(sites, bordeaux) {
		return fmt.Sprintf("ranks at %v alone", count(sites))
	}
	return ""
}

// count returns how many ranks are at each site.
func count(sites []string) map[string]int {
	n := map[string]int{}
	for _, s := range sites {
		n[s]++
	}
	return n
}
