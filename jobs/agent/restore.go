package agent

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"zorilla/jobs"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/record"
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
	if err := s.exec.Adopt(s.adopt); err != nil {
		return err
	}
	for _, id := range l.live {
		if err := s.restore(id); err != nil {
			s.log.Error().Err(err).Str("job", string(id)).Msg("a job of before could not be restored")
			s.unkey(s.jobs[id].Core.Rec.Spec.Key, id)
			delete(s.jobs, id)
			s.core.Drop(id)
			continue
		}
		lost = append(lost, s.jobs[id].lost()...)
	}
	s.tellLost(lost)
	for _, e := range l.marks { // of jobs that the journal has forgotten already
		l.erase = append(l.erase, e)
	}
	if len(l.erase) > 0 {
		s.loop.Go(func() { s.eraseAll(l.erase, func(error) {}) })
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
		s.core.Add(j.Job)
		lost = append(lost, j.lost()...)
	}
	return lost
}

// loading makes jobs of the entries of the journal, of which those of one job
// come together. Of jobs that have ended it keeps the record only.
type loading struct {
	s     *Service
	marks map[jobs.ID]erasure // of jobs that were not met yet
	job   *job                // of which entries come
	live  []jobs.ID           // jobs that had not ended
	erase []erasure
}

func (l *loading) entry(e journal.Entry) error {
	if l.job == nil || l.job.Core.Rec.ID != jobs.ID(e.Key) {
		l.seal()
		var err error
		if l.job, err = l.s.jobOf(e); l.job == nil {
			return err
		}
	}
	l.job.Core.Rec.Replay(e)
	return nil
}

// seal does what follows once all entries of a job were met.
func (l *loading) seal() {
	s, j := l.s, l.job
	if j == nil {
		return
	}
	l.job = nil
	rec := &j.Core.Rec
	if rec.Broken != "" {
		rec.GiveUp(s.loop.Now())
	}
	p, id := rec.Past, rec.ID
	mark, marked := l.marks[id]
	delete(l.marks, id)
	marked = marked && (p != nil || rec.State.Final()) // else the journal is an old one
	if marked && mark.suffix == markRemoved {
		l.erase = append(l.erase, mark)
		return
	}
	if p == nil {
		s.keep(&rec.Spec, id)
	} else if p.ID = id; len(p.Sum) == sha256.Size {
		s.keys[p.Key], p.Sum = keyed{id, [sha256.Size]byte(p.Sum)}, nil
	}
	if marked {
		if p == nil {
			p = record.PastOf(rec)
			p.Forgotten = s.markedAt(mark).UnixNano()
		}
		mark.record = s.recordOf(p)
		l.erase = append(l.erase, mark)
	}
	stamp := rec.Stamp
	switch {
	case p != nil:
		p.Intern()
		stamp = p.Stamp
		s.archive.add(s.loop.Now(), p, transfer.Hash{}, 0)
	case rec.State.Final():
		s.pinOutputs(rec)
		s.settled(rec, fileSize(s.outputPath(id))+fileSize(s.stdinPath(id)))
	default:
		l.live = append(l.live, id)
		s.jobs[id] = j
		s.core.Add(j.Job)
		return
	}
	s.sawLast(id, stamp)
	s.core.Clock.Saw(stamp, s.loop.Now())
}

// fileSize is that of a file, or 0.
func fileSize(path string) int64 {
	if info, err := os.Stat(path); err == nil {
		return info.Size()
	}
	return 0
}

// pinOutputs keeps the files that a job made.
func (s *Service) pinOutputs(rec *record.Record) {
	for i := range rec.Ranks {
		if k := &rec.Ranks[i]; k.Output != nil {
			transfer.PinManifest(s.store, outputsOwner(rec.ID), k.Output.Manifest)
		}
	}
}

