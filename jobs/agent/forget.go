package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/journal"
	"zorilla/transfer"
)

// keepWhole is how many jobs that have ended an origin has in memory with all
// that is known of them, also what is in no journal: rounds and answers. The
// others are read when somebody asks.
const keepWhole = 1000

// Marks: what the directory of a job is called from the moment in which its
// results count as forgotten, or the whole job as removed, until the journal
// says so. A name can be changed on a disk that has no room for the journal to
// say anything.
const (
	markForgotten = ".forgotten"
	markRemoved   = ".removed"
)

// outputsOwner, inputsOwner and treeOwner name who pins what in the store: the
// files that a job made, the inputs of a job that has not ended, and inputs of
// jobs that have.
func outputsOwner(id jobs.ID) string        { return "job/" + string(id) }
func inputsOwner(id jobs.ID) string         { return "job-inputs/" + string(id) }
func treeOwner(inputs transfer.Hash) string { return "kept-inputs/" + inputs.String() }

// size is how many bytes of results the job has here.
func (j *job) size() int64 {
	return j.wrote() + j.Core.Rec.Filed()
}

// wrote is how large the files are that hold its output and its input.
func (j *job) wrote() int64 {
	out, _, _ := j.output.Spool.State()
	in, _, _ := j.stdin.State()
	return out + in
}

// settled files a job that has ended, and is on disk as such, with the size of
// what it wrote.
func (s *Service) settled(rec *record.Record, wrote int64) {
	p := record.PastOf(rec)
	p.Size = wrote + rec.Filed()
	inputs, size := rec.Spec.Inputs, int64(0)
	if t := s.archive.trees[inputs]; !inputs.IsZero() && (t == nil || !t.Here) {
		tree, err := transfer.LoadManifest(s.store, inputs)
		if err != nil {
			inputs = transfer.Hash{}
		} else {
			size = tree.Size()
			s.store.Pin(treeOwner(inputs), append(tree.Chunks(), inputs)...)
		}
	}
	s.archive.add(s.loop.Now(), p, inputs, size)
	s.store.Unpin(inputsOwner(rec.ID))
	s.dropTrees()
}

// dropTrees lets go of inputs that are only cache now.
func (s *Service) dropTrees() {
	for _, h := range s.archive.loose {
		if t := s.archive.trees[h]; t == nil || !t.Here {
			s.store.Unpin(treeOwner(h))
		}
	}
	s.archive.loose = nil
}

// shed takes the jobs out of memory that ended first, beyond keepWhole.
func (s *Service) shed() {
	var ended []*record.Past
	for id, j := range s.jobs {
		if p := s.archive.all[id]; p != nil && len(j.Steps) == 0 && len(j.Serving) == 0 {
			ended = append(ended, p)
		}
	}
	if len(ended) <= keepWhole {
		return
	}
	slices.SortFunc(ended, byEnd)
	for _, p := range ended[:len(ended)-keepWhole] {
		s.core.Drop(p.ID)
		delete(s.jobs, p.ID)
	}
}

// sweep forgets what is due.
func (s *Service) sweep() {
	was := s.archive.full
	forget, drop := s.archive.sweep(s.loop.Now())
	s.dropTrees()
	if r := s.archive.results(); r.Full && !was {
		s.log.Warn().Int64("bytes", r.Bytes).Int64("limit", r.Limit).Msg("the results of jobs need more room than --keep-outputs allows: those that nobody has read are kept for a day all the same")
	}
	var list []erasure
	for _, p := range forget {
		list = append(list, s.forget(p, false))
	}
	for _, p := range drop {
		list = append(list, s.forget(p, true))
	}
	if len(list) == 0 {
		return
	}
	s.log.Info().Int("results", len(forget)).Int("records", len(drop)).Msg("forgot jobs that ended long ago, or whose results had no room")
	s.loop.Go(func() { s.eraseAll(list, func(error) {}) })
	s.loop.Notify()
}

// forget takes the results of a job out of memory, or all of it, and returns
// what is left to do on disk. It runs in the loop.
func (s *Service) forget(p *record.Past, remove bool) erasure {
	e := erasure{id: p.ID, suffix: markForgotten}
	if s.jobs[p.ID] != nil {
		s.core.Drop(p.ID)
		delete(s.jobs, p.ID)
	}
	s.archive.forget(s.loop.Now(), p)
	if remove {
		s.archive.remove(p)
		s.unkey(p.Key, p.ID)
		e.suffix = markRemoved
		if s.last == p.ID {
			s.findLast()
		}
	} else {
		e.record = s.recordOf(p)
	}
	s.dropTrees()
	return e
}

// recordOf is what the journal is to say of a job whose results are forgotten.
func (s *Service) recordOf(p *record.Past) []byte {
	whole := *p
	if k, ok := s.keys[p.Key]; ok && k.id == p.ID {
		whole.Sum = k.sum[:]
	}
	return codec.MustMarshal(record.Event{Kind: record.Forgotten, At: s.loop.Now(), Past: &whole})
}

// findLast looks which job was submitted last of those that are left.
func (s *Service) findLast() {
	s.last, s.lastStamp = "", 0
	for id, p := range s.archive.all {
		s.sawLast(id, p.Stamp)
	}
	for id, j := range s.jobs {
		s.sawLast(id, j.Core.Rec.Stamp)
	}
}

func (s *Service) sawLast(id jobs.ID, stamp jobs.Stamp) {
	if s.last == "" || s.lastStamp < stamp {
		s.last, s.lastStamp = id, stamp
	}
}

