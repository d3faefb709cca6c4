package executor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// A worker of a job with groups runs the command of its own, within what that takes, and learns its place.
func TestWorkersOfGroups(t *testing.T) {
	self := jobtest.Node(2)
	x := New(Config{Self: vicinity.Member{ID: self}, Workers: Workers{Dir: t.TempDir(), Runner: process.New(process.Config{})}, Log: zerolog.Nop()},
		loop.New(zerolog.Nop()), &participant.Participant{})
	spec := jobs.Spec{Args: []string{"prog", "x"}, Env: map[string]string{"A": "job", "B": "job"}, Min: 3, Max: 3, Slots: 2, Memory: 1 << 30, Disk: 1 << 28, Topology: groups.Topology{
		Groups: []groups.Group{
			{Name: "sea", Min: 2, Max: 2},
			{Name: "air", Args: []string{"air"}, Env: map[string]string{"B": "air"}, Min: 1, Max: 1, Slots: groups.Range{Min: 5}, Memory: groups.Range{Min: 1 << 31}, Disk: groups.Range{Min: 1 << 29}},
		},
		Links: []groups.Link{{Name: "near", Groups: []string{"sea"}}, {Name: "all", Groups: []string{"sea", "air"}}},
	}}
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	for rank, c := range []struct {
		args         []string
		memory, disk int64
		shares       int
		env          string
	}{
		{[]string{"prog", "x"}, 1 << 30, 1 << 28, 2, "A=job B=job ZORILLA_SLOTS=2 OMP_NUM_THREADS=2 ZORILLA_GROUP=sea ZORILLA_GROUP_RANK=0 ZORILLA_GROUP_SIZE=2"},
		{[]string{"prog", "x"}, 1 << 30, 1 << 28, 2, "A=job B=job ZORILLA_SLOTS=2 OMP_NUM_THREADS=2 ZORILLA_GROUP=sea ZORILLA_GROUP_RANK=1 ZORILLA_GROUP_SIZE=2"},
		{[]string{"air"}, 1 << 31, 1 << 29, 5, "A=job B=air ZORILLA_SLOTS=5 OMP_NUM_THREADS=5 MKL_NUM_THREADS=5 ZORILLA_GROUP=air ZORILLA_GROUP_RANK=0 ZORILLA_GROUP_SIZE=1"},
	} {
		root := filepath.Join(t.TempDir(), "worker")
		if err := process.MakeRoot(root, string(self)); err != nil {
			t.Fatal(err)
		}
		claim := participant.ClaimRecord{Job: wiretest.Job, RankAttempt: wiretest.RA(rank, 1), Spec: spec, Start: &wire.Start{Size: 3}}
		p, err := x.processSpec(root, newBeginning(&participant.DoRun{Claim: claim}, self, nil))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.Args, c.args) || p.Memory != c.memory || p.Disk != c.disk || p.Shares != c.shares {
			t.Errorf("rank %d runs %q with %d of memory, %d of disk and %d shares", rank, p.Args, p.Memory, p.Disk, p.Shares)
		}
		env := map[string]string{}
		for _, v := range p.Env {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		want(t, env, c.env+" ZORILLA_SIZE=3 ZORILLA_MIN=3 ZORILLA_MAX=3 ZORILLA_TOPOLOGY_DEPTH=2")
		if colours := []string{"all:1 near:0", "all:1 near:0", "all:1 -"}[rank]; env["ZORILLA_TOPOLOGY_COLORS"] != colours {
			t.Errorf("rank %d has colours %q, want %q", rank, env["ZORILLA_TOPOLOGY_COLORS"], colours)
		}
		b, err := os.ReadFile(filepath.Join(root, "tmp", filepath.Base(env["ZORILLA_TOPOLOGY_FILE"])))
		if err != nil || env["ZORILLA_TOPOLOGY_FILE"] != filepath.Join(p.Seen(), "tmp", wire.TopologyFileName) {
			t.Fatalf("%s: %v", env["ZORILLA_TOPOLOGY_FILE"], err)
		}
		var file wire.Topology
		if err := json.Unmarshal(b, &file); err != nil || len(file.Ranks) != 3 || file.Ranks[rank].Group != env["ZORILLA_GROUP"] {
			t.Errorf("rank %d reads %s: %v", rank, b, err)
		}
	}
	// Others learn nothing of that.
	env := told(t, nil, jobs.Spec{Slots: 1}, 0)
	for name := range env {
		if strings.HasPrefix(name, "ZORILLA_TOPOLOGY") || strings.HasPrefix(name, "ZORILLA_GROUP") {
			t.Errorf("%s is set for a job without groups", name)
		}
	}
}
