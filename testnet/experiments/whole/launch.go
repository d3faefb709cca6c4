package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/testnet"
)

const (
	crashes     = 5
	jobLength   = 40 * time.Second // of each worker
	crashAfter  = 5 * time.Second  // of the start
	launchLimit = 15 * time.Minute
	paperTime   = 90 * time.Second // Drost et al.: 671 workers on 338 nodes
	target      = 3 * time.Second
)

// launch is what one large job took.
type launch struct {
	mode           string
	least, most    int           // workers wanted
	started, full  time.Duration // from the submission until it ran, and until all slots did
	rounds         int
	reached        int // nodes, by the flood that reached the most
	messages       int // copies of floods until it was full, as the origin knows
	counted        int64
	lost, replaced int           // ranks on crashed nodes; those that ran again
	recovered      time.Duration // from the crash until as many ran as there were slots
	done           time.Duration // from the submission until all outputs were back
	outputs, want  int           // files
}

// work is the program of the launch: it takes its time and leaves a file.
func work(ctx context.Context, w *testnet.FakeWorker) int {
	rank := w.Getenv("ZORILLA_RANK")
	fmt.Fprintf(w.Stdout, "rank %s\n", rank)
	timer := time.NewTimer(jobLength)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return -15
	}
	if err := os.WriteFile(filepath.Join(w.Dir, "out-"+rank), []byte("rank "+rank+"\n"), 0o644); err != nil {
		return 1
	}
	return 0
}

// launchOne runs one job that wants nearly every slot, crashes five of its
// nodes, and starts these again.
func launchOne(nodes *testnet.Nodes, mode string) (launch, error) {
	ctx, cancel := context.WithTimeout(context.Background(), launchLimit)
	defer cancel()
	all := slots * nodes.Len()
	// 600 to 671 of 676, as in the paper.
	l := launch{mode: mode, least: all * 600 / 676, most: all * 671 / 676}
	before := nodes.Traffic()
	begun := time.Now()
	id, err := nodes.Submit(ctx, 0, jobs.Spec{
		Args: []string{"work"}, Min: l.least, Max: l.most, Outputs: []string{"out-*"}, Search: jobs.Search{Mode: mode},
	})
	if err != nil {
		return l, err
	}
	st, err := nodes.Await(ctx, 0, id, func(st jobs.Status) bool { return running(st) == l.most })
	if err != nil {
		return l, err
	}
	l.started, l.full, l.rounds = st.Started.Sub(begun), time.Since(begun), len(st.Rounds)
	for _, r := range st.Rounds {
		l.reached = max(l.reached, r.Reached)
		l.messages += r.Messages
	}
	l.counted = nodes.Traffic().Minus(before).Flood.Count
	time.Sleep(time.Until(st.Started.Add(crashAfter)))

	victims := l.crash(nodes, st)
	crashed := time.Now()
	// A machine that works and crashes takes its slots with it.
	slotsLeft := min(l.most, all-slots*len(victims))
	if st, err = nodes.Await(ctx, 0, id, func(st jobs.Status) bool { return l.again(nodes, victims, st) >= slotsLeft || ended(st) > 0 }); err != nil {
		return l, fmt.Errorf("after the crash: %w", err)
	}
	l.recovered = time.Since(crashed)
	l.replaced = l.again(nodes, victims, st) - (l.most - l.lost)
	if st, err = nodes.Await(ctx, 0, id, func(st jobs.Status) bool { return st.State == jobs.Completed }); err != nil {
		return l, fmt.Errorf("after the crash: %w", err)
	}
	l.done, l.want = time.Since(begun), l.most
	for _, o := range st.Outputs {
		l.outputs += o.Files
	}
	for _, i := range victims {
		if err := nodes.Restart(i); err != nil {
			return l, err
		}
	}
	return l, together(nodes)
}

// crash takes power from five nodes that have workers.
func (l *launch) crash(nodes *testnet.Nodes, st jobs.Status) (victims []int) {
	for k := range crashes {
		// Spread over the ranks, hence over near and far nodes.
		w := st.Workers[(2*k+1)*len(st.Workers)/(2*crashes)]
		if i, ok := nodes.Index(w.Node); ok && i != 0 && !slices.Contains(victims, i) {
			victims = append(victims, i)
		}
	}
	for _, w := range st.Workers {
		i, _ := nodes.Index(w.Node)
		if slices.Contains(victims, i) {
			l.lost++
		}
	}
	for _, i := range victims {
		nodes.Crash(i)
	}
	return victims
}

// again counts the workers that run, on nodes that are up.
func (l *launch) again(nodes *testnet.Nodes, victims []int, st jobs.Status) (n int) {
	for _, w := range st.Workers {
		i, ok := nodes.Index(w.Node)
		if ok && w.State == jobs.WorkerRunning && !slices.Contains(victims, i) {
			n++
		}
	}
	return n
}

func running(st jobs.Status) (n int) { return count(st, jobs.WorkerRunning) }

func ended(st jobs.Status) (n int) { return count(st, jobs.WorkerEnded) }

func count(st jobs.Status, state jobs.WorkerState) (n int) {
	for _, w := range st.Workers {
		if w.State == state {
			n++
		}
	}
	return n
}

func printLaunches(w io.Writer, list []launch) {
	fmt.Fprintf(w, "\nlaunch: one job of nearly all slots; target: start in less than %v with the adaptive search (Drost et al.: %v)\n", target, paperTime)
	fmt.Fprintln(w, "search     workers    start s   full s  floods  reached  messages (counted)  lost  replaced  after s  done s  outputs")
	for _, l := range list {
		fmt.Fprintf(w, "%-9s  %d..%d  %8.3f %8.3f  %6d  %7d  %8d %9d  %4d  %8d  %7.1f  %6.1f  %d of %d\n",
			l.mode, l.least, l.most, l.started.Seconds(), l.full.Seconds(), l.rounds, l.reached, l.messages, l.counted,
			l.lost, l.replaced, l.recovered.Seconds(), l.done.Seconds(), l.outputs, l.want)
	}
}
