package transfer

import (
	"container/list"
	"maps"
	"slices"
)

// blockSize is what even the smallest blob costs a file system.
const blockSize = 4096

// index is the core of both stores: which blobs are held, which of them are
// pinned by whom, and which of the others were not used for longest. It has
// no lock and does no I/O.
type index struct {
	limit        int64 // bytes of evictable blobs
	evicting     bool
	items        map[Hash]*item
	bytes        int64
	evictable    *list.List // items that nobody pins, least recently used first
	evictableSum int64
	pins         map[Hash]int // owners by blob, held or not
	owners       map[string]map[Hash]struct{}
	stale        []*backing            // of which no blob is held any more
	holes        []hole                // where blobs were
	whole        map[Hash]*backing     // assembled files that are in the store, by what is in them
	away         map[*backing]bool     // those that workers have
	expected     map[Hash][]chunkPlace // where blobs belong that are being fetched
}

// item is a blob that is held: in a file of the store, or only in files of others.
type item struct {
	hash  Hash
	own   bool
	size  int64         // in files of the store, rounded up to whole blocks
	place *list.Element // in evictable; nil while pinned
	seen  Stamp         // of that file when it was compared with the hash; zero = not in this life
	safe  bool          // what makes it last is durable
	refs  []ref
}

// backing is a file that blobs are read from: one of others, or an assembled one. It is
// written down in a file of the store, so that the next life knows it, and forgotten when no
// blob of it is needed.
type backing struct {
	File
	name  string    // of what is written down, in DIR/files
	brief bool      // it will soon be gone
	users int       // blobs
	own   *assembly // nil = it belongs to others
}

// ref is a place in a backing file.
type ref struct {
	from   *backing
	at     int64
	length int64
	seen   Stamp
}

// lasts reports whether the blob is there for everybody who needs it.
func (r *ref) lasts() bool {
	if r.from.own != nil {
		return r.from.own.lasts(r.chunk())
	}
	return !r.from.brief
}

// chunk is which one of its file it is.
func (r *ref) chunk() int { return int(r.at / ChunkSize) }

// weight is what it takes in files of the store.
func (r *ref) weight() int64 {
	if r.from.own == nil {
		return 0
	}
	return blocks(r.length)
}

// ofOthers reports whether it is in a file of others.
func (r *ref) ofOthers() bool { return r.from.own == nil }

func (it *item) lasts() bool {
	return it.own || slices.ContainsFunc(it.refs, func(r ref) bool { return r.lasts() })
}

// kept reports whether the blob is in a file of the store for everybody who needs it.
func (it *item) kept() bool {
	return it.own || slices.ContainsFunc(it.refs, func(r ref) bool { return r.from.own != nil && r.lasts() })
}

// best is where to read it, if it is in no file of its own.
func (it *item) best() *ref {
	return &it.refs[max(0, slices.IndexFunc(it.refs, func(r ref) bool { return r.lasts() }))]
}

// in returns the place of the blob in a backing file, or nil.
func (it *item) in(c *backing) *ref {
	if i := slices.IndexFunc(it.refs, func(r ref) bool { return r.from == c }); i >= 0 {
		return &it.refs[i]
	}
	return nil
}

func newIndex(limit int64) index {
	if limit <= 0 {
		limit = DefaultCache
	}
	return index{
		limit:     limit,
		items:     make(map[Hash]*item),
		evictable: list.New(),
		pins:      make(map[Hash]int),
		owners:    make(map[string]map[Hash]struct{}),

		whole:    make(map[Hash]*backing),
		away:     make(map[*backing]bool),
		expected: make(map[Hash][]chunkPlace),
	}
}

// blocks is how many bytes something takes on a disk.
func blocks(size int64) int64 { return max(1, (size+blockSize-1)/blockSize) * blockSize }

// use reports whether the blob is held and makes it the most recently used.
func (x *index) use(h Hash) bool {
	it := x.items[h]
	if it != nil && it.place != nil {
		x.evictable.MoveToBack(it.place)
	}
	return it != nil && it.lasts()
}

// item returns what is known of a blob, from now on.
func (x *index) item(h Hash) *item {
	it := x.items[h]
	if it == nil {
		it = &item{hash: h}
		x.items[h] = it
	}
	return it
}

// add notes that the blob is held in a file of the store.
func (x *index) add(h Hash, size int64) {
	it := x.item(h)
	if x.use(h); it.own {
		return
	}
	it.own, it.safe = true, false
	x.grow(it, blocks(size))
	x.releaseUnpinned(it)
}

// grow notes that a blob takes more room in files of the store, or less.
func (x *index) grow(it *item, by int64) {
	it.size += by
	x.bytes += by
	if it.place != nil {
		x.evictableSum += by
	}
}

// releaseUnpinned makes a blob that is held one that may be evicted, if nobody needs it.
func (x *index) releaseUnpinned(it *item) {
	if x.pins[it.hash] == 0 {
		x.markNeeded(it)
		x.markEvictable(it)
	}
}

