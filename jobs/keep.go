package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"zorilla/internal/codec"
	"zorilla/transfer"
	"zorilla/vicinity"
)

const (
	// keepResults is how long results are kept if nothing else is said.
	keepResults = 7 * 24 * time.Hour
	// keepRecords is how many times longer the record of a job lives.
	keepRecords = 10
	// keepUnread is how long results are kept that nobody has asked for,
	// whatever room they need, and keepRead how long those that somebody has:
	// who waited for a job may be about to fetch its files.
	keepUnread = 24 * time.Hour
	keepRead   = time.Hour
	// sweepPause is between two looks at what has become too old.
	sweepPause = time.Minute

	maxPastName   = 48
	maxPastReason = 120
)

// past is the record of a job that has ended: all that its origin keeps once
// the results are forgotten, and all that it has in memory before, for the job
// is read from the journal if somebody wants to know more.
type past struct {
	ID        ID     `json:"-"`
	Stamp     Stamp  `json:"stamp"`
	Name      string `json:"name"` // or the beginning of the command
	State     State  `json:"state"`
	Code      int    `json:"code"`
	Reason    string `json:"reason,omitempty"`
	Min       int    `json:"min"`
	Max       int    `json:"max"`
	Tasks     int    `json:"tasks,omitempty"` // of an array: how many, and how many were done
	Done      int    `json:"done,omitempty"`
	Submitted int64  `json:"submitted"` // Unix nanoseconds; 0 = never
	Started   int64  `json:"started,omitempty"`
	Ended     int64  `json:"ended"`
	Forgotten int64  `json:"forgotten,omitempty"` // when the results were; 0 = they are kept
	Key       string `json:"key,omitempty"`       // of its submission
	Sum       []byte `json:"sum,omitempty"`       // of its spec, if it has a key; on disk only

	size int64 // of what the workers wrote, and of the files that they made
	read int64 // when somebody last asked for the results, in this life of the node
	tree *keptTree
}

// keptTree is the inputs of jobs that have ended. It stays in the store, so that
// they can be submitted again at once, as long as results leave room for it.
type keptTree struct {
	hash transfer.Hash
	size int64
	jobs int  // that had it, and whose results are kept
	here bool // it is pinned, and counted
}

// pastOf sums an ended job up.
func pastOf(r *record) *past {
	p := &past{
		ID: r.id, Stamp: r.stamp, Name: r.spec.title(), State: r.state, Code: r.code, Reason: cutText(r.reason, maxPastReason),
		Key: r.spec.Key, Min: r.spec.Min, Max: r.spec.Max, Submitted: nanos(r.submitted), Started: nanos(r.started), Ended: nanos(r.ended),
	}
	if a := r.tasks.status(); a != nil {
		p.Tasks, p.Done = a.Tasks, a.Done
	}
	return p
}

// title is the name of a job, or the beginning of its command.
func (s *Spec) title() string {
	name := s.Name
	if name == "" && len(s.Args) > 0 {
		args := slices.Clone(s.Args[:min(len(s.Args), maxPastName)])
		args[0] = args[0][strings.LastIndexByte(args[0], '/')+1:]
		name = strings.Join(args, " ")
	}
	return cutText(name, maxPastName)
}

// cutText returns the beginning of a text, in memory of its own.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return strings.Clone(s)
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeOfNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// sound reports whether a record that came from disk can be used.
func (p *past) sound() bool {
	return p != nil && p.State.Final() && len(p.Name) <= 2*maxPastName && len(p.Reason) <= 2*maxPastReason && len(p.Key) <= maxKey && p.Min >= 0 && p.Max >= 0 && p.Ended != 0 && p.Forgotten != 0
}

// intern makes records that were read from disk share their states.
func (p *past) intern() {
	for _, s := range []State{Completed, Failed, Cancelled, Timeout, NodeFail} {
		if p.State == s {
			p.State = s
		}
	}
}

// status describes the job as far as its record does.
func (p *past) status(origin vicinity.ID) Status {
	st := Status{
		ID: p.ID, Origin: origin, Spec: Spec{Name: p.Name, Min: p.Min, Max: p.Max}, State: p.State, Reason: p.Reason, ExitCode: p.Code,
		Submitted: timeOfNanos(p.Submitted), Started: timeOfNanos(p.Started), Ended: timeOfNanos(p.Ended), Forgotten: timeOfNanos(p.Forgotten),
		Size: p.size, Brief: true, Workers: []WorkerStatus{}, Rounds: []Round{},
	}
	if p.Tasks > 0 {
		st.Array = &ArrayStatus{Tasks: p.Tasks, Done: p.Done}
	}
	return st
}

// floor returns until when the results are kept, whatever room they need.
func (p *past) floor() time.Time {
	at := timeOfNanos(p.Ended).Add(keepUnread)
	if p.read != 0 {
		at = earlier(at, timeOfNanos(p.read).Add(keepRead))
	}
	return at
}

// forgottenError is what is said of results that are not here any more.
type forgottenError struct{ st Status }

// Error tells how the job ended, and when its results went.
func (e *forgottenError) Error() string {
	return fmt.Sprintf("job %s ended with %d; its output was %v on %s", e.st.ID.Short(), e.st.ExitCode, ErrForgotten, e.st.Forgotten.Local().Format("2006-01-02 15:04 MST"))
}

func (e *forgottenError) Unwrap() error { return ErrForgotten }

// Gone returns an error that wraps ErrForgotten, and says so in one line, if the
// job's results are not kept any more.
func (st *Status) Gone() error {
	if st.Forgotten.IsZero() {
		return nil
	}
	return &forgottenError{*st}
}

