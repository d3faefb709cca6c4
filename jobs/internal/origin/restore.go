package origin

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/journal"
	"zorilla/transfer"
)

// Load rebuilds all jobs from the journal. The loop must not run yet.
func (o *Jobs) Load(adopt func() error) error {
	marks, err := o.disk.readMarks()
	if err != nil {
		return err
	}
	l := loading{table: o.table, hooks: o.hooks, marks: marks}
	o.table.archive.loading = true
	if err := o.cfg.Journal.Load(l.entry); err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	l.seal()
	for _, e := range l.saved {
		o.restoreSaved(e)
	}
	for _, e := range l.booked {
		if e.Damage != "" || !o.core.Bookings.Rebook(time.Now(), e.Key, e.Data) {
			o.cfg.Journal.Delete(e.Key, nil)
		}
	}
	o.table.archive.loaded(time.Now())
	lost := o.table.recallYoungest()
	if err := adopt(); err != nil {
		return err
	}
	for _, id := range l.live {
		if err := o.restore(id); err != nil {
			o.log.Error().Err(err).Str("job", string(id)).Msg("a job of before could not be restored")
			o.table.drop(o.table.get(id))
			o.core.Drop(id)
			continue
		}
		lost = append(lost, o.table.get(id).lost()...)
	}
	o.disk.logLost(lost)
	for _, e := range l.marks { // of jobs that the journal has forgotten already
		l.erase = append(l.erase, e)
	}
	if len(l.erase) > 0 {
		o.loop.Go(func() { o.disk.eraseAll(l.erase, func(error) {}) })
	}
	return nil
}

// loading makes jobs of the entries of the journal, of which those of one job
// come together. Of jobs that have ended it keeps the record only.
type loading struct {
	table *table
	hooks *hooks
	marks map[jobs.ID]erasure // of jobs that were not met yet
	job   *job                // of which entries come
	live  []jobs.ID           // jobs that had not ended
	erase []erasure
	saved []journal.Entry // of checkpoints
	// booked are bookings at this node, of jobs of whatever origin.
	booked []journal.Entry
}

func (l *loading) entry(e journal.Entry) error {
	if _, ok := isSaved(e.Key); ok {
		l.saved = append(l.saved, e)
		return nil
	}
	if core.IsBooking(e.Key) {
		l.booked = append(l.booked, e)
		return nil
	}
	if l.job == nil || l.job.Primary.Rec.ID != jobs.ID(e.Key) {
		l.seal()
		var err error
		if l.job, err = l.begin(e); l.job == nil {
			return err
		}
	}
	l.job.Primary.Rec.Replay(e)
	return nil
}

// begin makes the job of its first entry. It is nil if there is an error, or if the entry is of no job.
func (l *loading) begin(e journal.Entry) (*job, error) {
	t, id := l.table, jobs.ID(e.Key)
	switch {
	case e.Damage != "" && (!id.Valid() || id.Origin() != t.self), !id.Valid() && !jobs.EarlierForm(e.Key):
		t.log.Error().Msgf("the journal holds something of %s, which is no job of this node: %s", e.Key, cmp.Or(e.Damage, "it is ignored"))
		return nil, nil
	case !id.Valid():
		return nil, fmt.Errorf("job %s was written by an earlier version, whose jobs this one cannot read: "+
			"let that version end them, or begin with another state directory",
			e.Key)
	case id.Origin() != t.self:
		return nil, fmt.Errorf(
			"job %s is one of node %s, and this is node %s: "+
				"restore the identity.key of that node, or remove journal.db to begin without its jobs",
			id.Short(), id.Origin(), t.self)
	}
	return &job{Job: t.core.NewJob(id)}, nil
}

// seal does what follows once all entries of a job were met.
func (l *loading) seal() {
	t, j := l.table, l.job
	if j == nil {
		return
	}
	l.job = nil
	rec := &j.Primary.Rec
	if rec.Broken != "" {
		rec.GiveUp(time.Now())
	}
	p, id := rec.Past, rec.ID
	mark, marked := l.marks[id]
	delete(l.marks, id)
	marked = marked && (p != nil || rec.State.Final()) // else the journal is an old one
	if marked && mark.suffix == markRemoved {
		l.erase = append(l.erase, mark)
		return
	}
	if p != nil {
		p.ID = id
	}
	if marked {
		if mark.at = t.disk.markedAt(mark); p == nil {
			p = record.PastOf(rec)
			p.Forgotten = mark.at.UnixNano()
		}
		l.erase = append(l.erase, mark)
	}
	stamp := rec.Stamp
	switch {
	case p != nil:
		stamp = p.Stamp
		t.archive.add(time.Now(), p, transfer.Hash{}, 0)
	case rec.State.Final():
		pinOutputs(t.store, rec)
		if err := output.Hollow(t.disk.stdinPath(id)); err != nil { // of a life that ended before that was done
			t.log.Warn().Err(err).Str("job", string(id)).Msg("remove standard input")
		}
		t.settled(rec, fileSize(t.disk.outputPath(id)))
		l.hooks.owe(rec)
	default:
		l.live = append(l.live, id)
		t.put(j)
		t.core.Add(j.Job)
		return
	}
	t.last.saw(id, stamp)
	t.core.Clock.Saw(stamp, time.Now())
}

