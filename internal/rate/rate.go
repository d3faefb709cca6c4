// Package rate measures how fast a count rises, and estimates how long the rest takes.
package rate

import "time"

const (
	// window is how far back the rate looks: long enough that what comes in bursts has one,
	// short enough that it follows a line that becomes slower.
	window = 5 * time.Second
	// apart is the least time between two marks, and what a rate is of at least.
	apart = 250 * time.Millisecond
)

// Meter measures how fast a count rises. The zero value has seen nothing. It is not safe for use
// by several goroutines.
type Meter struct {
	marks []mark // the oldest first; the last one is replaced until it is apart from the one before
}

type mark struct {
	at    time.Time
	count int64
}

// Note takes the count at a time, which must not be before those of earlier calls. A count
// that falls begins anew.
func (p *Meter) Note(now time.Time, count int64) {
	n := len(p.marks)
	if n > 0 && count < p.marks[n-1].count {
		p.marks, n = p.marks[:0], 0
	}
	if n > 1 && p.marks[n-1].at.Sub(p.marks[n-2].at) < apart {
		p.marks[n-1] = mark{now, count}
	} else {
		p.marks = append(p.marks, mark{now, count})
	}
	old := 0 // what is not needed any more to look that far back
	for old+1 < len(p.marks) && now.Sub(p.marks[old+1].at) >= window {
		old++
	}
	p.marks = append(p.marks[:0], p.marks[old:]...)
}

// Rate returns by how much the count has risen each second lately; 0 = not at all, or it is
// too early to tell.
func (p *Meter) Rate() int64 {
	if len(p.marks) < 2 {
		return 0
	}
	first, last := p.marks[0], p.marks[len(p.marks)-1]
	took := last.at.Sub(first.at)
	if took < apart {
		return 0
	}
	return int64(float64(last.count-first.count) / took.Seconds())
}

// Left returns how long the rest takes at a rate, at least a second; 0 = nothing is left, or
// it is not known.
func Left(rest, rate int64) time.Duration {
	if rest <= 0 || rate <= 0 {
		return 0
	}
	const most = 1000 * 24 * time.Hour
	seconds := float64(rest) / float64(rate)
	if seconds > most.Seconds() {
		return most
	}
	return max(time.Duration(seconds*float64(time.Second)).Round(time.Second), time.Second)
}
