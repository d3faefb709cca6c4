package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/journal"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// job is one job at its origin. It is owned by the loop.
type job struct {
	core       *primary
	wake       time.Time
	steps      []*pendingStep // in order; their effects wait for the journal
	output     *outputLog
	stdin      *spool
	submitters []chan<- error // who waits to know that it is accepted; nil = it is, or is refused
	refusal    error          // why it was not accepted

	serving map[vicinity.ID]int // reports that wait for an answer
	gone    bool                // it is forgotten: nothing is written down of it any more
	trouble string              // why output cannot be stored; for people
	mending bool                // its inputs are looked for

	toldLost int // of its damage, that watchers were told of
}

// pendingStep is effects that wait until the events before them are durable.
type pendingStep struct {
	effects []effect
	durable bool
}

// view is what clients see of a job, and its version: the end is told once it
// is durable, so that no restart takes it back.
func (s *Service) view(j *job) (Status, uint64) {
	st, version := j.core.status(), j.core.version
	st.StdinBytes, _, _ = j.stdin.state()
	st.Damaged = j.output.damage(&j.core.rec, -1)
	st.Size = j.size()
	if text := s.hindrance(j); text != "" && !st.State.Final() {
		st.Reason = text
	}
	if st.State.Final() && len(j.steps) > 0 {
		st.State, st.ExitCode, st.Ended = Collecting, -1, time.Time{}
		st.Reason, version = "writing down how it ended", version-1
	}
	return st, version
}

// pin keeps a file tree in the store for an owner.
func (s *Service) pin(owner string, manifest transfer.Hash) (transfer.Manifest, error) {
	if manifest.IsZero() {
		return transfer.Manifest{}, nil
	}
	tree, err := transfer.LoadManifest(s.store, manifest)
	if err != nil {
		return tree, err
	}
	s.store.Pin(owner, append(tree.Chunks(), manifest)...)
	return tree, nil
}

// closeFiles closes the files of all jobs when the loop has ended.
func (s *Service) closeFiles() {
	for _, j := range s.jobs {
		j.output.spool.close()
		j.stdin.close()
	}
}

// flush hands what a primary has left to the journal, and its effects on once
// they may be seen outside.
func (s *Service) flush(j *job) {
	st := j.core.take()
	j.wake = j.core.wake()
	if j.gone {
		st.events = nil
	}
	if len(st.events) == 0 && len(st.effects) == 0 {
		s.notify()
		return
	}
	p := &pendingStep{effects: st.effects, durable: len(st.events) == 0}
	j.steps = append(j.steps, p)
	if p.durable {
		s.release(j)
		return
	}
	entries := make([]journal.Entry, len(st.events))
	for i, ev := range st.events {
		if ev.Kind == evEnded { // who finds less than that knows that something is lost
			ev.Stored, _, _ = j.output.spool.state()
		}
		entries[i] = journal.Entry{Key: string(j.core.rec.id), Data: codec.MustMarshal(ev)}
	}
	s.write(j, p, entries)
}

// write appends a step's events. A job whose submission cannot be written is
// refused; after any other failure the node cannot keep its promises and stops:
// its jobs go on from the journal when it is started again.
func (s *Service) write(j *job, p *pendingStep, entries []journal.Entry) {
	s.cfg.Journal.Append(entries, func(err error) {
		s.post(func() {
			switch {
			case err == nil:
				p.durable = true
				s.release(j)
			case j.submitters != nil || j.refusal != nil:
				s.refused(j, err)
			default:
				s.fail(fmt.Errorf("write the journal: %w", err))
			}
		})
	})
}

// refused forgets a job whose submission could not be written, and what came
// after it.
func (s *Service) refused(j *job, err error) {
	delete(s.jobs, j.core.rec.id)
	s.store.Unpin(inputsOwner(j.core.rec.id))
	s.unkey(j.core.rec.spec.Key, j.core.rec.id)
	j.refusal = err
	j.decided(err)
	for i, st := range j.steps {
		for _, e := range st.effects {
			if a, ok := e.(doAnswer); ok && i > 0 { // the first is what was refused
				s.answer(a)
			}
		}
	}
	j.steps = nil
}

// release lets the effects go whose events are durable, in order.
func (s *Service) release(j *job) {
	for len(j.steps) > 0 && j.steps[0].durable {
		st := j.steps[0]
		j.steps = j.steps[1:]
		for _, e := range st.effects {
			s.perform(j, e)
		}
	}
	if j.core.rec.state.Final() && len(j.steps) == 0 {
		j.output.spool.close()
		j.stdin.close()
		if !j.gone {
			s.settled(&j.core.rec, j.wrote())
		}
	}
	s.notify()
}

