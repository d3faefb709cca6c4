package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/jobs/journal"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// job is one job at its origin. It is owned by the loop.
type job struct {
	*originJob // as the core has it
	output     *outputLog
	stdin      *spool
	submitters []chan<- error // who waits to know that it is accepted; nil = it is, or is refused
	refusal    error          // why it was not accepted

	trouble string // why output cannot be stored; for people
	mending bool   // its inputs are looked for

	toldLost int // of its damage, that watchers were told of
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

// record makes events durable. A job whose submission cannot be written is
// refused; after any other failure the node cannot keep its promises and stops:
// its jobs go on from the journal when it is started again.
func (s *Service) record(e doRecord) {
	j := s.jobs[e.job]
	if j == nil { // it was refused meanwhile
		return
	}
	entries := make([]journal.Entry, len(e.events))
	for i, ev := range e.events {
		if ev.Kind == evEnded { // who finds less than that knows that something is lost
			ev.Stored, _, _ = j.output.spool.state()
		}
		entries[i] = journal.Entry{Key: string(e.job), Data: codec.MustMarshal(ev)}
	}
	s.cfg.Journal.Append(entries, func(err error) {
		s.post(func() {
			switch {
			case err == nil:
				s.core.recorded(s.now(), e.job, e.step)
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
	if j.refusal != nil {
		return
	}
	id := j.core.rec.id
	delete(s.jobs, id)
	s.store.Unpin(inputsOwner(id))
	s.unkey(j.core.rec.spec.Key, id)
	j.refusal = err
	j.decided(err)
	for _, a := range s.core.refuse(id) {
		s.answer(a)
	}
}

// file files a job that has ended, which is durable now.
func (s *Service) file(id ID) {
	j := s.jobs[id]
	j.output.spool.close()
	j.stdin.close()
	s.settled(&j.core.rec, j.wrote())
}

// perform does what the core wants done; what waits for the network does so in a
// goroutine of its own.
func (s *Service) perform(a action) {
	switch e := a.effect.(type) {
	case doRecord:
		s.record(e)
	case doSettle:
		s.file(e.job)
	case doAccepted:
		if j := s.jobs[a.job]; j != nil {
			j.decided(nil)
		}
	case doAnswer:
		s.answer(e)
	case doPacket:
		s.sendPacket(e.to, e.packet)
	case doExtend:
		s.overlay.Extend(e.flood, e.rim)
	case doProbe:
		s.overlay.Probe(e.id)
	case doMeasure:
		s.children.Go(func() { s.haveMeasured(a.job, e) })
	case doFollow:
		s.follow(e)
	case doGrant:
		s.children.Go(func() { s.grant(e) })
	case doStart:
		s.children.Go(func() {
			s.sendOnce(e.to, pathStart, s.fillStart(e.start))
		})
	case doRelease:
		s.children.Go(func() { s.sendOnce(e.to, pathRelease, e.release) })
	case doCollect:
		s.collect(a.job, e)
	default:
		s.exec.execute(e)
	}
}

// around is the network of a Service as its core sees it.
type around struct{ s *Service }

func (a around) Member(id vicinity.ID) (vicinity.Member, bool) {
	m, _, ok := a.s.overlay.Member(id)
	return m, ok
}

func (a around) Flood(_ time.Time, radius int, ad Advertisement) flood.Flood {
	msg := codec.MustMarshal(ad)
	return a.s.overlay.Flood(radius, append(a.s.cfg.Sign(SignatureDomain, msg), msg...))
}

func (a around) Measured(id vicinity.ID) time.Duration       { return a.s.overlay.Measured(id) }
func (a around) Distance(from, to vicinity.ID) time.Duration { return a.s.overlay.Distance(from, to) }
func (a around) Size() int                                   { return a.s.overlay.Size() }
func (a around) Bearings() []byte                            { return a.s.overlay.Bearings() }
func (a around) Placed(id vicinity.ID, bearings []byte)      { a.s.overlay.Placed(id, bearings) }
func (a around) Nearer(than time.Duration, limit int) []vicinity.Measured {
	return a.s.overlay.Nearer(than, limit)
}

// grantTimeout bounds one grant: a node that does not answer is not waited for.
const grantTimeout = 5 * time.Second

func (s *Service) grant(e doGrant) {
	ctx, cancel := context.WithTimeout(s.stoppedCtx, grantTimeout)
	defer cancel()
	err := s.send(ctx, e.to, pathGrant, e.grant, nil)
	if err == nil || !s.running() {
		return
	}
	s.log.Debug().Err(err).Str("job", string(e.grant.Job)).Str("node", e.to.Short()).Msg("grant")
	s.post(func() {
		s.core.tell(s.now(), e.grant.Job, func(p *primary) { p.grantFailed(s.now(), e.to, e.grant.Ranks, errors.Is(err, ErrRefused)) })
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

// collect brings a rank's output files here.
func (s *Service) collect(job ID, e doCollect) {
	j := s.jobs[job]
	if j == nil {
		return
	}
	globs := j.core.rec.spec.Outputs
	s.children.Go(func() {
		select {
		case s.fetches <- struct{}{}:
			defer func() { <-s.fetches }()
		case <-s.stopped:
			return
		}
		err := s.fetchOutputs(job, globs, e)
		if err != nil && s.running() {
			s.log.Warn().Err(err).Str("job", string(job)).Int("rank", e.output.Rank).Msg("fetch outputs; trying again")
		}
		s.post(func() {
			s.core.tell(s.now(), job, func(p *primary) { p.collected(s.now(), RankAttempt{e.output.Rank, e.output.Attempt}, err) })
		})
	})
}

func (s *Service) fetchOutputs(job ID, globs []string, e doCollect) error {
	tree, _, err := s.cfg.Fetch(s.stoppedCtx, outputsOwner(job), e.output.Manifest, []vicinity.ID{e.from}, nil)
	if err != nil {
		return err
	}
	for _, f := range tree.Entries {
		if !transfer.MatchOutput(globs, f.Path) {
			return fmt.Errorf("%w: %.80q", errNotAsked, f.Path)
		}
	}
	return s.syncStore(tree, e.output.Manifest)
}

// errNotAsked: a node returned files that do not match the job's patterns.
var errNotAsked = errors.New("the node returned a file that was not asked for")

// syncStore makes a file tree durable.
func (s *Service) syncStore(tree transfer.Manifest, manifest transfer.Hash) error {
	return s.store.Sync(append(tree.Chunks(), manifest)...)
}
