package apitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
)

// Missing implements api.Service.
func (f *Fake) Missing(_ context.Context, ask []transfer.Hash) ([]transfer.Hash, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var missing []transfer.Hash
	for _, h := range ask {
		if _, ok := f.chunks[h]; !ok {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

// PutChunk implements api.Service.
func (f *Fake) PutChunk(_ context.Context, h transfer.Hash, data []byte) error {
	switch {
	case len(data) > transfer.MaxBlob:
		return fmt.Errorf("%w: chunk of %d bytes", api.ErrInvalid, len(data))
	case transfer.HashOf(data) != h:
		return fmt.Errorf("%w: chunk is not %v", api.ErrInvalid, h)
	}
	f.change(func() { f.chunks[h] = bytes.Clone(data) })
	return nil
}

// Chunk implements api.Service.
func (f *Fake) Chunk(_ context.Context, _ string, h transfer.Hash) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if data, ok := f.chunks[h]; ok {
		return bytes.Clone(data), nil
	}
	return nil, fmt.Errorf("chunk %v: %w", h, api.ErrNotFound)
}

// Refer implements api.Service: no file is where the Fake is.
func (f *Fake) Refer(context.Context, transfer.File) error { return transfer.ErrElsewhere }

// Locate implements api.Service: chunks are in no file.
func (f *Fake) Locate(context.Context, transfer.Hash) (transfer.File, error) {
	return transfer.File{}, nil
}

// Snapshot implements api.Service: no rank has made a file.
func (f *Fake) Snapshot(_ context.Context, name string, rank int, _ []string) (jobs.RankOutput, error) {
	j, err := f.Find(name)
	if err != nil {
		return jobs.RankOutput{}, err
	}
	if j.Status().State.Final() {
		return jobs.RankOutput{}, fmt.Errorf("%w: job %s has ended", jobs.ErrNotRunning, name)
	}
	return jobs.RankOutput{Rank: rank}, nil
}

// Cache implements api.Service: nobody needs a chunk, and none is damaged.
func (f *Fake) Cache(_ context.Context, care api.CacheOp) (api.Cache, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var c api.Cache
	var bytes int64
	for _, data := range f.chunks {
		bytes += int64(len(data))
	}
	if care.Verify {
		c.Verified = &transfer.Checked{Blobs: len(f.chunks), Bytes: bytes, Damaged: []transfer.Hash{}}
	}
	if care.Prune {
		c.Pruned = &transfer.Pruned{Blobs: len(f.chunks), Bytes: bytes}
		clear(f.chunks)
		bytes = 0
	}
	c.Contents = transfer.Contents{Usage: transfer.Usage{Blobs: len(f.chunks), Bytes: bytes}, Needs: []transfer.Need{}}
	return c, nil
}

func testSnapshot(t *testing.T, f *Fake, s api.Service) {
	j := submit(t, f, s)
	got, err := s.Snapshot(t.Context(), "last", 3, []string{"out-*"})
	same(t, "Snapshot", got, err, jobs.RankOutput{Rank: 3})
	if _, err := s.Snapshot(t.Context(), "zzz", 0, []string{"*"}); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	j.Update(func(st *jobs.Status) { st.State = jobs.Completed })
	if _, err := s.Snapshot(t.Context(), "last", 0, []string{"*"}); !errors.Is(err, jobs.ErrNotRunning) {
		t.Errorf("got %v, want ErrNotRunning", err)
	}
}

func testFilesOfTheNode(t *testing.T, _ *Fake, s api.Service) {
	f := transfer.File{Path: "/data", Stamp: transfer.Stamp{Size: 1, Inode: 2}, Chunks: transfer.HashList{transfer.HashOf(nil)}}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	if err := s.Refer(t.Context(), f); !errors.Is(err, transfer.ErrElsewhere) {
		t.Errorf("got %v, want ErrElsewhere", err)
	}
	if at, err := s.Locate(t.Context(), transfer.HashOf(nil)); err != nil || !reflect.DeepEqual(at, transfer.File{}) {
		t.Errorf("got %+v, %v", at, err)
	}
}

func testCache(t *testing.T, _ *Fake, s api.Service) {
	data := []byte("data")
	if err := s.PutChunk(t.Context(), transfer.HashOf(data), data); err != nil {
		t.Fatal(err)
	}
	none := []transfer.Need{}
	held := transfer.Contents{Usage: transfer.Usage{Blobs: 1, Bytes: 4}, Needs: none}
	got, err := s.Cache(t.Context(), api.CacheOp{})
	same(t, "Cache", got, err, api.Cache{Contents: held})
	got, err = s.Cache(t.Context(), api.CacheOp{Verify: true, Prune: true})
	same(t, "Cache", got, err, api.Cache{
		Contents: transfer.Contents{Needs: none},
		Verified: &transfer.Checked{Blobs: 1, Bytes: 4, Damaged: []transfer.Hash{}},
		Pruned:   &transfer.Pruned{Blobs: 1, Bytes: 4},
	})
}

func testChunks(t *testing.T, _ *Fake, s api.Service) {
	ctx := t.Context()
	data := []byte("chunk")
	h, other := transfer.HashOf(data), transfer.HashOf([]byte("other"))
	if err := s.PutChunk(ctx, h, data); err != nil {
		t.Fatal(err)
	}
	if err := s.PutChunk(ctx, other, data); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("wrong hash: got %v, want ErrInvalid", err)
	}
	big := make([]byte, transfer.MaxBlob+1)
	if err := s.PutChunk(ctx, transfer.HashOf(big), big); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("too big: got %v, want ErrInvalid", err)
	}
	got, err := s.Chunk(ctx, "", h)
	same(t, "Chunk", got, err, data)
	if _, err := s.Chunk(ctx, "", other); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("unknown: got %v, want ErrNotFound", err)
	}
	ask := []transfer.Hash{h, other}
	for i := range 40_000 { // more than one question
		ask = append(ask, transfer.HashOf([]byte{byte(i), byte(i >> 8), 1}))
	}
	missing, err := s.Missing(ctx, ask)
	same(t, "Missing", missing, err, ask[1:])
}
