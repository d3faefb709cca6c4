package jobs

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/journal"
	"zorilla/transfer"
)

// load rebuilds all jobs from the journal.
func (s *Service) load() error {
	marks, err := s.readMarks()
	if err != nil {
		return err
	}
	l := loading{s: s, marks: marks}
	if err := s.cfg.Journal.Load(l.entry); err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	l.seal()
	lost := s.recallYoungest()
	if err := s.adoptWork(); err != nil {
		return err
	}
	for _, id := range l.live {
		if err := s.restore(id); err != nil {
			s.log.Error().Err(err).Str("job", string(id)).Msg("a job of before could not be restored")
			s.unkey(s.jobs[id].core.rec.spec.Key, id)
			delete(s.jobs, id)
			s.core.drop(id)
			continue
		}
		lost = append(lost, s.jobs[id].lost()...)
	}
	s.tellLost(lost)
	for _, e := range l.marks { // of jobs that the journal has forgotten already
		l.erase = append(l.erase, e)
	}
	if len(l.erase) > 0 {
		s.children.Go(func() { s.eraseAll(l.erase, func(error) {}) })
	}
	return nil
}

// recallYoungest takes the jobs into memory that ended last, and tells what the
// disk lost of them.
func (s *Service) recallYoungest() (lost []string) {
	for _, p := range s.archive.order[max(0, len(s.archive.order)-keepWhole):] {
		if p.Forgotten != 0 {
			continue
		}
		j, err := s.recall(p.ID)
		if err != nil {
			s.log.Error().Err(err).Str("job", string(p.ID)).Msg("a job of before cannot be read")
			continue
		}
		s.jobs[p.ID] = j
		s.core.add(j.originJob)
		lost = append(lost, j.lost()...)
	}
	return lost
}

// loading makes jobs of the entries of the journal, of which those of one job
// come together. Of jobs that have ended it keeps the record only.
type loading struct {
	s     *Service
	marks map[ID]erasure // of jobs that were not met yet
	job   *job           // of which entries come
	live  []ID           // jobs that had not ended
	erase []erasure
}

func (l *loading) entry(e journal.Entry) error {
	if l.job == nil || l.job.core.rec.id != ID(e.Key) {
		l.seal()
		var err error
		if l.job, err = l.s.jobOf(e); l.job == nil {
			return err
		}
	}
	l.job.core.rec.replay(e)
	return nil
}

// seal does what follows once all entries of a job were met.
func (l *loading) seal() {
	s, j := l.s, l.job
	if j == nil {
		return
	}
	l.job = nil
	rec := &j.core.rec
	if rec.broken != "" {
		rec.giveUp(s.now())
	}
	p, id := rec.past, rec.id
	mark, marked := l.marks[id]
	delete(l.marks, id)
	marked = marked && (p != nil || rec.state.Final()) // else the journal is an old one
	if marked && mark.suffix == markRemoved {
		l.erase = append(l.erase, mark)
		return
	}
	if p == nil {
		s.keep(&rec.spec, id)
	} else if p.ID = id; len(p.Sum) == sha256.Size {
		s.keys[p.Key], p.Sum = keyed{id, [sha256.Size]byte(p.Sum)}, nil
	}
	if marked {
		if p == nil {
			p = pastOf(rec)
			p.Forgotten = s.markedAt(mark).UnixNano()
		}
		mark.record = s.recordOf(p)
		l.erase = append(l.erase, mark)
	}
	stamp := rec.stamp
	switch {
	case p != nil:
		p.intern()
		stamp = p.Stamp
		s.archive.add(s.now(), p, transfer.Hash{}, 0)
	case rec.state.Final():
		s.pinOutputs(rec)
		s.settled(rec, fileSize(s.outputPath(id))+fileSize(s.stdinPath(id)))
	default:
		l.live = append(l.live, id)
		s.jobs[id] = j
		s.core.add(j.originJob)
		return
	}
	s.sawLast(id, stamp)
	s.core.clock.saw(stamp, s.now())
}

// fileSize is that of a file, or 0.
func fileSize(path string) int64 {
	if info, err := os.Stat(path); err == nil {
		return info.Size()
	}
	return 0
}

// pinOutputs keeps the files that a job made.
func (s *Service) pinOutputs(rec *record) {
	for i := range rec.ranks {
		if k := &rec.ranks[i]; k.output != nil {
			s.pin(outputsOwner(rec.id), k.output.Manifest)
		}
	}
}

// recall makes a job that has ended again of what the journal and the disk have
// of it.
func (s *Service) recall(id ID) (*job, error) {
	entries, err := s.cfg.Journal.Read(string(id))
	if err != nil {
		return nil, fmt.Errorf("read job %s: %w", id.Short(), err)
	}
	j := &job{originJob: s.core.newJob(id)}
	rec := &j.core.rec
	for _, e := range entries {
		rec.replay(e)
	}
	if rec.broken != "" {
		rec.giveUp(s.now())
	}
	if j.settled = true; !rec.state.Final() {
		return nil, fmt.Errorf("job %s %w: the journal has lost it", id.Short(), ErrNotFound)
	}
	if err := s.openOutput(j, id); err != nil {
		return nil, fmt.Errorf("read job %s: %w", id.Short(), err)
	}
	return j, errors.Join(j.output.spool.close(), j.stdin.close())
}

// jobOf makes the job of its first entry. It is nil if there is an error, or if the entry is of no job.
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
	}
	return &job{originJob: s.core.newJob(id)}, nil
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
	case ev.Kind == evForgotten:
		r.past = ev.Past
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

// restore opens the files of a job that has not ended, pins its blobs and goes on
// with it.
func (s *Service) restore(id ID) error {
	j := s.jobs[id]
	rec := &j.core.rec
	if rec.ranks == nil {
		return errors.New("its submission is missing from the journal")
	}
	if err := s.openOutput(j, id); err != nil {
		return err
	}
	s.core.clock.saw(rec.stamp, s.now())
	s.sawLast(id, rec.stamp)
	s.pinOutputs(rec)
	s.pin(inputsOwner(id), rec.spec.Inputs)
	damaged, err := s.restoreStdin(j, id)
	if err != nil {
		return err
	}
	s.core.resume(s.now(), j.originJob)
	if damaged && rec.ranks[0].state != WorkerEnded {
		j.core.end(s.now(), Failed, stdinDamaged, CodeZorilla)
		s.core.flush(s.now(), j.originJob)
	}
	return nil
}

// openOutput opens a job's files and counts what is in them.
func (s *Service) openOutput(j *job, id ID) error {
	if err := s.openFiles(j, id, !j.core.rec.state.Final()); err != nil {
		return err
	}
	all := make([]RankAttempt, len(j.core.rec.ranks))
	for i := range all {
		all[i] = RankAttempt{i, j.core.rec.ranks[i].attempt}
	}
	j.core.received = j.output.received(all)
	s.checkOutput(j)
	return nil
}

// checkOutput finds out what of the job's output was here and is not any more.
func (s *Service) checkOutput(j *job) {
	j.output.expect(&j.core.rec)
	j.toldLost = len(j.damage(-1))
}

func (s *Service) openFiles(j *job, id ID, goesOn bool) (err error) {
	if j.output, err = openOutputLog(s.outputPath(id), id, goesOn); err != nil {
		return err
	}
	j.stdin, err = openSpool(s.stdinPath(id))
	return err
}

func (s *Service) outputPath(id ID) string { return filepath.Join(s.jobDir(id), "output") }
func (s *Service) stdinPath(id ID) string  { return filepath.Join(s.jobDir(id), "stdin") }
