package executor

import (
	"fmt"
	"sync"
	"time"

	"zorilla/transfer"
)

const (
	// recentKept is how many snapshots of a worker are kept: who asks again and again would
	// else fill the store with what the files were.
	recentKept = 3
	// recentFor is how long they are kept for who asked for them, from the latest on.
	recentFor = 10 * time.Minute
)

// Recent pins the latest snapshots of workers. Its methods may be called from any goroutine.
type Recent struct {
	store transfer.Pinner

	mu     sync.Mutex // guards what follows
	number int        // of the snapshot that was begun last
	of     map[string]*recent
}

// recent is the snapshots of one worker.
type recent struct {
	pins  []string // the oldest first
	timer *time.Timer
}

// NewRecent returns one that has pinned nothing.
func NewRecent(store transfer.Pinner) *Recent {
	return &Recent{store: store, of: map[string]*recent{}}
}

// Begin returns a name to pin a snapshot of a worker by. Done is called when it is there, or
// failed; the oldest ones are let go then.
func (r *Recent) Begin(worker string) (pin string, done func(err error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number++
	pin = fmt.Sprintf("snapshot/%s/%d", worker, r.number)
	return pin, func(err error) {
		if err != nil {
			r.store.Discard(pin)
			return
		}
		for _, old := range r.retain(worker, pin) {
			r.store.Discard(old)
		}
	}
}

// retain notes a snapshot, and returns those that are not kept any longer.
func (r *Recent) retain(worker, pin string) (old []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.of[worker]
	if of == nil {
		of = &recent{}
		of.timer = time.AfterFunc(recentFor, func() { r.expire(worker, of) })
		r.of[worker] = of
	}
	of.timer.Reset(recentFor)
	of.pins = append(of.pins, pin)
	if n := len(of.pins) - recentKept; n > 0 {
		old, of.pins = of.pins[:n], of.pins[n:]
	}
	return old
}

func (r *Recent) expire(worker string, of *recent) {
	r.mu.Lock()
	pins := of.pins
	if of.pins = nil; r.of[worker] == of {
		delete(r.of, worker)
	}
	r.mu.Unlock()
	for _, pin := range pins {
		r.store.Discard(pin)
	}
}
