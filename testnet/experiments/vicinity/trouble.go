package main

import (
	"fmt"
	"slices"
	"time"

	"zorilla/testnet/sim"
)

// trouble measures networks in which nodes come, go, crash, are cut off and
// are busy.
func trouble(o options) error {
	n := 400
	if o.quick {
		n = 120
	}
	header := []string{"network", "nodes", "trouble", "what", "value", "target"}
	var rows [][]any
	for _, w := range networks() {
		for _, t := range []struct {
			name string
			run  func(*sim.Overlay) [][]any
		}{{"coming and going", churn}, {"30 % crash", crash}, {"a site is cut off", cut}, {"busy hosts", busy}} {
			net := w.start(n, 1)
			net.Run(time.Minute)
			for _, row := range t.run(net) {
				rows = append(rows, append([]any{w.name, n, t.name}, row...))
			}
		}
	}
	return o.keep("trouble", header, rows)
}

// until runs the network until its neighbours are right, two minutes at most,
// and returns how long that took.
func until(o *sim.Overlay, right float64) time.Duration {
	start := o.Elapsed()
	for o.Elapsed() < start+2*time.Minute {
		if o.Quality(want).Right >= right {
			return o.Elapsed() - start
		}
		o.Run(time.Second)
	}
	return -1
}

// churn lets a node join every second, and another leave or crash, for three
// minutes.
func churn(o *sim.Overlay) [][]any {
	sum, least := 0.0, 1.0
	before := o.Traffic()
	const minutes = 3
	for second := range 60 * minutes {
		up := o.Live()
		gone := up[o.Rand().IntN(len(up))]
		if second%2 == 0 {
			o.Crash(gone)
		} else {
			o.Leave(gone)
		}
		o.Add(o.Site(up[o.Rand().IntN(len(up))]))
		o.Run(time.Second)
		q := o.Quality(want)
		sum += q.Right
		least = min(least, q.Reached)
	}
	after := o.Traffic()
	bytes := float64(after.Bytes-before.Bytes) / float64(len(o.Live())) / (60 * minutes)
	return [][]any{
		{"right, mean", fmt.Sprintf("%.2f %%", 100*sum/(60*minutes)), ""},
		{"reached by a flood, least", fmt.Sprintf("%.1f %%", 100*least), "100 %"},
		{"bytes a second and node", fmt.Sprintf("%.0f", bytes), ""},
	}
}

// crash stops 30 % of the nodes at once.
func crash(o *sim.Overlay) [][]any {
	all := o.Len()
	o.Crash(o.Rand().Perm(all)[:all*3/10]...)
	at := o.Quality(want)
	o.Run(10 * time.Second)
	return [][]any{
		{"reached by a flood at once", fmt.Sprintf("%.1f %%", 100*at.Reached), "100 %"},
		{"reached 10 s later", fmt.Sprintf("%.1f %%", 100*o.Quality(want).Reached), "100 %"},
		{"99 % right again, after the crash", seconds(10*time.Second + until(o, 0.99)), ""},
	}
}

// cut separates the first site for a minute.
func cut(o *sim.Overlay) [][]any {
	inside, outside := 0, 0
	for i := range o.Len() {
		if o.Site(i) == 0 {
			inside++
		} else {
			outside++
		}
	}
	first, last := 0, o.Len()-1
	o.Cut(0)
	o.Run(time.Minute)
	a, b := o.Reached(first), o.Reached(last)
	o.Heal()
	whole := time.Duration(-1)
	for s := range 60 {
		if o.Reached(first) == o.Len() && o.Reached(last) == o.Len() {
			whole = time.Duration(s) * time.Second
			break
		}
		o.Run(time.Second)
	}
	return [][]any{
		{"nodes of the site reached inside", fmt.Sprintf("%d of %d", a, inside), "all"},
		{"nodes of the rest reached there", fmt.Sprintf("%d of %d", b, outside), "all"},
		{"one network again, after healing", seconds(whole), ""},
		{"99 % right again, after that", seconds(until(o, 0.99)), ""},
	}
}

// busy makes a random third of the nodes answer late, by up to 40 ms at
// random, for ten seconds, and then others, for five minutes.
func busy(o *sim.Overlay) [][]any {
	links := nearLinks(o)
	least := 1.0
	for range 30 {
		for _, i := range o.Rand().Perm(o.Len())[:o.Len()/3] {
			o.Busy(i, 10*time.Second, 40*time.Millisecond)
		}
		o.Run(10 * time.Second)
		least = min(least, o.Quality(want).Right)
	}
	gone := exchanged(links, nearLinks(o))
	return [][]any{
		{"right, least in 5 min", fmt.Sprintf("%.2f %%", 100*least), "99 %"},
		{"near links exchanged in 5 min", fmt.Sprintf("%.1f %%", 100*float64(gone)/float64(len(links))), ""},
	}
}

// quantile returns the value below which a share of the list is.
func quantile(list []float64, share float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return list[int(share*float64(len(list)-1))]
}
