package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"zorilla/jobs/process"
)

// ErrDamaged: the disk lost something of a job that the origin had stored.
var ErrDamaged = errors.New("damaged")

// hole is bytes of a stream that the disk lost.
type hole struct {
	streamOf
	from, to int64
}

// note keeps in mind what was found to be lost.
func (l *outputLog) note(h hole) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.from < h.to && !slices.Contains(l.lost, h) {
		l.lost = append(l.lost, h)
	}
}

// missing notes what somebody who has read the whole file was not told of what was
// in it before.
func (l *outputLog) missing(had map[RankAttempt]received, told map[streamOf]int64, want func(RankAttempt) bool) {
	for ra, got := range had {
		for _, st := range []process.Stream{process.Stdout, process.Stderr} {
			if key := (streamOf{ra, st}); want(ra) {
				l.note(hole{key, told[key], got.of(st)})
			}
		}
	}
}

// expect compares what was found in the file with what the job's journal tells
// of it.
func (l *outputLog) expect(rec *record) {
	for i := range rec.ranks {
		if k := &rec.ranks[i]; k.wrote != nil {
			ra := RankAttempt{i, k.attempt}
			had := map[RankAttempt]received{ra: {k.wrote.Stdout, k.wrote.Stderr}}
			got := l.received([]RankAttempt{ra})[ra]
			l.missing(had, map[streamOf]int64{{ra, process.Stdout}: got.stdout, {ra, process.Stderr}: got.stderr}, func(RankAttempt) bool { return true })
		}
	}
	size, _, _ := l.spool.state()
	l.mu.Lock()
	l.blind += max(0, rec.stored-size)
	l.mu.Unlock()
}

// maxDamage bounds how much damage is told of one job.
const maxDamage = 20

// damage lists what the disk lost of a job's output that counts: of one worker,
// or of all (-1).
func (l *outputLog) damage(rec *record, worker int) (list []string) {
	l.mu.Lock()
	lost, blind := slices.Clone(l.lost), l.blind
	l.mu.Unlock()
	if len(lost) == 0 && blind == 0 {
		return nil
	}
	slices.SortFunc(lost, func(a, b hole) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.stream, b.stream), cmp.Compare(a.from, b.from))
	})
	for _, h := range lost {
		if (worker < 0 || h.Rank == worker) && rec.countsOutput(h.RankAttempt) {
			list = append(list, fmt.Sprintf("%s: %s: bytes %d to %d", rec.spec.who(h.Rank), streamName(h.stream), h.from, h.to-1))
		}
	}
	if blind > 0 && !rec.knowsOutput(worker) {
		list = append(list, fmt.Sprintf("%d bytes of its output file, whose rank is not known", blind))
	}
	if more := len(list) - maxDamage; more > 0 {
		list = append(list[:maxDamage], fmt.Sprintf("and %d more", more))
	}
	return list
}

func streamName(st process.Stream) string {
	switch st {
	case process.Stderr:
		return "standard error"
	case process.Files:
		return "files"
	}
	return "standard output"
}

// countsOutput reports whether the output of an attempt is told to users.
func (r *record) countsOutput(ra RankAttempt) bool {
	return r.tasks != nil || ra.Rank < len(r.ranks) && r.ranks[ra.Rank].attempt == ra.Attempt
}

// knowsOutput reports whether it is known how much a worker wrote, or all of them
// (-1): then nothing can be missing without a name.
func (r *record) knowsOutput(worker int) bool {
	for i := range r.ranks {
		if k := &r.ranks[i]; (worker < 0 || i == worker) && k.attempt > 0 && k.wrote == nil {
			return false
		}
	}
	return r.tasks == nil
}

// damage lists what the disk lost of a job.
func (j *job) damage(worker int) []string {
	list := j.output.damage(&j.core.rec, worker)
	if broken := j.core.rec.broken; broken != "" {
		list = append([]string{"its journal: " + broken}, list...)
	}
	return list
}

// lost tells what the disk lost of a job, in one line, if anything.
func (j *job) lost() []string {
	if list := j.damage(-1); len(list) > 0 {
		return []string{fmt.Sprintf("job %s is damaged: %s", j.core.rec.id.Short(), strings.Join(list, "; "))}
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
		if i == maxDamage {
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
	ok := s.call(func() {
		if all := j.damage(-1); len(all) > j.toldLost {
			j.toldLost = len(all)
			j.core.version++
			s.tellLost(j.lost())
			s.notify()
		}
		list = j.damage(worker)
	})
	switch {
	case !ok:
		return ErrStopped
	case len(list) == 0:
		return nil
	}
	return fmt.Errorf("job %s is %w: %s", j.core.rec.id.Short(), ErrDamaged, strings.Join(list, "; "))
}

// checkRate is how many bytes a second of stored output are read when the node
// starts: others want the disk too.
const checkRate = 64 << 20

// checkStored reads the output of the jobs in memory that have ended, so that it
// is known what the disk lost before somebody asks for it.
func (s *Service) checkStored() {
	ended := map[ID]*job{}
	s.call(func() {
		for id, j := range s.jobs {
			if j.core.rec.state.Final() {
				ended[id] = j
			}
		}
	})
	for _, id := range slices.Sorted(maps.Keys(ended)) {
		l := ended[id].output
		err := l.read(s.leavingCtx, false, func(RankAttempt) bool { return true }, func(Output) error { return s.leavingCtx.Err() })
		if s.leavingCtx.Err() != nil {
			return
		}
		if errors.Is(err, os.ErrNotExist) { // forgotten meanwhile
			continue
		}
		if err != nil {
			s.log.Error().Err(err).Msgf("read the output of job %s", id.Short())
		}
		_ = s.damaged(ended[id], -1) // told there
		size, _, _ := l.spool.state()
		select {
		case <-time.After(time.Duration(size) * time.Second / checkRate):
		case <-s.leaving:
			return
		}
	}
}
