package executor

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/process"
	"zorilla/jobs/remover"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// What a worker of before began with stays in the store, which makes room as soon as
// the node works again.
func TestInputsOfAdoptedWorkersAreKept(t *testing.T) {
	store := transfer.NewMemStore(2 * 4096) // what two small blobs take
	data := []byte("sixty bytes of input, which would go for others, but for this")
	chunk := transfer.HashOf(data)
	if err := store.Put(chunk, data); err != nil {
		t.Fatal(err)
	}
	tree, err := transfer.SaveManifest(store, transfer.Manifest{Entries: []transfer.Entry{{Path: "in", Size: int64(len(data)), Chunks: []transfer.Hash{chunk}}}})
	if err != nil {
		t.Fatal(err)
	}
	ra := wiretest.RA(0, 1)
	work, self := t.TempDir(), jobtest.Node(2)
	root := filepath.Join(work, participant.RootName(wiretest.Job, ra))
	if err := process.MakeRoot(root, string(self)); err != nil {
		t.Fatal(err)
	}
	claim := participant.ClaimRecord{Version: 2, Job: wiretest.Job, RankAttempt: ra, Since: jobtest.Start, At: jobtest.Start,
		Spec: jobs.Spec{Args: []string{"prog"}, Min: 1, Max: 1, Slots: 1, Inputs: tree}}
	if err := claim.Write(root); err != nil {
		t.Fatal(err)
	}
	x := New(Config{Self: vicinity.Member{ID: self}, Workers: Workers{Dir: work}, Store: store, Log: zerolog.Nop()}, loop.New(zerolog.Nop()), &participant.Participant{})
	var adopted []participant.ClaimRecord
	if err := x.Adopt(func(c participant.ClaimRecord) { adopted = append(adopted, c) }); err != nil || len(adopted) != 1 || adopted[0].Job != wiretest.Job {
		t.Fatalf("adopted %+v, %v", adopted, err)
	}
	store.StartEviction()
	other := make([]byte, 100)
	if err := store.Put(transfer.HashOf(other), other); err != nil {
		t.Fatal(err)
	}
	if !store.Has(chunk) || !store.Has(tree) {
		t.Errorf("its input is here: %v, the list of them: %v", store.Has(chunk), store.Has(tree))
	}
}

// asOwner is the part of a node that its loop runs for.
type asOwner struct{}

func (asOwner) Due()            {}
func (asOwner) Wake() time.Time { return time.Time{} }
func (asOwner) Stalled()        {}

// A node that starts does not wait until all that was left of workers is removed; who gets
// the place of one does.
func TestLargeRootIsRemovedLater(t *testing.T) {
	ra, work, self := wiretest.RA(0, 1), t.TempDir(), jobtest.Node(2)
	root := filepath.Join(work, participant.RootName(wiretest.Job, ra))
	if err := process.MakeRoot(root, string(self)); err != nil {
		t.Fatal(err)
	}
	for i := range atStart {
		if err := os.Mkdir(filepath.Join(root, "work", strconv.Itoa(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l := loop.New(zerolog.Nop())
	cfg := Config{Self: vicinity.Member{ID: self}, Store: transfer.NewMemStore(0), Workers: Workers{Dir: work, Runner: cold{}, CleanRoot: process.CleanFiles}, Log: zerolog.Nop()}
	x := New(cfg, l, &participant.Participant{})
	if err := x.Adopt(func(participant.ClaimRecord) { t.Error("something is adopted") }); err != nil {
		t.Fatal(err)
	}
	if owner, err := process.RootOwner(root); owner != string(self) || err != nil {
		t.Errorf("before the node runs, it is of %q, %v", owner, err)
	}
	l.Start(asOwner{})
	id := participant.WorkerID{Job: wiretest.Job, RankAttempt: ra}
	if err := x.claim(participant.DoClaim{Worker: id, Claim: participant.ClaimRecord{Job: wiretest.Job, RankAttempt: ra}}); err != nil {
		t.Fatal(err)
	}
	l.Stop()
	l.Wait()
	left, err := os.ReadDir(filepath.Join(root, "work"))
	if _, cerr := participant.LoadClaim(root); err != nil || errors.Is(cerr, os.ErrNotExist) || len(left) > 0 {
		t.Errorf("%d files left, %v, %v", len(left), err, cerr)
	}
}

// What a node does not get to remove before it leaves is its next life's.
func TestLargeRootIsLeft(t *testing.T) {
	ra, work, self := wiretest.RA(0, 1), t.TempDir(), jobtest.Node(2)
	root := filepath.Join(work, participant.RootName(wiretest.Job, ra))
	if err := process.MakeRoot(root, string(self)); err != nil {
		t.Fatal(err)
	}
	l := loop.New(zerolog.Nop())
	clean := func(root string, pace remover.Pace, _ ...string) error {
		for {
			if err := pace(); err != nil {
				return err
			}
		}
	}
	x := New(Config{Self: vicinity.Member{ID: self}, Store: transfer.NewMemStore(0), Workers: Workers{Dir: work, CleanRoot: clean}, Log: zerolog.Nop()}, l, &participant.Participant{})
	if err := x.Adopt(nil); err != nil {
		t.Fatal(err)
	}
	l.Start(asOwner{})
	l.Leave()
	l.Stop()
	l.Wait()
	if owner, err := process.RootOwner(root); owner != string(self) || err != nil {
		t.Errorf("it is of %q, %v", owner, err)
	}
}

// cold is a runner that has nothing ready.
type cold struct{ Runner }

func (cold) Warm(string, string) {}