// Remove forgets a job of this origin that has ended, with its results. It
// returns when that outlives the node.
func (s *Service) Remove(id jobs.ID) error {
	err := fmt.Errorf("job %s %w", id.Short(), jobs.ErrNotFound)
	done := make(chan error, 2)
	ok := s.loop.Call(func() {
		p, j := s.archive.all[id], s.jobs[id]
		switch {
		case p != nil:
			err = nil
			e := s.forget(p, true)
			s.loop.Go(func() { s.eraseAll([]erasure{e}, func(err error) { done <- err }) })
			s.loop.Notify()
		case j != nil:
			st, _ := s.view(j)
			err = fmt.Errorf("%w: job %s is %s: 'zorilla cancel %s' ends it", jobs.ErrRefused, id.Short(), st.State, id.Short())
		}
	})
	switch {
	case !ok:
		return jobs.ErrStopped
	case err != nil:
		return err
	}
	select {
	case err := <-done:
		return err
	case <-s.loop.Stopped.Done():
		return jobs.ErrStopped
	}
}

// erasure is what is to be done on disk about a job that is forgotten.
type erasure struct {
	id     jobs.ID
	record []byte // what the journal is to say from now on; nil = nothing
	suffix string // of the mark
	marked bool
}

// maxErase bounds how many jobs are erased at a time.
const maxErase = 1000

// eraseAll erases jobs, and calls decided when that outlives the node, whatever is
// left to do.
func (s *Service) eraseAll(list []erasure, decided func(error)) {
	for part := range slices.Chunk(list, maxErase) {
		for _, step := range s.eraseSteps(part, decided) {
			if err := step(); err != nil {
				if s.loop.Stopped.Err() == nil {
					s.log.Error().Err(err).Str("job", string(part[0].id)).Int("jobs", len(part)).Msg("forget jobs")
				}
				decided(err)
				return
			}
		}
	}
}

// eraseSteps lists the steps in which jobs are erased. A node that dies between
// two of them, or within one, finishes when it is started again; from the first on
// (the third, of jobs that had no room for a mark) the results count as forgotten.
func (s *Service) eraseSteps(list []erasure, decided func(error)) []func() error {
	all := true
	return []func() error{
		func() error {
			for i := range list {
				list[i].marked = s.mark(&list[i])
				all = all && list[i].marked
			}
			if err := atomicfile.Sync(s.jobsDir()); !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		},
		func() error { // makes room, so that the journal can be written
			for _, e := range list {
				if e.marked {
					s.empty(s.jobDir(e.id) + e.suffix)
					s.store.Discard(outputsOwner(e.id))
				}
			}
			if all {
				decided(nil)
			}
			return nil
		},
		func() error { return s.eraseEntries(list) },
		func() error {
			for _, e := range list {
				s.store.Discard(outputsOwner(e.id))
				s.removeDir(s.jobDir(e.id))
				s.removeDir(s.jobDir(e.id) + e.suffix)
			}
			if !all {
				decided(nil)
			}
			return nil
		},
	}
}

// mark reports whether the job's directory tells now that it is forgotten.
func (s *Service) mark(e *erasure) bool {
	dir := s.jobDir(e.id)
	err := os.Rename(dir, dir+e.suffix)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(s.jobsDir(), 0o700); err == nil {
			err = os.Mkdir(dir+e.suffix, 0o700)
		}
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		s.log.Debug().Err(err).Str("job", string(e.id)).Msg("mark a forgotten job: its results go when the journal has room")
		return false
	}
	return true
}

// empty removes what is in a directory; what cannot be removed now is tried again
// when the node starts.
func (s *Service) empty(dir string) {
	entries, err := os.ReadDir(dir)
	for _, f := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, f.Name())))
	}
	if err != nil {
		s.log.Error().Err(err).Str("dir", dir).Msg("remove forgotten results")
	}
}

func (s *Service) removeDir(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		s.log.Error().Err(err).Str("dir", dir).Msg("remove forgotten results")
	}
}

// eraseEntries has the journal say that jobs are forgotten, and waits for it.
func (s *Service) eraseEntries(list []erasure) error {
	results := make(chan error, len(list))
	for _, e := range list {
		if e.record == nil {
			s.cfg.Journal.Delete(string(e.id), func(err error) { results <- err })
		} else {
			s.cfg.Journal.Replace(journal.Entry{Key: string(e.id), Data: e.record}, func(err error) { results <- err })
		}
	}
	var all error
	for range list {
		select {
		case err := <-results:
			if all == nil {
				all = err
			}
		case <-s.loop.Stopped.Done():
			return jobs.ErrStopped
		}
	}
	return all
}

// readMarks lists the jobs that an earlier life of the node was about to erase.
func (s *Service) readMarks() (map[jobs.ID]erasure, error) {
	entries, err := os.ReadDir(s.jobsDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	marks := map[jobs.ID]erasure{}
	for _, f := range entries {
		for _, suffix := range []string{markForgotten, markRemoved} {
			if name, ok := strings.CutSuffix(f.Name(), suffix); ok && jobs.ID(name).Valid() && f.IsDir() {
				marks[jobs.ID(name)] = erasure{id: jobs.ID(name), suffix: suffix, marked: true}
			}
		}
	}
	return marks, nil
}

// markedAt is when a job was marked, about.
func (s *Service) markedAt(e erasure) time.Time {
	if info, err := os.Stat(s.jobDir(e.id) + e.suffix); err == nil {
		return info.ModTime()
	}
	return s.loop.Now()
}

func (s *Service) jobsDir() string { return filepath.Join(s.cfg.Dir, "jobs") }
