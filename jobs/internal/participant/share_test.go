package participant

import (
	"path/filepath"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// Workers that start together share a directory; those that come when one of them was started, as
// of the next attempt, share another one. A worker that did not begin keeps its own, and so do those
// that the next life of the node adopts.
func TestWhoSharesADirectory(t *testing.T) {
	spec := jobs.Spec{Access: jobs.Access{ShareWork: true}}
	h := newHand(t, 8)
	shares := func(want ...int) (list []DoClaim) {
		t.Helper()
		list = take[DoClaim](h)
		for i, e := range list {
			if len(list) != len(want) || e.Claim.Share != want[i] || e.Claim.Shared() != SharedName(h.job, want[i]) {
				t.Fatalf("claims %d and %d others, want %v", e.Claim.Share, len(list)-1, want)
			}
			h.p.Claimed(h.now, e.Worker, nil, h.now)
		}
		for _, e := range take[DoLay](h) {
			h.p.Laid(h.now, e.Worker, nil, h.now)
		}
		return list
	}
	grant := func(first, n int) {
		t.Helper()
		if err := h.grant(spec, first, n); err != nil {
			t.Fatal(err)
		}
	}
	grant(0, 2)
	shares(1, 1)
	grant(2, 1)
	shares(1)
	h.start(0, 1)
	h.exits(1, work.Exit{Cause: work.Unstarted})
	h.p.Tried(h.now, take[DoTry](h)[0].Worker, "")
	shares(1)
	grant(3, 1)
	last := shares(2)

	next := newHand(t, 8)
	next.p.Adopt(h.now, last[0].Claim)
	if got := take[DoClaim](next); len(got) != 1 || got[0].Claim.Share != 2 {
		t.Errorf("adopted, it claims %+v", got)
	}
	// Who did not begin, and will not, has none.
	h.p.EvictAll(h.now, WantEvict, "its owner wants it")
	for _, e := range take[DoPark](h) {
		if e.Claim.Shared() != "" {
			t.Errorf("parked with %q", e.Claim.Shared())
		}
	}
}

// A claim says which directory is shared if one is.
func TestClaimOfASharedDirectory(t *testing.T) {
	for _, c := range []struct {
		share  bool
		number int
		lost   string
		good   bool
	}{{false, 0, "", true}, {true, 1, "", true}, {true, 0, "", false}, {true, 0, "gone", true}, {false, 1, "", false}, {true, -1, "", false}} {
		claim := ClaimRecord{Version: claimVersion, Job: wiretest.Job, RankAttempt: jobs.RankAttempt{Rank: 3, Attempt: 2}, Share: c.number, Lost: c.lost,
			Spec: jobs.Spec{Args: []string{"x"}, Min: 4, Max: 4, Slots: 1, Access: jobs.Access{ShareWork: c.share}}, Since: time.Unix(0, 0)}
		root := filepath.Join(t.TempDir(), RootName(claim.Job, claim.RankAttempt))
		if err := process.MakeRoot(root, "me"); err != nil {
			t.Fatal(err)
		}
		if err := claim.Write(root); err != nil {
			t.Fatal(err)
		}
		if got, err := LoadClaim(root); (err == nil) != c.good || c.good && got.Share != c.number {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}
