package transfer

import (
	"context"
	"io/fs"
	"os"
)

// PinStore is a Store that evicts what was not used for longest, except what is pinned.
//
// All that is asked of a store is a method here, so that a store which embeds another one does
// what that does. No method of the embedded store calls one of the outer store, so a store that
// is to see all bytes overrides each way that they take. They come by Put and PutVerified, and with files
// by Refer and TakeBack. They leave by Get, Read and CopyTo, and with files by Give and Locate.
type PinStore interface {
	Store
	Pinner
	Referrer
	WholeFiles
	Keeper
	// PutVerified is Put of bytes that the caller has compared with the hash: the store need not do that again.
	PutVerified(h Hash, data []byte) error
	// Read calls f with the bytes of a blob, in order, and with how many they are in all: with parts, in
	// buf's memory, of what the store has compared with the hash before, and with everything at once of
	// what it compares now, as Get says. The error is that of f, or why the blob cannot be had; then f did
	// not get the last part of it. The caller owns the memory that is returned.
	Read(h Hash, buf []byte, f func(p []byte, size int) error) ([]byte, error)
	// Sync returns when the blobs are safe from a power cut. It fails with
	// ErrNotFound if one of them is not held, or is not what it was.
	Sync(hashes ...Hash) error
	// StartEviction makes the store keep to its limit from now on: what is
	// needed of an earlier life has been pinned.
	StartEviction()
}

// Reference is what is known of a file that a store is to read chunks from.
type Reference int

const (
	// Claimed: the hashes are somebody's word. A chunk is verified when it is first read, and again
	// if the file has changed.
	Claimed Reference = iota
	// Hashed: the hashes are believed as long as the file does not change: those of somebody who
	// may read whatever this process may.
	Hashed
	// Brief: the caller has hashed the file, and it will be gone before all have done with
	// it: Get returns its chunks, but for Has they are not there.
	Brief
)

// Referrer is a store that can read blobs from files of others, where these are.
type Referrer interface {
	// Refer holds the chunks of a file where they are, as long as somebody pins them: pin
	// them before. One that is not there any more is lost, and Lost returns why. The error is ErrElsewhere
	// if that file is not here, or if the store reads no files of others.
	Refer(f File, how Reference) error
	// Holds reports whether Get returns a blob, if only for a while, and whether that is in a file of the
	// store itself. It is no use of the blob.
	Holds(h Hash) (held, own bool)
	// Keep makes sure that the store has a blob for good that it reads from a file which is Brief
	// and, if own, one that it reads from any file of others, which are theirs to change. It reports
	// whether the blob is there then.
	Keep(h Hash, own bool) bool
	// Lost returns why a blob that was read from a file of others is not held any more; nil if that
	// is not known.
	Lost(h Hash) error
	// OnLost has f called, from any goroutine, with who pins a blob that was lost because
	// a file of others changed; f must return at once.
	OnLost(f func(owners []string))
}

// WholeFiles is a store that may have large files as files, beside chunks. A store that has none does nothing.
type WholeFiles interface {
	// Expect tells the store that chunks of a tree will be put. It may put those of a large file where
	// they belong in one file, which Manifest.WriteTo can then give to a worker. With writeBack the disk begins to
	// write as they come, for who wants to Sync them afterwards. The caller calls done when no more will come.
	Expect(m *Manifest, writeBack bool) (done func())
	// Give makes the file of an entry that of a worker, which may write to it: at is where to,
	// absolute, and to its directory. It reports false if that cannot be; then nothing has changed.
	Give(e *Entry, to *os.Root, at string, mode fs.FileMode) bool
	// Stay keeps the file of an entry from being given to anybody while its chunks are copied.
	Stay(e *Entry) (done func())
	// TakeBack takes the files back that were given to a worker, from the directory that they were
	// written to: those that are as they were, as far as can be told without reading them. What they hold
	// is compared with its hash when it is used. Nobody may write to that directory any more. Undo, unless it
	// is nil, takes from each file what was done to it there besides its owner and mode.
	TakeBack(dir string, undo func(*os.File) error)
	// Locate is that of a Locator.
	Locate(content Hash) File
	copier
}

// Contents is what a store holds, and for whom.
type Contents struct {
	Usage
	Limit int64  `json:"limit"` // bytes of what nobody needs; beyond it what was not used for longest goes
	Needs []Need `json:"needs"` // the largest first; blobs that several need count for each
}

// Usage is what a store holds, in bytes and whole file system blocks.
type Usage struct {
	Blobs  int   `json:"blobs"`
	Bytes  int64 `json:"bytes"`
	Pinned int64 `json:"pinned"` // of Bytes
}

// Need is what one owner of pins needs.
type Need struct {
	Owner string `json:"owner"`
	Blobs int    `json:"blobs"` // that are held
	Bytes int64  `json:"bytes"` // of these
}

// Checked is what Verify has done.
type Checked struct {
	Blobs   int    `json:"blobs"` // that were read
	Bytes   int64  `json:"bytes"` // of these
	Damaged []Hash `json:"damaged"`
}

// Pruned is what Prune has removed.
type Pruned struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
}

// Keeper is a store that can be looked after.
type Keeper interface {
	// Contents returns what is held.
	Contents() Contents
	// Verify reads all that is held, and removes what is damaged: whoever needs it
	// fetches it again, if it is anywhere.
	Verify(ctx context.Context) (Checked, error)
	// Prune removes what nobody needs.
	Prune() Pruned
}

// PinTo returns a Putter that pins every blob for owner before it goes into
// the store, so that nothing of a tree is evicted while the rest is read.
func PinTo(s PinStore, owner string) Putter { return pinned{s, owner} }

type pinned struct {
	store PinStore
	owner string
}

func (p pinned) Put(h Hash, data []byte) error {
	p.store.Pin(p.owner, h)
	return p.store.Put(h, data)
}

// PutVerified implements verifiedPutter.
func (p pinned) PutVerified(h Hash, data []byte) error {
	p.store.Pin(p.owner, h)
	return p.store.PutVerified(h, data)
}

// refer implements referrer.
func (p pinned) refer(f File) error {
	p.store.Pin(p.owner, f.Chunks...)
	return p.store.Refer(f, Brief)
}
