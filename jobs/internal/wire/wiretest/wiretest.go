// Package wiretest makes messages for tests.
package wiretest

import (
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Job is a job of Node(1).
var Job = jobs.ID("k7f3q").At(jobtest.Node(1))

// Ad is an advertisement of a job for workers of one slot.
func Ad(origin vicinity.ID, job string, wanted int, stamp jobs.Stamp) wire.Advertisement {
	return wire.Advertisement{Job: jobs.ID(job).At(origin), Round: 1, Wanted: wanted, Needs: jobs.Needs{Slots: 1}, Stamp: stamp, Life: 60_000}
}

// Grant grants the first ranks of the job of an advertisement.
func Grant(ad wire.Advertisement, key uint64, n int) *wire.Grant {
	return &wire.Grant{Job: ad.Job, Key: key, Spec: jobs.Spec{Slots: ad.Slots, Memory: ad.Memory, Disk: ad.Disk, GPUs: ad.GPUs},
		Ranks: make([]jobs.RankAttempt, n)}
}

// GoldenSpec uses most of what a job can ask for.
func GoldenSpec() jobs.Spec {
	kill := false
	return jobs.Spec{Key: "once", Name: "golden", Args: []string{"./prog", "{}"},
		Env: map[string]string{"K": "V"}, Inputs: transfer.HashOf([]byte("in")), Outputs: []string{"out-*"},
		Min: 2, Max: 4, Slots: 2, Disk: 1 << 30, GPUs: 1, Where: "slots >= 2", Memory: 1 << 29,
		Walltime: codec.Duration(time.Hour), GiveUp: codec.Duration(time.Minute), Priority: -3,
		Strategy: "compact", Placing: jobs.Placing{MaxRTT: codec.Duration(30 * time.Millisecond)},
		Search:  jobs.Search{Mode: jobs.SearchPaper, Radius: 2, Wait: codec.Duration(time.Second), Factor: 1.5},
		After:   []jobs.Dependency{{Kind: jobs.AfterOK, Job: Job}},
		Failing: jobs.Failing{Retries: 2, KillOnBadExit: &kill, MaxFails: 1}, Notices: jobs.Notices{SignalOnChange: "USR1"}}
}

// RA names an attempt of a rank.
func RA(rank, attempt int) jobs.RankAttempt { return jobs.RankAttempt{Rank: rank, Attempt: attempt} }

// Genuine takes every signature for a good one.
func Genuine(vicinity.ID, []byte, []byte) error { return nil }
