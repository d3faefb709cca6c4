package origin

import (
	"errors"
	"fmt"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
)

// read returns what the journal says of a job that has ended. It reads files, and is
// called outside of the loop.
func (d *disk) read(id jobs.ID) (*record.Record, error) {
	entries, err := d.journal.Read(string(id))
	if err != nil {
		return nil, fmt.Errorf("read job %s: %w", id.Short(), err)
	}
	rec := &record.Record{ID: id, Origin: id.Origin()}
	for _, e := range entries {
		rec.Replay(e)
	}
	if rec.Broken != "" {
		rec.GiveUp(time.Now())
	}
	if rec.Past == nil && !rec.State.Final() {
		return nil, fmt.Errorf("job %s %w: the journal has lost it", id.Short(), jobs.ErrNotFound)
	}
	return rec, nil
}

// pastOf sums a job up that has ended, whether its results are kept or forgotten.
func pastOf(rec *record.Record) *record.Past {
	p := rec.Past
	if p == nil {
		return record.PastOf(rec)
	}
	p.ID = rec.ID
	p.Intern()
	return p
}

// readPast reads the record of a job. It is called outside of the loop.
func (t *table) readPast(r row) (*record.Past, error) {
	rec, err := t.disk.read(r.id(t.self))
	if err != nil {
		return nil, err
	}
	p := pastOf(rec)
	p.Ended, p.Size = r.ended, r.size
	if r.forgotten() && p.Forgotten == 0 { // which is being written down
		p.Forgotten = time.Now().UnixNano()
	}
	return p, nil
}

// listed is a job that has ended, for a list: as it is in memory, or where to read of it.
type listed struct {
	row row
	st  *jobs.Status
}

// look returns what is in memory of a job. It runs in the loop.
func (t *table) look(r row) listed {
	id := r.id(t.self)
	if j := t.jobs[id]; j != nil {
		st, _ := j.view(t.disk.journal)
		return listed{r, &st}
	}
	if p := t.archive.near[id]; p != nil {
		st := p.Status(t.self)
		return listed{r, &st}
	}
	return listed{row: r}
}

// open calls f with each job that the archive does not have yet. It runs in the loop.
func (t *table) open(f func(*jobs.Status)) {
	for _, j := range t.jobs {
		if !j.filed {
			st, _ := j.view(t.disk.journal)
			f(&st)
		}
	}
}

// eachStatus calls f with each of the jobs. One that is removed meanwhile is left out. It is called
// outside of the loop.
func (t *table) eachStatus(list []listed, f func(*jobs.Status)) {
	for _, l := range list {
		if l.st != nil {
			f(l.st)
			continue
		}
		p, err := t.readPast(l.row)
		if err == nil {
			st := p.Status(t.self)
			f(&st)
		} else if !errors.Is(err, jobs.ErrNotFound) && t.loop.Stopped.Err() == nil {
			t.log.Error().Err(err).Msg("a job of before cannot be read")
		}
	}
}
