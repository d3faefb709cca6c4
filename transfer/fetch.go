package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"zorilla/vicinity"
)

// Source asks one holder for one blob. It honours ctx, also while the body is
// read, and returns ErrNotFound if the holder says that it has no such blob.
// What it gives is verified by the caller.
type Source func(ctx context.Context, holder vicinity.ID, h Hash) (io.ReadCloser, error)

// FetcherConfig says how a Fetcher works. Zero values mean the defaults.
type FetcherConfig struct {
	Store  PinStore   // required
	Source Source     // required
	Rand   *rand.Rand // used by nobody else; nil = seeded at random

	Parallel int           // requests at a time for each Fetch; 4
	Patience time.Duration // how long one blob is asked for before Fetch gives up; 30 s
	Stall    time.Duration // how long a holder may send nothing; 10 s
}

// Fetcher brings blobs of other nodes into a store. Any number of fetches may
// run at a time; what several need is fetched once.
type Fetcher struct {
	cfg FetcherConfig

	mu      sync.Mutex // guards what follows
	rnd     *rand.Rand
	flights map[Hash]chan struct{} // blobs being fetched; closed at the end
}

// NewFetcher returns a Fetcher. It starts nothing.
func NewFetcher(cfg FetcherConfig) *Fetcher {
	cfg.Parallel = cmp.Or(cfg.Parallel, parallel)
	cfg.Patience = cmp.Or(cfg.Patience, 30*time.Second)
	cfg.Stall = cmp.Or(cfg.Stall, 10*time.Second)
	if cfg.Rand == nil {
		cfg.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	return &Fetcher{cfg: cfg, rnd: cfg.Rand, flights: make(map[Hash]chan struct{})}
}

// Stats counts the bytes of the distinct chunks of a tree.
type Stats struct {
	Fetched int64 `json:"fetched"` // moved for this fetch
	Cached  int64 `json:"cached"`  // held already, or moved for another fetch
}

// Fetch brings a manifest and all its chunks into the store, pinned for
// owner, and returns the manifest. Every blob comes from one of the holders,
// chosen at random; if that one fails, from the next. The origin of the tree
// should be among them.
//
// It fails with ErrNoHolder if nobody gives a blob within the configured
// patience, and with ErrManifest if the hash names something else. What it
// got until then stays pinned, so that the next Fetch goes on from there,
// until the caller unpins owner.
//
// tell, unless it is nil, is called with what is there so far, once after
// another; it must return at once.
func (f *Fetcher) Fetch(ctx context.Context, owner string, manifest Hash, holders []vicinity.ID, tell func(Stats)) (Manifest, Stats, error) {
	var stats Stats
	if manifest.IsZero() {
		return Manifest{}, stats, fmt.Errorf("fetch: %w: no hash", ErrManifest)
	}
	r := newRoster(holders)
	f.cfg.Store.Pin(owner, manifest)
	m, err := f.manifest(ctx, manifest, r)
	if err != nil {
		return Manifest{}, stats, err
	}
	chunks := m.sizedChunks()
	hashes := make([]Hash, len(chunks))
	for i, c := range chunks {
		hashes[i] = c.hash
	}
	f.cfg.Store.Pin(owner, hashes...)
	// Nodes that fetch the same tree at the same time take its chunks in
	// different orders, so that each soon has something for the others.
	f.shuffle(len(chunks), func(i, j int) { chunks[i], chunks[j] = chunks[j], chunks[i] })
	var mu sync.Mutex // guards stats, and orders the calls of tell
	add := func(more Stats) {
		mu.Lock()
		defer mu.Unlock()
		stats.Fetched += more.Fetched
		stats.Cached += more.Cached
		if tell != nil {
			tell(stats)
		}
	}
	p := newPool(ctx, min(f.cfg.Parallel, len(chunks)))
	for _, c := range chunks {
		if f.cfg.Store.Has(c.hash) {
			add(Stats{Cached: int64(c.size)})
			continue
		}
		err = p.do(func(ctx context.Context, buf []byte) error {
			moved, err := f.want(ctx, c.hash, c.size, r, buf)
			if moved {
				add(Stats{Fetched: int64(c.size)})
			} else if err == nil {
				add(Stats{Cached: int64(c.size)})
			}
			return err
		})
		if err != nil {
			break
		}
	}
	err = p.wait(err)
	return m, stats, err
}

type sizedChunk struct {
	hash Hash
	size int
}

// Distinct returns the bytes of all distinct chunks: what there is to fetch.
func (m *Manifest) Distinct() int64 {
	n := int64(0)
	for _, c := range m.sizedChunks() {
		n += int64(c.size)
	}
	return n
}

// sizedChunks returns the distinct chunks and how long each should be.
func (m *Manifest) sizedChunks() []sizedChunk {
	var out []sizedChunk
	seen := make(map[Hash]struct{})
	for i := range m.Entries {
		e := &m.Entries[i]
		for k, h := range e.Chunks {
			if _, ok := seen[h]; !ok {
				seen[h] = struct{}{}
				out = append(out, sizedChunk{h, chunkLen(e.Size, k)})
			}
		}
	}
	return out
}

// manifest gets the manifest from the store, and from the holders if the
// store does not have it or finds its copy damaged.
func (f *Fetcher) manifest(ctx context.Context, h Hash, r *roster) (Manifest, error) {
	m, err := LoadManifest(f.cfg.Store, h)
	if !errors.Is(err, ErrNotFound) {
		return m, err
	}
	if _, err := f.want(ctx, h, anySize, r, nil); err != nil {
		return Manifest{}, err
	}
	return LoadManifest(f.cfg.Store, h)
}

func (f *Fetcher) shuffle(n int, swap func(i, j int)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rnd.Shuffle(n, swap)
}

func (f *Fetcher) jitter(d time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return d/2 + time.Duration(f.rnd.Int64N(int64(d)))
}

// join returns nil if the caller is now the one who fetches the blob, else
// what is closed when the one who does has ended.
func (f *Fetcher) join(h Hash) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.flights[h]; other != nil {
		return other
	}
	f.flights[h] = make(chan struct{})
	return nil
}

func (f *Fetcher) land(h Hash) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.flights[h])
	delete(f.flights, h)
}

// want brings one blob into the store and reports whether this call moved it.
// If another one fetches it already, it waits for that, and tries with its
// own holders if the other fails.
func (f *Fetcher) want(ctx context.Context, h Hash, size int, r *roster, buf []byte) (bool, error) {
	began := time.Now()
	for {
		other := f.join(h)
		if other == nil {
			break
		}
		select {
		case <-other:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	defer f.land(h)
	if f.cfg.Store.Has(h) || keep(f.cfg.Store, h) {
		return false, nil
	}
	err := f.pull(ctx, h, size, r, buf, began.Add(f.cfg.Patience))
	return err == nil, err
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// pull asks one holder after the other, again and again until the deadline.
func (f *Fetcher) pull(ctx context.Context, h Hash, size int, r *roster, buf []byte, deadline time.Time) error {
	why := make(map[vicinity.ID]error)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		asked := r.order(f.shuffle)
		for _, holder := range asked {
			data, err := f.ask(ctx, holder, h, size, buf)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err == nil {
				r.worked(holder)
				return putHashed(f.cfg.Store, h, data)
			}
			why[holder] = err
			r.failed(holder, err)
		}
		if wait := f.jitter(pause); len(asked) > 0 && time.Now().Add(wait).Before(deadline) {
			select {
			case <-time.After(wait):
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return fmt.Errorf("fetch %s: %w%s", h, ErrNoHolder, r.blame(why))
	}
}
