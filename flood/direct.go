package flood

import (
	"time"

	"zorilla/vicinity"
)

// How many nodes are asked directly at a time.
const (
	// first are asked at least: that many can say at once what there is, and keep in mind a
	// job for which they have no room yet.
	first = 8
	// Before anybody has answered one worker is expected at each node; that counts as
	// much as the answers of so many.
	prior = 4
	// surplus is how many times the workers that are missing are asked for.
	surplus = 1.25
	// late is how much longer than the round trip and a quarter an answer may take.
	late = 10 * time.Millisecond
)

// direct is whom an origin asks that knows how far all others are.
type direct struct {
	others []vicinity.Measured // nearest first
	asked  map[vicinity.ID]question
	heard  heard
}

// heard is how many nodes have answered, and how many workers they offer together.
type heard struct{ nodes, workers int }

// question is what one node was asked.
type question struct {
	known vicinity.Measured // how far it is
	sent  time.Time         // the first time
	until time.Time         // when it should have been answered
	took  time.Duration     // until the answer came; 0 = it has not
}

// Direct says how far all others are, nearest first, of a flood that has been sent to nobody:
// Ask takes the place of Next, until Begin.
func (f *Frontier) Direct(others []vicinity.Measured) {
	f.direct = &direct{others: others, asked: make(map[vicinity.ID]question, len(others))}
}

// IsDirect reports whether all others are known.
func (f *Frontier) IsDirect() bool { return f.direct != nil }

// await takes it that a node is being sent a copy.
func (q *direct) await(now time.Time, m vicinity.Measured) {
	a := q.asked[m.ID]
	if a.sent.IsZero() {
		a.sent, a.known = now, m
	}
	most := max(m.RTT, min(m.Most, maxPause))
	a.until = now.Add(most + most/4 + late)
	q.asked[m.ID] = a
}

func (q *direct) answered(now time.Time, id vicinity.ID) {
	if a, ok := q.asked[id]; ok {
		a.took = now.Sub(a.sent)
		q.asked[id] = a
	}
}

// Took returns how long a node that was asked directly took to answer, which is no less
// than the round trip to it; and the smaller of that and the round trip that was known. Both are 0
// where no answer came.
func (f *Frontier) Took(id vicinity.ID) (took, least time.Duration) {
	if f.direct == nil {
		return 0, 0
	}
	a := f.direct.asked[id]
	if a.known.Least || a.took == 0 {
		return a.took, a.took
	}
	return a.took, min(a.took, a.known.RTT)
}

// Ask returns the nearest nodes below the horizon whom the origin should send a copy that
// goes no further, so that the workers wanted will probably be offered by the nearest, as
// far as those who have answered this flood and the one before let expect. offered says how
// many a node offers. The caller extends the flood to all of them, and asks again at each
// answer, and at Due.
func (f *Frontier) Ask(now time.Time, horizon time.Duration, wanted int, offered func(vicinity.ID) int) (list []Reach) {
	if !now.Before(f.until) {
		return nil
	}
	q := f.direct
	q.heard = heard{}
	for _, m := range q.others {
		if f.seen[m.ID] {
			q.heard.nodes++
			q.heard.workers += offered(m.ID)
		}
	}
	before := f.before
	if before.nodes == 0 {
		before = heard{prior, prior}
	}
	each := float64(max(1, before.workers)+q.heard.workers) / float64(before.nodes+q.heard.nodes)
	short := float64(wanted)
	missing, waiting := surplus*short, false
	for _, m := range q.others {
		enough := (short <= 0 || missing <= 0) && (waiting || len(list) > 0)
		if m.RTT >= horizon || enough && len(q.asked) >= first {
			break
		}
		switch until := q.asked[m.ID].until; {
		case f.seen[m.ID]:
			short -= float64(offered(m.ID))
			missing -= float64(offered(m.ID))
		case until.IsZero():
			list = append(list, Reach{Node: m.ID, RTT: m.RTT, Hops: 1, Last: true})
			q.await(now, m)
			f.asked[m.ID] = sendings{1, now}
			f.cost.Messages++
			f.sent = now
			missing -= each
		case now.Before(until):
			waiting = true
			missing -= each
		}
	}
	return list
}

// open reports whether somebody nearer than the horizon has not been asked, or may yet
// answer.
func (f *Frontier) open(now time.Time, horizon time.Duration) bool {
	for _, m := range f.direct.others {
		if m.RTT >= horizon {
			break
		}
		if until := f.direct.asked[m.ID].until; !f.seen[m.ID] && (until.IsZero() || now.Before(until)) {
			return true
		}
	}
	return false
}

// Awaits reports whether somebody nearer than the horizon has been asked directly more than
// once, and may yet answer.
func (f *Frontier) Awaits(now time.Time, horizon time.Duration) bool {
	if f.direct == nil {
		return false
	}
	for id, a := range f.asked {
		if q := f.direct.asked[id]; a.times > 1 && q.known.RTT < horizon && now.Before(q.until) {
			return true
		}
	}
	return false
}

// nearest returns the distance of the nearest node that has not been asked.
func (q *direct) nearest() (rtt time.Duration, ok bool) {
	for _, m := range q.others {
		if q.asked[m.ID].until.IsZero() {
			return m.RTT, true
		}
	}
	return 0, false
}

// Due returns when Next may return nodes again, or Ask may though nobody has answered;
// zero if neither will.
func (f *Frontier) Due(now time.Time, horizon time.Duration) (at time.Time) {
	if f.direct == nil {
		return f.ready
	}
	for _, m := range f.direct.others {
		if m.RTT >= horizon {
			break
		}
		until := f.direct.asked[m.ID].until
		if !f.seen[m.ID] && now.Before(until) && (at.IsZero() || until.Before(at)) {
			at = until
		}
	}
	return at
}
