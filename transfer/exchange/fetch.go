package exchange

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"zorilla/transfer"
	"zorilla/transfer/swarm"
	"zorilla/vicinity"
)

// anySize stands for the unknown size of a manifest.
const anySize = -1

// minSwarm is how many chunks a tree has at least whose holders are asked what they have:
// with fewer, that takes longer than it saves.
const minSwarm = 8

// Fetch brings a manifest and all its chunks into the store, pinned for
// owner, and returns the manifest. Holders are nodes that may have some of it; the
// origin of the tree should be the first of them. They name others.
//
// It fails with ErrNoHolder if nobody gives a blob within the configured
// patience, and with ErrManifest if the hash names something else. What it
// got until then stays pinned, so that the next Fetch goes on from there,
// until the caller unpins owner.
//
// tell, unless it is nil, is called with what is there so far, once after
// another; it must return at once.
func (x *Exchange) Fetch(
	ctx context.Context, owner string, manifest transfer.Hash, holders []vicinity.ID, tell func(transfer.Stats),
) (transfer.Manifest, transfer.Stats, error) {
	return x.fetch(ctx, owner, manifest, holders, tell, false)
}

// FetchToKeep is Fetch for what the caller will have the store Sync.
func (x *Exchange) FetchToKeep(
	ctx context.Context, owner string, manifest transfer.Hash, holders []vicinity.ID, tell func(transfer.Stats),
) (transfer.Manifest, transfer.Stats, error) {
	return x.fetch(ctx, owner, manifest, holders, tell, true)
}

func (x *Exchange) fetch(
	ctx context.Context, owner string, manifest transfer.Hash, holders []vicinity.ID, tell func(transfer.Stats), keep bool,
) (transfer.Manifest, transfer.Stats, error) {
	var stats transfer.Stats
	if manifest.IsZero() {
		return transfer.Manifest{}, stats, fmt.Errorf("fetch: %w: no hash", transfer.ErrManifest)
	}
	x.cfg.Store.Pin(owner, manifest)
	m, err := x.manifest(ctx, manifest, holders)
	if err != nil {
		return transfer.Manifest{}, stats, err
	}
	chunks := m.DistinctChunks()
	hashes := make([]transfer.Hash, len(chunks))
	for i, c := range chunks {
		hashes[i] = c.Hash
	}
	x.cfg.Store.Pin(owner, hashes...)
	defer x.cfg.Store.Expect(&m, keep)()
	t := x.trees.fetching(x, manifest, chunks)
	defer x.trees.fetched(t)
	if err := t.lead(ctx, holders); err != nil {
		return m, stats, err
	}
	defer t.rest()
	var mu sync.Mutex // guards stats and told, and orders the calls of tell
	var told time.Time
	r := &run{x: x, tree: t, chunks: chunks, beat: func() {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); tell != nil && now.Sub(told) >= tellAgain {
			told = now
			tell(stats)
		}
	}, add: func(i int, moved bool) {
		t.got(i)
		mu.Lock()
		defer mu.Unlock()
		if moved {
			stats.Fetched += int64(chunks[i].Size)
		} else {
			stats.Cached += int64(chunks[i].Size)
		}
		if tell != nil {
			tell(stats)
		}
	}}
	have := swarm.NewSet(len(chunks))
	for i, c := range chunks {
		if x.here(c.Hash) {
			have.Add(i)
			r.add(i, false)
		}
	}
	err = r.do(ctx, have, holders)
	return m, stats, err
}

// tellAgain is how often progress is reported while no chunk is complete: over a slow link
// each may take minutes.
const tellAgain = time.Second

// manifest gets the manifest from the store, and from the holders if the
// store does not have it or finds its copy damaged.
func (x *Exchange) manifest(ctx context.Context, h transfer.Hash, holders []vicinity.ID) (transfer.Manifest, error) {
	m, err := transfer.LoadManifest(x.cfg.Store, h)
	if !errors.Is(err, transfer.ErrNotFound) {
		return m, err
	}
	r := &run{x: x, chunks: []transfer.Chunk{{Hash: h, Size: anySize}}, add: func(int, bool) {}}
	if err := r.do(ctx, nil, holders); err != nil {
		return transfer.Manifest{}, err
	}
	return transfer.LoadManifest(x.cfg.Store, h)
}
