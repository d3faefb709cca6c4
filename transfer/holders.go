package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"zorilla/vicinity"
)

const (
	// anySize stands for the unknown size of a manifest.
	anySize = -1
	// minRate is the average, in bytes per second, below which a holder is
	// given up in favour of another one.
	minRate = 10_000
)

var errSlow = errors.New("sends nothing or too little")

// ask gets one blob from one holder and verifies it. The error is ErrMismatch
// if the holder sent something else.
func (f *Fetcher) ask(ctx context.Context, holder vicinity.ID, h Hash, size int, buf []byte) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dog := newWatchdog(f.cfg.Stall, func() { cancel(errSlow) })
	defer dog.stop()
	data, err := f.receive(ctx, dog, holder, h, size, buf)
	if err != nil && context.Cause(ctx) == errSlow {
		return nil, errSlow
	}
	return data, err
}

func (f *Fetcher) receive(ctx context.Context, dog *watchdog, holder vicinity.ID, h Hash, size int, buf []byte) ([]byte, error) {
	body, err := f.cfg.Source(ctx, holder, h)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	limit := size
	if size == anySize {
		limit = MaxBlob
	}
	data, err := readAll(io.TeeReader(body, dog), buf, limit)
	if err != nil {
		return nil, err
	}
	if size != anySize && len(data) != size {
		return nil, fmt.Errorf("%w: %d bytes, want %d", ErrMismatch, len(data), size)
	}
	return data, check(h, data)
}

// readAll reads at most limit bytes, into buf's memory as far as it goes.
// More than that is a mismatch.
func readAll(r io.Reader, buf []byte, limit int) ([]byte, error) {
	buf = buf[:0]
	for len(buf) < limit {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), limit)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
	n, err := io.ReadFull(r, make([]byte, 1))
	switch {
	case n > 0:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrMismatch, limit)
	case errors.Is(err, io.EOF):
		return buf, nil
	}
	return nil, err
}

// watchdog bites when nothing was written to it for some time, or on average
// less than minRate.
type watchdog struct {
	stall time.Duration
	began time.Time
	bytes int64
	timer *time.Timer
}

func newWatchdog(stall time.Duration, bite func()) *watchdog {
	return &watchdog{stall: stall, began: time.Now(), timer: time.AfterFunc(stall, bite)}
}

// Write counts bytes as they arrive.
func (d *watchdog) Write(b []byte) (int, error) {
	d.bytes += int64(len(b))
	paid := d.stall + time.Duration(d.bytes)*time.Second/minRate - time.Since(d.began)
	if d.timer.Stop() { // else it has bitten
		d.timer.Reset(max(0, min(d.stall, paid)))
	}
	return len(b), nil
}

func (d *watchdog) stop() { d.timer.Stop() }

// roster is what one fetch knows of its holders: the failures in a row of
// each, and until when one that had not got a blob yet is asked last. One that
// sent wrong bytes is not on it any more.
type roster struct {
	mu      sync.Mutex // guards what follows
	holders []vicinity.ID
	fails   map[vicinity.ID]int
	misses  map[vicinity.ID]time.Time
}

// missPause is long enough not to ask for blob after blob in vain, and short
// enough to share the fetch with others that began at the same time.
const missPause = 100 * time.Millisecond

func newRoster(holders []vicinity.ID) *roster {
	r := &roster{fails: make(map[vicinity.ID]int), misses: make(map[vicinity.ID]time.Time)}
	for _, h := range holders {
		if h != "" && !slices.Contains(r.holders, h) {
			r.holders = append(r.holders, h)
		}
	}
	return r
}

// order returns whom to ask: at random, those that failed last.
func (r *roster) order(shuffle func(n int, swap func(i, j int))) []vicinity.ID {
	r.mu.Lock()
	out := slices.Clone(r.holders)
	r.mu.Unlock()
	shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	last := func(h vicinity.ID) int {
		if now.Before(r.misses[h]) {
			return r.fails[h] + 1
		}
		return r.fails[h]
	}
	slices.SortStableFunc(out, func(a, b vicinity.ID) int { return cmp.Compare(last(a), last(b)) })
	return out
}

func (r *roster) worked(h vicinity.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.fails, h)
}

func (r *roster) failed(h vicinity.ID, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, ErrNotFound) { // it may have it soon
		r.misses[h] = time.Now().Add(missPause)
		return
	}
	r.fails[h]++
	if errors.Is(err, ErrMismatch) {
		r.holders = slices.DeleteFunc(r.holders, func(x vicinity.ID) bool { return x == h })
	}
}

// blame tells why each holder did not give a blob, of a few holders.
func (r *roster) blame(why map[vicinity.ID]error) string {
	const few = 5
	ids := make([]vicinity.ID, 0, len(why))
	for id := range why {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var b strings.Builder
	for i, id := range ids {
		if i == few {
			fmt.Fprintf(&b, "; and %d others", len(ids)-few)
			break
		}
		err := why[id]
		if errors.Is(err, ErrNotFound) {
			err = ErrNotFound
		}
		fmt.Fprintf(&b, "; %s: %.200v", id.Short(), err)
	}
	if len(ids) == 0 {
		return ": nobody is left to ask"
	}
	return b.String()
}
