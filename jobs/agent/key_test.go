package agent_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/journal"
)

// A job that is submitted again with its key is the same job, from the moment in
// which it is known until it is forgotten, whatever happens to the node.
func TestOneKeyIsOneJob(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		origin := g.node(0)
		disk := newFaulty(origin.log)
		origin.stop()
		origin.wrap = func(m *journal.Memory) journal.Journal { disk.Memory = m; return disk }
		origin.start()
		spec := jobs.Spec{Key: "A.key_of-26:letters", Args: ticking(2), Min: 1, Max: 1, Slots: 1, Env: map[string]string{"A": "1", "B": "2", "C": "3"}, Inputs: g.inputs()}

		// Several times before it is durable: all wait for that.
		var first [3]jobs.ID
		var group sync.WaitGroup
		for i := range first {
			group.Go(func() {
				var err error
				if first[i], err = origin.service.Submit(t.Context(), spec); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		id := first[0]
		if first[1] != id || first[2] != id || len(origin.service.List(-1)) != 1 {
			t.Fatalf("submitted at the same time it is %q", first)
		}
		same := func(when string) {
			t.Helper()
			if got, err := origin.service.Submit(t.Context(), spec); got != id || err != nil {
				t.Errorf("%s: got %s, %v, want %s", when, got, err, id)
			}
			other := spec
			other.Args = ticking(3)
			if _, err := origin.service.Submit(t.Context(), other); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), "was used for job "+id.Short()+", which is not the same") {
				t.Errorf("%s: another job with the key: %v", when, err)
			}
		}
		same("at once")
		disk.mu.Lock()
		disk.full = true
		disk.mu.Unlock()
		same("with a full disk")
		disk.makeRoom()
		g.await(0, id, time.Minute, final)
		same("ended")
		origin.crash()
		origin.start()
		same("restarted")
		if all := origin.service.List(-1); len(all) != 1 {
			t.Errorf("there are %d jobs: %+v", len(all), all)
		}

		// Without a key, and with another, it is another job.
		spec.Key = ""
		if a, b := g.submit(0, spec), g.submit(0, spec); a == b || a == id {
			t.Errorf("without a key: %s and %s", a, b)
		}
		spec.Key = "another"
		if got := g.submit(0, spec); got == id {
			t.Error("with another key it is the same job")
		}
		for _, key := range []string{"a b", "\x1b[31m", "../x", strings.Repeat("k", 65)} {
			spec.Key = key
			if _, err := origin.service.Submit(t.Context(), spec); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), "--key") {
				t.Errorf("key %q: %v", key, err)
			}
		}
	})
}
