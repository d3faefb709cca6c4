package transfer

import "container/list"

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
}

type item struct {
	hash  Hash
	size  int64         // rounded up to whole blocks
	place *list.Element // in loose; nil while pinned

	whole bool // its bytes were compared with its hash in this life of the store
	safe  bool // and are durable
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
	return it != nil
}

// add notes that the blob is held.
func (x *index) add(h Hash, size int64) {
	if x.use(h) {
		return
	}
	it := &item{hash: h, size: max(1, (size+blockSize-1)/blockSize) * blockSize}
	x.items[h] = it
	x.bytes += it.size
	if x.pins[h] == 0 {
		x.loosen(it)
	}
}

// remove notes that the blob is not held any more.
func (x *index) remove(h Hash) {
	it := x.items[h]
	if it == nil {
		return
	}
	x.fasten(it)
	x.bytes -= it.size
	delete(x.items, h)
}

func (x *index) loosen(it *item) {
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
