package executor

import (
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// Workers are shown what the owner shows when they start, whatever it was before.
func TestWorkersAreShownWhatTheOwnerShows(t *testing.T) {
	var limits jobs.Limits
	self := jobtest.Node(2)
	x := New(Config{Member: func(id vicinity.ID) (vicinity.Member, bool) { return vicinity.Member{ID: id, Version: 5}, true }, Self: vicinity.Member{ID: self}, Workers: Workers{Dir: t.TempDir(), Runner: process.New(process.Config{}), Limits: func() jobs.Limits { return limits }}, Log: zerolog.Nop()},
		loop.New(zerolog.Nop()), &participant.Participant{})
	for _, c := range []struct {
		origin      vicinity.ID
		change      string
		mounts      []string
		read, write []string
		bad         string
	}{
		{origin: jobtest.Node(1), change: "expose=/data"},
		{origin: jobtest.Node(1), change: "expose=/data,/scratch:rw", mounts: []string{"/data/x:ro"}},
		{origin: jobtest.Node(1), change: "expose=/scratch:rw", mounts: []string{"/data/x:ro"}, bad: "its owner does not expose /data/x"},
		{origin: self, change: "expose=none", mounts: []string{"/home/ann:ro"}, read: []string{"/home/ann"}},
		{origin: self, change: "mounts=own:rw", mounts: []string{"/home/ann:rw"}, write: []string{"/home/ann"}},
		{origin: jobtest.Node(1), change: "mounts=own:rw", mounts: []string{"/home/ann:ro"}, bad: "its owner does not expose /home/ann"},
		{origin: self, change: "mounts=exposed", mounts: []string{"/home/ann:ro"}, bad: "its owner does not expose /home/ann"},
	} {
		if err := limits.Change(c.change); err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		if err := process.MakeRoot(root+"/worker", string(self)); err != nil {
			t.Fatal(err)
		}
		spec := jobs.Spec{Args: []string{"prog"}, Min: 1, Max: 1, Slots: 1, Array: &jobs.Array{}, Access: jobs.Access{Mounts: c.mounts}}
		claim := participant.ClaimRecord{Job: jobs.ID("aaaaa").At(c.origin), RankAttempt: wiretest.RA(0, 1), Spec: spec, Start: &wire.Start{}}
		p, err := x.processSpec(root+"/worker", newBeginning(&participant.DoRun{Claim: claim}, self, nil))
		read, write := limits.Exposed().Split()
		if err == nil && (p.Tasks.Left != nil) != (c.origin == self) {
			t.Errorf("%+v: of what tasks leave it takes along %+v, for an origin of an earlier version", c, p.Tasks.Left)
		}
		switch {
		case c.bad != "" && (err == nil || !strings.Contains(err.Error(), c.bad)), c.bad == "" && err != nil:
			t.Errorf("%+v: %v", c, err)
		case err == nil && (!slices.Equal(p.Expose, append(read, c.read...)) || !slices.Equal(p.Writable, append(write, c.write...))):
			t.Errorf("%+v: it reads %q and writes %q", c, p.Expose, p.Writable)
		}
	}
}
