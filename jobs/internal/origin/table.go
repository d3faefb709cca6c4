package origin

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/record"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// table is where the jobs of an origin are found: those in memory as a whole, and all others in
// the archive and the journal. It keeps of those that have ended what there is room for. Its
// methods run in the loop, but for those that say that they wait for it, or run outside of it.
type table struct {
	self  vicinity.ID
	store transfer.PinStore
	log   zerolog.Logger
	loop  *loop.Loop
	core  *core.Core
	disk  *disk

	jobs     map[jobs.ID]*job
	keys     keys    // jobs that have not ended by the keys of their submissions
	archive  archive // of jobs that have ended
	searched searched
	last     latest
}

// latest is the job that was submitted last; "" = there is none.
type latest struct {
	id    jobs.ID
	stamp jobs.Stamp
}

// saw takes note of a job that may be it.
func (l *latest) saw(id jobs.ID, stamp jobs.Stamp) {
	if l.id == "" || l.stamp < stamp {
		l.id, l.stamp = id, stamp
	}
}

// findLast looks which job was submitted last of those that are left: of these, if none is in
// memory, the one that ended last.
func (t *table) findLast() {
	t.last = latest{}
	if n := len(t.archive.order); n > 0 {
		t.last.saw(t.archive.order[n-1].id(t.self), 0)
	}
	for id, p := range t.archive.near {
		t.last.saw(id, p.Stamp)
	}
	for id, j := range t.jobs {
		t.last.saw(id, j.Primary.Rec.Stamp)
	}
}

// put takes a job into memory.
func (t *table) put(j *job) {
	id := j.Primary.Rec.ID
	if t.jobs[id] = j; !j.filed { // else the archive has its key
		t.keys.keep(j.Primary.Rec.AsSubmitted(), id)
	}
}

// drop takes a job out of memory.
func (t *table) drop(j *job) {
	id := j.Primary.Rec.ID
	delete(t.jobs, id)
	t.keys.forget(j.Primary.Rec.Spec.Key, id)
}

// get returns a job that is in memory, or nil.
func (t *table) get(id jobs.ID) *job { return t.jobs[id] }

// whole returns the jobs that are in memory.
func (t *table) whole() iter.Seq[*job] { return maps.Values(t.jobs) }

// youngest returns so many jobs that have ended as are there, by their end, which must not be
// changed; negative = all.
func (t *table) youngest(n int) []row {
	if n < 0 {
		return t.archive.order
	}
	return t.archive.order[max(0, len(t.archive.order)-n):]
}

// keeps reports whether a job has ended, and its results are there.
func (t *table) keeps(id jobs.ID) bool {
	r := t.archive.find(id)
	return r != nil && !r.forgotten()
}

// results sums up what is kept of jobs that have ended.
func (t *table) results() jobs.Results { return t.archive.results() }

// sawRead notes that somebody has asked for the results of a job.
func (t *table) sawRead(id jobs.ID) { t.archive.sawRead(time.Now(), id) }

// wake returns when due is to be called; zero = not before something changes.
func (t *table) wake() time.Time { return t.archive.next }

// knows reports whether the job originates here.
func (t *table) knows(id jobs.ID) bool { return t.jobs[id] != nil || t.archive.find(id) != nil }

// matching lists the jobs whose IDs begin with the prefix, which is not empty.
func (t *table) matching(prefix string) (found []jobs.ID) {
	for id := range t.jobs {
		if strings.HasPrefix(string(id), prefix) {
			found = append(found, id)
		}
	}
	begin := prefix[:min(len(prefix), len(row{}.name))]
	for i := range t.archive.order {
		r := &t.archive.order[i]
		if string(r.name[:len(begin)]) != begin {
			continue
		}
		if id := r.id(t.self); t.jobs[id] == nil && strings.HasPrefix(string(id), prefix) {
			found = append(found, id)
		}
	}
	return found
}

// inJob calls f in the loop with a job, which is read again if it is not in memory any more.
// Of a job whose results are forgotten the error is a ForgottenError. It waits for the loop.
func (t *table) inJob(id jobs.ID, f func(*job)) error {
	var old *job
	for {
		var err error
		again := false
		var past row
		ok := t.loop.Call(func() {
			j := t.jobs[id]
			if j != nil {
				f(j)
				return
			}
			switch r := t.archive.find(id); {
			case r == nil:
				err = fmt.Errorf("job %s %w", id.Short(), jobs.ErrNotFound)
			case r.forgotten():
				past = *r
			case old != nil:
				f(old)
			default:
				again = true
			}
		})
		switch {
		case !ok:
			return jobs.ErrStopped
		case past.forgotten():
			p, err := t.readPast(past)
			if err != nil {
				return err
			}
			return &jobs.ForgottenError{St: p.Status(t.self)}
		case !again:
			return err
		}
		if old, err = t.recall(id); err != nil {
			return err
		}
	}
}

