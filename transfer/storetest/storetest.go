// Package storetest is the suite that every transfer.PinStore passes.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"zorilla/transfer"
)

// Run tests the stores that open makes: empty ones that keep limit bytes of
// blobs that nobody pins, and evict others.
func Run(t *testing.T, open func(t *testing.T, limit int64) transfer.PinStore) {
	for _, c := range []struct {
		name  string
		limit int64
		test  func(t *testing.T, s transfer.PinStore)
	}{
		{"gives back what it got", 0, testRoundTrip},
		{"refuses bytes that are not the blob", 0, testMismatch},
		{"misses what it never got", 0, testMissing},
		{"makes durable what it holds", 2 * unit, testSync},
		{"uses the caller's buffer", 0, testBuffer},
		{"keeps no slice of the caller", 0, testNoAlias},
		{"evicts what was not used for longest", 3 * unit, testLeastRecentlyUsed},
		{"never evicts what is pinned", 2 * unit, testPins},
		{"lets go after the last owner", unit, testOwners},
		{"discards what nobody else needs", 8 * unit, testDiscard},
		{"serves many goroutines", 4 * unit, testConcurrent},
		{"takes verified bytes at their word", unit, testPutVerified},
		{"gives a blob in parts", 0, testRead},
		{"keeps what it is to have for good", 0, testKeep},
		{"owns what it read in a file of others", 0, testOwn},
		{"says why a file of others is lost", 0, testLost},
		{"pins what goes through PinTo", unit, testPinTo},
		{"gives files away, and takes them back", 0, testFiles},
		{"is looked after", 0, testKeeper},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t, c.limit)) })
	}
}

// unit is a blob's size that stores account exactly.
const unit = 64 << 10

// blob returns the i-th blob of unit bytes and its hash.
func blob(i int) (transfer.Hash, []byte) {
	b := bytes.Repeat([]byte{byte(i), byte(i >> 8), 'x', 'y'}, unit/4)
	return transfer.HashOf(b), b
}

func put(t *testing.T, s transfer.PinStore, i int) transfer.Hash {
	t.Helper()
	h, b := blob(i)
	if err := s.Put(h, b); err != nil {
		t.Fatal(err)
	}
	return h
}

func want(t *testing.T, s transfer.PinStore, held ...bool) {
	t.Helper()
	for i, want := range held {
		h, b := blob(i)
		if got := s.Has(h); got != want {
			t.Errorf("blob %d: held is %v, want %v", i, got, want)
		}
		got, err := s.Get(h, nil)
		if want && (err != nil || !bytes.Equal(got, b)) {
			t.Errorf("blob %d: got %d bytes, %v", i, len(got), err)
		}
		if !want && !errors.Is(err, transfer.ErrNotFound) {
			t.Errorf("blob %d: got %v, want ErrNotFound", i, err)
		}
	}
}

func testSync(t *testing.T, s transfer.PinStore) {
	s.StartEviction()
	var all []transfer.Hash
	for i := range 3 {
		all = append(all, put(t, s, i))
	}
	for range 2 {
		if err := s.Sync(all[1:]...); err != nil {
			t.Errorf("sync of what is held: %v", err)
		}
		if err := s.Sync(all...); !errors.Is(err, transfer.ErrNotFound) {
			t.Errorf("sync of what was evicted: got %v, want ErrNotFound", err)
		}
	}
}

func testRoundTrip(t *testing.T, s transfer.PinStore) {
	for _, n := range []int{0, 1, unit, transfer.ChunkSize, 3*transfer.ChunkSize + 7} {
		b := bytes.Repeat([]byte{byte(n)}, n)
		h := transfer.HashOf(b)
		for range 2 { // putting again changes nothing
			if err := s.Put(h, b); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
		if got, err := s.Get(h, nil); err != nil || !bytes.Equal(got, b) || !s.Has(h) {
			t.Errorf("%d bytes: got %d, %v", n, len(got), err)
		}
	}
}

func testMismatch(t *testing.T, s transfer.PinStore) {
	h, b := blob(0)
	b[7]++
	if err := s.Put(h, b); !errors.Is(err, transfer.ErrMismatch) {
		t.Errorf("got %v, want ErrMismatch", err)
	}
	huge := make([]byte, transfer.MaxBlob+1)
	if err := s.Put(transfer.HashOf(huge), huge); err == nil {
		t.Error("a blob larger than MaxBlob was accepted")
	}
	want(t, s, false)
}

func testMissing(t *testing.T, s transfer.PinStore) {
	want(t, s, false)
	if _, err := s.Get(transfer.Hash{}, nil); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("zero hash: got %v", err)
	}
	s.Unpin("nobody")
}

