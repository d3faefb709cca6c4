package origin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/journal"
	"zorilla/transfer"
)

// Marks: what the directory of a job is called from the moment in which its
// results count as forgotten, or the whole job as removed, until the journal
// says so. A name can be changed on a disk that has no room for the journal to
// say anything.
const (
	markForgotten = ".forgotten"
	markRemoved   = ".removed"
)

// erasure is what is to be done on disk about a job that is forgotten.
type erasure struct {
	id     jobs.ID
	at     time.Time // when its results were forgotten
	suffix string    // of the mark
	marked bool
}

// disk is where the files of jobs are, and the journal. Its methods may be called from any
// goroutine.
type disk struct {
	dir     string
	journal journal.Journal
	store   transfer.PinStore
	log     zerolog.Logger
	stopped context.Context
	room    func(have, more int64) error
	erases  chan struct{} // a place for who has the journal forget jobs
}

// eraseSteps lists the steps in which jobs are erased. A node that dies between
// two of them, or within one, finishes when it is started again; from the first on
// (the third, of jobs that had no room for a mark) the results count as forgotten.
func (d *disk) eraseSteps(list []erasure, decided func(error)) []func() error {
	all := true
	return []func() error{
		func() error {
			for i := range list {
				list[i].marked = d.mark(&list[i])
				all = all && list[i].marked
			}
			if err := atomicfile.Sync(d.jobsDir()); !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		},
		func() error { // makes room, so that the journal can be written
			for _, e := range list {
				if e.marked {
					d.empty(d.jobDir(e.id) + e.suffix)
					d.store.Discard(outputsOwner(e.id))
				}
			}
			if all {
				decided(nil)
			}
			return nil
		},
		func() error { return d.eraseEntries(list) },
		func() error {
			for _, e := range list {
				d.store.Discard(outputsOwner(e.id))
				d.removeDir(d.jobDir(e.id))
				d.removeDir(d.jobDir(e.id) + e.suffix)
			}
			if !all {
				decided(nil)
			}
			return nil
		},
	}
}

// mark reports whether the job's directory tells now that it is forgotten.
func (d *disk) mark(e *erasure) bool {
	dir := d.jobDir(e.id)
	err := os.Rename(dir, dir+e.suffix)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(d.jobsDir(), 0o700); err == nil {
			err = os.Mkdir(dir+e.suffix, 0o700)
		}
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		d.log.Debug().Err(err).Str("job", string(e.id)).Msg("mark a forgotten job: its results go when the journal has room")
		return false
	}
	return true
}

// empty removes what is in a directory; what cannot be removed now is tried again
// when the node starts.
func (d *disk) empty(dir string) {
	entries, err := os.ReadDir(dir)
	for _, f := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, f.Name())))
	}
	if err != nil {
		d.log.Error().Err(err).Str("dir", dir).Msg("remove forgotten results")
	}
}

func (d *disk) removeDir(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		d.log.Error().Err(err).Str("dir", dir).Msg("remove forgotten results")
	}
}

// eraseEntries has the journal say that jobs are forgotten, and waits for it. That is done once at a
// time: what is written of a job hangs on what was read of it, and it may be removed meanwhile.
func (d *disk) eraseEntries(list []erasure) error {
	select {
	case d.erases <- struct{}{}:
		defer func() { <-d.erases }()
	case <-d.stopped.Done():
		return jobs.ErrStopped
	}
	results := make(chan error, len(list))
	for _, e := range list {
		var left []byte // what the journal is to say from now on
		if e.suffix == markForgotten {
			rec, err := d.read(e.id)
			if err == nil {
				left = remains(rec, e.at)
			} else if !errors.Is(err, jobs.ErrNotFound) {
				return err
			}
		}
		if left == nil {
			d.journal.Delete(string(e.id), func(err error) { results <- err })
		} else {
			d.journal.Replace(journal.Entry{Key: string(e.id), Data: left}, func(err error) { results <- err })
		}
	}
	var all error
	for range list {
		select {
		case err := <-results:
			if all == nil {
				all = err
			}
		case <-d.stopped.Done():
			return jobs.ErrStopped
		}
	}
	return all
}

// remains is what the journal says of a job whose results were forgotten at a time.
func remains(rec *record.Record, at time.Time) []byte {
	p := pastOf(rec)
	if rec.Past == nil {
		p.Forgotten = at.UnixNano()
		if p.Key != "" {
			sum := rec.AsSubmitted().Sum()
			p.Sum = sum[:]
		}
	}
	return codec.MustMarshal(record.Event{Kind: record.Forgotten, At: time.Now(), Past: p})
}

