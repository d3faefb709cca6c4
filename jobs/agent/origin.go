package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/journal"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// job is one job at its origin. It is owned by the loop.
type job struct {
	*core.Job  // as the core has it
	output     *output.Log
	stdin      *output.Spool
	submitters []chan<- error // who waits to know that it is accepted; nil = it is, or is refused
	refusal    error          // why it was not accepted

	trouble string // why output cannot be stored; for people
	mending bool   // its inputs are looked for

	toldLost int // of its damage, that watchers were told of
}

// view is what clients see of a job, and its version: the end is told once it
// is durable, so that no restart takes it back.
func (s *Service) view(j *job) (jobs.Status, uint64) {
	st, version := j.Core.Status(), j.Core.Version
	st.StdinBytes, _, _ = j.stdin.State()
	st.Damaged = j.output.Damage(&j.Core.Rec, -1)
	st.Size = j.size()
	if text := s.hindrance(j); text != "" && !st.State.Final() {
		st.Reason = text
	}
	if st.State.Final() && len(j.Steps) > 0 {
		st.State, st.ExitCode, st.Ended = jobs.Collecting, -1, time.Time{}
		st.Reason, version = "writing down how it ended", version-1
	}
	return st, version
}

// closeFiles closes the files of all jobs when the loop has ended.
func (s *Service) closeFiles() {
	for _, j := range s.jobs {
		j.output.Spool.Close()
		j.stdin.Close()
	}
}

// record makes events durable. A job whose submission cannot be written is
// refused; after any other failure the node cannot keep its promises and stops:
// its jobs go on from the journal when it is started again.
func (s *Service) record(e core.DoRecord) {
	j := s.jobs[e.Job]
	if j == nil { // it was refused meanwhile
		return
	}
	entries := make([]journal.Entry, len(e.Events))
	for i, ev := range e.Events {
		if ev.Kind == record.Ended { // who finds less than that knows that something is lost
			ev.Stored, _, _ = j.output.Spool.State()
		}
		entries[i] = journal.Entry{Key: string(e.Job), Data: codec.MustMarshal(ev)}
	}
	s.cfg.Journal.Append(entries, func(err error) {
		s.loop.Post(func() {
			switch {
			case err == nil:
				s.core.Recorded(s.loop.Now(), e.Job, e.Step)
			case j.submitters != nil || j.refusal != nil:
				s.refused(j, err)
			default:
				s.loop.Fail(fmt.Errorf("write the journal: %w", err))
			}
		})
	})
}

// refused forgets a job whose submission could not be written, and what came
// after it.
func (s *Service) refused(j *job, err error) {
	if j.refusal != nil {
		return
	}
	id := j.Core.Rec.ID
	delete(s.jobs, id)
	s.store.Unpin(inputsOwner(id))
	s.unkey(j.Core.Rec.Spec.Key, id)
	j.refusal = err
	j.decided(err)
	for _, a := range s.core.Refuse(id) {
		s.answer(a)
	}
}

// file files a job that has ended, which is durable now.
func (s *Service) file(id jobs.ID) {
	j := s.jobs[id]
	j.output.Spool.Close()
	j.stdin.Close()
	s.settled(&j.Core.Rec, j.wrote())
}

// perform does what the core wants done; what waits for the network does so in a
// goroutine of its own.
func (s *Service) perform(a core.Action) {
	switch e := a.Effect.(type) {
	case core.DoRecord:
		s.record(e)
	case core.DoSettle:
		s.file(e.Job)
	case primary.DoAccepted:
		if j := s.jobs[a.Job]; j != nil {
			j.decided(nil)
		}
	case primary.DoAnswer:
		s.answer(e)
	case core.DoPacket:
		s.sendPacket(e.To, e.Packet)
	case primary.DoExtend:
		s.overlay.Extend(e.Flood, e.Rim)
	case primary.DoProbe:
		s.overlay.Probe(e.ID)
	case primary.DoMeasure:
		s.loop.Go(func() { s.haveMeasured(a.Job, e) })
	case core.DoFollow:
		s.follow(e)
	case primary.DoGrant:
		s.loop.Go(func() { s.grant(e) })
	case primary.DoStart:
		s.loop.Go(func() {
			s.sendOnce(e.To, peer.PathStart, s.fillStart(e.Start))
		})
	case primary.DoRelease:
		s.loop.Go(func() { s.sendOnce(e.To, peer.PathRelease, e.Release) })
	case primary.DoCollect:
		s.collect(a.Job, e)
	default:
		s.exec.Execute(e)
	}
}

// around is the network of a Service as its core sees it.
type around struct{ s *Service }

func (a around) Member(id vicinity.ID) (vicinity.Member, bool) {
	m, _, ok := a.s.overlay.Member(id)
	return m, ok
}

