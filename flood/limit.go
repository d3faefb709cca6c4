package flood

import (
	"container/list"
	"time"

	"golang.org/x/time/rate"

	"zorilla/vicinity"
)

// limiter bounds how often each node's messages are taken, for the max nodes
// heard of last. The time is an argument of rate.Limiter's methods too, so a
// core that uses it has no clock. Of a library for caches only the list and the
// map would be used, which the standard library has.
type limiter struct {
	rate    rate.Limit // tokens per second
	burst   int        // tokens in a full bucket
	max     int
	buckets map[vicinity.ID]*list.Element
	recent  *list.List // of *bucket, last used first
}

type bucket struct {
	id     vicinity.ID
	tokens *rate.Limiter
}

func newLimiter(perSecond float64, burst, max int) *limiter {
	return &limiter{rate: rate.Limit(perSecond), burst: burst, max: max, buckets: map[vicinity.ID]*list.Element{}, recent: list.New()}
}

// empty reports whether take would fail.
func (l *limiter) empty(now time.Time, id vicinity.ID) bool {
	el := l.buckets[id]
	return el != nil && el.Value.(*bucket).tokens.TokensAt(now) < 1
}

// take takes one token from the node's bucket if it has one.
func (l *limiter) take(now time.Time, id vicinity.ID) bool {
	el := l.buckets[id]
	if el == nil {
		if len(l.buckets) >= l.max {
			last := l.recent.Back()
			delete(l.buckets, l.recent.Remove(last).(*bucket).id)
		}
		el = l.recent.PushFront(&bucket{id: id, tokens: rate.NewLimiter(l.rate, l.burst)})
		l.buckets[id] = el
	} else {
		l.recent.MoveToFront(el)
	}
	return el.Value.(*bucket).tokens.AllowN(now, 1)
}
