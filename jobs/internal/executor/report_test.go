package executor

import (
	"fmt"
	"testing"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// spoken is a process that wrote something, whose first bytes are gone.
type spoken struct {
	process.Worker
	freed, wrote int64
}

func (s spoken) Written() (stdout, stderr int64) { return s.wrote, 0 }

func (s spoken) Tasks() process.TaskFeed { return nil }

func (s spoken) ReadOutput(_ work.Stream, at int64, b []byte) (int, error) {
	if at < s.freed {
		return 0, fmt.Errorf("%d: %w", at, process.ErrAcked)
	}
	return len(b), nil
}

// Nothing is read of a worker's output before it is known what the origin has: the
// first of it may be gone, which would look as if the origin had lost it.
func TestOutputIsReadFromWhereTheOriginIs(t *testing.T) {
	id := participant.WorkerID{Job: jobs.ID("aaaaa").At(jobtest.Node(2)), RankAttempt: jobs.RankAttempt{Rank: 0, Attempt: 1}}
	procs := []*handle{{Worker: spoken{freed: 10, wrote: 25}, job: id.Job}}
	rep := wire.Report{Job: id.Job, Workers: []wire.WorkerReport{{RankAttempt: id.RankAttempt}}}
	x := &Executor{loop: loop.New(zerolog.Nop())}
	if more := x.fill(&rep, []wire.Reading{{Skip: true}}, procs); more || len(rep.Output) != 0 || rep.Workers[0].Stdout != 25 || x.loop.Waiting() != 0 {
		t.Errorf("read %d pieces of %d bytes, %d complaints", len(rep.Output), rep.Workers[0].Stdout, x.loop.Waiting())
	}
	x.fill(&rep, []wire.Reading{{From: wire.Written{Stdout: 10}}}, procs)
	if len(rep.Output) != 1 || rep.Output[0].Offset != 10 || len(rep.Output[0].Data) != 15 || x.loop.Waiting() != 0 {
		t.Errorf("read %+v", rep.Output)
	}
	if rep.Output = nil; x.fill(&rep, []wire.Reading{{From: wire.Written{Stdout: 9}}}, procs) || len(rep.Output) != 0 || x.loop.Waiting() != 1 {
		t.Errorf("read %+v, %d complaints, before what is kept", rep.Output, x.loop.Waiting())
	}
}
