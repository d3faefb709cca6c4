package jobs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
	"zorilla/jobs/journal"
	"zorilla/vicinity"
)

// load rebuilds all jobs from the journal.
func (s *Service) load() error {
	var order []ID
	err := s.cfg.Journal.Load(func(e journal.Entry) error {
		id := ID(e.Key)
		if earlierForm(e.Key) {
			return fmt.Errorf("job %s was written by an earlier version, whose jobs this one cannot read: let that version end them, or begin with another state directory", e.Key)
		}
		var ev event
		unreadable := codec.Unmarshal(e.Data, &ev) != nil
		if !id.Valid() || unreadable {
			s.log.Warn().Str("key", e.Key).Msg("the journal has an entry that this version cannot read; it is ignored")
			if j := s.jobs[id]; j != nil {
				j.core.rec.warn("an entry of its journal cannot be read: something that happened to it is forgotten")
			}
			return nil
		}
		if id.Origin() != s.self.ID {
			return fmt.Errorf("job %s is one of node %s, and this is node %s: restore the identity.key of that node, or remove journal.db to begin without its jobs",
				id.Short(), id.Origin(), s.self.ID)
		}
		j := s.jobs[id]
		if j == nil {
			j = &job{core: s.newPrimary(id), serving: map[vicinity.ID]int{}}
			s.jobs[id] = j
			order = append(order, id)
		}
		if ev.sound(&j.core.rec) {
			j.core.rec.apply(ev)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	if err := s.adoptWork(); err != nil {
		return err
	}
	for _, id := range order {
		if err := s.restore(id); err != nil {
			s.log.Error().Err(err).Str("job", string(id)).Msg("a job of before could not be restored")
			delete(s.jobs, id)
		}
	}
	s.prune()
	return nil
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
	if rec.ranks == nil {
		return errors.New("its submission is missing from the journal")
	}
	if err := s.openFiles(j, id, !rec.state.Final()); err != nil {
		return err
	}
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
	if err := s.restoreStdin(j, id); err != nil {
		return err
	}
	j.core.resume(s.now(), s.cfg.Schedule)
	s.flush(j)
	s.follow(j)
	return nil
}

// restoreStdin ends the standard input of a job: who fed it went away with the
// node. A program cannot tell that from the end that it waits for, but its user
// shall.
func (s *Service) restoreStdin(j *job, id ID) error {
	if j.core.rec.spec.Stdin {
		if _, err := os.Stat(s.stdinEnd(id)); errors.Is(err, os.ErrNotExist) {
			j.core.warn(s.now(), stdinCut)
		}
	}
	return j.stdin.close()
}

const stdinCut = "its standard input may be incomplete: the node that took it died meanwhile"

// stdinEnd is the file that tells that a job was fed all of its input.
func (s *Service) stdinEnd(id ID) string { return filepath.Join(s.jobDir(id), "stdin.end") }

func (s *Service) keepStdinEnd(id ID) error {
	if err := os.MkdirAll(s.jobDir(id), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(s.stdinEnd(id), nil)
}

// checkOutput finds out what of the job's output was here and is not any more.
func (s *Service) checkOutput(j *job) {
	j.output.expect(&j.core.rec)
	if list := j.damage(-1); len(list) > 0 {
		j.toldLost = len(list)
		s.log.Error().Str("job", string(j.core.rec.id)).Msg("its output is damaged: " + strings.Join(list, "; "))
	}
}

func (s *Service) openFiles(j *job, id ID, goesOn bool) (err error) {
	if j.output, err = openOutputLog(filepath.Join(s.jobDir(id), "output"), id, goesOn); err != nil {
		return err
	}
	j.stdin, err = openSpool(filepath.Join(s.jobDir(id), "stdin"))
	return err
}
