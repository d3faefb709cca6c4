package primary

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Spares are room that nodes without ranks of the job keep for ranks that it may lose. They are looked for once the
// job has started, and given back when it ends. Nothing is written down of them: after a restart of the origin the
// their nodes report them.

// spares are what nodes keep for the job. Each of their nodes is a participant.
type spares struct {
	of     map[vicinity.ID]*spare
	ledger *ledger
	search *search.Search
	parts  *Leases
}

type spare struct {
	search.Spare
	granted time.Time
	known   bool // its node has reported it
	ready   bool // and that the inputs are there
}

// count returns for how many workers they are.
func (l *spares) count() (n int) {
	for _, s := range l.of {
		n += s.Workers
	}
	return n
}

// nameOf is what a node of them is called, "" if it is none.
func (l *spares) nameOf(id vicinity.ID) string {
	if s := l.of[id]; s != nil {
		return s.Name
	}
	return ""
}

// list returns them by node.
func (l *spares) list() (list []search.Spare) {
	for _, id := range slices.Sorted(maps.Keys(l.of)) {
		list = append(list, l.of[id].Spare)
	}
	return list
}

// wanted returns how many there are to be: never more than workers that may be lost, and no further ones once a first
// worker has ended.
func (l *spares) wanted() int {
	r := &l.ledger.Rec
	if r.Spec.Spares == 0 || r.State != jobs.Running || r.Closing() {
		return 0
	}
	n := min(r.Spec.Spares, r.Ranks.Serving())
	if !r.Grows() {
		n = min(n, l.count())
	}
	return n
}

// demand is what is wanted of a search that has nodes for all ranks.
func (l *spares) demand() (d search.Demand) {
	if d.Wanted = l.wanted() - l.count(); d.Wanted <= 0 {
		return search.Demand{}
	}
	r := &l.ledger.Rec
	d.Least, d.Placed, d.Left = 1, true, r.Nodes()
	d.Spares = &search.Spares{Ranks: map[vicinity.ID]int{}, Has: map[vicinity.ID]int{}}
	for i := range r.Ranks {
		if k := &r.Ranks[i]; k.Node != "" && k.Serves() {
			d.Spares.Ranks[k.Node]++
		}
	}
	for id, s := range l.of {
		d.Spares.Has[id] = s.Workers
		if !slices.Contains(d.Left, id) {
			d.Left = append(d.Left, id)
		}
	}
	slices.Sort(d.Left)
	if r.Spec.JointChoice() {
		d.Nodes = d.Left
	}
	return d
}

// keep has nodes keep what they offer.
func (l *spares) keep(now time.Time, self vicinity.Member, taken []search.Choice) {
	r, spec := &l.ledger.Rec, l.ledger.Rec.Granted()
	for _, c := range taken {
		k := l.parts.at(c.Node)
		k.lastContact, k.key, k.rtt = now, c.Key, c.RTT
		l.of[c.Node] = &spare{Spare: search.Spare{Node: c.Node, Name: c.Name, Key: c.Key, RTT: c.RTT, Workers: len(c.Places)}, granted: now}
		l.ledger.Do(DoGrant{To: c.Node, Within: wire.GrantWithin(c.RTT), Grant: wire.Grant{
			Job: r.ID, Addrs: self.Addrs, Key: c.Key, Spares: len(c.Places), Spec: spec, Stamp: r.Stamp,
			Holders: l.parts.holders(c.Node, self.ID),
		}})
		l.ledger.Version++
	}
}

// use returns which spares ranks get that were lost, of what is wanted for ranks. They are no spares any more.
func (l *spares) use(d search.Demand) []search.Choice {
	if d.Wanted = min(d.Wanted, len(d.Lost)); len(l.of) == 0 || d.Wanted == 0 || len(d.To) > 0 {
		return nil
	}
	taken := l.search.FromSpares(&l.ledger.Rec.Spec, d, l.list(), l.search.Estimate)
	for _, c := range taken {
		if s := l.of[c.Node]; s.Workers > len(c.Places) {
			s.Workers -= len(c.Places)
		} else {
			delete(l.of, c.Node)
		}
	}
	return taken
}

