package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// op is one Append, Delete or Replace.
type op struct {
	entries []Entry
	remove  string // a key that goes first, if this is a Delete or a Replace
	done    func(error)
	err     error // why it cannot be written
}

func (o *op) finish() {
	if o.done != nil {
		o.done(o.err)
	}
}

// keys calls f for the well-formed keys of the operation.
func (o *op) keys(f func(key string)) {
	if o.entries == nil {
		if checkKey(o.remove) == nil {
			f(o.remove)
		}
		return
	}
	for _, e := range o.entries {
		if checkKey(e.Key) == nil {
			f(e.Key)
		}
	}
}

// queue is what both journals have in common: it collects operations for the
// one writer. It grows without bound, which callers bound by waiting for done
// before they act.
type queue struct {
	wake   chan struct{}    // has room for one
	broken map[string]error // keys that lost an entry; owned by run

	mu      sync.Mutex
	ops     []op
	closed  bool
	stalled error // why nothing can be written now
}

func newQueue() queue {
	return queue{wake: make(chan struct{}, 1), broken: map[string]error{}}
}

// Append adds entries; see Journal.
func (q *queue) Append(entries []Entry, done func(error)) {
	o := op{entries: entries, done: done}
	if entries == nil {
		o.entries = []Entry{} // nil marks a Delete
	}
	for _, e := range entries {
		if o.err = checkEntry(e); o.err != nil {
			break
		}
	}
	q.add(o)
}

// Delete removes a key; see Journal.
func (q *queue) Delete(key string, done func(error)) {
	q.add(op{remove: key, done: done, err: checkKey(key)})
}

// Replace puts one entry in the place of all of its key; see Journal.
func (q *queue) Replace(e Entry, done func(error)) {
	q.add(op{entries: []Entry{e}, remove: e.Key, done: done, err: checkEntry(e)})
}

func (q *queue) add(o op) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		o.err = ErrClosed
		o.finish()
		return
	}
	q.ops = append(q.ops, o)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// dequeue empties the queue, for good if last is set.
func (q *queue) dequeue(last bool) []op {
	q.mu.Lock()
	defer q.mu.Unlock()
	ops := q.ops
	q.ops = nil
	q.closed = q.closed || last
	return ops
}

// run hands everything queued to commit, again and again, until ctx ends.
// commit writes all operations or none.
func (q *queue) run(ctx context.Context, commit func([]op) error) {
	for ctx.Err() == nil {
		if ops := q.dequeue(false); len(ops) > 0 {
			q.write(ops, func(ops []op) error { return q.persist(ctx, ops, commit) })
			continue
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
		}
	}
	q.write(q.dequeue(true), commit)
}

// persist commits, again and again as long as the disk is full: that passes.
func (q *queue) persist(ctx context.Context, ops []op, commit func([]op) error) error {
	for {
		err := commit(ops)
		full := isFull(err)
		q.mu.Lock()
		if q.stalled = nil; full {
			q.stalled = err
		}
		q.mu.Unlock()
		if !full {
			return err
		}
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
			return err
		}
	}
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// againAfter is the pause between tries to write to a full disk.
const againAfter = time.Second

// Stalled reports why nothing can be written now, or nil: what was appended waits
// for room on the disk.
func (q *queue) Stalled() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stalled
}

func (q *queue) write(ops []op, commit func([]op) error) {
	var ready []op
	for i := range ops {
		if o := &ops[i]; q.admit(o) {
			ready = append(ready, *o)
		}
	}
	if len(ready) > 0 {
		if err := commit(ready); err != nil {
			for i := range ops {
				if o := &ops[i]; o.err == nil {
					o.err = err
					o.keys(func(key string) { q.broken[key] = err })
				}
			}
		}
	}
	for i := range ops {
		ops[i].finish()
	}
}

// admit decides whether an operation can be written, and keeps track of the
// keys that would have a gap.
func (q *queue) admit(o *op) bool {
	if o.remove != "" { // whatever was lost goes with it, and nothing is lost if it cannot be done
		if o.err == nil {
			delete(q.broken, o.remove)
		}
		return o.err == nil
	}
	for i := 0; i < len(o.entries) && o.err == nil; i++ {
		key := o.entries[i].Key
		if cause := q.broken[key]; cause != nil {
			o.err = fmt.Errorf("append to %s: %w: %w", key, ErrGap, cause)
		}
	}
	if o.err == nil {
		return true
	}
	o.keys(func(key string) {
		if q.broken[key] == nil {
			q.broken[key] = o.err
		}
	})
	return false
}
