package described_test

import (
	"fmt"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/described"
	"zorilla/vicinity"
)

func TestSparesAreNamed(t *testing.T) {
	kept := func(n int) (list []jobs.Spare) {
		for i := range n {
			list = append(list, jobs.Spare{Node: vicinity.ID(fmt.Sprintf("z%04d", i)), Name: fmt.Sprint("n", i), Workers: 1, Ready: true})
		}
		return list
	}
	coming := kept(2)
	coming[0].Workers, coming[1].Ready = 3, false
	for want, st := range map[string]jobs.Status{
		"":       {State: jobs.Running},
		"0 of 2": {State: jobs.Running, Spec: jobs.Spec{Placing: jobs.Placing{Spares: 2}}},
		"4 of 5: 3 on n0 (z0000), n1 (z0001) (fetches inputs)": {State: jobs.Running, Spec: jobs.Spec{Placing: jobs.Placing{Spares: 5}},
			Shape: jobs.Shape{Spares: coming}},
		"10 of 12: n0 (z0000), n1 (z0001), n2 (z0002), n3 (z0003), n4 (z0004), n5 (z0005), n6 (z0006), n7 (z0007), and 2 more": {
			State: jobs.Running, Spec: jobs.Spec{Placing: jobs.Placing{Spares: 12}}, Shape: jobs.Shape{Spares: kept(10)}},
	} {
		if got := described.Spares(&st); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	ended := jobs.Status{State: jobs.Completed, Spec: jobs.Spec{Placing: jobs.Placing{Spares: 2}}}
	if got := described.Spares(&ended); got != "" {
		t.Errorf("of a job that has ended: %q", got)
	}
}
