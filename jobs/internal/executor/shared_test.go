package executor

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/process"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// sharer is the claim of a rank that shares a directory.
func sharer(rank, number int) participant.ClaimRecord {
	return participant.ClaimRecord{Version: 2, Job: wiretest.Job, RankAttempt: wiretest.RA(rank, 1), Share: number, Since: jobtest.Start, At: jobtest.Start,
		Spec: jobs.Spec{Args: []string{"prog"}, Min: 3, Max: 3, Slots: 1, Access: jobs.Access{ShareWork: true}}}
}

func idOf(c *participant.ClaimRecord) participant.WorkerID {
	return participant.WorkerID{Job: c.Job, RankAttempt: c.RankAttempt}
}

// kept is what is made of directories that workers share.
type kept struct{ made, laid, removed int }

func (k *kept) sharing(in string) *sharing {
	return newSharing(in, func(string) error { k.made++; return nil }, func(string) { k.removed++ })
}

// A directory is made and filled with the first of those that have it, again if that failed, and
// goes with the last.
func TestSharedDirectoryIsMadeOnce(t *testing.T) {
	k := &kept{}
	s := k.sharing("/in")
	claims := []participant.ClaimRecord{sharer(0, 1), sharer(1, 1), sharer(2, 1), sharer(3, 2)}
	for i := range claims {
		if err := s.claim(&claims[i]); err != nil {
			t.Fatal(err)
		}
	}
	lay := func(rank int, err error) error {
		return s.lay(idOf(&claims[rank]), "own", func(root string) error {
			if k.laid++; root != filepath.Join("/in", claims[rank].Shared()) {
				t.Errorf("inputs for %s", root)
			}
			return err
		})
	}
	failed := errors.New("no room")
	if err := lay(0, failed); !errors.Is(err, failed) {
		t.Error(err)
	}
	for _, rank := range []int{1, 0, 2, 3} {
		if err := lay(rank, nil); err != nil {
			t.Error(err)
		}
	}
	if want := (kept{made: 3, laid: 3}); *k != want { // two, of which one is emptied
		t.Errorf("%+v, want %+v", *k, want)
	}
	if d := s.config(idOf(&claims[0])); d == nil || d.Workers != 3 || d.Root != "/in/"+claims[0].Shared() {
		t.Errorf("%+v", d)
	}
	for i, removed := range []int{0, 0, 1, 2} {
		if s.leave(idOf(&claims[i])); k.removed != removed {
			t.Errorf("when %d have left, %d are removed", i+1, k.removed)
		}
	}
	other := participant.ClaimRecord{Job: wiretest.Job, RankAttempt: wiretest.RA(9, 1)}
	if s.claim(&other) != nil || s.config(idOf(&other)) != nil || s.around(idOf(&other), "own") != "own" || len(s.dirs)+len(s.of) > 0 {
		t.Errorf("what nobody shares is kept: %+v", s)
	}
	// Whoever comes then finds it as new.
	if err := errors.Join(s.claim(&claims[0]), lay(0, nil)); err != nil || k.made != 4 || k.laid != 4 {
		t.Errorf("%+v, %v", *k, err)
	}
}

// The last one to end has the files stored, in whatever order the next life of a node hears of
// those that have ended.
func TestFilesOfASharedDirectoryAreStoredOnce(t *testing.T) {
	in := t.TempDir()
	claims := []participant.ClaimRecord{sharer(0, 1), sharer(1, 1), sharer(2, 1)}
	root := func(i int) string {
		return filepath.Join(in, participant.RootName(wiretest.Job, claims[i].RankAttempt))
	}
	k := &kept{}
	s := k.sharing(in)
	for i := range claims {
		if err := errors.Join(process.MakeRoot(root(i), "me"), s.claim(&claims[i])); err != nil {
			t.Fatal(err)
		}
	}
	ends := func(s *sharing, i int, want bool) {
		t.Helper()
		if last, err := s.last(idOf(&claims[i]), root(i)); err != nil || last != want {
			t.Errorf("rank %d is the last: %v, %v", i, last, err)
		}
	}
	ends(s, 1, false)
	next := k.sharing(in)
	for i := range claims {
		claims[i].Start = &wire.Start{}
		if next.adopt(&claims[i], root(i)) != filepath.Join(in, claims[i].Shared()) {
			t.Error("it is not adopted")
		}
	}
	ends(next, 0, false)
	ends(next, 2, true)
	ends(next, 1, false) // which had ended before
	ends(next, 2, true)  // again, as after one more death of the node
	if err := next.lay(idOf(&claims[0]), "", func(string) error { return errors.New("inputs over what others have made") }); err != nil || k.made != 1 {
		t.Errorf("%+v, %v", *k, err)
	}
}

// A node that begins keeps the directories that its workers share, and removes others.
func TestSharedDirectoriesAtStart(t *testing.T) {
	work, self := t.TempDir(), jobtest.Node(2)
	used, unused := filepath.Join(work, participant.SharedName(wiretest.Job, 2)), filepath.Join(work, participant.SharedName(wiretest.Job, 1))
	claim := sharer(0, 2)
	root := filepath.Join(work, participant.RootName(wiretest.Job, claim.RankAttempt))
	for _, dir := range []string{root, used, unused} {
		if err := process.MakeRoot(dir, string(self)); err != nil {
			t.Fatal(err)
		}
	}
	if err := claim.Write(root); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Self: vicinity.Member{ID: self}, Store: transfer.NewMemStore(1 << 20), Workers: Workers{Dir: work, Runner: cold{}, CleanRoot: process.CleanFiles}, Log: zerolog.Nop()}
	x := New(cfg, loop.New(zerolog.Nop()), &participant.Participant{})
	adopted := 0
	if err := x.Adopt(func(participant.ClaimRecord) { adopted++ }); err != nil || adopted != 1 {
		t.Fatalf("%d are adopted, %v", adopted, err)
	}
	if _, err := os.Lstat(used); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(unused); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what nobody has is still there: %v", err)
	}
	// It had not begun: what is there is of a try to begin.
	left := filepath.Join(used, workDir, "left")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := x.claim(participant.DoClaim{Worker: idOf(&claim), Claim: claim}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is not empty: %v", err)
	}
	x.remove(idOf(&claim), nil)
	if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	for _, name := range []string{"shared", "shared-1", string(wiretest.Job) + "-shared-0", string(wiretest.Job) + "-shared-01", "x-shared-1"} {
		if isSharedName(name) {
			t.Errorf("%s is taken for a shared directory", name)
		}
	}
}