func testBuffer(t *testing.T, s transfer.PinStore) {
	h := put(t, s, 1)
	buf := make([]byte, transfer.ChunkSize)
	got, err := s.Get(h, buf)
	if err != nil || len(got) != unit || &got[0] != &buf[0] {
		t.Errorf("got %d bytes, %v, or another slice", len(got), err)
	}
	if got, err := s.Get(h, buf[:0:5]); err != nil || len(got) != unit {
		t.Errorf("small buffer: got %d bytes, %v", len(got), err)
	}
}

func testNoAlias(t *testing.T, s transfer.PinStore) {
	h, b := blob(0)
	if err := s.Put(h, b); err != nil {
		t.Fatal(err)
	}
	clear(b)
	got, err := s.Get(h, nil)
	if err != nil {
		t.Fatal(err)
	}
	clear(got)
	want(t, s, true)
}

func testLeastRecentlyUsed(t *testing.T, s transfer.PinStore) {
	first := put(t, s, 0)
	put(t, s, 1)
	put(t, s, 2)
	if _, err := s.Get(first, nil); err != nil {
		t.Fatal(err)
	}
	put(t, s, 3)
	want(t, s, true, false, true, true)
	want(t, s, true) // now 2 is the oldest
	put(t, s, 4)
	want(t, s, true, false, false, true, true)
}

func testPins(t *testing.T, s transfer.PinStore) {
	var pins []transfer.Hash
	for i := range 3 {
		h, _ := blob(i)
		pins = append(pins, h)
	}
	s.Pin("job", pins[:2]...)
	for i := range 6 {
		put(t, s, i)
		s.Pin("job", pins...) // pins the third when it is there
	}
	want(t, s, true, true, true, false, true, true)
	s.Unpin("job")
	if n := held(s, 6); n != 2 {
		t.Errorf("%d blobs are left, want 2", n)
	}
}

func held(s transfer.PinStore, blobs int) int {
	n := 0
	for i := range blobs {
		if h, _ := blob(i); s.Has(h) {
			n++
		}
	}
	return n
}

func testOwners(t *testing.T, s transfer.PinStore) {
	h := put(t, s, 0)
	s.Pin("a", h)
	s.Pin("b", h, h)
	s.Pin("b", h)
	if got := s.Pinned("b"); len(got) != 1 || got[0] != h {
		t.Errorf("b pins %v, want %v", got, h)
	}
	s.Unpin("b")
	if got := s.Pinned("b"); len(got) > 0 {
		t.Errorf("b pins %v after it has let go", got)
	}
	put(t, s, 1)
	put(t, s, 2)
	want(t, s, true, false, true)
	s.Unpin("a")
	s.Unpin("a")
	if n := held(s, 3); n != 1 {
		t.Errorf("%d blobs are left, want 1", n)
	}
}

func testDiscard(t *testing.T, s transfer.PinStore) {
	var h []transfer.Hash
	for i := range 4 {
		h = append(h, put(t, s, i))
	}
	missing, _ := blob(9)
	s.Pin("one", h[0], h[1], missing)
	s.Pin("two", h[1])
	s.Discard("nobody")
	s.Discard("one")
	want(t, s, false, true, true, true)
	s.Discard("two")
	want(t, s, false, false, true, true)
	put(t, s, 0)
	want(t, s, true, false, true, true)
}

func testConcurrent(t *testing.T, s transfer.PinStore) {
	pinned, data := blob(100)
	s.Pin("job", pinned)
	if err := s.Put(pinned, data); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			buf := make([]byte, unit)
			for i := range 60 {
				h, b := blob((i*7 + g) % 10)
				if err := s.Put(h, b); err != nil {
					t.Error(err)
				}
				got, err := s.Get(h, buf)
				if err != nil && !errors.Is(err, transfer.ErrNotFound) || err == nil && !bytes.Equal(got, b) {
					t.Error("got something else,", err)
				}
				owner := fmt.Sprint(g)
				s.Pin(owner, h)
				if err := s.Put(h, b); err != nil {
					t.Error(err)
				}
				if got, err := s.Get(h, buf); err != nil || !bytes.Equal(got, b) {
					t.Error("a pinned blob is gone:", err)
				}
				s.Unpin(owner)
			}
		})
	}
	wg.Wait()
	if got, err := s.Get(pinned, nil); err != nil || !bytes.Equal(got, data) {
		t.Error("the pinned blob is gone:", err)
	}
	if n := held(s, 10); n > 4 {
		t.Errorf("%d blobs are left, want at most 4", n)
	}
}
