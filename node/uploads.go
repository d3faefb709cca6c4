package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"zorilla/node/api"
	"zorilla/transfer"
)

const (
	// uploadHold is how long what clients have uploaded is kept for the
	// submission that needs it, from the last sign of any upload.
	uploadHold = 10 * time.Minute
	// uploadMax is how long it is kept at most while others upload more.
	uploadMax = 24 * time.Hour
	// uploadBatch is how long chunks are put to the same batch.
	uploadBatch = time.Minute
)

// blobService is what clients do with single chunks.
type blobService struct {
	store   transfer.PinStore
	uploads uploads
}

// Missing returns the chunks that the node does not hold. The others are kept for
// who asks, as those that come.
func (s *blobService) Missing(_ context.Context, chunks []transfer.Hash) ([]transfer.Hash, error) {
	s.uploads.hold(chunks...)
	missing := []transfer.Hash{}
	for _, h := range chunks {
		if _, own := s.store.Holds(h); !own { // others' files are theirs to change
			missing = append(missing, h)
		}
	}
	return missing, nil
}

// Refer makes the store read chunks from a file of this machine, for the submission
// that needs them. It takes the word of the node's own user for what is in it, who can read
// what the node can.
func (s *blobService) Refer(ctx context.Context, f transfer.File) error {
	s.uploads.hold(f.Chunks...)
	how := transfer.Claimed
	if api.SameUser(ctx) {
		how = transfer.Hashed
	}
	err := s.store.Refer(f, how)
	s.uploads.stored(err)
	return err
}

// Locate names a large file of the store, for clients that may read it there.
func (s *blobService) Locate(_ context.Context, content transfer.Hash) (transfer.File, error) {
	return s.store.Locate(content), nil
}

// PutChunk stores one chunk, and keeps it for the submission that needs it.
func (s *blobService) PutChunk(_ context.Context, h transfer.Hash, data []byte) error {
	s.uploads.hold(h)
	err := s.store.Put(h, data)
	s.uploads.stored(err)
	if errors.Is(err, transfer.ErrMismatch) {
		return fmt.Errorf("%w: %d bytes that were sent as %v have another hash", api.ErrInvalid, len(data), h)
	}
	return err
}

// chunk returns one chunk that is here.
func (s *blobService) chunk(h transfer.Hash) ([]byte, error) {
	b, err := s.store.Get(h, nil)
	if errors.Is(err, transfer.ErrNotFound) {
		err = fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	return b, err
}

// submitted lets go of the inputs of a job that keeps them itself, which are known, unless the
// job has ended already: it may have been submitted before.
func (s *blobService) submitted(inputs transfer.Hash, kept []transfer.Hash) {
	if len(kept) == 0 && !inputs.IsZero() {
		if tree, err := transfer.LoadManifest(s.store, inputs); err == nil {
			kept = append(tree.Chunks(), inputs)
		}
	}
	s.uploads.submitted(kept...)
}

// uploads keeps what clients upload in the store until the job is submitted that
// needs it: the inputs of one job may be larger than the cache, and those of others
// may come meanwhile. No mutex is held while the store removes files, so what is
// let go is a whole batch, whose owner nobody names again.
type uploads struct {
	store transfer.Pinner

	mu      sync.Mutex // guards what follows
	batches []*batchOfUploads
	number  int       // of the batch that was made last
	last    time.Time // sign of an upload
	timer   *time.Timer
}

// batchOfUploads is chunks that came at about the same time.
type batchOfUploads struct {
	owner string
	began time.Time
	waits map[transfer.Hash]struct{} // not part of a job yet
}

// hold keeps chunks, which need not be there yet.
func (u *uploads) hold(chunks ...transfer.Hash) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	u.last = now
	var b *batchOfUploads
	if n := len(u.batches); n > 0 {
		b = u.batches[n-1]
	}
	if b == nil || now.Sub(b.began) > uploadBatch {
		u.number++
		b = &batchOfUploads{owner: fmt.Sprint("upload/", u.number), began: now, waits: map[transfer.Hash]struct{}{}}
		u.batches = append(u.batches, b)
	}
	for _, h := range chunks {
		b.waits[h] = struct{}{}
	}
	u.store.Pin(b.owner, chunks...)
	if u.timer == nil {
		u.timer = time.AfterFunc(uploadHold, u.expire)
	}
}

// submitted lets go of the chunks of a job, which keeps them itself.
func (u *uploads) submitted(chunks ...transfer.Hash) {
	u.letGo(func(b *batchOfUploads) bool {
		for _, h := range chunks {
			delete(b.waits, h)
		}
		return len(b.waits) == 0
	})
}

// expire lets go of what nobody has submitted.
func (u *uploads) expire() {
	u.mu.Lock()
	now, last := time.Now(), u.last
	u.timer = nil
	u.mu.Unlock()
	u.letGo(func(b *batchOfUploads) bool {
		return now.Sub(last) >= uploadHold || now.Sub(b.began) >= uploadMax
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.batches) > 0 && u.timer == nil {
		u.timer = time.AfterFunc(max(time.Second, uploadHold-now.Sub(last)), u.expire)
	}
}

// stored takes note of how storing a chunk went. On a full disk nothing is kept for
// uploads: their clients are told so, and jobs need the room.
func (u *uploads) stored(err error) {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		u.letGo(func(*batchOfUploads) bool { return true })
	}
}

// letGo lets go of the batches of which done says so.
func (u *uploads) letGo(done func(*batchOfUploads) bool) {
	u.mu.Lock()
	var gone, kept []*batchOfUploads
	for _, b := range u.batches {
		if done(b) {
			gone = append(gone, b)
		} else {
			kept = append(kept, b)
		}
	}
	u.batches = kept
	u.mu.Unlock()
	for _, b := range gone {
		u.store.Unpin(b.owner)
	}
}

// Cache looks after the node's store.
func (s *blobService) Cache(ctx context.Context, care api.CacheOp) (told api.Cache, err error) {
	if care.Verify {
		checked, err := s.store.Verify(ctx)
		if err != nil {
			return told, err
		}
		told.Verified = &checked
	}
	if care.Prune {
		pruned := s.store.Prune()
		told.Pruned = &pruned
	}
	told.Contents = s.store.Contents()
	return told, nil
}
