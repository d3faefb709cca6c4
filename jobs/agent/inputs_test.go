package agent_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"zorilla/internal/needs"
	"zorilla/jobs"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// What the disk of the origin lost of a job's inputs comes back from a node that
// has it; if there is none the job fails and names it.
func TestInputThatIsFoundDamagedIsSentAgain(t *testing.T) {
	for _, lost := range []string{"chunk", "manifest"} {
		for _, elsewhere := range []bool{true, false} {
			bubble(t, 3, 1, func(t *testing.T, g *grid) {
				store := g.node(0).store
				inputs := g.inputsOf([]byte("this is data"))
				tree, err := transfer.LoadManifest(store, inputs)
				if err != nil {
					t.Fatal(err)
				}
				if elsewhere {
					for _, h := range append(tree.Chunks(), inputs) {
						b, err := store.Get(h, nil)
						if err == nil {
							err = g.node(1).store.Put(h, b)
						}
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				g.submit(0, jobs.Spec{Args: ticking(5), Min: 3, Max: 3})
				id := g.submit(0, jobs.Spec{Args: ticking(1), Inputs: inputs, Min: 3, Max: 3})
				store.Unpin("job-inputs/" + string(id))
				gone := inputs
				if lost == "chunk" {
					gone = tree.Chunks()[0]
				}
				store.Pin("disk", gone)
				store.Discard("disk")
				st := g.await(0, id, 5*time.Minute, final)
				if elsewhere {
					if st.State != jobs.Completed {
						t.Errorf("%s: the job is %s: %s", lost, st.State, st.Reason)
					}
					return
				}
				if lost == "chunk" {
					wantRow(t, "an input file is damaged", seen(st))
				} else if want := "the list of its input files is damaged: the disk of its origin lost some of it, and no node of the job has it"; st.State != jobs.Failed || st.ExitCode != 125 || st.Reason != want {
					t.Errorf("the job is %s with %d: %s", st.State, st.ExitCode, st.Reason)
				}
			})
		}
	}
}

// forgetful is a store that evicts a blob as soon as it was made durable.
type forgetful struct {
	transfer.PinStore
	gone transfer.Hash
}

func (f *forgetful) Sync(hashes ...transfer.Hash) error {
	err := f.PinStore.Sync(hashes...)
	f.Pin("disk", f.gone)
	f.Discard("disk")
	return err
}

// Inputs are kept from the submission of their job on. One that is evicted just before, a file's
// chunk or the list of all, is noticed, and nothing is submitted.
func TestInputsAreKeptFromTheSubmissionOn(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		store := &forgetful{PinStore: g.node(0).store}
		g.node(0).stop()
		g.node(0).wrapStore = func(transfer.PinStore) transfer.PinStore { return store }
		g.node(0).start()
		inputs := g.inputsOf([]byte("this is data"))
		tree, err := transfer.LoadManifest(store, inputs)
		if err != nil {
			t.Fatal(err)
		}
		spec := jobs.Spec{Args: ticking(1), Inputs: inputs, Min: 1, Max: 1, Slots: 1}
		for _, gone := range append(tree.Chunks(), inputs) {
			content, err := store.Get(gone, nil)
			if err != nil {
				t.Fatal(err)
			}
			store.gone = gone
			if id, err := g.node(0).service.Submit(t.Context(), spec); !errors.Is(err, jobs.ErrInvalid) || !errors.Is(err, transfer.ErrNotFound) {
				t.Errorf("%s is gone: got job %q, %v", gone, id, err)
			}
			if err := store.Put(gone, content); err != nil {
				t.Fatal(err)
			}
		}
		store.gone = transfer.Hash{}
		id := g.submit(0, spec)
		if kept := g.node(0).service.Inputs(id); len(kept) != len(tree.Chunks())+1 || !slices.Contains(kept, inputs) || !slices.Contains(kept, tree.Chunks()[0]) {
			t.Errorf("of the job %v are kept", kept)
		}
		if st := g.await(0, id, time.Minute, final); st.State != jobs.Completed {
			t.Errorf("the job is %s: %s", st.State, st.Reason)
		}
	})
}

// Inputs are the worker's user's before its supervisor starts, but those of tasks, which all of
// them read.
func TestInputsAreMadeAsTheUsers(t *testing.T) {
	needs.Root(t)
	user := jobs.User{UID: 2100000005, GID: 2100000006}
	for _, array := range []*jobs.Array{nil, {Tasks: []work.TaskIDs{{First: 1, Last: 2, Step: 1}}}} {
		bubble(t, 1, 1, func(t *testing.T, g *grid) {
			n := g.node(0)
			n.runAs = &user
			owners := map[string]uint32{}
			n.cripple(false, func(spec process.Spec) bool {
				for _, name := range []string{"", "data"} {
					if info, err := os.Lstat(filepath.Join(spec.Root, "work", name)); err == nil && !isTrial(spec) {
						owners[name] = info.Sys().(*syscall.Stat_t).Uid
					}
				}
				return false
			})
			id := g.submit(0, jobs.Spec{Args: ticking(1), Inputs: g.inputsOf([]byte("data")), Min: 1, Max: 1, Array: array})
			if st := g.await(0, id, 5*time.Minute, final); st.State != jobs.Completed {
				t.Fatalf("it is %s: %s", st.State, st.Reason)
			}
			want := map[string]uint32{"": 0, "data": 0}
			if array == nil {
				want = map[string]uint32{"": uint32(user.UID), "data": uint32(user.UID)}
			}
			if !maps.Equal(owners, want) {
				t.Errorf("array %v: they are of %v, want %v", array != nil, owners, want)
			}
		})
	}
}
