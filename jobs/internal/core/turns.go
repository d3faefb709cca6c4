package core

import (
	"maps"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Jobs that are submitted here and want the same take turns to search; see search.Pass.

// turns are the lines of jobs that do so, and the calls of which nodes may still hold something.
type turns struct {
	core  *Core
	lines map[string]*line // by what they want
	calls map[jobs.ID]*call
}

// line is jobs that want the same.
type line struct {
	wish string
	lead *Job   // who searches
	call *call  // for lead and behind; nil = for lead alone
	next []*Job // who go on with its search, in order
	wait []*Job // until all of these have their workers
	busy bool   // it is being advanced

	until time.Time // how long these wait, unless it goes on before
}

// call is an advertisement for several jobs.
type call struct {
	id       jobs.ID
	searcher *Job   // nil = it is over
	members  []*Job // some grant of whom may not be on its way; in order
	answered map[vicinity.ID]bool
	granted  map[vicinity.ID]bool // some of what they held
	held     map[vicinity.ID]bool // what was left in the end
}

// maxBehind bounds for how many workers others are asked beyond those of one job.
const maxBehind = 1024

func newTurns(c *Core) turns { return turns{c, map[string]*line{}, map[jobs.ID]*call{}} }

// answered notes that a node has answered a call, and returns whose answer it is; nil = nobody
// wants it. Without a call it is that of the job itself.
func (t *turns) answered(id jobs.ID, from vicinity.ID, itself *Job) (j *Job, called bool) {
	k := t.calls[id]
	if k == nil {
		return itself, false
	}
	k.answered[from] = true
	return k.searcher, true
}

// searcher is who searches under a name.
func (t *turns) searcher(id jobs.ID, itself *Job) *Job {
	if k := t.calls[id]; k != nil && k.searcher != nil {
		return k.searcher
	}
	return itself
}

// end ends a call: whom it was for has its workers, or has ended.
func (k *call) end() {
	for _, o := range k.searcher.Primary.Search.EndTurn() {
		k.held[o.Node] = true
	}
	k.searcher = nil
}

// granted notes that some of what a node holds for a call is granted.
func (t *turns) granted(id jobs.ID, to vicinity.ID) {
	if k := t.calls[id]; k != nil {
		k.granted[to] = true
	}
}

// forget has jobs no longer come into a line.
func (t *turns) forget(l *line) {
	if t.lines[l.wish] == l {
		delete(t.lines, l.wish)
	}
}

// wish is what a job wants of nodes; "" = it does not take turns.
func wish(spec *jobs.Spec) string {
	if !search.TakesTurns(spec) || len(spec.After) > 0 {
		return ""
	}
	how := spec.Search
	how.Begin = time.Time{} // that has come, for all of them
	return string(codec.MustMarshal(struct {
		Needs    jobs.Needs
		Where    string
		Mounts   []string
		Net      string
		Priority int
		Search   jobs.Search
	}{spec.Needs(), spec.Condition(), spec.Mounts, spec.Net, spec.Priority, how}))
}

// lineUp has a job that is about to search wait if another one that wants the same is searching.
func (t *turns) lineUp(now time.Time, j *Job, spec *jobs.Spec) {
	w := wish(spec)
	switch l := t.lines[w]; {
	case w == "" || j.line != nil || now.Before(spec.Search.Begin):
	case l == nil:
		j.line = &line{wish: w, lead: j}
		t.lines[w] = j.line
	default:
		j.line = l
		l.wait = append(l.wait, j)
		j.Primary.Search.Await(now.Add(search.MaxTurn))
	}
}

// take goes on with the line of a job, as far as that goes now.
func (t *turns) take(now time.Time, j *Job) {
	l := j.line
	if l == nil || l.busy {
		return
	}
	if j != l.lead {
		l.leave(j)
	}
	if l.busy = true; j == l.lead || l.lead.gone {
		for t.advance(now, l) {
		}
	}
	l.busy = false
}

// leave takes a job out that does not wait any more, for it has waited enough, or has ended.
func (l *line) leave(j *Job) {
	if j.Primary.Search.Waits() && !j.gone && !j.Primary.Rec.State.Final() {
		return
	}
	j.line = nil
	same := func(other *Job) bool { return other == j }
	l.next, l.wait = slices.DeleteFunc(l.next, same), slices.DeleteFunc(l.wait, same)
	l.lead.Primary.Behind = workers(l.next)
}

// renew has a job wait longer, since its line has gone on.
func (j *Job) renew(now time.Time) {
	if l := j.line; l != nil && j.Primary.Search.Waits() && now.Before(l.until) {
		j.Primary.Search.Await(l.until)
	}
}

// advance takes a line one step on, and reports whether there may be another one.
func (t *turns) advance(now time.Time, l *line) (more bool) {
	lead := l.lead.Primary
	ended := l.lead.gone || lead.Rec.State.Final()
	switch {
	case !ended && lead.Searches(now):
		return false
	case !ended && lead.Rec.Wanted() > 0: // in vain: nobody is to wait for that
		t.forget(l)
		alone := slices.Concat(l.next, l.wait)
		l.next, l.wait, lead.Behind = nil, nil, 0
		for _, j := range alone {
			j.line = nil
			j.Primary.TakeTurn(now, "")
			t.core.flush(now, j)
		}
		return false
	case !ended && len(l.next) > 0:
		t.hand(now, l)
		return true
	}
	l.lead.line = nil
	if l.call != nil {
		l.call.end()
		t.endCalls(now)
	}
	l.wait = slices.Concat(l.next, l.wait)
	if l.call, l.next = nil, nil; len(l.wait) == 0 {
		t.forget(l)
		return false
	}
	t.begin(now, l)
	return true
}

// workers counts those that jobs want.
func workers(list []*Job) (n int) {
	for _, j := range list {
		n += j.Primary.Rec.Wanted()
	}
	return n
}

// begin has the first of those who wait search for all.
func (t *turns) begin(now time.Time, l *line) {
	n := 1
	for behind := 0; n < len(l.wait); n++ {
		if behind += l.wait[n].Primary.Rec.Wanted(); behind > maxBehind {
			break
		}
	}
	l.lead, l.next, l.wait = l.wait[0], l.wait[1:n:n], slices.Clone(l.wait[n:])
	id := jobs.ID("")
	if len(l.next) > 0 {
		for id == "" || t.core.Jobs[id] != nil || t.calls[id] != nil {
			id = jobs.NewID(t.core.rnd, t.core.Self.ID)
		}
		l.call = &call{id: id, searcher: l.lead, members: slices.Concat([]*Job{l.lead}, l.next),
			answered: map[vicinity.ID]bool{}, granted: map[vicinity.ID]bool{}, held: map[vicinity.ID]bool{}}
		t.calls[id] = l.call
	}
	l.until = now.Add(search.MaxTurn)
	l.lead.Primary.Behind = workers(l.next)
	l.lead.Primary.TakeTurn(now, id)
	t.core.flush(now, l.lead)
}

// hand has the next job of a line go on with the search of the one that has its workers.
func (t *turns) hand(now time.Time, l *line) {
	last, behind := l.lead, l.lead.Primary.Behind
	l.lead, l.next, last.line = l.next[0], l.next[1:], nil
	last.Primary.HandOn(l.lead.Primary)
	l.call.searcher, l.until = l.lead, now.Add(search.MaxTurn)
	l.lead.Primary.Behind = behind - l.lead.Primary.Rec.Wanted()
	l.lead.Primary.TakeTurn(now, l.call.id)
	t.core.flush(now, last)
	t.core.flush(now, l.lead)
}

// endCalls tells nodes of calls that are over to forget them, once all grants are on their way.
// What a node held for it is all granted then, or is given back; only a node of which the grants
// are all is not told, since word of them may get lost.
func (t *turns) endCalls(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(t.calls)) {
		k := t.calls[id]
		for k.searcher == nil && len(k.members) > 0 && (len(k.members[0].Steps) == 0 || k.members[0].gone) {
			k.members = k.members[1:]
		}
		if k.searcher != nil || len(k.members) > 0 {
			continue
		}
		delete(t.calls, id)
		for _, node := range slices.Sorted(maps.Keys(k.answered)) {
			switch forget := (wire.Packet{Yield: id, Forget: true}); {
			case !k.granted[node]:
				t.core.yield(now, node, forget)
			case k.held[node]: // what is granted was announced only now
				t.core.yieldLater(now, node, forget)
			}
		}
	}
}