// refer notes where the chunks of a file are that the store has no file of. They were whole
// when its stamp was seen; zero = who knows.
func (x *index) refer(o *backing, seen Stamp) {
	for i, h := range o.Chunks {
		it := x.item(h)
		known := func(r ref) bool {
			return r.from == o || r.from.Path == o.Path && r.from.Stamp == o.Stamp && r.from.brief == o.brief
		}
		if it.own || slices.ContainsFunc(it.refs, known) {
			continue
		}
		x.attach(it, ref{o, int64(i) * ChunkSize, int64(chunkLen(o.Stamp.Size, i)), seen})
		if it.place == nil {
			x.releaseUnpinned(it)
		}
	}
	if o.users == 0 {
		x.stale = append(x.stale, o)
	}
}

// attach notes one more place of a blob.
func (x *index) attach(it *item, r ref) {
	it.refs = append(it.refs, r)
	it.safe = false
	r.from.users++
	x.grow(it, r.weight())
}

// detach forgets that a blob is in a backing file.
func (x *index) detach(h Hash, r ref) {
	c := r.from
	c.users--
	if c.own != nil {
		c.own.right[r.chunk()] = false
		if c.users > 0 && !c.own.away {
			x.holes = append(x.holes, hole{h, r})
		}
	}
	x.leave(c)
}

// leave lets go of a backing file that has no blob any more, unless some are on their way.
func (x *index) leave(c *backing) {
	if c.users > 0 || c.own != nil && c.own.busy() {
		return
	}
	if c.own != nil {
		x.unlist(c)
	}
	x.stale = append(x.stale, c)
}

// saw notes that a blob was whole in a file, whose stamp was that.
func (x *index) saw(h Hash, from *backing, now Stamp) {
	it := x.items[h]
	if it == nil {
		return
	}
	if from == nil {
		it.seen = now
	}
	for i := range it.refs {
		if r := &it.refs[i]; r.from == from && !r.suspect() {
			r.seen = now
			if from.own != nil {
				from.own.right[r.chunk()] = true
			}
		}
	}
}

// unrefer forgets places of a blob in backing files.
func (x *index) unrefer(it *item, which func(*ref) bool) {
	it.refs = slices.DeleteFunc(it.refs, func(r ref) bool {
		if !which(&r) {
			return false
		}
		x.grow(it, -r.weight())
		x.detach(it.hash, r)
		return true
	})
	if !it.own && len(it.refs) == 0 {
		x.remove(it.hash)
	}
}

// remove notes that the blob is not held any more.
func (x *index) remove(h Hash) {
	it := x.items[h]
	if it == nil {
		return
	}
	x.markNeeded(it)
	x.bytes -= it.size
	delete(x.items, h)
	for _, r := range it.refs {
		x.detach(h, r)
	}
	it.refs = nil
}

// start begins to evict: what is in files of others is no cache.
func (x *index) start() {
	x.evicting = true
	for e := x.evictable.Front(); e != nil; {
		it := e.Value.(*item)
		e = e.Next()
		x.unrefer(it, (*ref).ofOthers)
	}
}

// markEvictable notes that nobody needs a blob now.
func (x *index) markEvictable(it *item) {
	if x.evicting {
		if x.unrefer(it, (*ref).ofOthers); x.items[it.hash] == nil {
			return
		}
	}
	it.place = x.evictable.PushBack(it)
	x.evictableSum += it.size
}

func (x *index) markNeeded(it *item) {
	if it.place == nil {
		return
	}
	x.evictable.Remove(it.place)
	it.place = nil
	x.evictableSum -= it.size
}

func (x *index) pin(owner string, hashes []Hash) {
	own := x.owners[owner]
	if own == nil {
		own = make(map[Hash]struct{}, len(hashes))
		x.owners[owner] = own
	}
	for _, h := range hashes {
		if _, ok := own[h]; ok {
			continue
		}
		own[h] = struct{}{}
		x.pins[h]++
		if it := x.items[h]; it != nil {
			x.markNeeded(it)
		}
	}
}

// pinned returns what an owner pins.
func (x *index) pinned(owner string) []Hash { return slices.Collect(maps.Keys(x.owners[owner])) }

// ownersOf returns who pins a blob.
func (x *index) ownersOf(h Hash) (owners []string) {
	for owner, pinned := range x.owners {
		if _, ok := pinned[h]; ok {
			owners = append(owners, owner)
		}
	}
	return owners
}

func (x *index) unpin(owner string) {
	for h := range x.owners[owner] {
		if x.pins[h]--; x.pins[h] > 0 {
			continue
		}
		delete(x.pins, h)
		if it := x.items[h]; it != nil {
			x.markEvictable(it)
		}
	}
	delete(x.owners, owner)
}

// discard is unpin, and removes what nobody else pins; it returns that. Before
// eviction starts it is not known who will.
func (x *index) discard(owner string) (out []Hash) {
	own := x.owners[owner]
	x.unpin(owner)
	for h := range own {
		if x.evicting && x.pins[h] == 0 && x.items[h] != nil {
			x.remove(h)
			out = append(out, h)
		}
	}
	return out
}

// evict removes evictable blobs, oldest use first, until at most keep bytes of
// them are left, and returns what it removed.
func (x *index) evict(keep int64) []Hash {
	var out []Hash
	for x.evicting && x.evictableSum > keep {
		h := x.evictable.Front().Value.(*item).hash
		x.remove(h)
		out = append(out, h)
	}
	return out
}

func (x *index) usage() Usage {
	return Usage{Blobs: len(x.items), Bytes: x.bytes, Pinned: x.bytes - x.evictableSum}
}
