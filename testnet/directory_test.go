package testnet

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"zorilla/jobs"
)

// TestDirectoryInPlaceOfMemberlist: in a bubble of synctest, nodes work on the oracle as they do on
// memberlist, and what is measured of them makes sense.
func TestDirectoryInPlaceOfMemberlist(t *testing.T) {
	t.Parallel()
	err := InTest(t)(func() error {
		nodes, err := StartNodes(NodesConfig{
			Sites: &Sites{[]int{14, 13, 13}, threeSites()}, State: t.TempDir(), Seed: 5, Directory: true, Pace: 10 * time.Millisecond,
		})
		if err != nil {
			return err
		}
		return errors.Join(onDirectory(t, nodes), nodes.Stop())
	})
	if err != nil {
		t.Error(err)
	}
}

func onDirectory(t *testing.T, n *Nodes) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if _, err := n.AwaitKnown(ctx, n.Up()); err != nil {
		return err
	}
	time.Sleep(30 * time.Second)
	if n.Known() != 1 || n.Right() < 0.99 {
		t.Errorf("share known %.4f, right %.4f", n.Known(), n.Right())
	}
	before := n.Traffic()
	report, err := n.Flood(ctx, 3, 6)
	if err != nil {
		return err
	}
	// The last copy over a link finds that another was faster.
	if report.Reached != n.Len()-1 || report.Last <= 0 || report.Last > 40*time.Millisecond ||
		report.Messages-report.Duplicates != int64(report.Reached) || report.Hops > 6 {
		t.Errorf("flood: %+v", report)
	}
	if d := n.Traffic().Minus(before); d.Flood.Count != 0 || d.Packets.Count < report.Messages {
		t.Errorf("traffic of a flood that jobs must not notice: %+v", d)
	}
	id, err := n.Submit(ctx, 0, jobs.Spec{Args: []string{"sleep", "60"}, Min: 8, Max: 8})
	if err != nil {
		return err
	}
	st, err := n.Await(ctx, 0, id, func(st jobs.Status) bool { return st.State == jobs.Running })
	if err != nil {
		return err
	}
	if mean, least := n.meanRTT(0, st.Workers), n.leastRTT(0, 8); float64(mean) > 1.02*float64(least) {
		t.Errorf("mean RTT %v, least %v", mean, least)
	}
	n.Crash(20)
	crashed := time.Now()
	if _, err := n.AwaitKnown(ctx, n.Up()); err != nil {
		return err
	}
	if d := time.Since(crashed); d < deathDelay || d > deathDelay+newsDelay+time.Second {
		t.Errorf("a crash is known to all after %v", d)
	}
	if err := n.Restart(20); err != nil {
		return err
	}
	if err := n.Leave(21); err != nil {
		return err
	}
	if _, err := n.AwaitKnown(ctx, n.Up()); err != nil {
		return err
	}
	if math.Abs(n.Known()-1) > 1e-9 {
		t.Errorf("share known %v", n.Known())
	}
	return nil
}

// meanRTT returns the mean of the true round trips between node i and the
// workers of a job.
func (n *Nodes) meanRTT(i int, workers []jobs.WorkerStatus) time.Duration {
	var sum time.Duration
	for _, w := range workers {
		if at, ok := n.index[w.Node]; ok {
			sum += n.RTT(i, at)
		}
	}
	return sum / time.Duration(max(1, len(workers)))
}

// leastRTT returns the mean of the true round trips between node i and the
// workers of a job that is placed as near as it can be on idle nodes.
func (n *Nodes) leastRTT(i, workers int) time.Duration {
	var sum time.Duration
	for _, j := range n.Nearest(i, workers) {
		sum += n.RTT(i, j)
	}
	return sum / time.Duration(max(1, workers))
}
