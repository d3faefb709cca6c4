package origin

import (
	"fmt"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/journal"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// job is one job at its origin. It is owned by the loop.
type job struct {
	*core.Job  // as the core has it
	output     *output.File
	stdin      *output.Input
	submitters []chan<- error // who waits to know that it is accepted; nil = it is, or is refused
	refusal    error          // why it was not accepted

	trouble string // why output cannot be stored; for people
	thirsty bool   // the disk has no room for its standard input

	toldLost int  // of its damage, that watchers were told of
	filed    bool // it has ended, and the archive has it

	streams map[vicinity.ID]bool // of output, by node; nodes that know none have a false
}

// view is what clients see of a job, and its version: the end is told once it
// is durable, so that no restart takes it back.
func (j *job) view(events journal.Journal) (jobs.Status, uint64) {
	st, version := j.Primary.Status(), j.version()
	st.StdinBytes, _, _ = j.stdin.State()
	st.Damaged = j.output.Damage(&j.Primary.Rec, -1)
	st.Size = j.size()
	st.Earlier = j.output.Earlier(&j.Primary.Rec)
	if text := j.problem(events); text != "" && !st.State.Final() {
		st.Reason = text
	}
	if j.ending() {
		st.State, st.ExitCode, st.Ended = jobs.Collecting, -1, time.Time{}
		st.Reason = "writing down how it ended"
	}
	return st, version
}

// ending reports whether the job has ended, and that is not written down yet.
func (j *job) ending() bool { return j.Primary.Rec.State.Final() && len(j.Steps) > 0 }

// version is that of the job's status.
func (j *job) version() uint64 {
	if j.ending() {
		return j.Primary.Version - 1
	}
	return j.Primary.Version
}

// bound ends a job of which more output came than a worker may write (--max-output). It runs in the
// loop.
func (j *job) bound(now time.Time) {
	if ra, over := j.output.Overflowed(); over && !j.Primary.Rec.State.Final() {
		j.Primary.Overflow(now, ra)
	}
}

// problem returns what keeps the origin from its part of a job, or "".
func (j *job) problem(events journal.Journal) string {
	if len(j.Steps) > 0 && events.Stalled() != nil {
		return diskFull + ": nothing can be written down"
	}
	if j.trouble == "" && j.thirsty {
		return diskFull + ": its standard input waits"
	}
	return j.trouble
}

const diskFull = "the disk of its origin is full"

// decided tells all who submitted the job whether it is accepted.
func (j *job) decided(err error) {
	for _, c := range j.submitters {
		c <- err
	}
	j.submitters = nil
}

// size is how many bytes of results the job has here.
func (j *job) size() int64 {
	return j.wrote() + j.Primary.Rec.Filed()
}

// wrote is how much its output and its input take.
func (j *job) wrote() int64 {
	out, _, _ := j.output.Spool.State()
	return out + j.stdin.Kept()
}

// damage lists what the disk lost of a job.
func (j *job) damage(worker int) []string {
	list := j.output.Damage(&j.Primary.Rec, worker)
	if broken := j.Primary.Rec.Broken; broken != "" {
		list = append([]string{"its journal: " + broken}, list...)
	}
	return list
}

// lost reports what the disk lost of a job, in one line, if anything.
func (j *job) lost() []string {
	if list := j.damage(-1); len(list) > 0 {
		return []string{fmt.Sprintf("job %s is damaged: %s", j.Primary.Rec.ID.Short(), strings.Join(list, "; "))}
	}
	return nil
}

// counted returns which of the job's workers' output counts; nil = it is told task by task.
func (j *job) counted() func(jobs.RankAttempt) bool {
	if j.Primary.Rec.Tasks != nil || j.Primary.Rec.Replicated() {
		return nil
	}
	list := map[jobs.RankAttempt]bool{}
	for i := range j.Primary.Rec.Ranks {
		list[jobs.RankAttempt{Rank: i, Attempt: j.Primary.Rec.Ranks[i].Attempt}] = true
	}
	for _, k := range j.Primary.Rec.Kept {
		list[k.RankAttempt] = true
	}
	final := j.Primary.Rec.State.Final() && j.Primary.Rec.Broken == ""
	return func(ra jobs.RankAttempt) bool { return !final || list[ra] }
}

// outputsOwner, inputsOwner and treeOwner name who pins what in the store: the
// files that a job made, the inputs of a job that has not ended, and inputs of
// jobs that have.
func outputsOwner(id jobs.ID) string        { return "job/" + string(id) }
func inputsOwner(id jobs.ID) string         { return "job-inputs/" + string(id) }
func treeOwner(inputs transfer.Hash) string { return "kept-inputs/" + inputs.String() }