// readMarks lists the jobs that an earlier life of the node was about to erase.
func (d *disk) readMarks() (map[jobs.ID]erasure, error) {
	entries, err := os.ReadDir(d.jobsDir())
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
func (d *disk) markedAt(e erasure) time.Time {
	if info, err := os.Stat(d.jobDir(e.id) + e.suffix); err == nil {
		return info.ModTime()
	}
	return time.Now()
}

func (d *disk) jobsDir() string              { return filepath.Join(d.dir, "jobs") }
func (d *disk) jobDir(id jobs.ID) string     { return filepath.Join(d.jobsDir(), string(id)) }
func (d *disk) outputPath(id jobs.ID) string { return filepath.Join(d.jobDir(id), "output") }
func (d *disk) stdinPath(id jobs.ID) string  { return filepath.Join(d.jobDir(id), "stdin") }

// stdinEnd is the file that tells that a job was fed all of its input, how long
// that is, and its CRC-32C.
func (d *disk) stdinEnd(id jobs.ID) string { return filepath.Join(d.jobDir(id), "stdin.end") }

// keepStdinEnd writes it down once the input is durable.
func (d *disk) keepStdinEnd(id jobs.ID, stdin *output.Input) error {
	if err := os.MkdirAll(d.jobDir(id), 0o700); err != nil {
		return err
	}
	if err := stdin.Sync(); err != nil {
		return err
	}
	return atomicfile.Write(d.stdinEnd(id), codec.Seal(stdin.Digest()))
}

// maxErase bounds how many jobs are erased at a time.
const maxErase = 1000

// eraseAll erases jobs, and calls decided when that outlives the node, whatever is
// left to do.
func (d *disk) eraseAll(list []erasure, decided func(error)) {
	for part := range slices.Chunk(list, maxErase) {
		for _, step := range d.eraseSteps(part, decided) {
			if err := step(); err != nil {
				if d.stopped.Err() == nil {
					d.log.Error().Err(err).Str("job", string(part[0].id)).Int("jobs", len(part)).Msg("forget jobs")
				}
				decided(err)
				return
			}
		}
	}
}

// logLost logs for the owner what was lost since the node ran last.
func (d *disk) logLost(lines []string) {
	if _, err := os.Stat(d.jobsDir()); errors.Is(err, os.ErrNotExist) && len(lines) > 0 {
		d.log.Error().Msgf("the directory %s is not there any more: output of %d jobs is lost", d.jobsDir(), len(lines))
		return
	}
	for i, l := range lines {
		if i == output.MaxDamage {
			d.log.Error().Msgf("and %d more jobs are damaged: 'zorilla ps --all' lists them", len(lines)-i)
			return
		}
		d.log.Error().Msg(l)
	}
}

func (d *disk) openFiles(j *job, id jobs.ID, spec *jobs.Spec, goesOn bool) (err error) {
	if j.output, err = output.Open(d.outputPath(id), id, goesOn); err != nil {
		return err
	}
	j.output.Spool.Room = d.room
	if spec.Array == nil { // else files of tasks come with it, and their nodes bound what they write
		j.output.Limit = spec.MaxOutput
	}
	if j.stdin, err = output.OpenInput(d.stdinPath(id)); err == nil {
		j.stdin.Whole, j.stdin.Room = !hasOneTry(spec), d.room
	}
	return err
}

// openOutput opens a job's files and counts what is in them.
func (d *disk) openOutput(j *job, id jobs.ID) error {
	if err := d.openFiles(j, id, &j.Primary.Rec.Spec, !j.Primary.Rec.State.Final()); err != nil {
		return err
	}
	all := make([]jobs.RankAttempt, len(j.Primary.Rec.Ranks))
	for i := range all {
		all[i] = jobs.RankAttempt{Rank: i, Attempt: j.Primary.Rec.Ranks[i].Attempt}
	}
	j.Primary.Received = j.output.Received(all)
	j.output.Expect(&j.Primary.Rec) // what was here and is not any more
	j.toldLost = len(j.damage(-1))
	return nil
}

// syncTree makes a file tree durable.
func syncTree(store transfer.PinStore, tree transfer.Manifest, manifest transfer.Hash) error {
	return store.Sync(append(tree.Chunks(), manifest)...)
}
