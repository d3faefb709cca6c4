package jobs

import (
	"context"
	"errors"
	"time"

	"zorilla/jobs/process"
)

// reportTimeout bounds one report.
const reportTimeout = 30 * time.Second

// report sends a report, with what can be read of the output.
func (x *executor) report(e doReport) {
	procs := make([]*handle, len(e.readings))
	for i, r := range e.readings {
		procs[i] = x.procs[workerID{e.report.Job, e.report.Workers[r.worker].RankAttempt}]
	}
	x.spawn(func() func(time.Time) {
		rep := e.report
		more := x.fill(&rep, e.readings, procs)
		ctx, cancel := context.WithTimeout(x.s.stoppedCtx, reportTimeout)
		defer cancel()
		var ack Ack
		if err := x.s.send(ctx, e.to, pathReport, rep, &ack); err != nil {
			return func(now time.Time) { x.part.unheard(now, rep.Job) }
		}
		if ack.Table != nil {
			if err := ack.Table.check(); err != nil {
				x.s.log.Warn().Err(err).Str("job", string(rep.Job)).Msg("a host file was not changed")
			}
		}
		return func(now time.Time) { x.part.acknowledged(now, &rep, more, ack) }
	})
}

// fill adds output to a report, at most maxReportBytes of it, and reports whether there
// is more.
func (x *executor) fill(rep *Report, readings []reading, procs []*handle) (more bool) {
	room := maxReportBytes
	for i, r := range readings {
		proc, w := procs[i], &rep.Workers[r.worker]
		if proc == nil {
			continue
		}
		w.Stdout, w.Stderr = proc.Written()
		tasks, err := proc.buildTasks(r.results)
		if err != nil {
			x.s.log.Error().Err(err).Str("job", string(rep.Job)).Msg("read results of tasks")
		}
		w.Tasks = tasks
		more = more || tasks.incomplete()
		if r.skip {
			continue
		}
		for _, st := range []struct {
			stream   process.Stream
			from, to int64
		}{{process.Stdout, r.from.stdout, w.Stdout}, {process.Stderr, r.from.stderr, w.Stderr}} {
			n := int(min(st.to-st.from, int64(room)))
			if n <= 0 {
				more = more || st.to > st.from
				continue
			}
			buf := make([]byte, n)
			n, err := proc.ReadOutput(st.stream, st.from, buf)
			if errors.Is(err, process.ErrAcked) {
				x.s.post(func() { x.part.unreadable(x.s.now(), workerID{rep.Job, w.RankAttempt}) })
			}
			if err != nil || n == 0 {
				x.s.log.Debug().Err(err).Str("job", string(rep.Job)).Int("rank", w.Rank).Msg("read worker output")
				continue
			}
			room -= n
			more = more || st.from+int64(n) < st.to
			rep.Output = append(rep.Output, Output{Rank: w.Rank, Attempt: w.Attempt, Stream: st.stream, Offset: st.from, Data: buf[:n]})
		}
	}
	return more
}

// stuck reports whether the origin took none of a report's output, so that
// sending the rest at once would be in vain.
func (a *Ack) stuck(rep Report) bool {
	if a.tookResults(rep) {
		return false
	}
	if len(rep.Output) == 0 {
		return true
	}
	for _, o := range rep.Output {
		for _, k := range a.Workers {
			if k.RankAttempt == (RankAttempt{o.Rank, o.Attempt}) && (k.Stdout+k.AheadOut > o.Offset || k.Stderr+k.AheadErr > o.Offset) {
				return false
			}
		}
	}
	return true
}
