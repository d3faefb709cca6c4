package vicinity

import (
	"slices"
	"time"
)

const (
	// Of each time slot the smallest sample is kept: many samples in a busy
	// minute must not push the good ones out.
	window   = 8 // slots kept of a peer
	slotTime = 15 * time.Second
	oldest   = 5 * time.Minute // older slots do not count beside a newer one

	// rowLength samples that agree, all clearly above what was usual, are a longer way if
	// they were taken in no less than rowTime. Those of a busy host are as late, but
	// do not agree.
	rowLength = 5
	fewLength = 3 // for a peer without a link
	rowTime   = 4 * time.Second

	recentSamples = 4
	sureSamples   = 2 // one may have been held up

	freshPause = 1500 * time.Millisecond // between samples of whom too few are known

	// Where at least so many ways have changed in this time, more than have stayed as
	// they were, it is the node that has moved.
	movedTime  = 30 * time.Second
	movedLeast = 3
)

// slot is the smallest round trip measured in a time.
type slot struct {
	from  time.Duration
	least time.Duration
}

// row is the latest samples, if all were clearly longer than usual.
type row struct {
	began time.Duration // when the first was taken
	since time.Duration // when the first was taken of those that agree
	least time.Duration // the smallest
	agree int           // how many are about as small
	all   int
}

// samples is the round trips measured to a peer. Instants are counted from the core's
// epoch.
type samples struct {
	slots   [window]slot // a ring; the newest is at slots[last]
	last    int
	count   int           // samples taken so far
	rtt     time.Duration // the smallest that counts; 0 = not measured
	sampled time.Duration // when the last sample was taken
	recent  [recentSamples]slot
	row     row
	shifted time.Duration // when the way was last found to be another one
	renew   bool          // the next sample counts alone
}

func unmeasured() samples { return samples{sampled: never, shifted: never} }

// sample takes a round trip. The smallest counts: all that a busy host or network can do
// is to add to the truth. A way that became longer is believed when enough samples agree
// on it, else as slots go out of the window after two minutes. It reports whether the way
// has become another one, longer or nearer.
func (p *samples) sample(at, rtt time.Duration, enough int) (shifted bool) {
	if p.renew {
		*p = unmeasured()
	}
	p.recent[p.count%recentSamples] = slot{at, rtt}
	steady, other := p.steady(at), muchNearer(rtt, p.rtt)
	if p.count > 0 && p.longer(at, rtt, enough) {
		p.slots, p.last = [window]slot{{p.row.since, p.row.least}}, 0
		p.row, other = row{}, true
	}
	p.add(at, rtt)
	if steady && other {
		p.shifted = at
	}
	return steady && other
}

// steady reports whether all earlier slots tell about the same, so that a sample that does
// not says something.
func (p *samples) steady(at time.Duration) bool {
	list := p.earlier(at)
	return len(list) > 1 && !muchNearer(list[0], list[len(list)-1])
}

// add puts a sample into the slot of its time.
func (p *samples) add(at, rtt time.Duration) {
	now := &p.slots[p.last]
	switch {
	case now.least == 0:
		*now = slot{at, rtt}
	case at-now.from < slotTime:
		now.least = min(now.least, rtt)
	default:
		p.last = (p.last + 1) % window
		p.slots[p.last] = slot{at, rtt}
	}
	p.count++
	p.sampled = at
	p.rtt = rtt
	for _, s := range p.slots {
		if s.least > 0 && at-s.from < oldest {
			p.rtt = min(p.rtt, s.least)
		}
	}
}

// longer notes a sample in the row, and reports whether the way is longer now.
func (p *samples) longer(at, rtt time.Duration, enough int) bool {
	r := &p.row
	switch {
	case !muchNearer(p.usual(at), rtt):
		*r = row{}
		return false
	case r.agree == 0 || rtt < r.least && !alike(rtt, r.least): // the earlier ones were even later
		if r.agree == 0 {
			r.began = at
		}
		r.since, r.least, r.agree, r.all = at, rtt, 1, r.all+1
		return false
	}
	r.all++
	if alike(r.least, rtt) {
		r.agree++
	}
	r.least = min(r.least, rtt)
	return r.agree >= enough && at-r.since >= rowTime
}

// muchNearer reports whether a is so much nearer than b that it is worth a
// change: within a site the order is noise.
func muchNearer(a, b time.Duration) bool {
	return a < b/5*4 && b-a > 200*time.Microsecond
}

// alike reports whether two samples, the smaller one first, differ by no more than those of
// one way in a quiet time.
func alike(a, b time.Duration) bool { return b-a <= max(a/8, 200*time.Microsecond) }

// usual is the largest of the smallest round trips of earlier slots; where there are
// enough of them the second largest, as one may be chance.
func (p *samples) usual(at time.Duration) time.Duration {
	list := p.earlier(at)
	switch n := len(list); {
	case n == 0:
		return p.rtt
	case n < 3:
		return list[n-1]
	default:
		return list[n-2]
	}
}

// earlier returns what was measured in the slots from before the row, sorted.
func (p *samples) earlier(at time.Duration) []time.Duration {
	list := make([]time.Duration, 0, window)
	for _, s := range p.slots {
		if s.least > 0 && at-s.from < oldest && (p.row.agree == 0 || s.from < p.row.began) {
			list = append(list, s.least)
		}
	}
	slices.Sort(list)
	return list
}

// doubtful reports whether the way may be longer than it was, and more samples would tell.
func (p *samples) doubtful() bool {
	if p.row.agree == 0 {
		return false
	}
	list := p.earlier(p.sampled)
	return len(list) < 2 || !muchNearer(list[0], list[len(list)-1])
}

// fresh returns the round trip by the samples of some time, if there are enough of them:
// the smallest of all, unless these are clearly longer.
func (p *samples) fresh(at, within time.Duration) (time.Duration, bool) {
	least, n := maxRTT, 0
	for _, s := range p.recent {
		if s.least > 0 && at-s.from <= within {
			least = min(least, s.least)
			n++
		}
	}
	if n < sureSamples {
		return 0, false
	}
	if !muchNearer(p.rtt, least) {
		return p.rtt, true
	}
	return least, true
}
