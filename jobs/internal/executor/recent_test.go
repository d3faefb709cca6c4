package executor

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/transfer"
)

// Of snapshots that are made again and again the latest few are kept, and those not for ever.
func TestRecentSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := transfer.NewMemStore(1) // what nobody needs goes at once
		r := NewRecent(store)
		var hashes []transfer.Hash
		kept := func() (n int) {
			for _, h := range hashes {
				if store.Has(h) {
					n++
				}
			}
			return n
		}
		add := func(worker string, err error) {
			pin, done := r.Begin(worker)
			data := fmt.Append(nil, worker, len(hashes))
			h := transfer.HashOf(data)
			if err := transfer.PinTo(store, pin).Put(h, data); err != nil {
				t.Fatal(err)
			}
			hashes = append(hashes, h)
			done(err)
		}
		for range 100 {
			add("a", nil)
			add("b", nil)
			time.Sleep(2 * time.Second)
		}
		if n := kept(); n != 2*recentKept || !store.Has(hashes[len(hashes)-1]) {
			t.Fatalf("%d snapshots of two workers are kept", n)
		}
		add("a", errors.New("the disk is full"))
		if store.Has(hashes[len(hashes)-1]) {
			t.Error("a snapshot that failed is kept")
		}
		time.Sleep(recentFor - time.Minute)
		add("a", nil)
		time.Sleep(2 * time.Minute)
		if n := kept(); n != recentKept {
			t.Errorf("%d are kept after some minutes, of who asked lately %d", n, recentKept)
		}
		time.Sleep(recentFor)
		if n := kept(); n != 0 || slices.ContainsFunc(hashes, store.Has) || len(r.of) != 0 {
			t.Errorf("%d are kept in the end", n)
		}
	})
}
