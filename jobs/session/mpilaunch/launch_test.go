package mpilaunch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/mpi"
	"zorilla/jobs/session"
	"zorilla/jobs/session/workerapi"
)

// A rank whose node cannot be reached for a while is told later, one that has ended is not.
func TestRelease(t *testing.T) {
	var mu sync.Mutex
	asked := map[int]int{}
	root := t.TempDir()
	d, err := workerapi.Open(root, workerapi.Handlers{Enter: func(_ context.Context, a workerapi.Ask, _ io.Reader, out io.Writer) error {
		mu.Lock()
		asked[a.Rank]++
		try := asked[a.Rank]
		mu.Unlock()
		switch {
		case a.Rank == 1:
			return fmt.Errorf("%w: rank 1 of job x is %s", jobs.ErrNotRunning, jobs.WorkerEnded)
		case try == 1:
			return errors.New("node y cannot be asked: connection refused")
		}
		w := session.NewWriter(out)
		return errors.Join(w.Write(session.KindBegan, nil), w.Exit(session.Exit{Code: max(0, 3-try)}))
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	t.Setenv(workerapi.Variable, filepath.Join(root, workerapi.Dir, workerapi.Name))
	release(3)
	if asked[1] != 1 || asked[2] != 3 {
		t.Errorf("tries by rank: %v, want 1 and 3", asked)
	}
}

func TestGone(t *testing.T) {
	for text, want := range map[string]bool{
		fmt.Sprintf("not running: rank 1 of job x is %s", jobs.WorkerEnded):   true,
		fmt.Sprintf("not running: rank 1 of job x is %s", jobs.WorkerStopped): true,
		"not running: job x has ended (done)":                                 true,
		fmt.Sprintf("job x %s", jobs.ErrNotFound):                             true,
		"not running: rank 1 of job x is lost":                                false,
		"not running: rank 1 of job x does not run at node y":                 false,
		"this worker's node cannot be asked: EOF":                             false,
		"the node is stopping":                                                false,
	} {
		if gone(errors.New(text)) != want {
			t.Errorf("%s: want %v", text, want)
		}
	}
}

// What launchers start on several hosts, or with more ranks than processors, is helped as ranks
// of a job with --mpi are; else it is left alone.
func TestRemedies(t *testing.T) {
	l := prepare(t.TempDir())
	if _, err := os.Stat(l.Finish); err != nil || filepath.Base(l.Finish) != filepath.Base(Finish) {
		t.Fatalf("libraries %+v: %v", l, err)
	}
	busy, one := strconv.Itoa(runtime.NumCPU()+1), strconv.Itoa(runtime.NumCPU())
	for hosts, want := range map[string]string{
		"10.0.0.1 slots=" + one + "\n":                  "",
		"10.0.0.1 slots=" + busy + "\n":                 "yield preload YIELD",
		"10.0.0.1 slots=1\n10.0.0.2 slots=1\n":          "yield preload YIELD FINISH",
		"10.0.0.1 slots=1\n10.0.0.2 slots=" + busy + "": "yield preload YIELD FINISH",
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "hosts")
		if err := os.WriteFile(file, []byte(hosts), 0o600); err != nil {
			t.Fatal(err)
		}
		env, err := Environment("/agent", dir, file, l)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range env {
			for is, short := range map[string]string{
				"OMPI_MCA_mpi_yield_when_idle=1": "yield", "LD_PRELOAD=" + l.Finish: "preload",
				"ZORILLA_MPI_YIELD=1": "YIELD", "ZORILLA_MPI_FINISH=1": "FINISH",
			} {
				if v == is {
					got = append(got, short)
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", hosts, got, want)
		}
		if env, err = Environment("/agent", dir, file, mpi.Libraries{}); err != nil || strings.Contains(strings.Join(env, " "), "LD_PRELOAD") {
			t.Errorf("without a library: %q, %v", env, err)
		}
	}
}

func TestVariablesOfTheUserAreKept(t *testing.T) {
	t.Setenv("OMPI_MCA_mpi_yield_when_idle", "0")
	t.Setenv("LD_PRELOAD", "")
	if got := unset([]string{"OMPI_MCA_mpi_yield_when_idle=1", "ZORILLA_MPI_YIELD=1", "LD_PRELOAD=/x"}); !slices.Equal(got, []string{"ZORILLA_MPI_YIELD=1"}) {
		t.Errorf("set are %q", got)
	}
}
