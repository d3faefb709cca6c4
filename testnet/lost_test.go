package testnet

import (
	"fmt"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
)

// A job with little patience loses the ranks of a machine that fails, or is cut off, in the time that it
// says, and none by a cut of a second, nor by lost packets.
func TestLittlePatience(t *testing.T) {
	for name, trouble := range map[string]func(t *nodesTest, i int){
		"fails":      func(t *nodesTest, i int) { t.Crash(i) },
		"is cut off": func(t *nodesTest, i int) { t.Partition([]int{i}) },
		"is cut off for a second": func(t *nodesTest, i int) {
			t.Partition([]int{i})
			time.Sleep(time.Second)
			t.Heal()
		},
		"loses packets": func(t *nodesTest, _ int) { t.Network.SetNoise(Noise{Loss: 0.1}); time.Sleep(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			wholeNodes(t, 1, []int{2, 2}, func(t *nodesTest) {
				id := t.submit(0, jobs.Spec{Args: []string{"sleep", "1h"}, Min: 1, Max: 3, Slots: 2, Strategy: "spread", Where: fmt.Sprintf("name != %q", "node-000"),
					Failing: jobs.Failing{LostAfter: codec.Duration(2 * time.Second)}})
				st := t.await(0, id, time.Minute, func(st jobs.Status) bool { return runs(st) == 3 })
				victim, _ := t.Index(st.Workers[0].Node)
				time.Sleep(7 * time.Second)
				begun := time.Now()
				trouble(t, victim)
				if name == "fails" || name == "is cut off" {
					t.await(0, id, time.Minute, func(st jobs.Status) bool { return runs(st) == 2 })
					if took := time.Since(begun); took < 1400*time.Millisecond || took > 2300*time.Millisecond {
						t.Errorf("its rank is lost after %v", took)
					}
				} else {
					time.Sleep(10 * time.Second)
				}
				t.Network.SetNoise(Noise{})
				t.Heal()
				st = t.await(0, id, time.Minute, func(st jobs.Status) bool { return runs(st) > 1 })
				for _, w := range st.Workers {
					if w.Attempt != 1 && name != "fails" && name != "is cut off" {
						t.Errorf("rank %d has attempt %d", w.Rank, w.Attempt)
					}
				}
				if err := t.Service(0).Cancel(t.Context(), string(id), true); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// runs counts the workers of a job that run.
func runs(st jobs.Status) (n int) {
	for _, w := range st.Workers {
		if w.State == jobs.WorkerRunning {
			n++
		}
	}
	return n
}