// perform does one effect; what waits for the network does so in a goroutine
// of its own.
func (s *Service) perform(j *job, e effect) {
	switch e := e.(type) {
	case doAccepted:
		j.decided(nil)
	case doAnswer:
		s.answer(e)
	case doFlood:
		s.advertise(j, e)
	case doExtend:
		s.overlay.Extend(e.flood, e.rim)
	case doProbe:
		s.overlay.Probe(e.id)
	case doMeasure:
		s.children.Go(func() { s.haveMeasured(j, e) })
	case doYield:
		s.yield(e.to, e.job, e.forget)
	case doGrant:
		s.children.Go(func() { s.grant(j, e) })
	case doStart:
		s.children.Go(func() {
			s.sendOnce(e.to, pathStart, s.fillStart(e.start))
		})
	case doRelease:
		s.children.Go(func() { s.sendOnce(e.to, pathRelease, e.release) })
	case doCollect:
		s.children.Go(func() { s.fetchOutputs(j, e) })
	}
}

// advertise floods the job's advertisement and asks this node itself.
func (s *Service) advertise(j *job, e doFlood) {
	msg := codec.MustMarshal(e.ad)
	payload := append(s.cfg.Sign(SignatureDomain, msg), msg...)
	j.core.sent(s.now(), e.ad.Round, s.overlay.Flood(e.radius, payload))
	a := s.claims.advertised(s.now(), e.ad)
	s.soon = append(s.soon, func() {
		s.answered(s.self.ID, a)
		s.sendAnswers(s.claims.takenBack())
	})
}

// grantTimeout bounds one grant: a node that does not answer is not waited for.
const grantTimeout = 5 * time.Second

func (s *Service) grant(j *job, e doGrant) {
	ctx, cancel := context.WithTimeout(s.stoppedCtx, grantTimeout)
	defer cancel()
	err := s.send(ctx, e.to, pathGrant, e.grant, nil)
	if err == nil || !s.running() {
		return
	}
	s.log.Debug().Err(err).Str("job", string(e.grant.Job)).Str("node", e.to.Short()).Msg("grant")
	s.post(func() {
		j.core.grantFailed(s.now(), e.to, e.grant.Ranks, errors.Is(err, ErrRefused))
		s.flush(j)
	})
}

// sendOnce sends a message that need not arrive: a participant asks again for
// a START, and hears with its next report that it is not wanted.
func (s *Service) sendOnce(to vicinity.ID, path string, msg any) {
	ctx, cancel := context.WithTimeout(s.stoppedCtx, grantTimeout)
	defer cancel()
	if err := s.send(ctx, to, path, msg, nil); err != nil && s.running() {
		s.log.Debug().Err(err).Str("node", to.Short()).Msg(path)
	}
}

// fillStart adds the addresses.
func (s *Service) fillStart(start Start) Start {
	start.Hosts = s.fillHosts(start.Hosts)
	start.Master = s.fillHosts([]Host{{Node: start.master}})[0].Addr
	return start
}

// fillHosts adds addresses to a rank table.
func (s *Service) fillHosts(hosts []Host) []Host {
	hosts = slices.Clone(hosts)
	for i := range hosts {
		if m, _, ok := s.overlay.Member(hosts[i].Node); ok {
			hosts[i].Addr = hostOf(m.Addrs)
		}
	}
	return hosts
}

// maxFetches bounds the memory for output files of ranks that end together.
const maxFetches = 16

// fetchOutputs brings a rank's output files here.
func (s *Service) fetchOutputs(j *job, e doCollect) {
	select {
	case s.fetches <- struct{}{}:
		defer func() { <-s.fetches }()
	case <-s.stopped:
		return
	}
	id := j.core.rec.id
	tree, _, err := s.cfg.Fetch(s.stoppedCtx, outputsOwner(id), e.output.Manifest, []vicinity.ID{e.from}, nil)
	globs := j.core.rec.spec.Outputs
	for _, f := range tree.Entries {
		if err == nil && !transfer.MatchOutput(globs, f.Path) {
			err = fmt.Errorf("%w: %.80q", errNotAsked, f.Path)
		}
	}
	if err == nil {
		err = s.syncStore(tree, e.output.Manifest)
	}
	if err != nil && s.running() {
		s.log.Warn().Err(err).Str("job", string(id)).Int("rank", e.output.Rank).Msg("fetch outputs; trying again")
	}
	s.post(func() {
		j.core.collected(s.now(), RankAttempt{e.output.Rank, e.output.Attempt}, err)
		s.flush(j)
	})
}

// errNotAsked: a node returned files that do not match the job's patterns.
var errNotAsked = errors.New("the node returned a file that was not asked for")

// syncStore makes a file tree durable.
func (s *Service) syncStore(tree transfer.Manifest, manifest transfer.Hash) error {
	return s.store.Sync(append(tree.Chunks(), manifest)...)
}