func (a around) Flood(_ time.Time, radius int, ad wire.Advertisement) flood.Flood {
	msg := codec.MustMarshal(ad)
	return a.s.overlay.Flood(radius, append(a.s.cfg.Sign(wire.SignatureDomain, msg), msg...))
}

func (a around) Measured(id vicinity.ID) time.Duration       { return a.s.overlay.Measured(id) }
func (a around) Distance(from, to vicinity.ID) time.Duration { return a.s.overlay.Distance(from, to) }
func (a around) Size() int                                   { return a.s.overlay.Size() }
func (a around) Bearings() []byte                            { return a.s.overlay.Bearings() }
func (a around) Placed(id vicinity.ID, bearings []byte)      { a.s.overlay.Placed(id, bearings) }
func (a around) Nearer(than time.Duration, limit int) []vicinity.Measured {
	return a.s.overlay.Nearer(than, limit)
}

func (s *Service) grant(e primary.DoGrant) {
	ctx, cancel := context.WithTimeout(s.loop.Stopped, wire.GrantTimeout)
	defer cancel()
	err := s.peers.Send(ctx, e.To, peer.PathGrant, e.Grant, nil)
	if err == nil || s.loop.Stopped.Err() != nil {
		return
	}
	s.log.Debug().Err(err).Str("job", string(e.Grant.Job)).Str("node", e.To.Short()).Msg("grant")
	s.loop.Post(func() {
		s.core.Tell(s.loop.Now(), e.Grant.Job, func(p *primary.Primary) {
			p.GrantFailed(s.loop.Now(), e.To, e.Grant.Ranks, errors.Is(err, jobs.ErrRefused))
		})
	})
}

// sendOnce sends a message that need not arrive: a participant asks again for
// a START, and hears with its next report that it is not wanted.
func (s *Service) sendOnce(to vicinity.ID, path string, msg any) {
	ctx, cancel := context.WithTimeout(s.loop.Stopped, wire.GrantTimeout)
	defer cancel()
	if err := s.peers.Send(ctx, to, path, msg, nil); err != nil && s.loop.Stopped.Err() == nil {
		s.log.Debug().Err(err).Str("node", to.Short()).Msg(path)
	}
}

// fillStart adds the addresses.
func (s *Service) fillStart(start wire.Start) wire.Start {
	start.Hosts = s.fillHosts(start.Hosts)
	start.Master = s.fillHosts([]wire.Host{{Node: start.MasterNode}})[0].Addr
	return start
}

// fillHosts adds addresses to a rank table.
func (s *Service) fillHosts(hosts []wire.Host) []wire.Host {
	hosts = slices.Clone(hosts)
	for i := range hosts {
		if m, _, ok := s.overlay.Member(hosts[i].Node); ok {
			hosts[i].Addr = wire.HostOf(m.Addrs)
		}
	}
	return hosts
}

// maxFetches bounds the memory for output files of ranks that end together.
const maxFetches = 16

// collect brings a rank's output files here.
func (s *Service) collect(job jobs.ID, e primary.DoCollect) {
	j := s.jobs[job]
	if j == nil {
		return
	}
	globs := j.Core.Rec.Spec.Outputs
	s.loop.Go(func() {
		select {
		case s.fetches <- struct{}{}:
			defer func() { <-s.fetches }()
		case <-s.loop.Stopped.Done():
			return
		}
		err := s.fetchOutputs(job, globs, e)
		if err != nil && s.loop.Stopped.Err() == nil {
			s.log.Warn().Err(err).Str("job", string(job)).Int("rank", e.Output.Rank).Msg("fetch outputs; trying again")
		}
		s.loop.Post(func() {
			s.core.Tell(s.loop.Now(), job, func(p *primary.Primary) {
				p.Collected(s.loop.Now(), jobs.RankAttempt{Rank: e.Output.Rank, Attempt: e.Output.Attempt}, err)
			})
		})
	})
}

func (s *Service) fetchOutputs(job jobs.ID, globs []string, e primary.DoCollect) error {
	tree, _, err := s.cfg.Fetch(s.loop.Stopped, outputsOwner(job), e.Output.Manifest, []vicinity.ID{e.From}, nil)
	if err != nil {
		return err
	}
	for _, f := range tree.Entries {
		if !transfer.MatchOutput(globs, f.Path) {
			return fmt.Errorf("%w: %.80q", primary.ErrNotAsked, f.Path)
		}
	}
	return s.syncStore(tree, e.Output.Manifest)
}

// syncStore makes a file tree durable.
func (s *Service) syncStore(tree transfer.Manifest, manifest transfer.Hash) error {
	return s.store.Sync(append(tree.Chunks(), manifest)...)
}
