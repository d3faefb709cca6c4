package exchange_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/internal/seeds"
	"zorilla/transfer"
	"zorilla/transfer/exchange"
	"zorilla/vicinity"
)

// A node that is killed while it fetches has in its next life what had come: no byte of that
// is sent again, and what was half written is not taken for a chunk.
func TestFetcherIsKilled(t *testing.T) {
	seed := seeds.One(t)
	rnd := rand.New(rand.NewPCG(seed, 5))
	synctest.Test(t, func(t *testing.T) {
		sw := newNetwork()
		const chunks = 40
		h, m := sw.add(t, chunks, "tail")
		dir := t.TempDir()
		var moved int64
		lives := 0
		for done := false; !done; lives++ {
			if lives > chunks {
				t.Fatalf("seed %d: still not all after %d lives", seed, lives)
			}
			store := transfer.NewDirStore(dir, 0)
			if err := store.Open(); err != nil {
				t.Fatal(err)
			}
			before := held(store, m)
			ctx, kill := context.WithCancelCause(t.Context())
			left := 1 + rnd.IntN(12)
			var mu sync.Mutex
			last := int64(0)
			_, stats, err := sw.fetcher(store, seed).Fetch(ctx, "job", h, []vicinity.ID{"za", "zb"}, func(s transfer.Stats) {
				mu.Lock()
				defer mu.Unlock()
				if s.Fetched == last {
					return
				}
				last = s.Fetched
				if left--; left == 0 {
					kill(errStop)
				}
			})
			kill(errStop)
			if err != nil && !errors.Is(err, errStop) {
				t.Fatal(err)
			}
			if err == nil && stats.Cached != before {
				t.Errorf("seed %d: %d bytes were there, it says %d", seed, before, stats.Cached)
			}
			moved += stats.Fetched
			done = err == nil
			if err := tear(dir, store, m); err != nil {
				t.Fatal(err)
			}
			if done {
				complete(t, store, m)
			}
		}
		if moved != m.Size() {
			t.Errorf("seed %d: %d bytes were taken in %d lives, of %d", seed, moved, lives, m.Size())
		}
		if lives < 2 {
			t.Errorf("seed %d: it was never killed", seed)
		}
	})
}

// tear leaves in the directory of a store a blob and the chunk of a large file that were being
// written when the power went.
func tear(dir string, s transfer.Store, m transfer.Manifest) error {
	if err := os.WriteFile(filepath.Join(dir, "tmp", "half"), make([]byte, transfer.ChunkSize/2), 0o600); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "assembled", "*"))
	if err != nil || len(files) == 0 {
		return cmp.Or(err, errors.New("no file is assembled"))
	}
	i := slices.IndexFunc(m.Entries[0].Chunks, func(h transfer.Hash) bool { return !s.Has(h) })
	if i < 0 {
		return nil
	}
	f, err := os.OpenFile(files[0], os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(bytes.Repeat([]byte("torn"), transfer.ChunkSize/16), int64(i)*transfer.ChunkSize)
	return errors.Join(err, f.Close())
}

// held is how many bytes of a tree are in a store.
func held(s transfer.PinStore, m transfer.Manifest) (sum int64) {
	for _, c := range m.DistinctChunks() {
		if s.Has(c.Hash) || s.Keep(c.Hash, false) {
			sum += int64(c.Size)
		}
	}
	return sum
}

// narrow is a store on a disk that has room for so many blobs only.
type narrow struct {
	transfer.PinStore
	room atomic.Int64
}

func (n *narrow) Put(h transfer.Hash, data []byte) error {
	if n.room.Add(-1) < 0 {
		return syscall.ENOSPC
	}
	return n.PinStore.Put(h, data)
}

func (n *narrow) PutVerified(h transfer.Hash, data []byte) error { return n.Put(h, data) }

// A fetch ends when the disk is full, with that reason, and is tried again when there is
// room: it goes on where it was.
func TestFetchGoesOnWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newNetwork()
		h, m := sw.add(t, 20, "tail")
		store := &narrow{PinStore: transfer.NewMemStore(0)}
		store.room.Store(8)
		began := time.Now()
		_, first, err := sw.fetcher(store, 1).Fetch(t.Context(), "job", h, []vicinity.ID{"za", "zb"}, nil)
		if !errors.Is(err, syscall.ENOSPC) || time.Since(began) > time.Second {
			t.Fatalf("got %v after %v", err, time.Since(began))
		}
		store.room.Store(100)
		_, second, err := sw.fetcher(store, 1).Fetch(t.Context(), "job", h, []vicinity.ID{"za", "zb"}, nil)
		if err != nil || first.Fetched == 0 || second.Cached != first.Fetched || second.Cached+second.Fetched != m.Size() {
			t.Errorf("first %+v, then %+v, %v", first, second, err)
		}
		complete(t, store, m)
	})
}

// A holder that is stopped while it sends is left for another one, and what it has sent of a
// chunk by then is not kept.
func TestHolderIsKilledInAChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newNetwork()
		h, m := sw.add(t, 12, "tail")
		var asked atomic.Int64
		sw.act["zdies"] = func(ctx context.Context, h transfer.Hash) (io.ReadCloser, error) {
			if asked.Add(1) > 4 {
				return nil, errors.New("connection refused")
			}
			data, err := sw.store.Get(h, nil)
			r, w := io.Pipe()
			go func() {
				_, _ = w.Write(data[:len(data)/3]) // until nobody reads
				time.Sleep(time.Second)
				w.CloseWithError(syscall.ECONNRESET)
			}()
			return r, err
		}
		store := transfer.NewMemStore(0)
		_, stats, err := sw.fetcher(store, 2).Fetch(t.Context(), "job", h, []vicinity.ID{"zdies", "zlives"}, nil)
		if err != nil || stats.Fetched != m.Size() || asked.Load() == 0 {
			t.Fatalf("%+v, %v, asked %d times", stats, err, asked.Load())
		}
		for _, hash := range m.Chunks() {
			if data, err := store.Get(hash, nil); err != nil || transfer.HashOf(data) != hash {
				t.Errorf("%s: %v", hash, err)
			}
		}
	})
}

// stuck is a receiver that takes nothing until it is let go.
type stuck struct {
	*httptest.ResponseRecorder
	gate chan struct{}
}

func (s stuck) Write(b []byte) (int, error) {
	<-s.gate
	return s.ResponseRecorder.Write(b)
}

// patient is a receiver that counts how often it is told to wait.
type patient struct {
	*httptest.ResponseRecorder
	told *int
}

func (p patient) WriteHeader(status int) {
	if status == http.StatusProcessing {
		*p.told++
		return
	}
	p.ResponseRecorder.WriteHeader(status)
}

// Receivers that take nothing are served beside others, not before them.
func TestSlowReceiversHoldNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := transfer.NewMemStore(0)
		if err := store.Put(hashA, []byte("a")); err != nil {
			t.Fatal(err)
		}
		handler := exchange.New(exchange.Config{Store: store}).Handler()
		ask := func(w http.ResponseWriter) {
			handler.ServeHTTP(w, httptest.NewRequest("GET", "/v1/blobs/"+hashA.String(), nil))
		}
		gate := make(chan struct{})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { ask(stuck{httptest.NewRecorder(), gate}) })
		}
		synctest.Wait()
		began := time.Now()
		w := patient{httptest.NewRecorder(), new(int)}
		ask(w)
		if d := time.Since(began); w.Code != 200 || d > 20*time.Second || *w.told == 0 {
			t.Errorf("answered %d after %v, and told %d times that it will be", w.Code, d, *w.told)
		}
		close(gate)
		wg.Wait()
	})
}
