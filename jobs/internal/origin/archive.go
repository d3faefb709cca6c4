package origin

import (
	"cmp"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/agenda"
	"zorilla/jobs/internal/record"
	"zorilla/transfer"
)

// sweepPause is between two looks at what has become too old.
const sweepPause = time.Minute

// archive is the core of what an origin keeps of jobs that have ended. It has no
// lock, clock or I/O.
type archive struct {
	keepFor time.Duration
	limit   int64 // of bytes; 0 = none

	all   map[jobs.ID]*record.Past
	order []*record.Past // by their end
	trees map[transfer.Hash]*record.KeptTree
	bytes int64           // of results; a file that several jobs made counts for each
	extra int64           // of trees that are here
	gone  int             // records whose results are forgotten
	full  bool            // more than limit, and all of it must be kept
	loose []transfer.Hash // trees that nobody keeps any more, for the shell to take
	next  time.Time       // when sweep may find something; zero = not before something changes
}

func newArchive(keepFor time.Duration, limit int64) archive {
	if keepFor <= 0 {
		keepFor = record.KeepResults
	}
	return archive{keepFor: keepFor, limit: limit, all: map[jobs.ID]*record.Past{}, trees: map[transfer.Hash]*record.KeptTree{}}
}

// add takes a job in that has ended, or has changed since. Its inputs, if there
// are any, are kept from now on.
func (a *archive) add(now time.Time, p *record.Past, inputs transfer.Hash, inputSize int64) {
	if old := a.all[p.ID]; old != nil {
		p.Read = old.Read
		a.remove(old)
	}
	a.all[p.ID] = p
	i, _ := slices.BinarySearchFunc(a.order, p, byEnd)
	a.order = slices.Insert(a.order, i, p)
	if p.Forgotten != 0 {
		a.gone++
	} else {
		a.bytes += p.Size
		a.keepTree(p, inputs, inputSize)
	}
	a.changed(now)
}

func byEnd(a, b *record.Past) int {
	return cmp.Or(cmp.Compare(a.Ended, b.Ended), cmp.Compare(a.ID, b.ID))
}

// keepTree counts the inputs of a job once, however many jobs have them.
func (a *archive) keepTree(p *record.Past, inputs transfer.Hash, size int64) {
	if inputs.IsZero() {
		return
	}
	if p.Tree = a.trees[inputs]; p.Tree == nil {
		p.Tree = &record.KeptTree{Hash: inputs, Size: size}
		a.trees[inputs] = p.Tree
	}
	p.Tree.Jobs++
	if !p.Tree.Here {
		p.Tree.Here = true
		a.extra += size
	}
}

// dropTree lets go of inputs; they become cache.
func (a *archive) dropTree(t *record.KeptTree) {
	if t.Here {
		t.Here = false
		a.extra -= t.Size
	}
}

// letGo takes the room of results back.
func (a *archive) letGo(p *record.Past) {
	if t := p.Tree; t != nil {
		if t.Jobs--; t.Jobs == 0 {
			a.dropTree(t)
			a.loose = append(a.loose, t.Hash)
			delete(a.trees, t.Hash)
		}
		p.Tree = nil
	}
	a.bytes -= p.Size
	p.Size = 0
	a.full = a.full && a.bytes > a.limit
}

// forget notes that the results of a job are not kept any more.
func (a *archive) forget(now time.Time, p *record.Past) {
	if p.Forgotten == 0 {
		a.letGo(p)
		p.Forgotten = now.UnixNano()
		a.gone++
	}
}

// remove drops the record, too.
func (a *archive) remove(p *record.Past) {
	if p.Forgotten == 0 {
		a.letGo(p)
	} else {
		a.gone--
	}
	delete(a.all, p.ID)
	if i, ok := slices.BinarySearchFunc(a.order, p, byEnd); ok {
		a.order = slices.Delete(a.order, i, i+1)
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
	if p := a.all[id]; p != nil && p.Forgotten == 0 {
		p.Read = now.UnixNano()
		a.next = agenda.Earlier(a.next, now.Add(record.KeepRead))
	}
}

// sweep returns whose results are to be forgotten, and whose record: results
// that are too old, then the oldest that may go until the rest has room. Inputs
// are let go first.
func (a *archive) sweep(now time.Time) (forget, drop []*record.Past) {
	a.next = time.Time{}
	left := a.bytes
	goes := func(p *record.Past) {
		forget = append(forget, p)
		left -= p.Size
	}
	var kept []*record.Past
	for _, p := range a.order {
		end := record.TimeOfNanos(p.Ended)
		switch at := agenda.Later(end.Add(a.keepFor), p.Floor()); {
		case p.Forgotten != 0:
			if at = end.Add(record.KeepRecords * a.keepFor); now.Before(at) {
				a.next = agenda.Earlier(a.next, at)
			} else {
				drop = append(drop, p)
			}
		case now.Before(at):
			a.next = agenda.Earlier(a.next, at)
			if p.Size > 0 {
				kept = append(kept, p)
			}
		default:
			goes(p)
		}
	}
	var free time.Time
	for i := 0; a.limit > 0 && left > a.limit && i < len(kept); i++ {
		if at := kept[i].Floor(); now.Before(at) {
			free = agenda.Earlier(free, at)
		} else {
			goes(kept[i])
		}
	}
	for i := 0; a.limit > 0 && a.extra > 0 && left+a.extra > a.limit && i < len(a.order); i++ {
		if t := a.order[i].Tree; t != nil && t.Here {
			a.dropTree(t)
			a.loose = append(a.loose, t.Hash)
		}
	}
	if a.full = a.limit > 0 && left > a.limit; a.full {
		a.next = agenda.Earlier(a.next, free)
	}
	if !a.next.IsZero() {
		a.next = agenda.Later(a.next, now.Add(sweepPause))
	}
	return forget, drop
}

// results sums up.
func (a *archive) results() jobs.Results {
	return jobs.Results{Jobs: len(a.order), Forgotten: a.gone, Bytes: a.bytes, Inputs: a.extra, Limit: a.limit, KeepFor: codec.Duration(a.keepFor), Full: a.full}
}
