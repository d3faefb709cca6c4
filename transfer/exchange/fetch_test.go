package exchange_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/transfer"
	"zorilla/transfer/exchange"
	"zorilla/vicinity"
)

// network is a set of holders as a Source sees them. What a holder does with a
// request is decided by its entry in act.
type network struct {
	mu     sync.Mutex // guards what follows
	store  *transfer.MemStore
	act    map[vicinity.ID]func(ctx context.Context, h transfer.Hash) (io.ReadCloser, error)
	asked  map[vicinity.ID]int
	chunks map[transfer.Hash]int // requests that gave the right bytes
	now    int                   // requests at this moment
	most   int
}

func newNetwork() *network {
	return &network{
		store:  transfer.NewMemStore(0),
		act:    make(map[vicinity.ID]func(context.Context, transfer.Hash) (io.ReadCloser, error)),
		asked:  make(map[vicinity.ID]int),
		chunks: make(map[transfer.Hash]int),
	}
}

// Source answers after a moment of virtual time.
func (s *network) Source(ctx context.Context, holder vicinity.ID, h transfer.Hash) (io.ReadCloser, error) {
	s.mu.Lock()
	act := s.act[holder]
	s.asked[holder]++
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}()
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if act != nil {
		return act(ctx, h)
	}
	return s.good(ctx, h)
}

func (s *network) good(_ context.Context, h transfer.Hash) (io.ReadCloser, error) {
	data, err := s.store.Get(h, nil)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chunks[h]++
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (s *network) askedOf(id vicinity.ID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[id]
}

// add puts a tree of one file with that many chunks into the network.
func (s *network) add(t *testing.T, chunks int, tail string) (transfer.Hash, transfer.Manifest) {
	t.Helper()
	e := transfer.Entry{Path: "file"}
	for i := range chunks {
		data := bytes.Repeat([]byte{byte(i), tail[0]}, transfer.ChunkSize/2)
		if i == chunks-1 {
			data = []byte(tail)
		}
		h := transfer.HashOf(data)
		if err := s.store.Put(h, data); err != nil {
			t.Fatal(err)
		}
		e.Size += int64(len(data))
		e.Chunks = append(e.Chunks, h)
	}
	m, err := transfer.NewManifest([]transfer.Entry{e})
	if err != nil {
		t.Fatal(err)
	}
	h, err := transfer.SaveManifest(s.store, m)
	if err != nil {
		t.Fatal(err)
	}
	return h, m
}

func (s *network) fetcher(store transfer.PinStore, seed uint64) *exchange.Exchange {
	return exchange.New(exchange.Config{Store: store, Source: s.Source, Rand: rand.New(rand.NewPCG(seed, 2))})
}

func complete(t *testing.T, s transfer.Store, m transfer.Manifest) {
	t.Helper()
	for i, h := range m.Chunks() {
		if !s.Has(h) {
			t.Errorf("chunk %d is missing", i)
		}
	}
}

func fails(err error) func(context.Context, transfer.Hash) (io.ReadCloser, error) {
	return func(context.Context, transfer.Hash) (io.ReadCloser, error) { return nil, err }
}

func says(data []byte) func(context.Context, transfer.Hash) (io.ReadCloser, error) {
	return func(context.Context, transfer.Hash) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}
}

var (
	errStop = errors.New("stop")
	hashA   = transfer.HashOf([]byte("a"))
)

func TestFetchSpreadsOverHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newNetwork()
		h, m := sw.add(t, 60, "tail")
		store := transfer.NewMemStore(0)
		f := sw.fetcher(store, 1)
		holders := []vicinity.ID{"za", "zb", "zc", "za", ""}
		got, stats, err := f.Fetch(t.Context(), "job", h, holders, nil)
		if err != nil {
			t.Fatal(err)
		}
		complete(t, store, m)
		if got.Size() != m.Size() || stats != (transfer.Stats{Fetched: m.Size()}) {
			t.Errorf("got %d bytes, %+v", got.Size(), stats)
		}
		for _, id := range holders[:3] {
			if n := sw.asked[id]; n < 8 || n > 35 {
				t.Errorf("%s was asked %d times of 61", id, n)
			}
		}
		if sw.most < 4 || sw.most > 16 || sw.asked[""] != 0 {
			t.Errorf("%d requests at a time", sw.most)
		}
		_, stats, err = f.Fetch(t.Context(), "other job", h, nil, nil)
		if err != nil || stats != (transfer.Stats{Cached: m.Size()}) {
			t.Errorf("again: got %+v, %v", stats, err)
		}
	})
}

