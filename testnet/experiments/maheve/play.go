package main

import (
	"math/rand/v2"
	"slices"

	"zorilla/jobs/placement/mapping"
)

// result is a run.
type result struct {
	hd          float64
	shape, seed int
	method      string
	failures    failures
	outcome
}

// failures is how nodes fail.
type failures string

const (
	never    failures = "none"
	paced    failures = "two every 20 s"
	atRandom failures = "at random" // as many
)

// trial is what methods are compared on.
type trial struct {
	kind        *kind
	shape, seed int
	sh          *shape
	*problem
}

// trials returns those of a kind.
func (o *options) trials(k *kind, m *measured) (list []trial) {
	for shape := range o.shapes {
		sh := drawShape(rand.New(rand.NewPCG(uint64(shape), uint64(100*k.hd))), k)
		for seed := range o.seeds {
			rnd := rand.New(rand.NewPCG(uint64(seed), uint64(1000*shape)))
			p := &problem{g: drawGraph(rnd), clusters: sh.all()}
			for c := range p.clusters {
				for n := range p.clusters[c].Power {
					p.came = append(p.came, mapping.Place{Cluster: c, Node: n})
				}
			}
			rnd.Shuffle(len(p.came), func(a, b int) { p.came[a], p.came[b] = p.came[b], p.came[a] })
			p.wl = func(a, b int) float64 { return sh.delay(m, a, b) / m.Iteration.Seconds }
			list = append(list, trial{k, shape, seed, sh, p})
		}
	}
	return list
}

// run plays a trial by a method.
func (t *trial) run(m *measured, how *method, failing failures, end limits) outcome {
	var f *trouble
	if failing != never {
		f = &trouble{rand.New(rand.NewPCG(uint64(t.seed), 2)), failing == atRandom}
	}
	return simulate(t.problem, t.sh, m, how, f, rand.New(rand.NewPCG(uint64(t.seed), 3)), end)
}

// enough returns the error that is small enough: the median of what the default reaches without failures in
// the time of the paper. So a run is about as long as there, and meets about as many failures.
func enough(trials []trial, m *measured) limits {
	var reached []float64
	how := methods()[0]
	for i := range trials {
		o := trials[i].run(m, &how, never, limits{seconds: trials[i].kind.paper[byDefault][0]})
		reached = append(reached, o.error)
	}
	slices.Sort(reached)
	return limits{error: quantile(reached, 0.5), seconds: longest}
}

// play plays all trials by all methods, with each kind of failures.
func play(o *options, m *measured) (all []result) {
	for _, k := range kinds() {
		trials := o.trials(&k, m)
		end := enough(trials, m)
		for _, failing := range []failures{never, paced, atRandom} {
			all = append(all, playKind(trials, m, end, failing, methods())...)
		}
	}
	return all
}

func playKind(trials []trial, m *measured, end limits, failing failures, list []method) (all []result) {
	for _, how := range list {
		for i := range trials {
			t := &trials[i]
			all = append(all, result{t.kind.hd, t.shape, t.seed, how.name, failing, t.run(m, &how, failing, end)})
		}
	}
	return all
}
