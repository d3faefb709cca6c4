package main

import (
	"math/rand/v2"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
)

// hostileEvery is how many jobs there are for each one that wants more than it asked
// for. That they come in turn has a short story have all of them, too.
const hostileEvery = 10

// hostile are the kinds that the wall around workers has to stop.
func hostile() []kind {
	return []kind{
		{"fork bomb", 0, forkBomb},
		{"memory hog", 0, memoryHog},
		{"disk filler", 0, diskFiller},
		{"spinner", 0, spinner},
	}
}

// hostileAt returns the hostile kind of a job, if it is to be one.
func hostileAt(seed uint64, number int) (kind, bool) {
	if number%hostileEvery != hostileEvery/2 {
		return kind{}, false
	}
	all := hostile()
	return all[(seed+uint64(number/hostileEvery))%uint64(len(all))], true
}

// What they ask for.
const (
	hogMemory  = 64 << 20
	fillerDisk = 8 << 20
)

// misbehave has rank 0 write a few lines and then be hostile in one of some ways.
func (j *order) misbehave(rnd *rand.Rand, ways ...string) {
	j.prog.Lines, j.prog.Errs, j.prog.Gap = 1+rnd.IntN(6), rnd.IntN(2), between(rnd, 10, 50)
	j.prog.Hostile = ways[rnd.IntN(len(ways))]
}

// companion adds a rank that does nothing wrong and is not to suffer, now and then.
func (j *order) companion(rnd *rand.Rand) {
	j.ranks(1 + rnd.IntN(2))
	goOn := false
	j.spec.KillOnBadExit = &goOn
}

// endless lets it end by its walltime, or by a user who comes at about the same time.
func (j *order) endless(rnd *rand.Rand, limit time.Duration) {
	j.spec.Walltime = codec.Duration(limit)
	j.ends = []end{{jobs.Timeout, jobs.CodeTimeout}}
	j.words = overTime(j.spec.Walltime)
	if rnd.IntN(3) == 0 {
		j.cancel = between(rnd, int(limit.Milliseconds())*3/4, int(limit.Milliseconds()))
		j.ends = append(j.ends, end{jobs.Cancelled, jobs.CodeCancelled})
	}
}

// forkBomb has time enough to come to the most processes that a worker may have.
func forkBomb(j *order, rnd *rand.Rand) {
	j.misbehave(rnd, wayBomb)
	j.endless(rnd, 5*time.Second)
}

func memoryHog(j *order, rnd *rand.Rand) {
	j.misbehave(rnd, wayTouch, wayMemfd, wayShm, waySegment)
	if j.prog.Hostile == wayTouch || j.prog.Hostile == wayMemfd { // the others are the whole job's
		j.companion(rnd)
	}
	j.spec.Memory = hogMemory
	j.ends, j.words = []end{{jobs.Failed, 137}}, "needed more than 64 MiB of memory (--mem)"
}

func diskFiller(j *order, rnd *rand.Rand) {
	j.misbehave(rnd, wayFile, wayFiles)
	j.companion(rnd)
	j.spec.Disk = fillerDisk
	j.ends, j.words = []end{{jobs.Failed, 137}}, "needed more than 8 MiB of disk space (--disk)"
}

func spinner(j *order, rnd *rand.Rand) {
	j.misbehave(rnd, waySpin)
	j.endless(rnd, 2*time.Second)
}
