package process

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"zorilla/jobs/pmi"
	"zorilla/jobs/work"
)

// speak is a rank that finds the other one as MPI libraries do.
const speak = `say() { echo "$*" >&3; read -u 3 answer; }
say cmd=init pmi_version=1 pmi_subversion=1
say cmd=put kvsname=k key=from-$0 value=hello-$0
echo waiting
say cmd=barrier_in
say cmd=get kvsname=k key=from-$((1-$0))
echo "$answer"
`

// rankSpecs are both ranks, with roots of one node.
func rankSpecs(t *testing.T, text string) []Spec {
	all := []Spec{rankSpec(t, 0, text), rankSpec(t, 1, text)}
	together(t, &all[0], &all[1])
	return all
}

func rankSpec(t *testing.T, rank int, text string) Spec {
	spec := script(t, speak+text)
	spec.Args = []string{"bash", "-c", speak + text, fmt.Sprint(rank)}
	spec.Group, spec.PMI = "job", &pmi.Place{Rank: rank, Size: 2, Nodes: []int{0, 0}, Name: "k"}
	return spec
}

// meet lets all of a program's ranks pass their next barrier.
func meet(t *testing.T, all []Worker) {
	t.Helper()
	var pass pmi.Pass
	for _, w := range all {
		b, err := w.Barriers().Next()
		if err != nil {
			t.Fatalf("%v: %+v", err, await(t, w))
		}
		pass.Number = b.Number
		pass.Puts = append(pass.Puts, b.Puts...)
	}
	for _, w := range all {
		if err := w.Barriers().Pass(pass); err != nil {
			t.Fatal(err)
		}
	}
}

// Ranks of a program find each other through their supervisors, with and without
// namespaces, also if their node goes while they wait for each other.
func TestRanksMeet(t *testing.T) {
	for _, basic := range []bool{false, true} {
		t.Run(fmt.Sprintf("basic %v", basic), func(t *testing.T) {
			before, after, all := probed(t, Config{Basic: basic}), probed(t, Config{Basic: basic}), make([]Worker, 2)
			specs := rankSpecs(t, "say cmd=finalize")
			for i, spec := range specs {
				w, err := before.Start(t.Context(), spec)
				if err != nil {
					t.Fatal(err)
				}
				awaitOutput(t, w, int64(len("waiting\n")))
				all[i] = w
			}
			for i, w := range all {
				w.Leave()
				again, err := after.Adopt(t.Context(), specs[i].Root)
				if err != nil {
					t.Fatal(err)
				}
				all[i] = again
				defer again.Stop(0, 0)
			}
			meet(t, all)
			for i, w := range all {
				exit, want := await(t, w), fmt.Sprintf("waiting\ncmd=get_result rc=0 msg=success value=hello-%d\n", 1-i)
				if got := output(t, w, work.Stdout); exit.Code != 0 || got != want {
					t.Errorf("rank %d: %+v, wrote %q, want %q", i, exit, got, want)
				}
			}
		})
	}
}

// Who ends without MPI_Finalize has failed, since others may wait for it; a worker that is
// no MPI program has not.
func TestRanksThatDoNotFinish(t *testing.T) {
	r := probed(t, Config{})
	specs := rankSpecs(t, "exit 0")
	specs[1].Args = []string{"bash", "-c", "true"}
	all := startAt(t, r, specs...)
	if exit := await(t, all[1]); exit.Code != 0 {
		t.Errorf("no MPI program: %+v", exit)
	}
	if _, err := all[1].Barriers().Next(); err == nil {
		t.Error("a barrier of what has ended")
	}
	meet(t, all[:1])
	if exit := await(t, all[0]); exit.Code != codeFailed || !strings.Contains(exit.Detail, "MPI_Finalize") {
		t.Errorf("without MPI_Finalize: %+v", exit)
	}
}

// A rank that aborts, and waits to be ended, ends with its code.
func TestRanksThatAbort(t *testing.T) {
	for text, want := range map[string]int{"echo cmd=abort exitcode=42 >&3; sleep 100": 42, "echo cmd=abort exitcode=256 >&3; sleep 100": 1, "echo cmd=abort exitcode=42 >&3; exit 42": 42} {
		all := startAt(t, probed(t, Config{}), rankSpec(t, 0, text))
		meet(t, all)
		if exit := await(t, all[0]); exit.Code != want || exit.Cause != work.Exited || !strings.Contains(exit.Detail, "MPI_Abort") && want != 42 {
			t.Errorf("%s: %+v", text, exit)
		}
	}
}

// A place that no rank has is refused before anything runs.
func TestRanksOutOfPlace(t *testing.T) {
	spec := rankSpec(t, 2, "")
	w, err := probed(t, Config{}).Start(t.Context(), spec)
	if err != nil {
		return
	}
	if exit := await(t, w); exit.Cause != work.Unstarted {
		t.Errorf("rank 2 of 2: %+v", exit)
	}
}

// Ranks that wait give way to each other, which they only can within one control group and,
// where there is none, one session: that of the launcher that namespaces let them share.
func TestRanksShareTheProcessors(t *testing.T) {
	r := probed(t, Config{})
	specs := rankSpecs(t, "say cmd=finalize")
	for i := range specs {
		specs[i].Args = []string{"bash", "-c", `read -r _ _ _ _ _ session _ </proc/self/stat; echo "session $session $(grep -E '^[0-9]+:([a-z]*,)*cpu[,:]' /proc/self/cgroup)"; exec sleep 1000`}
	}
	all := startAt(t, r, specs...)
	var where []string
	for _, w := range all {
		awaitOutput(t, w, int64(len("session 1\n")))
		where = append(where, output(t, w, work.Stdout))
		w.Stop(0, 0)
	}
	if same := where[0] == where[1]; same != slices.Contains(r.Enforces(), Namespaces) {
		t.Errorf("one rank is at %q, another at %q", where[0], where[1])
	}
}
