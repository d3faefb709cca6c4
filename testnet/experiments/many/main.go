// Many starts a large network of real nodes on one machine, each a process of its own on
// an address of its own, and reports how long it takes until all know all, what the processes
// need of memory and processor, and when nodes that are killed are missed.
//
//	go run ./testnet/experiments/many                     # 300 nodes, about five minutes, 3 GB
//	go run ./testnet/experiments/many -n 50 -out ''
//
// The nodes join through the first one, by its token. Who knows whom their logs tell, so
// that nobody is asked and computes because of it. They listen on 127.77.0.0/16, and offer
// no page. Their state is in a temporary directory, which is removed. Every wait has a
// limit; at the end, whatever happened, the processes are ended one by one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"zorilla/testnet/chart"
	"zorilla/testnet/local"
)

type options struct {
	out, zorilla         string
	nodes, atOnce, kills int
	calm, limit          time.Duration
}

const maxNodes = 2000 // addresses are not what limits it

func main() {
	var o options
	flag.StringVar(&o.out, "out", "docs/experiments/many", "folder for the results; empty = none")
	flag.StringVar(&o.zorilla, "zorilla", "", "use this program instead of building ./cmd/zorilla")
	flag.IntVar(&o.nodes, "n", 300, "nodes")
	flag.IntVar(&o.atOnce, "at-once", 4, "how many may be starting at a time")
	flag.IntVar(&o.kills, "kill", 10, "nodes that are killed in the calm")
	flag.DurationVar(&o.calm, "calm", time.Minute, "how long to watch the calm, after as long a rest")
	flag.DurationVar(&o.limit, "limit", 3*time.Minute, "how long all may take to know all, or to miss who was killed")
	flag.Parse()
	if o.nodes < 2 || o.nodes > maxNodes || o.kills < 0 || o.kills >= o.nodes {
		fmt.Fprintf(os.Stderr, "many: -n %d -kill %d: want 2 to %d nodes, and one at least to be left\n", o.nodes, o.kills, maxNodes)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// The nodes are told to end when the thread that started them is gone.
	runtime.LockOSThread()
	chart.Exit("many", chart.Keep(o.out, func(w *chart.Results) error { return run(ctx, w, o) }))
}

func run(ctx context.Context, w *chart.Results, o options) (err error) {
	dir, err := os.MkdirTemp("", "many-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.zorilla == "" {
		if o.zorilla, err = local.Build(ctx, dir); err != nil {
			return err
		}
	}
	n := newNetwork(dir, o.zorilla)
	defer func() {
		if ended := local.Stop(n.nodes...); err == nil {
			err = ended
		}
	}()
	begun, busy := time.Now(), load()
	if err := n.start(ctx, o.nodes, o.atOnce); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d nodes on %d processors with a load of %s\n\n| what | measured |\n|---|---|\n", o.nodes, runtime.NumCPU(), busy)
	say := func(what, format string, args ...any) {
		fmt.Fprintf(w, "| %s | %s |\n", what, fmt.Sprintf(format, args...))
	}
	started, born := time.Now(), n.usage()
	say(fmt.Sprintf("from the first start to the last one, %d at a time", o.atOnce), "%.1f s", started.Sub(begun).Seconds())
	say("processor time of all by then", "%.1f s", born.cpu.Seconds())
	most, err := n.until(ctx, o.limit, func() bool { return n.roll.share() >= 0.99 })
	if err != nil {
		return err
	}
	all, err := n.until(ctx, o.limit, func() bool { return n.roll.share() == 1 })
	if err != nil {
		return err
	}
	used := n.usage()
	say("from the last start until 99 % of all pairs are known", "%.1f s", most.Sub(started).Seconds())
	say("until all know all", "%.1f s", all.Sub(started).Seconds())
	say("processor time of all by then", "%.1f s", used.cpu.Seconds())
	say("members that were held to be gone and were there", "%d times", n.roll.gone())
	return n.rest(ctx, o, say)
}

// rest measures the calm, and kills nodes in it.
func (n *network) rest(ctx context.Context, o options, say func(what, format string, args ...any)) error {
	if err := local.Wait(ctx, o.calm); err != nil {
		return err
	}
	before := n.usage()
	if err := local.Wait(ctx, o.calm); err != nil {
		return err
	}
	now := n.usage()
	const mb = 1e6
	nodes := float64(len(n.nodes))
	say(fmt.Sprintf("processor in the calm, %v after as long a rest, each node", o.calm),
		"%.2f %% of a core", 100*(now.cpu-before.cpu).Seconds()/o.calm.Seconds()/nodes)
	say("memory of all together, shared pages once (PSS)", "%.0f MB", float64(now.proportional)/mb)
	say("of each of them", "%.1f MB", float64(now.proportional)/mb/nodes)
	say("of each, shared pages in full (RSS): mean, most", "%.1f, %.1f MB", float64(now.resident)/mb/nodes, float64(now.most)/mb)
	if o.kills == 0 {
		return nil
	}
	gone := n.roll.gone()
	killed := time.Now()
	n.kill(o.kills)
	first, err := n.until(ctx, o.limit, func() bool { return n.roll.gone() > gone })
	if err != nil {
		return err
	}
	last, err := n.until(ctx, o.limit, func() bool { return n.roll.missed() == 1 })
	if err != nil {
		return err
	}
	say(fmt.Sprintf("%d nodes are killed: until the first is missed by somebody", o.kills), "%.1f s", first.Sub(killed).Seconds())
	say("until all others miss all of them", "%.1f s", last.Sub(killed).Seconds())
	return nil
}
