package testnet

import (
	"testing"
	"testing/synctest"
	"time"

	"zorilla/internal/seeds"
	"zorilla/jobs"
)

// TestJobAtEachOfManyNodes: sixty whole nodes at six sites, a hundred in .ci/full, find each other
// and their nearest, and bear a job that comes at each of them in the same second.
// What they do at the same time is done in other tests, too: the race detector
// does not look at it here, where it takes long.
func TestJobAtEachOfManyNodes(t *testing.T) {
	if seeds.Raced {
		t.Skip("without the race detector this runs")
	}
	t.Parallel()
	each, rest := seeds.Larger(17, 10), seeds.Larger(16, 10)
	sizes := []int{each, each, each, each, rest, rest}
	begun := RealTime()
	synctest.Test(t, func(t *testing.T) {
		const seed = 100
		t.Logf("seed %d", seed)
		nodes, err := StartNodes(NodesConfig{Sites: &Sites{sizes, Grid5000()}, State: t.TempDir(), Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		n := &nodesTest{t, nodes}
		defer n.stop()
		n.findEachOther()
		n.jobAtEach()
		n.calmTraffic()
	})
	t.Logf("%v of real time", (RealTime() - begun).Round(time.Millisecond))
}

// until waits, and returns how long it took.
func (t *nodesTest) until(limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for !ok() {
		if time.Since(begun) > limit {
			t.Fatalf("%s: not after %v: %.4f known, %.4f right", what, limit, t.Known(), t.Right())
		}
		time.Sleep(pollEvery)
	}
	return time.Since(begun)
}

func (t *nodesTest) findEachOther() {
	t.Helper()
	known := t.until(10*time.Second, "99 % of all pairs known", func() bool { return t.Known() >= 0.99 })
	right := t.until(10*time.Second, "99 % of the near neighbours right", func() bool { return t.Right() >= 0.99 })
	all := t.until(knownLimit, "all known", func() bool { return t.Known() == 1 })
	t.Logf("after the last start: 99 %% known after %v, 99 %% right %v later, all known %v later", known, right, all)
}

// calmTraffic checks what nodes send when nothing happens. The exchanges of
// memberlist's whole state, over streams, grow with the network and are only
// shown.
func (t *nodesTest) calmTraffic() {
	t.Helper()
	time.Sleep(time.Minute)
	before, begun := t.Traffic(), time.Now()
	time.Sleep(3 * time.Minute)
	d := t.Traffic().Minus(before)
	per := time.Since(begun).Seconds() * float64(t.Len())
	rate := float64(d.Packets.Bytes) / per
	t.Logf("calm: %.0f B/s of packets a node, %.0f of them vicinity's, and %.0f over streams; %.4f of the neighbours right",
		rate, float64(d.Vicinity.Bytes)/per, float64(d.Streams.Bytes)/per, t.Right())
	if rate > 1000 || t.Right() < 0.99 {
		t.Errorf("calm: %.0f B/s a node, %.4f of the neighbours right; want less than 1000 and at least 0.99", rate, t.Right())
	}
}

// jobAtEach submits a job at every node within a second: more work than slots,
// so that some find all of them taken. Each may cost about what one flood to
// everybody does, and none may wait much longer than the slots are busy.
func (t *nodesTest) jobAtEach() {
	t.Helper()
	everybody, err := t.Flood(t.Context(), 0, 12)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]jobs.ID, t.Len())
	workers := 0
	before, begun := t.Traffic(), time.Now()
	for i := range ids {
		n := 1 + i%4
		workers += n
		ids[i] = t.submit(i, rigid(n, "sleep", "2"))
		time.Sleep(time.Second / time.Duration(len(ids)))
	}
	rounds, most, slowest := 0, int64(0), time.Duration(0)
	for i, id := range ids {
		st := t.await(i, id, 5*time.Minute, completed)
		sum := int64(0)
		for _, r := range st.Rounds {
			sum += int64(r.Messages)
		}
		rounds += len(st.Rounds)
		most, slowest = max(most, sum), max(slowest, st.Started.Sub(st.Submitted))
	}
	took, least := time.Since(begun), 2*time.Second*time.Duration(workers)/time.Duration(2*t.Len())
	mean := t.Traffic().Minus(before).Flood.Count / int64(len(ids))
	t.Logf("%d jobs, %d workers of 2 s: done after %v, %v is the least; the last to start waited %v", len(ids), workers, took, least, slowest)
	t.Logf("%d floods; %d messages a job, at most %d; a flood to everybody takes %d", rounds, mean, most, everybody.Messages)
	if mean > everybody.Messages || most > 6*everybody.Messages {
		t.Errorf("%d messages a job, at most %d: want at most those of one flood to everybody, %d, and of six", mean, most, everybody.Messages)
	}
	if took > 3*least+2*time.Second {
		t.Errorf("done after %v, want at most %v", took, 3*least+2*time.Second)
	}
}
