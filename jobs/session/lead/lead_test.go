package lead

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/session"
	"zorilla/jobs/session/door"
)

// A rank whose node cannot be reached for a while is told later, one that has ended is not.
func TestRelease(t *testing.T) {
	var mu sync.Mutex
	asked := map[int]int{}
	root := t.TempDir()
	d, err := door.Open(root, func(_ context.Context, a door.Ask, _ io.Reader, out io.Writer) error {
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
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	t.Setenv(door.Variable, filepath.Join(root, door.Dir, door.Name))
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
