package testnet

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/internal/seeds"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
)

// push makes inputs of so many chunks known to a node.
func push(t *testing.T, n api.Service, name byte, chunks int) transfer.Hash {
	t.Helper()
	data := bytes.Repeat([]byte{name}, chunks*transfer.ChunkSize)
	for i := range chunks {
		sum := sha256.Sum256([]byte{name, byte(i)})
		copy(data[i*transfer.ChunkSize:], sum[:])
	}
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := api.Push(t.Context(), n, []transfer.Input{{Path: path, Name: "in"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A job whose input takes long goes to the node where it is soonest, once an earlier one has
// taught how fast files come there.
func TestPlacementByBandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rtt := milliseconds([][]float64{{0.2, 5, 5.2}, {5, 0.2, 10}, {5.2, 10, 0.2}})
		nodes, err := StartNodes(NodesConfig{Sites: &Sites{[]int{1, 1, 1}, rtt}, Slots: 1, State: t.TempDir(), Seed: seeds.One(t)})
		if err != nil {
			t.Fatal(err)
		}
		defer nodes.Stop()
		if _, err := nodes.AwaitKnown(t.Context(), nodes.Up()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // all are measured
		nodes.list[1].host.Downlink(1 << 20)
		nodes.list[2].host.Downlink(4 << 20)
		n := nodes.Service(0)
		run := func(name byte, where string) string {
			spec := jobs.Spec{Args: []string{"echo"}, Inputs: push(t, n, name, 16), Min: 1, Max: 1, Slots: 1, Strategy: "bandwidth", Where: where}
			id, err := nodes.Submit(t.Context(), 0, spec)
			if err != nil {
				t.Fatal(err)
			}
			st, err := nodes.Await(t.Context(), 0, id, func(st jobs.Status) bool { return st.State.Final() })
			if err != nil || st.State != jobs.Completed {
				t.Fatalf("the job is %s: %s, %v", st.State, st.Reason, err)
			}
			return st.Workers[0].Name
		}
		const others = `name != "node-000"`
		if at := run('a', others); at != "node-001" {
			t.Errorf("the first job went to %s, want the nearest, since nothing is known", at)
		}
		run('b', `name == "node-002"`)
		if at := run('c', others); at != "node-002" {
			t.Errorf("the next job went to %s, want the fastest", at)
		}
		if at := run('d', ""); at != "node-000" {
			t.Errorf("a job that its own node has room for went to %s", at)
		}
		list, err := n.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range list[1:] {
			want := int64(1 << 20)
			if other.Name == "node-002" {
				want = 4 << 20
			}
			// Whether it is "at least" depends on which requests happened to overlap: vicinity's tests.
			if to := other.Bandwidth.To; to.Rate < want*9/10 || to.Rate > want*11/10 {
				t.Errorf("%s: %+v, want %d", other.Name, to, want)
			}
		}
	})
}

// What a node sends to others keeps to the limit of its owner, over HTTP/2, too; whoever
// waits for its turn has all of it in the end, and all learn that it came that fast at
// least.
func TestUploadLimit(t *testing.T) {
	const limit, workers, chunks = 64 << 10, 5, 3
	synctest.Test(t, func(t *testing.T) {
		nodes, err := StartNodes(NodesConfig{Sites: &Sites{[]int{workers + 1}, milliseconds([][]float64{{0}})}, Slots: 1, State: t.TempDir(), Seed: seeds.One(t)})
		if err != nil {
			t.Fatal(err)
		}
		defer nodes.Stop()
		if _, err := nodes.AwaitKnown(t.Context(), nodes.Up()); err != nil {
			t.Fatal(err)
		}
		n := nodes.Service(0)
		if l, err := n.SetLimits(t.Context(), []string{"upload-limit=64K"}); err != nil || l.UploadLimit != limit {
			t.Fatalf("%+v, %v", l, err)
		}
		inputs := push(t, n, 'a', chunks)
		began := time.Now()
		id, err := nodes.Submit(t.Context(), 0, jobs.Spec{Args: []string{"echo"}, Inputs: inputs, Min: workers + 1, Max: workers + 1, Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		st, err := nodes.Await(t.Context(), 0, id, func(st jobs.Status) bool { return st.State.Final() })
		if err != nil || st.State != jobs.Completed {
			t.Fatalf("the job is %s: %s, %v", st.State, st.Reason, err)
		}
		info, err := n.Node(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sent := float64(info.Traffic.Of("uplink", "bytes sent"))
		if rate := sent / time.Since(began).Seconds(); rate < 0.9*limit || rate > 1.03*limit || sent < chunks*transfer.ChunkSize {
			t.Errorf("%.0f bytes were sent, %.0f a second, want %d", sent, rate, limit)
		}
		list, err := n.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range list[1:] {
			if to := other.Bandwidth.To; !to.Least || to.Rate < 10_000 || to.Rate > limit*11/10 || other.Bandwidth.From.Rate != 0 {
				t.Errorf("%s: %+v", other.Name, other.Bandwidth)
			}
		}
	})
}
