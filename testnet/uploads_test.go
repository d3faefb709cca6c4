package testnet

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
)

// Inputs that are larger than the cache, of several clients at the same time,
// are there when the jobs are submitted that need them. What nobody submits goes.
func TestUploadsAreNotPushedOut(t *testing.T) {
	const cache = 2 * transfer.ChunkSize
	synctest.Test(t, func(t *testing.T) {
		nodes, err := StartNodes(NodesConfig{Sites: &Sites{[]int{2}, milliseconds([][]float64{{0}})}, State: t.TempDir(), Seed: 1, Cache: cache})
		if err != nil {
			t.Fatal(err)
		}
		defer nodes.Stop()
		n := nodes.Service(0)
		store := nodes.list[0].store
		push := func(name byte, chunks int) transfer.Hash {
			data := bytes.Repeat([]byte{name}, chunks*transfer.ChunkSize)
			for i := range chunks {
				data[i*transfer.ChunkSize] = byte(i)
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
		first, second, third := push('a', 5), push('b', 5), push('c', 5) // the third client submits nothing
		time.Sleep(5 * time.Minute)
		for _, inputs := range []transfer.Hash{first, second} {
			id, err := n.Submit(t.Context(), jobs.Spec{Args: []string{"echo"}, Inputs: inputs, Min: 2, Max: 2, Slots: 1})
			if err != nil {
				t.Fatal(err)
			}
			for {
				st, err := n.Job(t.Context(), string(id))
				if err != nil || st.State.Final() {
					if st.State != jobs.Completed {
						t.Errorf("the job is %s: %s, %v", st.State, st.Reason, err)
					}
					break
				}
				time.Sleep(time.Second)
			}
		}
		if !store.Has(third) {
			t.Error("what the third client has uploaded is gone before it could submit its job")
		}
		const owner = "upload/2" // of what comes now
		fourth := push('d', 2)
		before := len(store.Pinned(owner))
		if _, err := n.Submit(t.Context(), jobs.Spec{Args: []string{"echo"}, Inputs: fourth, Min: 2, Max: 2, Slots: 1}); err != nil {
			t.Fatal(err)
		}
		if after := len(store.Pinned(owner)); before != 3 || after != 0 {
			t.Errorf("%d blobs are kept for an upload, and %d when its job is submitted", before, after)
		}
		time.Sleep(11 * time.Minute)
		if u := store.Usage(); u.Pinned > 13*transfer.ChunkSize || u.Bytes-u.Pinned > cache {
			t.Errorf("in the end %d MiB are kept, and %d MiB of it for jobs", u.Bytes>>20, u.Pinned>>20)
		}
	})
}
