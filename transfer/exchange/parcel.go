package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"time"

	"zorilla/transfer"
)

const (
	// minRate is the average, in bytes per second, below which a holder is
	// given up in favour of another one.
	minRate = 10_000
	// beforeMe is how many times as long a holder may take to begin as it may then pause.
	beforeMe = 3
)

var errSlow = errors.New("sends nothing or too little")

// parcel is what a holder sends: it has begun.
type parcel struct {
	body io.ReadCloser
	dog  *watchdog
	ctx  context.Context
	end  func()
}

// begin asks a holder, who may let others go first: for long only if it says now and then
// that it does.
func (r *run) begin(ctx context.Context, ask func(ctx context.Context) (io.ReadCloser, error)) (*parcel, error) {
	x := r.x
	ctx, cancel := context.WithCancelCause(ctx)
	dog := newWatchdog(x.cfg.Stall, beforeMe*x.cfg.Stall, func() { cancel(errSlow) })
	if r.beat != nil {
		dog.beat = r.beat
	}
	body, err := ask(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error {
		dog.waits(beforeMe * x.cfg.Stall)
		dog.beat()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.plan.Waits(time.Now())
		return nil
	}}))
	if err != nil {
		dog.stop()
		err = slow(ctx, err)
		cancel(nil)
		return nil, err
	}
	dog.begins()
	return &parcel{body, dog, ctx, func() {
		dog.stop()
		cancel(nil)
		body.Close()
	}}, nil
}

// read receives the blob and verifies it. The error is ErrMismatch if the holder sent
// something else.
func (p *parcel) read(c transfer.Chunk, buf []byte) ([]byte, error) {
	limit := c.Size
	if c.Size == anySize {
		limit = transfer.MaxBlob
	} else {
		buf = slices.Grow(buf[:0], transfer.ChunkSize) // all at once, and for any chunk
	}
	data, err := readAll(io.TeeReader(p.body, p.dog), buf, limit)
	if err != nil {
		return nil, slow(p.ctx, err)
	}
	if c.Size != anySize && len(data) != c.Size {
		return nil, fmt.Errorf("%w: %d bytes, want %d", transfer.ErrMismatch, len(data), c.Size)
	}
	if transfer.HashOf(data) != c.Hash {
		return nil, fmt.Errorf("blob %s: %w", c.Hash, transfer.ErrMismatch)
	}
	return data, nil
}

// slow is the error, or that the watchdog bit.
func slow(ctx context.Context, err error) error {
	if context.Cause(ctx) == errSlow {
		return errSlow
	}
	return err
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
		return nil, fmt.Errorf("%w: more than %d bytes", transfer.ErrMismatch, limit)
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
	beat  func() // of the run
}

// newWatchdog lets that much time pass before anything begins.
func newWatchdog(stall, first time.Duration, bite func()) *watchdog {
	return &watchdog{stall: stall, beat: func() {}, timer: time.AfterFunc(first, bite)}
}

// waits lets that much more time pass before anything begins.
func (d *watchdog) waits(first time.Duration) {
	if d.timer.Stop() { // else it has bitten
		d.timer.Reset(first)
	}
}

// begins is called when the first bytes may come.
func (d *watchdog) begins() {
	d.began = time.Now()
	if d.timer.Stop() { // else it has bitten
		d.timer.Reset(d.stall)
	}
}

// Write counts bytes as they arrive.
func (d *watchdog) Write(b []byte) (int, error) {
	d.beat()
	d.bytes += int64(len(b))
	paid := d.stall + time.Duration(d.bytes)*time.Second/minRate - time.Since(d.began)
	if d.timer.Stop() { // else it has bitten
		d.timer.Reset(max(0, min(d.stall, paid)))
	}
	return len(b), nil
}

func (d *watchdog) stop() { d.timer.Stop() }