// recall makes a job that has ended again of what the journal and the disk have
// of it.
func (s *Service) recall(id jobs.ID) (*job, error) {
	entries, err := s.cfg.Journal.Read(string(id))
	if err != nil {
		return nil, fmt.Errorf("read job %s: %w", id.Short(), err)
	}
	j := &job{Job: s.core.NewJob(id)}
	rec := &j.Core.Rec
	for _, e := range entries {
		rec.Replay(e)
	}
	if rec.Broken != "" {
		rec.GiveUp(s.loop.Now())
	}
	if j.Settled = true; !rec.State.Final() {
		return nil, fmt.Errorf("job %s %w: the journal has lost it", id.Short(), jobs.ErrNotFound)
	}
	if err := s.openOutput(j, id); err != nil {
		return nil, fmt.Errorf("read job %s: %w", id.Short(), err)
	}
	return j, errors.Join(j.output.Spool.Close(), j.stdin.Close())
}

// jobOf makes the job of its first entry. It is nil if there is an error, or if the entry is of no job.
func (s *Service) jobOf(e journal.Entry) (*job, error) {
	id := jobs.ID(e.Key)
	switch {
	case e.Damage != "" && (!id.Valid() || id.Origin() != s.self.ID), !id.Valid() && !jobs.EarlierForm(e.Key):
		s.log.Error().Msgf("the journal holds something of %s, which is no job of this node: %s", e.Key, cmp.Or(e.Damage, "it is ignored"))
		return nil, nil
	case !id.Valid():
		return nil, fmt.Errorf("job %s was written by an earlier version, whose jobs this one cannot read: let that version end them, or begin with another state directory", e.Key)
	case id.Origin() != s.self.ID:
		return nil, fmt.Errorf("job %s is one of node %s, and this is node %s: restore the identity.key of that node, or remove journal.db to begin without its jobs",
			id.Short(), id.Origin(), s.self.ID)
	}
	return &job{Job: s.core.NewJob(id)}, nil
}

// restore opens the files of a job that has not ended, pins its blobs and goes on
// with it.
func (s *Service) restore(id jobs.ID) error {
	j := s.jobs[id]
	rec := &j.Core.Rec
	if rec.Ranks == nil {
		return errors.New("its submission is missing from the journal")
	}
	if err := s.openOutput(j, id); err != nil {
		return err
	}
	s.core.Clock.Saw(rec.Stamp, s.loop.Now())
	s.sawLast(id, rec.Stamp)
	s.pinOutputs(rec)
	transfer.PinManifest(s.store, inputsOwner(id), rec.Spec.Inputs)
	damaged, err := s.restoreStdin(j, id)
	if err != nil {
		return err
	}
	s.core.Resume(s.loop.Now(), j.Job)
	if damaged && rec.Ranks[0].State != jobs.WorkerEnded {
		j.Core.End(s.loop.Now(), jobs.Failed, stdinDamaged, jobs.CodeZorilla)
		s.core.Flush(s.loop.Now(), j.Job)
	}
	return nil
}

// openOutput opens a job's files and counts what is in them.
func (s *Service) openOutput(j *job, id jobs.ID) error {
	if err := s.openFiles(j, id, !j.Core.Rec.State.Final()); err != nil {
		return err
	}
	all := make([]jobs.RankAttempt, len(j.Core.Rec.Ranks))
	for i := range all {
		all[i] = jobs.RankAttempt{Rank: i, Attempt: j.Core.Rec.Ranks[i].Attempt}
	}
	j.Core.Received = j.output.Received(all)
	s.checkOutput(j)
	return nil
}

// checkOutput finds out what of the job's output was here and is not any more.
func (s *Service) checkOutput(j *job) {
	j.output.Expect(&j.Core.Rec)
	j.toldLost = len(j.damage(-1))
}

func (s *Service) openFiles(j *job, id jobs.ID, goesOn bool) (err error) {
	if j.output, err = output.Open(s.outputPath(id), id, goesOn); err != nil {
		return err
	}
	j.stdin, err = output.OpenSpool(s.stdinPath(id))
	return err
}

func (s *Service) outputPath(id jobs.ID) string { return filepath.Join(s.jobDir(id), "output") }
func (s *Service) stdinPath(id jobs.ID) string  { return filepath.Join(s.jobDir(id), "stdin") }

// adopt goes on with a worker of an earlier life of this node.
func (s *Service) adopt(c participant.ClaimRecord) {
	s.overlay.Learn(c.Job.Origin(), c.Addrs)
	s.core.Adopt(s.loop.Now(), c)
}
