package jobs

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"zorilla/jobs/process"
)

// report sends reports to the origin until the job has no worker here: at
// once when something changes, else every reportEvery, one at a time. What is
// not acknowledged is sent again.
func (w *work) report() {
	defer w.s.disengage(w)
	pause := time.Duration(0)
	for {
		rep, more := w.build()
		if len(rep.Workers) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		stop := context.AfterFunc(w.s.stoppedCtx, cancel)
		var ack Ack
		err := w.s.send(ctx, w.origin, pathReport, rep, &ack)
		stop()
		cancel()
		if err != nil {
			pause = min(max(2*pause, 100*time.Millisecond), reportEvery)
			w.unheard()
		} else {
			pause = 0
			w.acknowledged(ack)
			w.farewell(rep)
			if more && !ack.stuck(rep) {
				continue
			}
		}
		if !w.wait(pause) {
			return
		}
	}
}

// wait returns when the next report is due: after the pause, and then at a
// change or when the origin has to hear of this node again. It returns false
// when the node stops.
func (w *work) wait(pause time.Duration) bool {
	if pause > 0 {
		select {
		case <-time.After(pause):
		case <-w.s.stopped:
			return false
		}
		return true
	}
	timer := time.NewTimer(reportEvery)
	defer timer.Stop()
	select {
	case <-w.kick:
	case <-timer.C:
	case <-w.s.stopped:
		return false
	}
	return true
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

// build makes a report of what is not acknowledged, with at most
// maxReportBytes of output; more tells that there is more.
func (w *work) build() (rep Report, more bool) {
	rep.Job, rep.Addrs = w.job, w.s.cfg.Self.Addrs
	if w.s.leavingCtx.Err() != nil {
		rep.Away = w.s.away()
	}
	w.mu.Lock()
	rep.Epoch = w.epochKnown()
	workers := slices.SortedFunc(maps.Values(w.workers), func(a, b *worker) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Attempt, b.Attempt))
	})
	type reading struct {
		k    *worker
		proc process.Worker
		from received
	}
	var readings []reading
	var arrays []tasking
	for _, k := range workers {
		wr := WorkerReport{RankAttempt: k.RankAttempt, State: k.state, Reason: k.reason, Declined: k.declined, Exit: k.exit, Output: k.output, Warn: k.warn,
			Fetched: k.stats.Fetched, Cached: k.stats.Cached}
		if k.proc != nil && !k.gone {
			wr.Stdout, wr.Stderr = k.proc.Written()
			if !k.adopted {
				readings = append(readings, reading{k, k.proc, k.acked})
			}
			arrays = append(arrays, tasking{len(rep.Workers), k.proc, k.results})
		}
		rep.Workers = append(rep.Workers, wr)
	}
	w.mu.Unlock()
	// Reading files does not happen under the lock.
	for _, a := range arrays {
		t := w.buildTasks(a)
		rep.Workers[a.worker].Tasks = t
		more = more || t.incomplete()
	}
	room := maxReportBytes
	for _, r := range readings {
		out, err := r.proc.Written()
		for _, st := range []struct {
			stream process.Stream
			from   int64
			to     int64
		}{{process.Stdout, r.from.stdout, out}, {process.Stderr, r.from.stderr, err}} {
			n := int(min(st.to-st.from, int64(room)))
			if n <= 0 {
				more = more || st.to > st.from
				continue
			}
			buf := make([]byte, n)
			n, rerr := r.proc.ReadOutput(st.stream, st.from, buf)
			if errors.Is(rerr, process.ErrAcked) {
				w.lose(r.k, "its origin misses output that it had confirmed: the disk there lost it")
			}
			if rerr != nil || n == 0 {
				w.s.log.Debug().Err(rerr).Str("job", string(w.job)).Int("rank", r.k.Rank).Msg("read worker output")
				continue
			}
			room -= n
			more = more || st.from+int64(n) < st.to
			rep.Output = append(rep.Output, Output{Rank: r.k.Rank, Attempt: r.k.Attempt, Stream: st.stream, Offset: st.from, Data: buf[:n]})
		}
	}
	return rep, more
}

// acknowledged does what the origin's answer says.
func (w *work) acknowledged(ack Ack) {
	if !ack.Known {
		w.dropRanks(nil)
		return
	}
	var drop, stop []RankAttempt
	w.mu.Lock()
	w.heard, w.state, w.reason = w.s.now(), ack.State, ack.Reason
	for _, a := range ack.Workers {
		k := w.workers[a.RankAttempt]
		if k == nil {
			continue
		}
		if k.proc != nil {
			// The origin may have lost what it once acknowledged, but never
			// has more than was written.
			out, errs := k.proc.Written()
			k.acked = received{min(max(a.Stdout+a.AheadOut, 0), out), min(max(a.Stderr+a.AheadErr, 0), errs)}
			k.adopted = false
			k.proc.Ack(a.Stdout, a.Stderr)
			k.proc.Heard()
		}
		k.acknowledgeTasks(a.Tasks)
		if a.Done && !k.safe && !k.dropped {
			k.safe = true
			close(k.done)
		}
		if a.Drop {
			drop = append(drop, a.RankAttempt)
		}
		if a.Stop {
			stop = append(stop, a.RankAttempt)
		}
	}
	w.mu.Unlock()
	if len(drop) > 0 {
		w.dropRanks(drop)
	}
	w.stopRanks(stop)
	if ack.Start != nil && ack.Start.check() == nil && ack.Start.Job == w.job {
		w.startRanks(*ack.Start)
	}
	w.tell(ack.Table)
	w.s.notify()
}

// farewell notes which workers the origin knows to go on without this node.
func (w *work) farewell(rep Report) {
	if rep.Away == 0 {
		return
	}
	w.mu.Lock()
	for _, r := range rep.Workers {
		if k := w.workers[r.RankAttempt]; k != nil && k.away && k.state == r.State {
			k.parted = true
		}
	}
	w.mu.Unlock()
	w.s.notify()
}

// unheard handles an origin that does not answer: what has not started is given
// back when the lease has run out, which the origin is told when it answers again;
// what runs goes on up to the orphan limit.
func (w *work) unheard() {
	var drop []RankAttempt
	w.mu.Lock()
	silent := w.s.now().Sub(w.heard)
	for ra, k := range w.workers {
		switch {
		case silent > w.s.cfg.OrphanLimit:
			drop = append(drop, ra)
		case silent > partLease && !k.started && k.state != WorkerLost:
			k.unwanted(reasonSilent)
		}
	}
	w.mu.Unlock()
	if len(drop) > 0 {
		w.dropRanks(drop)
	}
}

const reasonSilent = "its origin was silent"

// disengage forgets a job that has no worker here any more, unless a new grant
// came in the meantime.
func (s *Service) disengage(w *work) {
	s.mu.Lock()
	w.mu.Lock()
	idle := len(w.workers) == 0
	if idle && s.works[w.job] == w {
		delete(s.works, w.job)
	}
	w.mu.Unlock()
	s.mu.Unlock()
	if idle {
		w.cancel()
		s.store.Unpin(w.pinInputs())
		s.notify()
	} else if s.running() {
		s.children.Go(w.report)
	}
}
