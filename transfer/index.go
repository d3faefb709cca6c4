package transfer

import (
	"container/list"
	"slices"
)

// blockSize is what even the smallest blob costs a file system.
const blockSize = 4096

// index is the core of both stores: which blobs are held, which of them are
// pinned by whom, and which of the others were not used for longest. It has
// no lock and does no I/O.
type index struct {
	limit    int64 // bytes of loose blobs
	evicting bool
	items    map[Hash]*item
	bytes    int64
	loose    *list.List // items that nobody pins, least recently used first
	looseSum int64
	pins     map[Hash]int // owners by blob, held or not
	owners   map[string]map[Hash]struct{}
	stale    []*outside // of which no blob is held any more
}

// item is a blob that is held: in a file of the store, or only in files of others.
type item struct {
	hash  Hash
	own   bool
	size  int64         // of the file of the store, rounded up to whole blocks
	place *list.Element // in loose; nil while pinned
	seen  Stamp         // of that file when it was compared with the hash; zero = not in this life
	safe  bool          // what makes it last is durable
	refs  []ref
}

// outside is a file that blobs are read from. It is written down in a file of the
// store, so that the next life knows it, and forgotten when nobody pins a blob of it.
type outside struct {
	File
	name  string // of what is written down, in DIR/files
	brief bool   // it will soon be gone
	users int    // blobs
}

// ref is a place in a file of others.
type ref struct {
	from   *outside
	at     int64
	length int64
	seen   Stamp
}

// lasts reports whether the blob is there for everybody who needs it.
func (it *item) lasts() bool {
	return it.own || slices.ContainsFunc(it.refs, func(r ref) bool { return !r.from.brief })
}

func newIndex(limit int64) index {
	if limit <= 0 {
		limit = DefaultCache
	}
	return index{
		limit:  limit,
		items:  make(map[Hash]*item),
		loose:  list.New(),
		pins:   make(map[Hash]int),
		owners: make(map[string]map[Hash]struct{}),
	}
}

// use reports whether the blob is held and makes it the most recently used.
func (x *index) use(h Hash) bool {
	it := x.items[h]
	if it != nil && it.place != nil {
		x.loose.MoveToBack(it.place)
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
	x.fasten(it)
	it.own, it.size, it.safe = true, max(1, (size+blockSize-1)/blockSize)*blockSize, false
	x.bytes += it.size
	if x.pins[h] == 0 {
		x.loosen(it)
	}
}

// refer notes where the chunks of a file are that the store has no file of. They were whole
// when its stamp was seen; zero = who knows.
func (x *index) refer(o *outside, seen Stamp) {
	for i, h := range o.Chunks {
		it := x.item(h)
		known := func(r ref) bool {
			return r.from == o || r.from.Path == o.Path && r.from.Stamp == o.Stamp && r.from.brief == o.brief
		}
		if it.own || slices.ContainsFunc(it.refs, known) {
			continue
		}
		it.refs = append(it.refs, ref{o, int64(i) * ChunkSize, int64(chunkLen(o.Stamp.Size, i)), seen})
		it.safe = false
		if o.users++; x.pins[h] == 0 && it.place == nil {
			x.loosen(it)
		}
	}
	if o.users == 0 {
		x.stale = append(x.stale, o)
	}
}

// saw notes that a blob was whole in a file, whose stamp was that.
func (x *index) saw(h Hash, from *outside, now Stamp) {
	it := x.items[h]
	if it == nil {
		return
	}
	if from == nil {
		it.seen = now
	}
	for i := range it.refs {
		if it.refs[i].from == from {
			it.refs[i].seen = now
		}
	}
}

// unrefer forgets places of a blob in files of others.
func (x *index) unrefer(it *item, which func(ref) bool) {
	it.refs = slices.DeleteFunc(it.refs, func(r ref) bool {
		if !which(r) {
			return false
		}
		if r.from.users--; r.from.users == 0 {
			x.stale = append(x.stale, r.from)
		}
		return true
	})
	if !it.own && len(it.refs) == 0 {
		x.remove(it.hash)
	}
}

func every(ref) bool { return true }

// remove notes that the blob is not held any more.
func (x *index) remove(h Hash) {
	it := x.items[h]
	if it == nil {
		return
	}
	x.fasten(it)
	x.bytes -= it.size
	delete(x.items, h)
	x.unrefer(it, every)
}

// start begins to evict: what is in files of others is no cache.
func (x *index) start() {
	x.evicting = true
	for e := x.loose.Front(); e != nil; {
		it := e.Value.(*item)
		e = e.Next()
		x.unrefer(it, every)
	}
}

// loosen notes that nobody needs a blob now.
func (x *index) loosen(it *item) {
	if x.evicting {
		if x.unrefer(it, every); !it.own {
			return
		}
	}
	it.place = x.loose.PushBack(it)
	x.looseSum += it.size
}

func (x *index) fasten(it *item) {
	if it.place == nil {
		return
	}
	x.loose.Remove(it.place)
	it.place = nil
	x.looseSum -= it.size
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
			x.fasten(it)
		}
	}
}

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
			x.loosen(it)
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

// evict removes loose blobs, oldest use first, until at most keep bytes of
// them are left, and returns what it removed.
func (x *index) evict(keep int64) []Hash {
	var out []Hash
	for x.evicting && x.looseSum > keep {
		h := x.loose.Front().Value.(*item).hash
		x.remove(h)
		out = append(out, h)
	}
	return out
}

// Usage is what a store holds, in bytes and whole file system blocks.
type Usage struct {
	Blobs  int   `json:"blobs"`
	Bytes  int64 `json:"bytes"`
	Pinned int64 `json:"pinned"` // of Bytes
}

func (x *index) usage() Usage {
	return Usage{Blobs: len(x.items), Bytes: x.bytes, Pinned: x.bytes - x.looseSum}
}
