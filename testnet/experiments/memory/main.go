// Memory runs many small jobs at real nodes and shows how much memory of their own the nodes have
// (RssAnon, and what of it is swapped) after so many have ended and a rest: the node where they were
// submitted, which works too, and one that helps. Then many clients follow the output of one job.
//
//	go run ./testnet/experiments/memory                                  # some twenty minutes
//	go run ./testnet/experiments/memory -programs before=old/zorilla,now=new/zorilla
//
// The jobs are /bin/true, at most two hundred at a time up to each of the counts; then comes a
// burst, submitted as fast as the node accepts it, so that most of its jobs wait in a queue. Both
// nodes are processes with a state directory of their own, on 127.78.0.0/16, and end with this command.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"zorilla/testnet/chart"
	"zorilla/testnet/local"
)

type options struct {
	out, programs    string
	jobs, burst      int
	followers, bytes int
	rest, limit      time.Duration
}

// together is how many jobs are submitted at a time.
const together = 200

// steps are the counts of jobs after which memory is looked at, in thousandths of all.
var steps = []int{50, 100, 250, 500, 1000}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "docs/experiments/memory", "folder for the results; empty = none")
	flag.StringVar(&o.programs, "programs", "", "NAME=FILE of each program to measure, with commas; empty = build ./cmd/zorilla")
	flag.IntVar(&o.jobs, "n", 20_000, "jobs")
	flag.IntVar(&o.burst, "burst", 10_000, "jobs that come after these, all at once")
	flag.IntVar(&o.followers, "followers", 100, "clients that follow the output of one job")
	flag.IntVar(&o.bytes, "bytes", 64<<20, "what that job writes")
	flag.DurationVar(&o.rest, "rest", 70*time.Second, "how long nothing is done before each look")
	flag.DurationVar(&o.limit, "limit", 20*time.Minute, "how long a step may take")
	flag.Parse()
	if o.jobs < 20 || o.burst < 1 || o.followers < 1 || o.bytes < 1 {
		fmt.Fprintf(os.Stderr, "memory: -n %d -burst %d -followers %d -bytes %d: want 20, 1, 1 and 1 at least\n", o.jobs, o.burst, o.followers, o.bytes)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// The nodes are told to end when the thread that started them is gone.
	runtime.LockOSThread()
	chart.Exit("memory", chart.Keep(o.out, func(w *chart.Results) error { return run(ctx, w, o) }))
}

// program is one that is measured.
type program struct{ name, file string }

func programs(ctx context.Context, list, dir string) ([]program, error) {
	if list == "" {
		file, err := local.Build(ctx, dir)
		return []program{{"now", file}}, err
	}
	var all []program
	for part := range strings.SplitSeq(list, ",") {
		name, file, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("-programs %s: want NAME=FILE", part)
		}
		all = append(all, program{name, file})
	}
	return all, nil
}

func run(ctx context.Context, w *chart.Results, o options) error {
	dir, err := os.MkdirTemp("", "memory-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all, err := programs(ctx, o.programs, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "MB of memory of its own (RssAnon); %d processors\n", runtime.NumCPU())
	var rows [][]any
	for _, p := range all {
		fmt.Fprintf(w, "\n%s\n\n| when | jobs/s | submitted here | helped |\n|---|---|---|---|\n", p.name)
		note := func(what string, jobs int, rate float64, m memory) {
			speed := ""
			if rate > 0 {
				speed = fmt.Sprintf("%.0f", rate)
			}
			fmt.Fprintf(w, "| %s | %s | %.1f | %.1f |\n", what, speed, m.origin, m.worker)
			rows = append(rows, []any{p.name, what, jobs, rate, m.origin, m.worker})
		}
		if err := measure(ctx, p, o, note); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	w.CSV("memory.csv", []string{"program", "when", "ended", "jobs/s", "MB where submitted", "MB of the helper"}, rows)
	return nil
}

// measure has one program do all of it.
func measure(ctx context.Context, p program, o options, note func(what string, jobs int, rate float64, m memory)) (err error) {
	n, err := start(ctx, p.file)
	if err != nil {
		return err
	}
	defer func() {
		if ended := n.stop(); err == nil {
			err = ended
		}
	}()
	note("before", 0, 0, n.memory())
	for done, i := 0, 0; i < len(steps); i++ {
		begun, first, count := time.Now(), done, o.jobs*steps[i]/1000
		for done < count {
			some := min(together, count-done)
			if err := n.submit(ctx, o.limit, some); err != nil {
				return err
			}
			done += some
		}
		rate := float64(done-first) / time.Since(begun).Seconds()
		if err := local.Wait(ctx, o.rest); err != nil {
			return err
		}
		note(fmt.Sprintf("%d jobs have ended", count), count, rate, n.memory())
	}
	begun, all := time.Now(), o.jobs+o.burst
	if err := n.submit(ctx, o.limit, o.burst); err != nil {
		return err
	}
	note(fmt.Sprintf("a burst of %d more has ended", o.burst), all, float64(o.burst)/time.Since(begun).Seconds(), n.memory())
	if err := local.Wait(ctx, o.rest); err != nil {
		return err
	}
	note(fmt.Sprintf("%v later", o.rest), all, 0, n.memory())
	return n.follow(ctx, o, func(what string) { note(what, all, 0, n.memory()) })
}
