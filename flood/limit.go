package flood

import (
	"container/list"
	"time"

	"zorilla/vicinity"
)

// limiter keeps one token bucket per node, for the max nodes heard of last.
type limiter struct {
	rate    float64 // tokens per second
	burst   float64 // tokens in a full bucket
	max     int
	buckets map[vicinity.ID]*list.Element
	recent  *list.List // of *bucket, last used first
}

type bucket struct {
	id     vicinity.ID
	tokens float64
	at     time.Time
}

func newLimiter(rate, burst float64, max int) *limiter {
	return &limiter{rate: rate, burst: burst, max: max, buckets: map[vicinity.ID]*list.Element{}, recent: list.New()}
}

// empty reports whether take would fail.
func (l *limiter) empty(now time.Time, id vicinity.ID) bool {
	el := l.buckets[id]
	if el == nil {
		return false
	}
	return l.level(now, el.Value.(*bucket)) < 1
}

// take takes one token from the node's bucket if it has one.
func (l *limiter) take(now time.Time, id vicinity.ID) bool {
	el := l.buckets[id]
	if el == nil {
		if len(l.buckets) >= l.max {
			last := l.recent.Back()
			delete(l.buckets, l.recent.Remove(last).(*bucket).id)
		}
		el = l.recent.PushFront(&bucket{id: id, tokens: l.burst, at: now})
		l.buckets[id] = el
	} else {
		l.recent.MoveToFront(el)
	}
	b := el.Value.(*bucket)
	b.tokens, b.at = l.level(now, b), now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

func (l *limiter) level(now time.Time, b *bucket) float64 {
	return min(l.burst, b.tokens+l.rate*max(0, now.Sub(b.at).Seconds()))
}
