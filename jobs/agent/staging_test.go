package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/transfer"
)

// While the inputs are on their way, the job says how much of them is there,
// and not that workers are waited for.
func TestStagingTellsOfInputs(t *testing.T) {
	bubble(t, 3, 1, func(t *testing.T, g *grid) {
		const chunks, total = 24, 3 * 24                    // MiB of the file, and of the three nodes together
		data := make([]byte, (chunks+1)*transfer.ChunkSize) // the last is the first again, and moved once
		for i := range chunks {
			data[i*transfer.ChunkSize] = byte(i)
		}
		spec := jobs.Spec{Args: ticking(1), Inputs: g.inputsOf(data), Min: 3, Max: 3}
		const slow = 2 * time.Second
		g.during(func(_, _ *gridNode, path string) error {
			if strings.HasPrefix(path, "/v1/blobs/") {
				time.Sleep(slow)
			}
			return nil
		})
		id := g.submit(0, spec)
		var told []string
		st := g.await(0, id, time.Minute, func(st jobs.Status) bool {
			if st.State == jobs.Staging && (len(told) == 0 || told[len(told)-1] != st.Reason) {
				told = append(told, st.Reason)
			}
			return st.State == jobs.Running
		})
		last := int64(-1)
		for i, text := range told {
			var have, of int64
			n, err := fmt.Sscanf(strings.Replace(text, "0 B", "0 MiB", 1), "inputs are sent to 3 nodes: %d MiB of %d MiB are there", &have, &of)
			if n < 2 || of != total || have <= last || have >= total {
				t.Errorf("it says %q after %q: %v", text, told[:i], err)
			}
			last = have
		}
		// How many steps are seen depends on which holder each chunk is asked from.
		if len(told) < 3 || !strings.HasPrefix(told[0], "inputs are sent to 3 nodes: 0 B of ") {
			t.Errorf("it says %q only", told)
		}
		if want := (jobs.Staged{Total: chunks << 20, Fetched: 2 * chunks << 20, Cached: chunks << 20}); st.Staged != want {
			t.Errorf("in the end %+v, want %+v", st.Staged, want)
		}
		// The second time everything is there.
		g.await(0, id, time.Minute, final)
		id = g.submit(0, spec)
		st = g.await(0, id, time.Minute, final)
		if want := (jobs.Staged{Total: chunks << 20, Cached: 3 * chunks << 20}); st.Staged != want {
			t.Errorf("the second time %+v, want %+v", st.Staged, want)
		}
	})
}

// An origin that was started again knows how much a job's inputs are.
func TestInputsAreKnownAfterARestart(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		spec := jobs.Spec{Args: ticking(1), Inputs: g.inputsOf(make([]byte, 3*transfer.ChunkSize+1)), Min: 3, Max: 3} // for whom there is no room
		id := g.submit(0, spec)
		before := g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Pending })
		origin := g.node(0)
		origin.crash()
		origin.start()
		after, _, err := origin.service.Status(id)
		if err != nil || before.Staged.Total == 0 || after.Staged != before.Staged {
			t.Errorf("before %+v, after %+v, %v", before.Staged, after.Staged, err)
		}
	})
}
