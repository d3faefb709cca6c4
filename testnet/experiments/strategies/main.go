// Command strategies repeats the experiment on co-allocation of Genaud and
// Rattanapoka, Large-Scale Experiment of Co-allocation Strategies for
// Peer-to-Peer SuperComputing in P2P-MPI, section 5.1 and figures 2 and 3, on
// simulated nodes: the 350 hosts with 1040 cores of its table 1, at six sites,
// and one job of 100 to 600 processes from Nancy, spread and concentrated.
//
//	go run ./testnet/experiments/strategies
//
// writes docs/experiments/strategies.
package main

import (
	"zorilla/jobs/placement"
	"zorilla/testnet/chart"
)

func main() {
	chart.Main("strategies", 5, func(w *chart.Results, seeds int) error {
		var sizes []int
		for n := 100; n <= 600; n += 50 {
			sizes = append(sizes, n)
		}
		return run(w, table1(), sizes, seeds)
	})
}

// run places jobs of all sizes in all networks and writes tables and figures.
func run(w *chart.Results, g *grid, sizes []int, seeds int) error {
	var all []place
	for _, k := range kinds() {
		for seed := range seeds {
			list, err := g.measure(k, uint64(seed)+1, sizes)
			if err != nil {
				return err
			}
			all = append(all, list...)
		}
	}
	report(w, g, all)
	w.CSV("strategies.csv", g.header(), g.rows(all))
	for _, k := range kinds() {
		if !k.drawn {
			continue
		}
		for _, s := range strategies() {
			g.draw(w, all, k, s, "hosts", func(u use) []int { return u.hosts })
			g.draw(w, all, k, s, "cores", func(u use) []int { return u.cores })
		}
	}
	return nil
}

func strategies() []placement.Strategy {
	return []placement.Strategy{placement.Concentrate, placement.Spread}
}

// header and rows tell what every job got at every site.
func (g *grid) header() []string {
	header := []string{"network", "seed", "strategy", "processes", "started_ms", "messages", "elsewhere"}
	for _, s := range g.sites {
		header = append(header, s+"_hosts", s+"_cores", s+"_hosts_ideal", s+"_cores_ideal")
	}
	return header
}

func (g *grid) rows(all []place) (rows [][]any) {
	for _, p := range all {
		row := []any{p.kind.name, p.seed, p.strategy, p.size, 1000 * p.started.Seconds(), p.messages, p.elsewhere()}
		for s := range g.sites {
			row = append(row, p.got.hosts[s], p.got.cores[s], p.ideal.hosts[s], p.ideal.cores[s])
		}
		rows = append(rows, row)
	}
	return rows
}
