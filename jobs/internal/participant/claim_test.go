package participant

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/golden"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/process"
)

// TestGoldenClaims reads what earlier versions wrote into the directories of their
// workers: of one that runs, one that is prepared and one that did not begin.
func TestGoldenClaims(t *testing.T) {
	claim := ClaimRecord{Version: claimVersion, Job: wiretest.Job, Addrs: []string{"10.0.0.7:5444"}, RankAttempt: jobs.RankAttempt{Rank: 3, Attempt: 2}, Spec: wiretest.GoldenSpec(), GPUs: []int{1},
		Stamp: 0x1234, Since: jobtest.Start, At: jobtest.Start.Add(time.Minute)}
	runs, lost := claim, claim
	runs.Start = &wire.Start{Job: wiretest.Job, Ranks: []jobs.RankAttempt{{Rank: 3, Attempt: 2}}, Size: 4, Epoch: 2, Master: "10.0.0.1", Hosts: []wire.Host{{Node: jobtest.Node(1), Addr: "10.0.0.1", Ranks: []int{0, 3}}}}
	lost.Lost, lost.GPUs = "no such user", nil
	decode := func(b []byte) (any, error) {
		root := filepath.Join(t.TempDir(), RootName(wiretest.Job, jobs.RankAttempt{Rank: 3, Attempt: 2}))
		if err := os.Mkdir(root, 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(root, ClaimNote), b, 0o600); err != nil {
			return nil, err
		}
		return LoadClaim(root)
	}
	// Today's lie among the notes.
	at := filepath.Join(t.TempDir(), RootName(wiretest.Job, claim.RankAttempt))
	for _, c := range []ClaimRecord{claim, runs} {
		err := c.Write(at)
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.Join(os.Mkdir(at, 0o755), c.Write(at))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := LoadClaim(at); err != nil || !reflect.DeepEqual(got.Start, runs.Start) {
		t.Errorf("the latest of two is %+v, %v", got, err)
	}
	messages := map[string]golden.Message{}
	for name, c := range map[string]ClaimRecord{"runs": runs, "prepared": claim, "lost": lost} {
		messages[name] = golden.Message{Bytes: codec.Seal(codec.MustMarshal(c)), Decode: decode}
	}
	golden.Messages(t, "claims", messages)
}

// Nor is what that version left in its work directory.
func TestClaimOfAnEarlierVersionIsRefused(t *testing.T) {
	c := ClaimRecord{Version: 1, Job: wiretest.Job, RankAttempt: jobs.RankAttempt{Rank: 0, Attempt: 1}, Spec: jobs.Spec{Args: []string{"x"}, Min: 1, Max: 1, Slots: 1}}
	if err := c.check(); err == nil || err.Error() != "claim of version 1, this node understands only 2" {
		t.Errorf("got %v", err)
	}
	if c.Version = claimVersion; c.check() != nil {
		t.Errorf("a claim of this version: %v", c.check())
	}
}

// A claim that says when to start outlives what is damaged behind it; one that says
// nothing of that does not: what is damaged may have been it.
func TestClaimBeforeWhatIsDamaged(t *testing.T) {
	for _, starts := range []bool{true, false} {
		c := ClaimRecord{Version: claimVersion, Job: wiretest.Job, Addrs: []string{"10.0.0.7:5444"}, RankAttempt: jobs.RankAttempt{Rank: 3, Attempt: 2}, Spec: wiretest.GoldenSpec()}
		if starts {
			c.Start = &wire.Start{Job: wiretest.Job, Ranks: []jobs.RankAttempt{c.RankAttempt}, Size: 4, Epoch: 2, Master: "10.0.0.1", Hosts: []wire.Host{{Node: jobtest.Node(1), Addr: "10.0.0.1", Ranks: []int{0, 3}}}}
		}
		root := filepath.Join(t.TempDir(), RootName(wiretest.Job, c.RankAttempt))
		if err := errors.Join(process.MakeRoot(root, "me"), c.Write(root)); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(filepath.Join(root, "entries"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(make([]byte, 100)); err != nil { // as a machine that failed leaves it
			t.Fatal(err)
		}
		_ = f.Close()
		got, err := LoadClaim(root)
		if starts && (err != nil || got.Start == nil) || !starts && !errors.Is(err, codec.ErrMalformed) {
			t.Errorf("with a start %v: %+v, %v", starts, got, err)
		}
	}
}

// A claim that lets its worker start is synced, so that a machine which fails forgets no process: a
// pipe, which cannot be synced, takes only the other.
func TestClaimOfAStartIsSynced(t *testing.T) {
	root := filepath.Join(t.TempDir(), RootName(wiretest.Job, wiretest.RA(0, 1)))
	at := filepath.Join(root, "entries") // the notes of a worker, see process.Note
	if err := errors.Join(os.Mkdir(root, 0o755), syscall.Mkfifo(at, 0o600)); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(at, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := ClaimRecord{Job: wiretest.Job, RankAttempt: wiretest.RA(0, 1)}
	if err := c.Write(root); err != nil {
		t.Errorf("a claim that does not let its worker start: %v", err)
	}
	c.Start = &wire.Start{Job: wiretest.Job}
	if err := c.Write(root); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a claim that lets its worker start: got %v, want that it is synced", err)
	}
}
