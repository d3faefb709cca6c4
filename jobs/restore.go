package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/journal"
	"zorilla/vicinity"
)

// load rebuilds all jobs from the journal.
func (s *Service) load() error {
	var order []ID
	err := s.cfg.Journal.Load(func(e journal.Entry) error {
		j, err := s.jobOf(e)
		if j == nil {
			return err
		}
		if s.jobs[ID(e.Key)] == nil {
			s.jobs[ID(e.Key)] = j
			order = append(order, ID(e.Key))
		}
		j.core.rec.replay(e)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	if err := s.adoptWork(); err != nil {
		return err
	}
	var lost []string
	for _, id := range order {
		if err := s.restore(id); err != nil {
			s.log.Error().Err(err).Str("job", string(id)).Msg("a job of before could not be restored")
			s.unkey(&s.jobs[id].core.rec)
			delete(s.jobs, id)
			continue
		}
		lost = append(lost, s.jobs[id].lost()...)
	}
	s.tellLost(lost)
	s.prune()
	return nil
}

// jobOf returns the job of an entry, which is made for the first one. It is nil if
// there is an error, or if the entry is of no job.
func (s *Service) jobOf(e journal.Entry) (*job, error) {
	id := ID(e.Key)
	switch {
	case e.Damage != "" && (!id.Valid() || id.Origin() != s.self.ID), !id.Valid() && !earlierForm(e.Key):
		s.log.Error().Msgf("the journal holds something of %s, which is no job of this node: %s", e.Key, cmp.Or(e.Damage, "it is ignored"))
		return nil, nil
	case !id.Valid():
		return nil, fmt.Errorf("job %s was written by an earlier version, whose jobs this one cannot read: let that version end them, or begin with another state directory", e.Key)
	case id.Origin() != s.self.ID:
		return nil, fmt.Errorf("job %s is one of node %s, and this is node %s: restore the identity.key of that node, or remove journal.db to begin without its jobs",
			id.Short(), id.Origin(), s.self.ID)
	case s.jobs[id] != nil:
		return s.jobs[id], nil
	}
	return &job{core: s.newPrimary(id), serving: map[vicinity.ID]int{}}, nil
}

// replay applies an entry of the journal. After one that is damaged nothing is
// believed.
func (r *record) replay(e journal.Entry) {
	var ev event
	switch {
	case r.broken != "":
	case e.Damage != "":
		r.broken = e.Damage
	case codec.Unmarshal(e.Data, &ev) != nil:
		r.broken = "an entry cannot be read"
	case !ev.sound(r):
		r.broken = "an entry does not fit what came before"
	default:
		r.apply(ev)
	}
}

// giveUp ends a job of which it is not known what happened to it. That is not
// written down: the journal tells the same again.
func (r *record) giveUp(now time.Time) {
	if r.ranks == nil { // not even its submission is known
		r.spec = Spec{Args: []string{"(not known)"}, Min: 1, Max: 1, Slots: 1}
		r.ranks = make([]rankRecord, 1)
	}
	if !r.state.Final() {
		r.state, r.code, r.ended = Failed, CodeZorilla, now
		r.reason = "its journal is damaged: " + r.broken + ": what happened to it then is not known"
	}
}

func (s *Service) newPrimary(id ID) *primary {
	p := newPrimary(id, s.self, s.cfg.Rand, s.cfg.Schedule)
	p.measured, p.near, p.members = s.overlay.Measured, s.overlay.Nearer, s.overlay.Size
	p.distance = s.overlay.Distance
	return p
}

// restore opens a job's files, pins its blobs and goes on with it.
func (s *Service) restore(id ID) error {
	j := s.jobs[id]
	rec := &j.core.rec
	if rec.broken != "" {
		rec.giveUp(s.now())
	}
	if rec.ranks == nil {
		return errors.New("its submission is missing from the journal")
	}
	if err := s.openFiles(j, id, !rec.state.Final()); err != nil {
		return err
	}
	s.keep(&rec.spec, id)
	s.clock.saw(rec.stamp, s.now())
	if last := s.jobs[s.last]; last == nil || last.core.rec.stamp < rec.stamp {
		s.last = id
	}
	s.pin(id, rec.spec.Inputs)
	var all []RankAttempt
	for i := range rec.ranks {
		k := &rec.ranks[i]
		all = append(all, RankAttempt{i, k.attempt})
		if k.output != nil {
			s.pin(id, k.output.Manifest)
		}
	}
	j.core.received = j.output.received(all)
	s.checkOutput(j)
	if rec.state.Final() {
		return errors.Join(j.output.spool.close(), j.stdin.close())
	}
	damaged, err := s.restoreStdin(j, id)
	if err != nil {
		return err
	}
	j.core.resume(s.now(), s.cfg.Schedule)
	if damaged && rec.ranks[0].state != WorkerEnded {
		j.core.end(s.now(), Failed, stdinDamaged, CodeZorilla)
	}
	s.flush(j)
	s.follow(j)
	return nil
}

// checkOutput finds out what of the job's output was here and is not any more.
func (s *Service) checkOutput(j *job) {
	j.output.expect(&j.core.rec)
	j.toldLost = len(j.damage(-1))
}

func (s *Service) openFiles(j *job, id ID, goesOn bool) (err error) {
	if j.output, err = openOutputLog(filepath.Join(s.jobDir(id), "output"), id, goesOn); err != nil {
		return err
	}
	j.stdin, err = openSpool(filepath.Join(s.jobDir(id), "stdin"))
	return err
}
