package transfer

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
)

// assembly is what an assembled file is besides a backing file: a file of the store in which
// the chunks of a large file have their places, whenever they come. A worker that needs the
// whole of it may get the file itself (DirStore.Give), and the store takes it back.
//
// All but what locks itself is guarded by the lock of the store.
type assembly struct {
	key     Hash   // see keyOf
	right   []bool // which chunks are there as they should be: this life has seen it
	made    bool   // the file is there
	filling int    // fetches that add to it
	writing int    // blobs that are being put in it
	giving  bool   // a worker is about to get it
	copied  int    // how many copy it now, so that no worker can get it
	away    bool   // a worker has it, and may write to it
	doubted bool   // an earlier life may have been killed while it wrote
	noted   bool   // it is written down that all is there
	sealed  Stamp  // of the file when the store was done with it last
	moved   int    // how often it got another path

	writeBack atomic.Bool // it is to be durable when all is there
	moves     sync.Mutex  // held while the file is made, or gets another path
	writes    sync.Mutex  // held while a chunk is written
}

// chunkPlace is that of a chunk in an assembled file.
type chunkPlace struct {
	of *backing
	i  int
}

// hole is where a blob was in an assembled file.
type hole struct {
	hash Hash
	ref
}

// keyOf names what a file of that size with these chunks holds: the hash of their hashes and the
// size, in 8 bytes, the highest first.
func keyOf(size int64, chunks HashList) Hash {
	b, _ := chunks.MarshalBinary() // never fails
	return HashOf(binary.BigEndian.AppendUint64(b, uint64(size)))
}

// lasts reports whether a chunk is there for everybody who needs it.
func (a *assembly) lasts(i int) bool { return !a.away && !a.giving && (!a.doubted || a.right[i]) }

// busy reports whether something is done to the file that it must be there for.
func (a *assembly) busy() bool { return a.filling > 0 || a.writing > 0 || a.giving }

// complete reports whether all chunks are there that are no holes.
func (c *backing) complete() bool {
	for i, ok := range c.own.right {
		if !ok && !c.isHole(i) {
			return false
		}
	}
	return true
}

// repeats reports whether a chunk with content is in a file twice. It would count once, and
// its room is not known.
func repeats(size int64, chunks HashList) bool {
	seen := make(map[Hash]bool, len(chunks))
	for i, h := range chunks {
		if seen[h] && !(h == zeroChunk() && chunkLen(size, i) == ChunkSize) {
			return true
		}
		seen[h] = true
	}
	return false
}

// weight is how many bytes of a file are no holes.
func (c *backing) weight() (sum int64) {
	for i := range c.Chunks {
		if !c.isHole(i) {
			sum += int64(chunkLen(c.Stamp.Size, i))
		}
	}
	return sum
}

// isHole reports whether a chunk needs no room: it is zeros.
func (c *backing) isHole(i int) bool {
	return c.Chunks[i] == zeroChunk() && chunkLen(c.Stamp.Size, i) == ChunkSize
}

// sure reports whether a chunk need not be compared with its hash, though its file is
// written to now.
func (r *ref) sure() bool {
	a := r.from.own
	return a != nil && !a.away && a.filling > 0 && a.right[r.chunk()]
}

// suspect reports whether the file may be written to at any time, without a trace where
// memory of it is shared.
func (r *ref) suspect() bool { return r.from.own != nil && r.from.own.away }

// forget forgets that a chunk was seen to be right.
func (r *ref) forget() {
	if r.seen = (Stamp{}); r.from.own != nil {
		r.from.own.right[r.chunk()] = false
	}
}

// expect notes that a fetch may bring chunks of a file.
func (x *index) expect(c *backing) {
	if c.own.filling++; c.own.filling > 1 {
		return
	}
	for i, h := range c.Chunks {
		if !c.own.right[i] && !c.isHole(i) {
			x.expected[h] = append(x.expected[h], chunkPlace{c, i})
		}
	}
}

// expectNoMore is for the end of a fetch. It reports whether it was the last one.
func (x *index) expectNoMore(c *backing) bool {
	if c.own.filling--; c.own.filling > 0 {
		return false
	}
	for _, h := range c.Chunks {
		x.arrived(h, func(p chunkPlace) bool { return p.of == c })
	}
	return true
}

// arrived forgets places that a blob was expected for.
func (x *index) arrived(h Hash, where func(chunkPlace) bool) {
	left := slices.DeleteFunc(x.expected[h], where)
	if x.expected[h] = left; len(left) == 0 {
		delete(x.expected, h)
	}
}

// filled notes that a blob is at its place.
func (x *index) filled(h Hash, p chunkPlace) {
	p.of.own.right[p.i] = true
	x.arrived(h, func(other chunkPlace) bool { return other == p })
	it := x.item(h)
	if it.in(p.of) != nil {
		return
	}
	x.attach(it, ref{from: p.of, at: int64(p.i) * ChunkSize, length: int64(chunkLen(p.of.Stamp.Size, p.i))})
	x.releaseUnpinned(it)
}

// seal notes the stamp of a file that nobody writes to now.
func (x *index) seal(c *backing, now Stamp) {
	c.own.sealed = now
	for i, h := range c.Chunks {
		if it := x.items[h]; it != nil && c.own.right[i] {
			if r := it.in(c); r != nil && r.chunk() == i {
				r.seen = now
			}
		}
	}
}

// doubt forgets that chunks were seen to be right.
func (x *index) doubt(c *backing) {
	clear(c.own.right)
	for _, h := range c.Chunks {
		if it := x.items[h]; it != nil {
			if r := it.in(c); r != nil {
				r.seen = Stamp{}
			}
		}
	}
}

// found notes an assembled file of an earlier life, and which of its chunks may be there.
func (x *index) found(c *backing, there func(i int) bool) {
	for i, h := range c.Chunks {
		if c.isHole(i) || !there(i) {
			continue
		}
		if it := x.item(h); it.in(c) == nil {
			x.attach(it, ref{from: c, at: int64(i) * ChunkSize, length: int64(chunkLen(c.Stamp.Size, i))})
			x.releaseUnpinned(it)
		}
	}
	x.list(c)
	x.leave(c)
}

// list makes a file known by its content while it is in the store, else as one of those
// that workers have.
func (x *index) list(c *backing) {
	if c.own.away {
		x.away[c] = true
	} else {
		x.whole[c.own.key] = c
	}
}

func (x *index) unlist(c *backing) {
	delete(x.away, c)
	if x.whole[c.own.key] == c {
		delete(x.whole, c.own.key)
	}
}

// moved notes that a file has another path, where others may have written to it.
func (x *index) moved(c *backing, path string, away bool, now Stamp) {
	x.unlist(c)
	c.own.moved++
	c.Path, c.own.away, c.own.sealed = path, away, now
	x.list(c)
	x.doubt(c)
}

// shared reports whether others need chunks of a file than the job whose worker may get it.
func (x *index) shared(c *backing) bool {
	return slices.ContainsFunc(c.Chunks, func(h Hash) bool { return x.pins[h] > 1 && h != zeroChunk() })
}

// drop forgets all chunks of a file.
func (x *index) drop(c *backing) {
	for _, h := range c.Chunks {
		if it := x.items[h]; it != nil {
			x.unrefer(it, func(r *ref) bool { return r.from == c })
		}
	}
	x.leave(c)
}
