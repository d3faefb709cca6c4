package agent

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/output"
)

// checkRate is how many bytes a second of stored output are read when the node
// starts: others want the disk too.
const checkRate = 64 << 20

// damage lists what the disk lost of a job.
func (j *job) damage(worker int) []string {
	list := j.output.Damage(&j.Core.Rec, worker)
	if broken := j.Core.Rec.Broken; broken != "" {
		list = append([]string{"its journal: " + broken}, list...)
	}
	return list
}

// lost tells what the disk lost of a job, in one line, if anything.
func (j *job) lost() []string {
	if list := j.damage(-1); len(list) > 0 {
		return []string{fmt.Sprintf("job %s is damaged: %s", j.Core.Rec.ID.Short(), strings.Join(list, "; "))}
	}
	return nil
}

// tellLost tells the owner what was lost since the node ran last.
func (s *Service) tellLost(lines []string) {
	if _, err := os.Stat(filepath.Join(s.cfg.Dir, "jobs")); errors.Is(err, os.ErrNotExist) && len(lines) > 0 {
		s.log.Error().Msgf("the directory %s is not there any more: output of %d jobs is lost", filepath.Join(s.cfg.Dir, "jobs"), len(lines))
		return
	}
	for i, l := range lines {
		if i == output.MaxDamage {
			s.log.Error().Msgf("and %d more jobs are damaged: 'zorilla ps' lists them", len(lines)-i)
			return
		}
		s.log.Error().Msg(l)
	}
}

// damaged returns what was found to be lost of a job's output as an error. What is
// found for the first time is told to the job's watchers, and to the owner.
func (s *Service) damaged(j *job, worker int) error {
	var list []string
	ok := s.loop.Call(func() {
		if all := j.damage(-1); len(all) > j.toldLost {
			j.toldLost = len(all)
			j.Core.Version++
			s.tellLost(j.lost())
			s.loop.Notify()
		}
		list = j.damage(worker)
	})
	switch {
	case !ok:
		return jobs.ErrStopped
	case len(list) == 0:
		return nil
	}
	return fmt.Errorf("job %s is %w: %s", j.Core.Rec.ID.Short(), jobs.ErrDamaged, strings.Join(list, "; "))
}

// checkStored reads the output of the jobs in memory that have ended, so that it
// is known what the disk lost before somebody asks for it.
func (s *Service) checkStored() {
	ended := map[jobs.ID]*job{}
	s.loop.Call(func() {
		for id, j := range s.jobs {
			if j.Core.Rec.State.Final() {
				ended[id] = j
			}
		}
	})
	for _, id := range slices.Sorted(maps.Keys(ended)) {
		l := ended[id].output
		err := l.Read(s.loop.Leaving, false, func(jobs.RankAttempt) bool { return true }, func(jobs.Output) error { return s.loop.Leaving.Err() })
		if s.loop.Leaving.Err() != nil {
			return
		}
		if errors.Is(err, os.ErrNotExist) { // forgotten meanwhile
			continue
		}
		if err != nil {
			s.log.Error().Err(err).Msgf("read the output of job %s", id.Short())
		}
		_ = s.damaged(ended[id], -1) // told there
		size, _, _ := l.Spool.State()
		select {
		case <-time.After(time.Duration(size) * time.Second / checkRate):
		case <-s.loop.Leaving.Done():
			return
		}
	}
}
