package executor

import (
	"context"
	"errors"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// report sends a report, with what can be read of the output.
func (x *Executor) report(e participant.DoReport) {
	procs, fenced := make([]*handle, len(e.Readings)), x.fences.within(e.Report.Job, x.procs)
	for i, r := range e.Readings {
		e.Readings[i].Skip = r.Skip || x.Streams.of[e.Report.Job] != nil
		procs[i] = x.procs[participant.WorkerID{Job: e.Report.Job, RankAttempt: e.Report.Workers[r.Worker].RankAttempt}]
	}
	if in := x.inputs[e.Report.Job]; in != nil {
		in.addProgress(e.Report.Workers)
	}
	x.spawn(func() func(time.Time) {
		_ = x.fences.renew(e.Report.Job, fenced) // the next report does it again
		rep := e.Report
		more := x.fill(&rep, e.Readings, procs)
		ctx, cancel := context.WithTimeout(x.loop.Stopped, wire.ReportTimeout)
		defer cancel()
		var ack wire.Ack
		if err := x.cfg.Peers.Send(ctx, e.To, peer.PathReport, rep, &ack); err != nil {
			return func(now time.Time) { x.part.Unheard(now, rep.Job) }
		}
		if ack.Table != nil {
			if err := ack.Table.Check(); err != nil {
				x.cfg.Log.Warn().Err(err).Str("job", string(rep.Job)).Msg("a host file was not changed")
			}
		}
		return func(now time.Time) { x.part.Acknowledged(now, &rep, more, ack) }
	})
}

// fill adds ports and output to a report, at most MaxReportBytes of it, and reports whether there
// is more.
func (x *Executor) fill(rep *wire.Report, readings []wire.Reading, procs []*handle) (more bool) {
	for i := range rep.Workers {
		if w := &rep.Workers[i]; w.State == jobs.WorkerReady {
			w.Port = x.cfg.Ports.Of(x.root(participant.WorkerID{Job: rep.Job, RankAttempt: w.RankAttempt}))
		}
	}
	room := wire.MaxReportBytes
	for i, r := range readings {
		proc, w := procs[i], &rep.Workers[r.Worker]
		if proc == nil {
			continue
		}
		w.Stdout, w.Stderr = proc.Written()
		tasks, err := proc.buildTasks(r.Results)
		if err != nil {
			x.cfg.Log.Error().Err(err).Str("job", string(rep.Job)).Msg("read results of tasks")
		}
		w.Tasks = tasks
		more = more || tasks.Incomplete()
		if r.Skip {
			continue
		}
		for _, st := range []struct {
			stream   work.Stream
			from, to int64
		}{{work.Stdout, r.From.Stdout, w.Stdout}, {work.Stderr, r.From.Stderr, w.Stderr}} {
			n := int(min(st.to-st.from, int64(room)))
			if n <= 0 {
				more = more || st.to > st.from
				continue
			}
			buf := make([]byte, n)
			n, err := proc.ReadOutput(st.stream, st.from, buf)
			if errors.Is(err, process.ErrAcked) {
				x.loop.Post(func() {
					x.part.Unreadable(time.Now(), participant.WorkerID{Job: rep.Job, RankAttempt: w.RankAttempt}, st.stream, st.from)
				})
			}
			if err != nil || n == 0 {
				x.cfg.Log.Debug().Err(err).Str("job", string(rep.Job)).Int("rank", w.Rank).Msg("read worker output")
				continue
			}
			room -= n
			more = more || st.from+int64(n) < st.to
			rep.Output = append(rep.Output, jobs.Output{Rank: w.Rank, Attempt: w.Attempt, Stream: st.stream, Offset: st.from, Data: buf[:n]})
		}
	}
	return more
}
