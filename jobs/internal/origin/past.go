package origin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// titles are those of the jobs that are in memory, by what their IDs begin with.
type titles map[[len(row{}.name)]byte][]string

// searched is what a text was last found in, of jobs that are not in memory: a page asks for the
// same text again and again, or for one that somebody goes on typing, and each time the journal
// would be read of all jobs.
type searched struct {
	lock sync.Mutex
	text string
	has  map[[len(row{}.name)]byte]bool // the title of a job never changes
}

// wanted returns those of the jobs that are, in their order. What is not in memory is read if
// there is no other way to know. It is called outside of the loop.
func (t *table) wanted(rows []row, known titles, q *jobs.Selection) []row {
	s := &t.searched
	other := func(r row) bool { return len(q.States) > 0 && !slices.Contains(q.States, r.state()) }
	if q.Text == "" {
		return slices.DeleteFunc(rows, other)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	text, before := strings.ToLower(q.Text), s.has
	same, narrower := text == s.text, strings.Contains(text, s.text)
	s.text, s.has = text, map[[len(row{}.name)]byte]bool{}
	return slices.DeleteFunc(rows, func(r row) bool {
		id, state := r.id(t.self), r.state()
		has, read := before[r.name]
		read = read && (same || narrower && !has)
		if title, near := known[r.name]; near || q.Wants(id, state) {
			return !q.Wants(id, state, title...)
		} else if !read && other(r) {
			return true
		} else if !read {
			p, err := t.readPast(r)
			if err != nil {
				return true
			}
			has = (&jobs.Selection{Text: text}).Wants(id, state, p.Name)
		}
		s.has[r.name] = has
		return !has || other(r)
	})
}

// titles returns those of the jobs that are in memory.
func (t *table) titles() titles {
	known := titles{}
	for id, p := range t.archive.near {
		known[nameOf(id)] = []string{p.Name}
	}
	for id, j := range t.jobs {
		known[nameOf(id)] = append([]string{j.Primary.Rec.Spec.Name}, j.Primary.Rec.Spec.Command()...)
	}
	return known
}