// fileSize is that of a file, or 0.
func fileSize(path string) int64 {
	if info, err := os.Stat(path); err == nil {
		return info.Size()
	}
	return 0
}

// pinOutputs keeps the files that a job made.
func pinOutputs(store transfer.PinStore, rec *record.Record) {
	for i := range rec.Ranks {
		if k := &rec.Ranks[i]; k.Output != nil {
			transfer.PinManifest(store, outputsOwner(rec.ID), k.Output.Manifest)
		}
	}
	for _, k := range rec.Kept {
		if k.Output != nil {
			transfer.PinManifest(store, outputsOwner(rec.ID), k.Output.Manifest)
		}
	}
}

// restore opens the files of a job that has not ended, pins its blobs and goes on
// with it.
func (o *Jobs) restore(id jobs.ID) error {
	j := o.table.get(id)
	rec := &j.Primary.Rec
	if rec.Ranks == nil {
		return errors.New("its submission is missing from the journal")
	}
	if err := o.disk.openOutput(j, id); err != nil {
		return err
	}
	o.core.Clock.Saw(rec.Stamp, time.Now())
	o.table.last.saw(id, rec.Stamp)
	pinOutputs(o.cfg.Store, rec)
	o.inputs.keepLeft(j)
	damaged, err := o.disk.restoreStdin(j, id)
	if err != nil {
		return err
	}
	o.core.Resume(time.Now(), j.Job)
	if damaged && rec.Ranks[0].State != jobs.WorkerEnded {
		j.Primary.End(time.Now(), jobs.Failed, stdinDamaged, jobs.CodeZorilla)
		o.core.Flush(time.Now(), j.Job)
	}
	return nil
}

// What the journal has of the checkpoints of a rank is under a key of its own and replaced by each new one: a
// program may make one every few seconds, for weeks.

func savedKey(id jobs.ID, rank int) string { return fmt.Sprintf("%s.c%d", id, rank) }

// isSaved reports whether a key is one of those, and of which job.
func isSaved(key string) (id jobs.ID, ok bool) {
	name, rank, found := strings.Cut(key, ".c")
	_, err := strconv.Atoi(rank)
	return jobs.ID(name), found && err == nil && jobs.ID(name).Valid()
}

// write has the journal take events, in their order. Done is called when it has all of them.
func write(j journal.Journal, id jobs.ID, events []record.Event, done func(error)) {
	var entries, saved []journal.Entry
	for _, ev := range events {
		if e := (journal.Entry{Key: string(id), Data: codec.MustMarshal(ev)}); ev.Kind == record.Checkpointed {
			e.Key = savedKey(id, ev.Ranks[0].Rank)
			saved = append(saved, e)
		} else {
			entries = append(entries, e)
		}
	}
	left, failed := len(saved), error(nil)
	if len(entries) > 0 {
		left++
	}
	each := func(err error) { // the journal calls these one after the other
		if left, failed = left-1, errors.Join(failed, err); left == 0 {
			done(failed)
		}
	}
	for _, e := range saved {
		j.Replace(e, each)
	}
	if len(entries) > 0 {
		j.Append(entries, each)
	}
}

// restoreSaved takes what the journal has of checkpoints of a rank. Of a job that has ended nothing is needed.
func (o *Jobs) restoreSaved(e journal.Entry) {
	id, _ := isSaved(e.Key)
	j := o.table.get(id)
	var ev record.Event
	switch {
	case e.Damage != "":
		o.log.Error().Str("job", string(id)).Msg("the journal lost what it had of a checkpoint: " + e.Damage)
	case j == nil || j.Primary.Rec.State.Final() || codec.Unmarshal(e.Data, &ev) != nil:
	case ev.Kind != record.Checkpointed || !ev.Sound(&j.Primary.Rec):
	default:
		j.Primary.Rec.Apply(ev)
		return
	}
	o.cfg.Journal.Delete(e.Key, nil)
}

// forgetSaved has the journal forget the checkpoints of a job that has ended.
func (o *Jobs) forgetSaved(rec *record.Record) {
	list := rec.Largest()
	for rank := range list {
		if list[rank].Last > 0 {
			o.cfg.Journal.Delete(savedKey(rec.ID, rank), nil)
		}
	}
}