// reported takes what a node reports of spares, and reports whether they are not wanted; of says what is known of it.
func (l *spares) reported(now time.Time, from vicinity.ID, rep *wire.Spares, of func(vicinity.ID) (vicinity.Member, bool)) (unwanted bool) {
	s := l.of[from]
	switch {
	case rep == nil && s == nil:
		return false
	case rep == nil:
		if s.known || !now.Before(s.granted.Add(wire.PartLease)) { // else its report was on its way before the grant
			l.search.Avoid(now, from)
			l.drop(now, from)
		}
		return false
	case s != nil && s.Key == rep.Key:
		if about, _ := of(from); s.Name == "" && about.Name != "" { // its report was here before this node knew it again
			s.Name = about.Name
			l.ledger.Version++
		}
		if !s.known || s.ready != rep.Ready {
			l.ledger.Version++
		}
		s.known, s.ready, s.Workers = true, rep.Ready, min(s.Workers, rep.Workers)
		return false
	case s == nil && l.granting(from, rep.Key): // to ranks: the node reports them as ranks when it has the grant
		return false
	case s == nil && l.wanted() >= l.count()+rep.Workers && !slices.Contains(l.ledger.Rec.Nodes(), from): // of before a restart
		about, _ := of(from)
		l.parts.at(from).lastContact = now
		k := search.Spare{Node: from, Name: about.Name, Key: rep.Key, Workers: rep.Workers}
		l.of[from] = &spare{Spare: k, granted: now, known: true, ready: rep.Ready}
		l.ledger.Version++
		return false
	}
	return true
}

// granting reports whether a node is being granted ranks by a key.
func (l *spares) granting(id vicinity.ID, key uint64) bool {
	k := (*l.parts)[id]
	return k != nil && k.key == key && !idle(&l.ledger.Rec, id)
}

// refused has no spares at a node that refused them, or did not answer, and reports whether it was to keep some.
func (l *spares) refused(now time.Time, id vicinity.ID) bool {
	s := l.of[id]
	if s == nil || s.known {
		return false
	}
	l.search.Avoid(now, id)
	l.drop(now, id)
	return true
}

// drop counts on the spares at a node no more, and looks for others.
func (l *spares) drop(now time.Time, id vicinity.ID) {
	if l.of[id] != nil {
		l.forget(id)
		l.search.Again(now)
	}
}

func (l *spares) forget(id vicinity.ID) {
	if delete(l.of, id); idle(&l.ledger.Rec, id) {
		delete(*l.parts, id)
	}
	l.ledger.Version++
}

// idle reports whether a node has nothing to do for a job, but for spares.
func idle(r *record.Record, id vicinity.ID) bool {
	unstarted, started := r.RanksOf(id)
	return len(unstarted)+len(started) == 0
}

// letGo gives back those that are more than so many, the farthest first: all of a node, or none.
func (l *spares) letGo(most int) {
	list := l.list()
	slices.SortStableFunc(list, func(a, b search.Spare) int { return cmp.Compare(b.RTT, a.RTT) })
	for _, s := range list {
		if l.count()-s.Workers < most {
			continue
		}
		l.ledger.Do(DoRelease{To: s.Node, Release: wire.Release{Job: l.ledger.Rec.ID, Spares: true}})
		l.forget(s.Node)
	}
}

// status lists them for those who watch the job.
func (l *spares) status() (list []jobs.Spare) {
	for _, s := range l.list() {
		list = append(list, jobs.Spare{Node: s.Node, Name: s.Name, Workers: s.Workers, Ready: l.of[s.Node].ready})
	}
	return list
}

// sparesText reports how many spares are looked for.
func sparesText(wanted int) string {
	return fmt.Sprintf("looks for %s", units.Count(wanted, "spare", "spares"))
}
