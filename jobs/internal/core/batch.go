package core

import (
	"maps"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Jobs that are submitted here and want the same would hold each other's slots if each searched by
// itself. While the first of them searches, those that come meanwhile wait. Then they are a batch: one search,
// under a name of its own, finds workers for one of them after the other.

// maxWait bounds how long a batch, or jobs that wait for one, go on without any job that gets
// workers. Then each searches by itself.
const maxWait = time.Second

// maxBehind bounds for how many workers others are asked beyond those of the first job of a batch.
const maxBehind = 1024

// batches are the jobs that share searches.
type batches struct {
	core  *Core
	kinds map[string]*kind    // by what their jobs want
	due   timers.Queue[*kind] // those that have something to wait for
	calls map[jobs.ID]*batch  // of which nodes may still hold something, by name
}

// kind is jobs that want the same.
type kind struct {
	timers.Entry
	wish  string
	first *Job      // searches by itself; nil = none does
	batch *batch    // searches; nil = none does
	wait  []*Job    // until these have their workers; in order
	until time.Time // how long, see maxWait
}

func newBatches(c *Core) batches {
	return batches{core: c, kinds: map[string]*kind{}, calls: map[jobs.ID]*batch{}}
}

// wish is what a job wants of nodes; "" = it shares no search.
func wish(spec *jobs.Spec) string {
	if !search.Shareable(spec) || len(spec.After) > 0 {
		return ""
	}
	how := spec.Search
	how.Begin, how.Deadline = time.Time{}, time.Time{} // the one has come for all of them, of the other no node knows
	var ad wire.Advertisement
	ad.AskFor(spec)
	ad.Priority = spec.Priority
	return string(codec.MustMarshal(struct {
		Ad     wire.Advertisement
		Search jobs.Search
	}{ad, how}))
}

// join has a job that is about to search wait if another one that wants the same is searching.
func (t *batches) join(now time.Time, j *Job, spec *jobs.Spec) {
	w := wish(spec)
	if w == "" || j.kind != nil || now.Before(spec.Search.Begin) {
		return
	}
	k := t.kinds[w]
	if k == nil {
		k = &kind{wish: w, first: j}
		t.kinds[w], j.kind = k, k
		return
	}
	if k.batch == nil && len(k.wait) == 0 {
		k.until = now.Add(maxWait)
	}
	j.kind, k.wait = k, append(k.wait, j)
	j.Primary.ShareSearch(nil)
}

// served reports whether a job looks for no workers, or not any more.
func (j *Job) served() bool {
	return j.gone || j.Primary.Rec.State.Final() || j.Primary.Rec.Wanted() == 0
}

// forget takes out a job that is dropped. Who waited for it goes on at the next Advance.
func (t *batches) forget(j *Job) {
	k := j.kind
	if k == nil {
		return
	}
	if j.kind = nil; k.first == j {
		k.first = nil
	}
	if k.wait = drop(k.wait); k.first == nil && k.batch == nil && len(k.wait) == 0 {
		delete(t.kinds, k.wish)
		return
	}
	t.due.Set(k, time.Unix(1, 0))
}

// changed goes on with the jobs that want the same as one of which something has changed.
func (t *batches) changed(now time.Time, j *Job) {
	if j.kind != nil {
		t.advance(now, j.kind)
	}
}

// tick does what is due.
func (t *batches) tick(now time.Time) {
	var due []*kind
	for k, ok := t.due.Due(now); ok; k, ok = t.due.Due(now) {
		due = append(due, k)
		t.due.Set(k, time.Time{}) // each once
	}
	for _, k := range due {
		if b := k.batch; b != nil && !b.until.IsZero() && !now.Before(b.until) {
			t.seek(now, b)
		}
		t.advance(now, k)
	}
}

// gone counts on a node no more.
func (t *batches) gone(now time.Time, id vicinity.ID) {
	for _, name := range slices.Sorted(maps.Keys(t.calls)) {
		if b := t.calls[name]; b.search != nil {
			b.search.Gone(id)
			t.seek(now, b)
			t.advance(now, b.kind)
		}
	}
}

// advance takes a kind as far as that goes now.
func (t *batches) advance(now time.Time, k *kind) {
	k.wait = drop(k.wait)
	for t.step(now, k) {
	}
	switch {
	case t.kinds[k.wish] == k && (k.batch != nil || len(k.wait) > 0):
		at := k.until
		if k.batch != nil {
			at = timers.Earlier(at, k.batch.until)
		}
		t.due.Set(k, at)
	case k.Number > 0:
		t.due.Remove(k)
	}
}

// drop takes those that are served out of a list.
func drop(list []*Job) []*Job {
	return slices.DeleteFunc(list, func(j *Job) bool {
		if j.served() {
			j.kind = nil
			return true
		}
		return false
	})
}

// step takes a kind one step on, and reports whether there may be another one.
func (t *batches) step(now time.Time, k *kind) (more bool) {
	late := !now.Before(k.until)
	switch {
	case k.batch != nil:
		b := k.batch
		if b.jobs = drop(b.jobs); len(b.jobs) == 0 {
			k.batch = nil
			t.end(now, b)
			return true
		}
		if late || b.search.Short(now) {
			t.dissolve(now, k)
		}
		return false
	case k.first != nil && !k.first.served():
		if late && len(k.wait) > 0 || k.first.Primary.Search.Short(now) {
			t.dissolve(now, k)
		}
		return false
	case k.first != nil:
		k.first.kind, k.first = nil, nil
		return true
	case len(k.wait) == 0:
		delete(t.kinds, k.wish)
		return false
	}
	t.begin(now, k)
	return false
}

// begin has a search begin for those who wait.
func (t *batches) begin(now time.Time, k *kind) {
	n := 1
	for behind := 0; n < len(k.wait); n++ {
		if behind += k.wait[n].Primary.Rec.Wanted(); behind > maxBehind {
			break
		}
	}
	list := k.wait[:n:n]
	k.wait, k.until = slices.Clone(k.wait[n:]), now.Add(maxWait)
	if n == 1 {
		k.first = list[0]
		k.first.Primary.SearchAlone(now)
		t.core.flush(now, k.first)
		return
	}
	b := &batch{kind: k, jobs: list, search: t.core.newSearch(&list[0].Primary.Rec.Spec),
		answered: map[vicinity.ID]bool{}, granted: map[vicinity.ID]bool{}, held: map[vicinity.ID]bool{}}
	for b.name == "" || t.core.Jobs[b.name] != nil || t.calls[b.name] != nil {
		b.name = jobs.NewID(t.core.rnd, t.core.Self.ID)
	}
	k.batch, t.calls[b.name] = b, b
	for _, j := range list {
		j.Primary.ShareSearch(b.search)
	}
	t.seek(now, b)
}

// dissolve has all jobs of a kind search by themselves: it is of no use to wait for others.
func (t *batches) dissolve(now time.Time, k *kind) {
	list := k.wait
	if k.first != nil {
		k.first.kind = nil
	}
	if b := k.batch; b != nil {
		list = slices.Concat(b.jobs, list)
		t.end(now, b)
	}
	k.first, k.batch, k.wait = nil, nil, nil
	delete(t.kinds, k.wish)
	for _, j := range list {
		j.kind = nil
		j.Primary.SearchAlone(now)
		t.core.flush(now, j)
	}
}

// batch is jobs that share a search.
type batch struct {
	name     jobs.ID // under which nodes are asked
	kind     *kind
	search   *search.Search // nil = it is over
	until    time.Time      // when the search is to be asked again; zero = only after an input
	jobs     []*Job         // that it looks for workers for, in order
	granting []*Job         // of which some grant may not be on its way, in order
	answered map[vicinity.ID]bool
	granted  map[vicinity.ID]bool // some of what they hold
	held     map[vicinity.ID]bool // something that no job is granted
	later    []search.Returned    // to be given back when the grants are on their way, which that could overtake
}

// hears takes the answer of a node to a batch.
func (t *batches) hears(now time.Time, b *batch, from vicinity.Member, rtt time.Duration, a wire.Answer) {
	act, refused := b.search.Answered(now, from, rtt, a, false)
	b.note()
	t.core.news = true
	if refused {
		t.giveBack(now, b, []search.Returned{{Node: from.ID, Key: a.Key}})
	}
	if !act {
		return
	}
	t.seek(now, b)
	if a.Round == 0 && len(b.jobs) > 0 { // it came from a queue
		n := b.search.FollowUp(now, b.jobs[0].Primary.Demand(), from.ID)
		t.carryOut(now, b, &n)
	}
	t.advance(now, b.kind)
}

// note has those who watch the jobs learn of news of the search.
func (b *batch) note() {
	if b.search.News() {
		for _, j := range b.jobs {
			j.Primary.Version++
		}
	}
}

// seek looks for the workers that are still wanted.
func (t *batches) seek(now time.Time, b *batch) {
	if b.jobs = drop(b.jobs); len(b.jobs) == 0 {
		return // which ends it
	}
	var list []search.Demand
	for _, j := range b.jobs {
		list = append(list, j.Primary.Demand())
	}
	n := b.search.Next(now, list...)
	b.note()
	t.carryOut(now, b, &n)
}

// carryOut does what the search wants done: grants are each job's own, the rest is the first's that is left.
func (t *batches) carryOut(now time.Time, b *batch, n *search.Next) {
	b.until = n.Until
	got := map[int][]search.Choice{}
	for _, c := range n.Grant {
		got[c.Demand] = append(got[c.Demand], c)
	}
	for i, j := range slices.Clone(b.jobs) {
		if len(got[i]) == 0 {
			continue
		}
		j.Primary.Found(now, b.search, b.name, got[i])
		b.granting = append(b.granting, j)
		b.kind.until = now.Add(maxWait)
		t.core.flush(now, j)
	}
	if b.jobs = drop(b.jobs); len(b.jobs) == 0 {
		b.hold(n.Release)
		return
	}
	t.giveBack(now, b, n.Release)
	first := b.jobs[0]
	first.Primary.Ask(now, b.search, b.name, n)
	t.core.flush(now, first)
}

// hold notes that nodes hold something that no job is granted.
func (b *batch) hold(list []search.Returned) {
	for _, o := range list {
		b.held[o.Node] = true
	}
}

// giveBack gives offers back, once all grants are on their way.
func (t *batches) giveBack(now time.Time, b *batch, list []search.Returned) {
	b.later = append(b.later, list...)
	t.settle(now)
}

// end ends a batch: its jobs have their workers, or have ended, or search by themselves.
func (t *batches) end(now time.Time, b *batch) {
	b.hold(b.search.GiveBack(search.NotNeeded))
	b.hold(b.later)
	b.search, b.jobs, b.later = nil, nil, nil
	t.settle(now)
}

// settle gives back what is not needed of batches whose grants are on their way. Nodes are to forget those
// that are over. What they held is all granted then, or is given back; only a node of which the grants
// are all is not told, since the announcements may get lost.
func (t *batches) settle(now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(t.calls)) {
		b := t.calls[name]
		for len(b.granting) > 0 && (len(b.granting[0].Steps) == 0 || b.granting[0].gone) {
			b.granting = b.granting[1:]
		}
		if len(b.granting) > 0 {
			continue
		}
		for _, o := range b.later {
			t.core.yield(now, o.Node, wire.Packet{Yield: name, Key: o.Key})
		}
		if b.later = nil; b.search != nil {
			continue
		}
		delete(t.calls, name)
		for _, node := range slices.Sorted(maps.Keys(b.answered)) {
			switch forget := (wire.Packet{Yield: name, Forget: true}); {
			case !b.granted[node]:
				t.core.yield(now, node, forget)
			case b.held[node]: // what is granted was announced only now
				t.core.yieldLater(now, node, forget)
			}
		}
	}
}
