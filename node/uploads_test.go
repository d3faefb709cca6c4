package node

import (
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/transfer"
)

// Uploads are kept while they go on, but not for ever, and not on a full disk.
func TestUploadsAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := transfer.NewMemStore(0)
		u := uploads{store: store}
		chunk := func(i int) transfer.Hash {
			b := fmt.Append(nil, i)
			u.hold(transfer.HashOf(b))
			if err := store.Put(transfer.HashOf(b), b); err != nil {
				t.Fatal(err)
			}
			return transfer.HashOf(b)
		}
		pinned := func(want int) {
			t.Helper()
			if got := store.Usage().Pinned / 4096; int(got) != want {
				t.Errorf("%d chunks are kept, want %d", got, want)
			}
		}
		const hour = 12 // steps
		for i := range 24*hour + 3 {
			chunk(i)
			time.Sleep(5 * time.Minute)
		}
		if got := store.Usage().Pinned / 4096; got < 24*hour-3 || got > 24*hour+2 {
			t.Errorf("%d chunks are kept, want those of a day", got)
		}
		time.Sleep(uploadHold)
		pinned(0)
		a, b := chunk(-1), chunk(-2)
		u.submitted(a)
		pinned(2) // they came together
		u.submitted(b)
		pinned(0)
		chunk(-3)
		u.stored(fmt.Errorf("store blob: %w", syscall.ENOSPC))
		pinned(0)
		if !u.idle() {
			t.Error("something is left")
		}
	})
}
