package origin

import (
	"bytes"
	"cmp"
	"hash/crc32"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/timers"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// sweepPause is between two looks at what has become too old.
const sweepPause = time.Minute

// keepNear is how many records of jobs that have ended are in memory: as many as a list has.
const keepNear = jobs.ListEnded

// row is what an origin has in memory of each job that has ended. All else that is known of
// the job is in the journal, and is read when somebody asks: there may be very many of them.
type row struct {
	ended int64   // Unix nanoseconds
	size  int64   // of what the workers wrote, and of the files that they made
	key   uint32  // hash of the key of its submission; 0 = it has none
	tree  uint32  // number of its inputs; 0 = none
	floor uint16  // minutes after its end for which the results are kept, whatever room they need
	name  [5]byte // the random characters of its ID
	what  uint8   // place of its state in ends, from 1, and gone
}

// gone marks a row whose results are forgotten.
const gone = 0x80

// ends are the states in which jobs have ended.
var ends = [...]jobs.State{jobs.Completed, jobs.Failed, jobs.Cancelled, jobs.Timeout, jobs.NodeFail}

func (r *row) forgotten() bool { return r.what&gone != 0 }

func (r *row) state() jobs.State {
	if i := int(r.what&^gone) - 1; i >= 0 && i < len(ends) {
		return ends[i]
	}
	return jobs.Failed
}

func (r *row) end() time.Time { return record.TimeOfNanos(r.ended) }

// least is until when the results are kept, whatever room they need.
func (r *row) least() time.Time { return r.end().Add(time.Duration(r.floor) * time.Minute) }

func (r *row) id(origin vicinity.ID) jobs.ID { return jobs.ID(r.name[:]).At(origin) }

// nameOf is what the ID of a job begins with.
func nameOf(id jobs.ID) [len(row{}.name)]byte { return [len(row{}.name)]byte([]byte(id)) }

func rowOf(p *record.Past) row {
	r := row{ended: p.Ended, size: p.Size, key: hashOf(p.Key), floor: uint16(record.KeepUnread / time.Minute), what: uint8(1 + slices.Index(ends[:], p.State))}
	if copy(r.name[:], p.ID); p.Forgotten != 0 {
		r.what |= gone
	}
	return r
}

// hashOf tells most keys of submissions apart; 0 = there is none.
func hashOf(key string) uint32 {
	if key == "" {
		return 0
	}
	return max(1, crc32.ChecksumIEEE([]byte(key)))
}

// keptTree is the inputs of jobs that have ended. It stays in the store, so that
// they can be submitted again at once, as long as results leave room for it.
type keptTree struct {
	hash   transfer.Hash
	number uint32
	size   int64
	jobs   int  // that had it, and whose results are kept
	here   bool // it is pinned, and counted
}

// archive is the core of what an origin keeps of jobs that have ended. It has no
// lock, clock or I/O.
type archive struct {
	origin  vicinity.ID
	keepFor time.Duration
	limit   int64 // of bytes; 0 = none

	order    []row                    // by their end; while loading as they come
	near     map[jobs.ID]*record.Past // of the youngest; what one says never changes, but for Size
	trees    map[transfer.Hash]*keptTree
	number   map[uint32]*keptTree // the same by their numbers
	lastTree uint32               // the last number
	bytes    int64                // of results; a file that several jobs made counts for each
	extra    int64                // of trees that are here
	gone     int                  // records whose results are forgotten
	full     bool                 // more than limit, and all of it must be kept
	loose    []transfer.Hash      // trees that nobody keeps any more, for the shell to take
	next     time.Time            // when sweep may find something; zero = not before something changes

	loading bool // rows come in any order, each job once, until loaded
}

func newArchive(origin vicinity.ID, keepFor time.Duration, limit int64) archive {
	if keepFor <= 0 {
		keepFor = record.KeepResults
	}
	return archive{origin: origin, keepFor: keepFor, limit: limit, near: map[jobs.ID]*record.Past{},
		trees: map[transfer.Hash]*keptTree{}, number: map[uint32]*keptTree{}}
}

// find returns the row of a job, or nil. The youngest are found first.
func (a *archive) find(id jobs.ID) *row {
	if len(id) < len(row{}.name) || id.Origin() != a.origin {
		return nil
	}
	name := nameOf(id)
	for i := len(a.order) - 1; i >= 0; i-- {
		if a.order[i].name == name {
			return &a.order[i]
		}
	}
	return nil
}

// place returns where a row is, or would be.
func (a *archive) place(r row) (int, bool) { return slices.BinarySearchFunc(a.order, r, byEnd) }

// add takes a job in that has ended, once. Its inputs, if there are any, are kept from now on.
func (a *archive) add(now time.Time, p *record.Past, inputs transfer.Hash, inputSize int64) {
	r := rowOf(p)
	if r.forgotten() {
		a.gone++
	} else {
		a.bytes += r.size
		a.keepTree(&r, inputs, inputSize)
	}
	if a.loading {
		a.order = append(a.order, r)
		return
	}
	i, _ := a.place(r)
	a.order = slices.Insert(a.order, i, r)
	first := len(a.order) - keepNear // of those that are near
	if i >= first {
		a.near[p.ID] = p
	}
	if first > 0 {
		delete(a.near, a.order[first-1].id(a.origin))
	}
	a.changed(now)
}

// loaded puts all that came in order.
func (a *archive) loaded(now time.Time) {
	a.loading = false
	slices.SortFunc(a.order, byEnd)
	a.order = slices.Clip(a.order)
	a.changed(now)
}

func byEnd(a, b row) int {
	return cmp.Or(cmp.Compare(a.ended, b.ended), bytes.Compare(a.name[:], b.name[:]))
}

// keepTree counts the inputs of a job once, however many jobs have them.
func (a *archive) keepTree(r *row, inputs transfer.Hash, size int64) {
	if inputs.IsZero() {
		return
	}
	t := a.trees[inputs]
	if t == nil {
		a.lastTree++
		t = &keptTree{hash: inputs, number: a.lastTree, size: size}
		a.trees[inputs], a.number[t.number] = t, t
	}
	r.tree = t.number
	t.jobs++
	if !t.here {
		t.here = true
		a.extra += size
	}
}

// dropTree lets go of inputs; they become cache.
func (a *archive) dropTree(t *keptTree) {
	if t.here {
		t.here = false
		a.extra -= t.size
	}
}

// letGo takes the room of results back.
func (a *archive) letGo(r *row) {
	if t := a.number[r.tree]; t != nil {
		if t.jobs--; t.jobs == 0 {
			a.dropTree(t)
			a.loose = append(a.loose, t.hash)
			delete(a.trees, t.hash)
			delete(a.number, t.number)
		}
		r.tree = 0
	}
	a.bytes -= r.size
	r.size = 0
	a.full = a.full && a.bytes > a.limit
}

// forget notes that the results of a job are not kept any more.
func (a *archive) forget(now time.Time, r row) {
	i, ok := a.place(r)
	if !ok || a.order[i].forgotten() {
		return
	}
	a.letGo(&a.order[i])
	a.order[i].what |= gone
	a.gone++
	if p := a.near[r.id(a.origin)]; p != nil {
		changed := *p
		changed.Forgotten, changed.Size = now.UnixNano(), 0
		a.near[p.ID] = &changed
	}
}

// remove drops records, too.
func (a *archive) remove(list []row) {
	names := map[[len(row{}.name)]byte]bool{}
	for _, r := range list {
		names[r.name] = true
	}
	a.order = slices.DeleteFunc(a.order, func(r row) bool {
		if !names[r.name] {
			return false
		}
		if r.forgotten() {
			a.gone--
		} else {
			a.letGo(&r)
		}
		delete(a.near, r.id(a.origin))
		return true
	})
	if len(a.order) < cap(a.order)/2 {
		a.order = slices.Clip(slices.Clone(a.order))
	}
}

// changed sees to it that sweep is called when it must be.
func (a *archive) changed(now time.Time) {
	if over := a.limit > 0 && a.bytes > a.limit; over && !a.full || a.limit > 0 && a.extra > 0 && a.bytes+a.extra > a.limit {
		a.next = now
	} else if a.next.IsZero() {
		a.next = now.Add(sweepPause)
	}
}

// sawRead notes that somebody has asked for the results of a job.
func (a *archive) sawRead(now time.Time, id jobs.ID) {
	if r := a.find(id); r != nil && !r.forgotten() {
		since := (now.Add(record.KeepRead).Sub(r.end()) + time.Minute - 1) / time.Minute
		r.floor = uint16(max(0, min(since, record.KeepUnread/time.Minute)))
		a.next = timers.Earlier(a.next, now.Add(record.KeepRead))
	}
}

// sweep returns whose results are to be forgotten, and whose record: results
// that are too old, then the oldest that may go until the rest has room. Inputs
// are let go first.
func (a *archive) sweep(now time.Time) (forget, drop []row) {
	a.next = time.Time{}
	left := a.bytes
	goes := func(r *row) {
		forget = append(forget, *r)
		left -= r.size
	}
	over := a.limit > 0 && a.bytes > a.limit
	var kept []int
	for i := range a.order {
		r := &a.order[i]
		switch at := timers.Later(r.end().Add(a.keepFor), r.least()); {
		case r.forgotten():
			if at = r.end().Add(record.KeepRecords * a.keepFor); now.Before(at) {
				a.next = timers.Earlier(a.next, at)
			} else {
				drop = append(drop, *r)
			}
		case now.Before(at):
			a.next = timers.Earlier(a.next, at)
			if over && r.size > 0 {
				kept = append(kept, i)
			}
		default:
			goes(r)
		}
	}
	var free time.Time
	for i := 0; over && left > a.limit && i < len(kept); i++ {
		r := &a.order[kept[i]]
		if at := r.least(); now.Before(at) {
			free = timers.Earlier(free, at)
		} else {
			goes(r)
		}
	}
	for i := 0; a.limit > 0 && a.extra > 0 && left+a.extra > a.limit && i < len(a.order); i++ {
		if t := a.number[a.order[i].tree]; t != nil && t.here {
			a.dropTree(t)
			a.loose = append(a.loose, t.hash)
		}
	}
	if a.full = a.limit > 0 && left > a.limit; a.full {
		a.next = timers.Earlier(a.next, free)
	}
	if !a.next.IsZero() {
		a.next = timers.Later(a.next, now.Add(sweepPause))
	}
	return forget, drop
}

// results sums up.
func (a *archive) results() jobs.Results {
	return jobs.Results{Jobs: len(a.order), Forgotten: a.gone, Bytes: a.bytes, Inputs: a.extra,
		Limit: a.limit, KeepFor: codec.Duration(a.keepFor), Full: a.full}
}

// keyed returns the jobs that may have had a key, but for those that are known to have others.
func (a *archive) keyed(key string, others map[jobs.ID]bool) (list []jobs.ID) {
	hash := hashOf(key)
	for i := range a.order {
		if a.order[i].key == hash {
			if id := a.order[i].id(a.origin); !others[id] {
				list = append(list, id)
			}
		}
	}
	return list
}
