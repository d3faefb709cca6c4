// Command time measures what promised starts are worth, on simulated nodes: how long a gang waits where small
// jobs fill all slots, and what that costs, after Lifka, The ANL/IBM SP scheduling system (1995); and how close
// series of runs of islands come to the shortest possible makespan, as in Agullo et al., QCG-OMPI: MPI
// applications on grids, section 5.2.
//
//	go run ./testnet/experiments/time
//
// writes docs/experiments/time.
package main

import "zorilla/testnet/chart"

func main() { chart.Main("time", 20, measure) }

func measure(w *chart.Results, seeds int) error {
	promises(w, seeds)
	return makespans(w, seeds)
}

// promises has gangs come to grids that are full.
func promises(w *chart.Results, seeds int) {
	single, four := shape{100, 1, 1.5}, shape{25, 4, 1.5}
	var rows []row
	for _, s := range []shape{single, four} {
		for _, s.factor = range []float64{1, 1.5, 3} {
			rows = append(rows, row{s, atOnce, seeds})
		}
	}
	rows = append(rows, row{single, usual, seeds}, row{single, never, (seeds + 3) / 4}, row{four, never, (seeds + 3) / 4})
	header(w)
	var all []gang
	for _, r := range rows {
		var list []gang
		for seed := range r.seeds {
			list = append(list, pursue(r.shape, r.policy, uint64(seed)+1))
		}
		r.report(w, list)
		all = append(all, list...)
	}
	w.CSV("gangs.csv", gangHeader, gangRows(all))
	w.PNG("gangs.png", figure(all))
}

// makespans has series of runs played.
func makespans(w *chart.Results, seeds int) error {
	var all []series
	for _, islands := range []bool{false, true} {
		var list []series
		for seed := range seeds {
			s, err := compare(islands, uint64(seed)+1)
			if err != nil {
				return err
			}
			list = append(list, s)
		}
		reportSeries(w, islands, list)
		all = append(all, list...)
	}
	w.CSV("series.csv", seriesHeader, seriesRows(all))
	return nil
}