func TestFetchGetsAroundBadHolders(t *testing.T) {
	chunk := bytes.Repeat([]byte("x"), transfer.ChunkSize)
	for name, c := range map[string]struct {
		act  func(context.Context, transfer.Hash) (io.ReadCloser, error)
		most int // requests that the bad one may get, of 41
	}{
		"misses everything": {fails(transfer.ErrNotFound), 5},
		"refuses":           {fails(errors.New("connection refused")), 5},
		"lies":              {says(chunk), 4},
		"cuts off":          {says(chunk[:100]), 4},
		"sends nothing":     {says(nil), 4},
		"sends too much":    {says(append(chunk, 1)), 4},
		"endless":           {func(context.Context, transfer.Hash) (io.ReadCloser, error) { return io.NopCloser(zeros{}), nil }, 4},
		"breaks":            {func(context.Context, transfer.Hash) (io.ReadCloser, error) { return &broken{}, nil }, 5},
		"hangs": {func(ctx context.Context, _ transfer.Hash) (io.ReadCloser, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, 5},
		"hangs in the body": {func(ctx context.Context, _ transfer.Hash) (io.ReadCloser, error) { return &drip{ctx, time.Hour}, nil }, 5},
		"drips":             {func(ctx context.Context, _ transfer.Hash) (io.ReadCloser, error) { return &drip{ctx, time.Second}, nil }, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sw := newNetwork()
				h, m := sw.add(t, 40, "tail")
				sw.act["zbad"] = c.act
				store := transfer.NewMemStore(0)
				began := time.Now()
				_, stats, err := sw.fetcher(store, 3).Fetch(t.Context(), "job", h, []vicinity.ID{"zbad", "zgood"}, nil)
				if err != nil {
					t.Fatal(err)
				}
				complete(t, store, m)
				if stats.Fetched != m.Size() {
					t.Errorf("stats %+v", stats)
				}
				if n := sw.askedOf("zbad"); n > c.most {
					t.Errorf("the bad holder was asked %d times", n)
				}
				if d := time.Since(began); d > 40*time.Second {
					t.Errorf("took %v", d)
				}
			})
		})
	}
}

// drip sends a byte now and then.
type drip struct {
	ctx   context.Context
	pause time.Duration
}

func (d *drip) Read(b []byte) (int, error) {
	select {
	case <-time.After(d.pause):
		b[0] = 'x'
		return 1, nil
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
}

func (d *drip) Close() error { return nil }

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

type broken struct{ read int }

func (r *broken) Read(b []byte) (int, error) {
	if r.read += len(b); r.read > 1000 {
		return 0, io.ErrUnexpectedEOF
	}
	return len(b), nil
}

func (r *broken) Close() error { return nil }

func TestFetchWaitsForAHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newNetwork()
		h, m := sw.add(t, 3, "tail")
		back := time.Now().Add(20 * time.Second)
		sw.act["zorigin"] = func(ctx context.Context, h transfer.Hash) (io.ReadCloser, error) {
			if time.Now().Before(back) {
				return nil, errors.New("connection refused")
			}
			return sw.good(ctx, h)
		}
		store := transfer.NewMemStore(0)
		if _, _, err := sw.fetcher(store, 1).Fetch(t.Context(), "job", h, []vicinity.ID{"zorigin"}, nil); err != nil {
			t.Fatal(err)
		}
		complete(t, store, m)
		if n := sw.askedOf("zorigin"); n > 25 {
			t.Errorf("asked %d times", n)
		}
	})
}

func TestFetchGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newNetwork()
		h, m := sw.add(t, 2, "tail")
		lost := m.Chunks()[1]
		sw.act["zdown2"] = fails(errors.New("connection refused"))
		sw.act["zmiss2"] = func(ctx context.Context, h transfer.Hash) (io.ReadCloser, error) {
			if h == lost {
				return nil, fmt.Errorf("%w: %s", transfer.ErrNotFound, h)
			}
			return sw.good(ctx, h)
		}
		store := transfer.NewMemStore(0)
		began := time.Now()
		_, stats, err := sw.fetcher(store, 1).Fetch(t.Context(), "job", h, []vicinity.ID{"zdown2", "zmiss2"}, nil)
		if !errors.Is(err, transfer.ErrNoHolder) {
			t.Fatalf("got %v, want ErrNoHolder", err)
		}
		for _, part := range []string{lost.String(), "; zdown: connection refused", "; zmiss: blob not found"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("no %q in %v", part, err)
			}
		}
		if d := time.Since(began); d < 20*time.Second || d > 31*time.Second {
			t.Errorf("gave up after %v, want 30 s", d)
		}
		if stats.Fetched != transfer.ChunkSize {
			t.Errorf("stats %+v", stats)
		}
		// What came is kept, the rest follows later.
		_, stats, err = sw.fetcher(store, 1).Fetch(t.Context(), "job", h, []vicinity.ID{"zwell"}, nil)
		if err != nil || stats != (transfer.Stats{Fetched: 4, Cached: transfer.ChunkSize}) {
			t.Errorf("later: %+v, %v", stats, err)
		}
	})
}

func TestFetchGivesUpAtOnceWithoutHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newNetwork()
		h, _ := sw.add(t, 2, "tail")
		sw.act["zliar"] = says([]byte("lie"))
		for _, holders := range [][]vicinity.ID{nil, {""}, {"zliar"}} {
			began := time.Now()
			_, _, err := sw.fetcher(transfer.NewMemStore(0), 1).Fetch(t.Context(), "job", h, holders, nil)
			if !errors.Is(err, transfer.ErrNoHolder) || time.Since(began) > time.Second {
				t.Errorf("%q: got %v after %v", holders, err, time.Since(began))
			}
		}
		if _, _, err := sw.fetcher(transfer.NewMemStore(0), 1).Fetch(t.Context(), "job", transfer.Hash{}, []vicinity.ID{"za"}, nil); !errors.Is(err, transfer.ErrManifest) {
			t.Errorf("no hash: got %v", err)
		}
	})
}

func TestFetchRefusesWhatIsNoManifest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newNetwork()
		data := []byte("not a manifest")
		h := transfer.HashOf(data)
		if err := sw.store.Put(h, data); err != nil {
			t.Fatal(err)
		}
		_, _, err := sw.fetcher(transfer.NewMemStore(0), 1).Fetch(t.Context(), "job", h, []vicinity.ID{"za"}, nil)
		if !errors.Is(err, transfer.ErrManifest) {
			t.Errorf("got %v, want ErrManifest", err)
		}
	})
}

func TestFetchesOfTheSameChunkAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newNetwork()
		h, m := sw.add(t, 20, "tail")
		store := transfer.NewMemStore(0)
		f := sw.fetcher(store, 1)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var sum transfer.Stats
		for i := range 5 {
			wg.Go(func() {
				_, stats, err := f.Fetch(t.Context(), fmt.Sprint(i), h, []vicinity.ID{"za", "zb"}, nil)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				sum.Fetched += stats.Fetched
				sum.Cached += stats.Cached
			})
		}
		wg.Wait()
		complete(t, store, m)
		for h, n := range sw.chunks {
			if n != 1 {
				t.Errorf("%s was fetched %d times", h, n)
			}
		}
		if sum != (transfer.Stats{Fetched: m.Size(), Cached: 4 * m.Size()}) {
			t.Errorf("together %+v", sum)
		}
	})
}

func TestAnotherFetchTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newNetwork()
		h, m := sw.add(t, 6, "tail")
		sw.act["zdead"] = func(ctx context.Context, _ transfer.Hash) (io.ReadCloser, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		store := transfer.NewMemStore(0)
		f := sw.fetcher(store, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, _, err := f.Fetch(ctx, "first", h, []vicinity.ID{"zdead"}, nil); !errors.Is(err, errStop) {
				t.Errorf("the cancelled fetch: got %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, _, err := f.Fetch(t.Context(), "second", h, []vicinity.ID{"zgood"}, nil); err != nil {
				t.Errorf("the other fetch: got %v", err)
			}
		})
		time.Sleep(time.Second)
		cancel(errStop)
		wg.Wait()
		complete(t, store, m)
	})
}

func TestFetchedChunksAreNotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newNetwork()
		h, m := sw.add(t, 10, "tail")
		h2, m2 := sw.add(t, 10, "another")
		store := transfer.NewMemStore(2 << 20)
		f := sw.fetcher(store, 1)
		for owner, h := range map[string]transfer.Hash{"job": h, "job2": h2} {
			if _, _, err := f.Fetch(t.Context(), owner, h, []vicinity.ID{"za"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		complete(t, store, m)
		complete(t, store, m2)
		store.Unpin("job")
		complete(t, store, m2)
		if u := store.Usage(); u.Bytes-u.Pinned > 2<<20 || u.Pinned < 9<<20 {
			t.Errorf("after Unpin: %+v", u)
		}
	})
}

// fullStore cannot take anything in.
type fullStore struct{ *transfer.MemStore }

func (fullStore) Put(transfer.Hash, []byte) error { return syscall.ENOSPC }

func (fullStore) PutVerified(transfer.Hash, []byte) error { return syscall.ENOSPC }

func TestFetchReportsAFullDiskAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newNetwork()
		h, _ := sw.add(t, 3, "tail")
		store := struct{ transfer.PinStore }{fullStore{transfer.NewMemStore(0)}}
		began := time.Now()
		_, _, err := sw.fetcher(store, 1).Fetch(t.Context(), "job", h, []vicinity.ID{"za", "zb"}, nil)
		if !errors.Is(err, syscall.ENOSPC) || time.Since(began) > time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}