// recall makes a job that has ended again of what the journal and the disk have of it.
// It reads files, and is called outside of the loop.
func (t *table) recall(id jobs.ID) (*job, error) {
	rec, err := t.disk.read(id)
	if err == nil && rec.Past != nil {
		err = fmt.Errorf("job %s %w: its results were forgotten", id.Short(), jobs.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	j := &job{Job: t.core.NewJob(id), filed: true}
	j.Primary.Rec, j.Settled = *rec, true
	if err := t.disk.openOutput(j, id); err != nil {
		return nil, fmt.Errorf("read job %s: %w", id.Short(), err)
	}
	j.stdin.Drop()
	return j, j.output.Spool.Close()
}

// recallYoungest takes the jobs into memory that ended last, as far as they are there while a
// node runs, and reports what the disk lost of them. It reads files, before the loop runs.
func (t *table) recallYoungest() (lost []string) {
	order := t.youngest(keepNear)
	for i, r := range order {
		id := r.id(t.self)
		p, err := t.readPast(r)
		if err == nil {
			t.archive.near[id] = p
		}
		if r.forgotten() || i < len(order)-keepWhole {
			continue
		}
		j, err := t.recall(id)
		if err != nil {
			t.log.Error().Err(err).Str("job", string(id)).Msg("a job of before cannot be read")
			continue
		}
		t.put(j)
		t.core.Add(j.Job)
		lost = append(lost, j.lost()...)
	}
	return lost
}

// keyed is the job that was submitted with a key.
type keyed struct {
	id  jobs.ID
	sum [sha256.Size]byte // of its spec
}

// keys are those of jobs that have not ended.
type keys map[string]keyed

// keep remembers the key of a job until it ends.
func (k keys) keep(spec *jobs.Spec, id jobs.ID) {
	if spec.Key != "" {
		k[spec.Key] = keyed{id, spec.Sum()}
	}
}

// forget forgets the key of a job that has ended, or is not known any more.
func (k keys) forget(key string, id jobs.ID) {
	if key != "" && k[key].id == id {
		delete(k, key)
	}
}

// join lets a submission share the outcome of an earlier one that had the same
// key. The ID is "" if there was none; old are jobs that have ended and may have had it, beyond
// those that are known to have others.
func (t *table) join(spec *jobs.Spec, others map[jobs.ID]bool, accepted chan<- error) (id jobs.ID, old []jobs.ID, err error) {
	if spec.Key == "" {
		return "", nil, nil
	}
	k, known := t.keys[spec.Key]
	switch {
	case !known:
		return "", t.archive.keyed(spec.Key, others), nil
	case k.sum != spec.Sum():
		return "", nil, taken(spec.Key, k.id)
	}
	if j := t.jobs[k.id]; j != nil && j.submitters != nil {
		j.submitters = append(j.submitters, accepted)
	} else {
		accepted <- nil
	}
	return k.id, nil, nil
}

// taken is the error of a submission whose key is that of a job which is not the same.
func taken(key string, id jobs.ID) error {
	return fmt.Errorf("%w: --key %s was used for job %s, which is not the same: each job needs a key of its own", jobs.ErrInvalid, key, id.Short())
}

// joinOld is join for jobs that have ended; those with another key it adds to others. It
// reads files, and is called outside of the loop.
func (t *table) joinOld(spec *jobs.Spec, old []jobs.ID, others map[jobs.ID]bool) (jobs.ID, error) {
	for _, id := range old {
		rec, err := t.disk.read(id)
		if err != nil && !errors.Is(err, jobs.ErrNotFound) { // else it was removed meanwhile
			return "", err
		}
		switch key, sum := keyOf(rec); {
		case key != spec.Key:
			others[id] = true
		case sum != spec.Sum():
			return "", taken(key, id)
		default:
			return id, nil
		}
	}
	return "", nil
}

// keyOf returns the key that a job was submitted with, and the sum of its spec; "" = none.
func keyOf(rec *record.Record) (key string, sum [sha256.Size]byte) {
	switch {
	case rec == nil:
	case rec.Past == nil:
		key, sum = rec.Spec.Key, rec.AsSubmitted().Sum()
	case len(rec.Past.Sum) == len(sum):
		key, sum = rec.Past.Key, [sha256.Size]byte(rec.Past.Sum)
	}
	return key, sum
}

// remove forgets a job that has ended, with its results, and calls done when that outlives the
// node, at most twice. Who has not ended is refused.
func (t *table) remove(id jobs.ID, done func(error)) error {
	r, j := t.archive.find(id), t.jobs[id]
	switch {
	case r != nil:
		t.erase(t.forget([]row{*r}, true), done)
		return nil
	case j != nil:
		st, _ := j.view(t.disk.journal)
		return fmt.Errorf("%w: job %s is %s: 'zorilla cancel %s' ends it", jobs.ErrRefused, id.Short(), st.State, id.Short())
	}
	return fmt.Errorf("job %s %w", id.Short(), jobs.ErrNotFound)
}

// erase does what is left to do on disk about jobs that are forgotten.
func (t *table) erase(list []erasure, done func(error)) {
	t.loop.Go(func() { t.disk.eraseAll(list, done) })
	t.loop.Notify()
}

// due forgets what is due to be forgotten, and takes jobs out of memory that have ended.
func (t *table) due() {
	t.shed()
	if at := t.archive.next; !at.IsZero() && !time.Now().Before(at) {
		t.sweep()
	}
}

// damaged returns what was found to be lost of a job's output as an error. What is
// found for the first time is told to the job's watchers, and to the owner. It waits
// for the loop.
func (t *table) damaged(j *job, worker int) error {
	var list []string
	ok := t.loop.Call(func() {
		if all := j.damage(-1); len(all) > j.toldLost {
			j.toldLost = len(all)
			j.Primary.Version++
			t.disk.logLost(j.lost())
			t.loop.Notify()
		}
		list = j.damage(worker)
	})
	switch {
	case !ok:
		return jobs.ErrStopped
	case len(list) == 0:
		return nil
	}
	return fmt.Errorf("job %s is %w: %s", j.Primary.Rec.ID.Short(), jobs.ErrDamaged, strings.Join(list, "; "))
}
