package exchange

import (
	"sync"
	"time"

	"zorilla/transfer"
)

const (
	// maxTurns is how many blobs are sent side by side, which fills an uplink; fewTurns where
	// that would take each long: who shares an uplink with few others has all of a chunk
	// early, and can pass it on.
	maxTurns, fewTurns = 8, 4
	// slowRate and fastRate are the bytes a second below which there are fewTurns, and from
	// which on maxTurns: 14 and 19 Mbit/s. Of what was sent the last rateOver bytes count.
	slowRate, fastRate = 1.75e6, 2.4e6
	rateOver           = 8 * transfer.ChunkSize
	// longTurn is how long a turn holds up others at least, lastTurn at most. Between them it
	// is twice as long as others take: its receiver is slow.
	longTurn, lastTurn = 500 * time.Millisecond, 20 * time.Second
)

// turns is who may send. Its methods may be called from any goroutine.
type turns struct {
	places chan struct{} // who has put something in may begin; places that are kept have something, too

	mu      sync.Mutex    // guards what follows
	takes   time.Duration // one turn, until now
	rate    float64       // of all together, in bytes per second, until now
	since   time.Time     // when the last turn ended, or the first one after a pause began
	running int           // turns whose places nobody else has
	kept    int           // places that nobody gets
	few     bool          // turns at a time
}

func newTurns() *turns {
	t := &turns{places: make(chan struct{}, maxTurns), takes: 4 * time.Second, rate: 1.25e6, few: true} // as by 10 Mbit/s
	for t.kept < maxTurns-fewTurns {
		t.places <- struct{}{}
		t.kept++
	}
	return t
}

// begin begins the turn of who has a place. The caller ends it, and says how many bytes were sent.
func (t *turns) begin() (end func(sent int)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	began, limit := time.Now(), min(max(longTurn, 2*t.takes), lastTurn)
	if t.running++; t.running == 1 {
		t.since = began
	}
	once := sync.OnceFunc(t.leave)
	late := time.AfterFunc(limit, once)
	return func(sent int) {
		late.Stop()
		t.ended(began, limit, sent)
		once()
	}
}

// ended counts a turn that has sent so many bytes.
func (t *turns) ended(began time.Time, limit time.Duration, sent int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	took := now.Sub(t.since)
	t.since = now
	if sent == 0 {
		return
	}
	t.takes += (min(now.Sub(began), 2*limit) - t.takes) / (8 * fewTurns) // who began together ends together
	if t.running == 0 {                                                  // all that are sent are late: for much of the time nobody may have wanted to send
		return
	}
	part := float64(sent) / (rateOver + float64(sent))
	t.rate = 1 / ((1-part)/t.rate + part*took.Seconds()/float64(sent)) // harmonic: no time at all would be a rate without end
	t.few = t.rate < slowRate || t.few && t.rate < fastRate
}

// leave leaves the place of a turn to others, unless there are to be fewer.
func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	keep := 0
	if t.few {
		keep = maxTurns - fewTurns
	}
	for t.kept++; t.kept > keep; t.kept-- {
		<-t.places
	}
}
