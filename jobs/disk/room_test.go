package disk

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestRoomIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		r := NewRoom(Reserve{}, func() { told++ })
		full := fmt.Errorf("write: %w", syscall.ENOSPC)
		begin := time.Now()
		if err := r.Try(func() error {
			if time.Since(begin) < time.Minute {
				return full
			}
			if !r.Waits() {
				t.Error("nobody waits")
			}
			return nil
		}); err != nil || r.Waits() || told != 2 {
			t.Errorf("got %v, waits %v, told %d times", err, r.Waits(), told)
		}
		other := errors.New("other")
		if err := r.Try(func() error { return other }); err != other || r.Comes(other) || r.Comes(nil) {
			t.Errorf("got %v", err)
		}
		time.AfterFunc(time.Hour, r.Leave)
		if err := r.Try(func() error { return full }); err != full || r.Comes(full) {
			t.Errorf("who is left waits: %v", err)
		}
		r.Leave()
	})
}