// Results tells how much an origin keeps of jobs that have ended.
type Results struct {
	Jobs      int            `json:"jobs"`                 // that have ended and whose record is kept
	Forgotten int            `json:"forgotten"`            // of these, those without results
	Bytes     int64          `json:"bytes"`                // of results
	Inputs    int64          `json:"inputs,omitempty"`     // bytes of inputs, which make room for results
	Limit     int64          `json:"limit,omitempty"`      // of Bytes; 0 = none
	KeepFor   codec.Duration `json:"keep_for"`             // how long results are kept
	Full      bool           `json:"over_limit,omitempty"` // nobody has read so much of it, and none of it is a day old
}

// archive is the core of what an origin keeps of jobs that have ended. It has no
// lock, clock or I/O.
type archive struct {
	keepFor time.Duration
	limit   int64 // of bytes; 0 = none

	all   map[ID]*past
	order []*past // by their end
	trees map[transfer.Hash]*keptTree
	bytes int64           // of results; a file that several jobs made counts for each
	extra int64           // of trees that are here
	gone  int             // records whose results are forgotten
	full  bool            // more than limit, and all of it must be kept
	loose []transfer.Hash // trees that nobody keeps any more, for the shell to take
	next  time.Time       // when sweep may find something; zero = not before something changes
}

func newArchive(keepFor time.Duration, limit int64) archive {
	if keepFor <= 0 {
		keepFor = keepResults
	}
	return archive{keepFor: keepFor, limit: limit, all: map[ID]*past{}, trees: map[transfer.Hash]*keptTree{}}
}

// add takes a job in that has ended, or has changed since. Its inputs, if there
// are any, are kept from now on.
func (a *archive) add(now time.Time, p *past, inputs transfer.Hash, inputSize int64) {
	if old := a.all[p.ID]; old != nil {
		p.read = old.read
		a.remove(old)
	}
	a.all[p.ID] = p
	i, _ := slices.BinarySearchFunc(a.order, p, byEnd)
	a.order = slices.Insert(a.order, i, p)
	if p.Forgotten != 0 {
		a.gone++
	} else {
		a.bytes += p.size
		a.keepTree(p, inputs, inputSize)
	}
	a.changed(now)
}

func byEnd(a, b *past) int { return cmp.Or(cmp.Compare(a.Ended, b.Ended), cmp.Compare(a.ID, b.ID)) }

// keepTree counts the inputs of a job once, however many jobs have them.
func (a *archive) keepTree(p *past, inputs transfer.Hash, size int64) {
	if inputs.IsZero() {
		return
	}
	if p.tree = a.trees[inputs]; p.tree == nil {
		p.tree = &keptTree{hash: inputs, size: size}
		a.trees[inputs] = p.tree
	}
	p.tree.jobs++
	if !p.tree.here {
		p.tree.here = true
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
func (a *archive) letGo(p *past) {
	if t := p.tree; t != nil {
		if t.jobs--; t.jobs == 0 {
			a.dropTree(t)
			a.loose = append(a.loose, t.hash)
			delete(a.trees, t.hash)
		}
		p.tree = nil
	}
	a.bytes -= p.size
	p.size = 0
	a.full = a.full && a.bytes > a.limit
}

// forget notes that the results of a job are not kept any more.
func (a *archive) forget(now time.Time, p *past) {
	if p.Forgotten == 0 {
		a.letGo(p)
		p.Forgotten = now.UnixNano()
		a.gone++
	}
}

// remove drops the record, too.
func (a *archive) remove(p *past) {
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
func (a *archive) sawRead(now time.Time, id ID) {
	if p := a.all[id]; p != nil && p.Forgotten == 0 {
		p.read = now.UnixNano()
		a.next = earlier(a.next, now.Add(keepRead))
	}
}

// sweep returns whose results are to be forgotten, and whose record: results
// that are too old, then the oldest that may go until the rest has room. Inputs
// are let go first.
func (a *archive) sweep(now time.Time) (forget, drop []*past) {
	a.next = time.Time{}
	left := a.bytes
	goes := func(p *past) {
		forget = append(forget, p)
		left -= p.size
	}
	var kept []*past
	for _, p := range a.order {
		end := timeOfNanos(p.Ended)
		switch at := later(end.Add(a.keepFor), p.floor()); {
		case p.Forgotten != 0:
			if at = end.Add(keepRecords * a.keepFor); now.Before(at) {
				a.next = earlier(a.next, at)
			} else {
				drop = append(drop, p)
			}
		case now.Before(at):
			a.next = earlier(a.next, at)
			if p.size > 0 {
				kept = append(kept, p)
			}
		default:
			goes(p)
		}
	}
	var free time.Time
	for i := 0; a.limit > 0 && left > a.limit && i < len(kept); i++ {
		if at := kept[i].floor(); now.Before(at) {
			free = earlier(free, at)
		} else {
			goes(kept[i])
		}
	}
	for i := 0; a.limit > 0 && a.extra > 0 && left+a.extra > a.limit && i < len(a.order); i++ {
		if t := a.order[i].tree; t != nil && t.here {
			a.dropTree(t)
			a.loose = append(a.loose, t.hash)
		}
	}
	if a.full = a.limit > 0 && left > a.limit; a.full {
		a.next = earlier(a.next, free)
	}
	if !a.next.IsZero() {
		a.next = later(a.next, now.Add(sweepPause))
	}
	return forget, drop
}

// results sums up.
func (a *archive) results() Results {
	return Results{Jobs: len(a.order), Forgotten: a.gone, Bytes: a.bytes, Inputs: a.extra, Limit: a.limit, KeepFor: codec.Duration(a.keepFor), Full: a.full}
}
