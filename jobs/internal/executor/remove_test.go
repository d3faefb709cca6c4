package executor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/process"
	"zorilla/jobs/remover"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// removing is an executor with the root of one worker, and with its own way to remove that.
func removing(t *testing.T, dir string, clean func(root string) error) (*Executor, *loop.Loop, participant.WorkerID, string) {
	t.Helper()
	id := participant.WorkerID{Job: wiretest.Job, RankAttempt: wiretest.RA(0, 1)}
	self, l := jobtest.Node(2), loop.New(zerolog.Nop())
	x := New(Config{Self: vicinity.Member{ID: self}, Store: transfer.NewMemStore(1 << 20), Log: zerolog.Nop(),
		Workers: Workers{Dir: dir, CleanRoot: func(root string, _ remover.Pace, _ ...string) error { return clean(root) }}}, l, &participant.Participant{})
	if err := process.MakeRoot(x.root(id), string(self)); err != nil {
		t.Fatal(err)
	}
	return x, l, id, x.root(id)
}

// What is told to a worker, or written down of it, does not come back after it was removed.
func TestNothingIsMadeOfWorkersThatAreRemoved(t *testing.T) {
	x, l, id, root := removing(t, t.TempDir(), os.RemoveAll)
	l.Start(asOwner{})
	removing, others := make(chan struct{}), make(chan struct{})
	leave := x.bin.Enter(root) // it is being removed
	x.loop.Go(func() {
		close(removing)
		x.note(id)
		close(others)
	})
	<-removing
	x.table(participant.DoTable{Worker: id, Table: wire.Table{Epoch: 2, File: "10.0.0.1 slots=1\n"}})
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	leave()
	<-others
	l.Stop()
	l.Wait()
	if _, err := os.Lstat(root); !errors.Is(err, fs.ErrNotExist) {
		left, _ := filepath.Glob(root + "/*")
		t.Errorf("its root is there: %v, with %q", err, left)
	}
}

// The claim of a worker goes before anything else of it: a node that is killed half-way must not
// take the rest for a worker when it is started again.
func TestClaimIsRemovedFirst(t *testing.T) {
	removed := false
	x, l, id, root := removing(t, t.TempDir(), func(root string) error {
		removed = true
		if b, _ := process.Noted(root, participant.ClaimNote); b != nil {
			t.Error("what is being removed has a claim still")
		}
		return os.RemoveAll(root)
	})
	c := participant.ClaimRecord{Job: id.Job, RankAttempt: id.RankAttempt}
	if err := c.Write(root); err != nil {
		t.Fatal(err)
	}
	if b, _ := process.Noted(root, participant.ClaimNote); b == nil {
		t.Fatal("it has no claim")
	}
	l.Start(asOwner{})
	x.remove(id, nil)
	if !removed {
		t.Error("nothing is removed")
	}
	l.Stop()
	l.Wait()
}

// What stands in the way of a removal may pass.
func TestRemovalIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		x, l, id, root := removing(t, dir, func(root string) error {
			if tries++; tries < 4 {
				return errors.New("a process is still there")
			}
			return os.RemoveAll(root)
		})
		l.Start(asOwner{})
		x.loop.Go(func() { x.remove(id, nil) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, err := os.Lstat(root); !errors.Is(err, fs.ErrNotExist) || tries != 4 {
			t.Errorf("after %d tries: %v", tries, err)
		}
		l.Leave()
		l.Stop()
		l.Wait()
	})
}
