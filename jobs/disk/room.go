package disk

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Room is a Reserve for who waits while the disk is full: that passes. Its methods may be called
// from any goroutine.
type Room struct {
	Reserve

	tell  func() // that it changes whether somebody waits
	waits atomic.Int32
	quit  chan struct{}
	once  sync.Once
}

// NewRoom returns a Room that calls tell, which must not block, when somebody begins to wait,
// and when nobody does any more.
func NewRoom(r Reserve, tell func()) *Room {
	return &Room{Reserve: r, tell: tell, quit: make(chan struct{})}
}

// roomPause is between two tries.
const roomPause = 200 * time.Millisecond

// Try does something, again and again as long as the disk is full and Leave was not called.
func (r *Room) Try(f func() error) error {
	err := f()
	if !IsFull(err) {
		return err
	}
	r.wait(1)
	defer r.wait(-1)
	for r.Comes(err) {
		if err = f(); err == nil {
			return nil
		}
	}
	return err
}

// Comes reports whether what has failed is to be tried again: the disk was full, a moment ago.
func (r *Room) Comes(err error) bool {
	if !IsFull(err) {
		return false
	}
	r.wait(1)
	defer r.wait(-1)
	select {
	case <-time.After(roomPause):
		return true
	case <-r.quit:
		return false
	}
}

func (r *Room) wait(n int32) {
	if now := r.waits.Add(n); now == 0 || now == n {
		r.tell()
	}
}

// Waits reports whether somebody waits.
func (r *Room) Waits() bool { return r.waits.Load() > 0 }

// Leave has nobody wait any more. It may be called again.
func (r *Room) Leave() { r.once.Do(func() { close(r.quit) }) }

// IsFull reports whether an error says that a disk, or what somebody may have of it, is full.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
