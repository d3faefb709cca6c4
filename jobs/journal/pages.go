package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
)

// tree is a bbolt file as its bytes tell. bbolt trusts the pages that it reads:
// a flipped bit makes it crash, lose entries, or write over others. So all of the
// structure is checked before bbolt opens the file: a page is where it says that it
// is and belongs to one place only, names are in order and in the range that the
// pages above give them. What the entries hold is for their checksums.
type tree struct {
	file     []byte
	pageSize uint64
	pages    uint64 // in use, as the head says
	root     uint64
	heads    int // of two, that are sound
	used     map[uint64]bool
}

// The layout of bbolt's pages, in the byte order of the machine.
const (
	pageHeader = 16 // id 8, flags 2, count 2, overflow 4
	element    = 16 // branch: position 4, key size 4, page 8; leaf: flags 4, position 4, key size 4, value size 4
	bucketHead = 16 // page of the root 8 (0: the page follows), sequence 8
	headMagic  = 0xED0CDAED
	headSum    = 56 // offset of the checksum in a head page, after the page header

	flagBranch = 1
	flagLeaf   = 2
)

var order = binary.NativeEndian

// errPages: the pages of the file are not as they must be.
var errPages = errors.New("its pages are damaged")

// openTree finds the newer sound head of the file. It reports false if there is none.
func openTree(file []byte) (t tree, ok bool) {
	t = tree{file: file, used: map[uint64]bool{0: true, 1: true}}
	newest := uint64(0)
	try := func(at uint64) {
		if uint64(len(file)) < at+pageHeader+headSum+8 {
			return
		}
		h := file[at+pageHeader:]
		sum := fnv.New64a()
		sum.Write(h[:headSum])
		if order.Uint32(h) != headMagic || order.Uint64(h[headSum:]) != sum.Sum64() {
			return
		}
		size, txid := uint64(order.Uint32(h[8:])), order.Uint64(h[48:])
		if at != 0 && at != size || size < 512 || t.heads > 0 && size != t.pageSize {
			return
		}
		if t.heads++; t.heads == 1 || txid > newest {
			newest, t.pageSize, t.root, t.pages = txid, size, order.Uint64(h[16:]), order.Uint64(h[40:])
		}
	}
	try(0)
	if t.heads == 1 {
		try(t.pageSize)
	} else {
		for size := uint64(1024); size <= 1024<<14 && t.heads == 0; size *= 2 {
			try(size)
		}
	}
	return t, t.heads > 0
}

// span is a range of names: from low, up to but without high; nil = no bound.
type span struct{ low, high []byte }

func (s span) holds(key []byte) bool {
	return bytes.Compare(key, s.low) >= 0 && (s.high == nil || bytes.Compare(key, s.high) < 0)
}

// page returns a page with those that belong to it, and marks them as used.
func (t *tree) page(id uint64) ([]byte, error) {
	if id < 2 || id >= t.pages || id >= uint64(len(t.file))/t.pageSize {
		return nil, fmt.Errorf("%w: there is no page %d", errPages, id)
	}
	p := t.file[id*t.pageSize:]
	n := uint64(order.Uint32(p[12:])) + 1
	if order.Uint64(p) != id || n > t.pages-id || n*t.pageSize > uint64(len(p)) {
		return nil, fmt.Errorf("%w: page %d is not what it should be", errPages, id)
	}
	for i := id; i < id+n; i++ {
		if t.used[i] {
			return nil, fmt.Errorf("%w: page %d is used twice", errPages, i)
		}
		t.used[i] = true
	}
	return p[:n*t.pageSize], nil
}

// bucket calls f with what a bucket holds, in order: of a value that is itself a
// bucket with nested set. It goes on after damage, and returns the first.
func (t *tree) bucket(head []byte, f func(key, value []byte, nested bool) error) error {
	if len(head) < bucketHead {
		return fmt.Errorf("%w: a bucket of %d bytes", errPages, len(head))
	}
	if root := order.Uint64(head); root != 0 {
		return t.walk(root, span{}, 0, f)
	}
	if len(head) < bucketHead+pageHeader {
		return fmt.Errorf("%w: a bucket of %d bytes", errPages, len(head))
	}
	return t.elements(head[bucketHead:], span{}, 0, f)
}

const maxDepth = 32

func (t *tree) walk(id uint64, within span, depth int, f func(key, value []byte, nested bool) error) error {
	p, err := t.page(id)
	if err != nil {
		return err
	}
	return t.elements(p, within, depth, f)
}

func (t *tree) elements(p []byte, within span, depth int, f func(key, value []byte, nested bool) error) (first error) {
	flags, count := order.Uint16(p[8:]), int(order.Uint16(p[10:]))
	if depth > maxDepth || flags != flagBranch && flags != flagLeaf || pageHeader+count*element > len(p) || flags == flagBranch && count == 0 {
		return fmt.Errorf("%w: page %d holds %d elements of kind %d", errPages, order.Uint64(p), count, flags)
	}
	damage := func(err error) {
		if first == nil {
			first = err
		}
	}
	// piece returns bytes of an element, which follow all elements.
	piece := func(at, from, size uint64) []byte {
		if from += at; from < uint64(pageHeader+count*element) || from+size > uint64(len(p)) {
			damage(fmt.Errorf("%w: page %d is not what it should be", errPages, order.Uint64(p)))
			return nil
		}
		return p[from : from+size : from+size]
	}
	keys := make([][]byte, count)
	for i := range keys {
		e := p[pageHeader+i*element:]
		at := uint64(pageHeader + i*element)
		if flags == flagBranch {
			keys[i] = piece(at, uint64(order.Uint32(e)), uint64(order.Uint32(e[4:])))
		} else {
			keys[i] = piece(at, uint64(order.Uint32(e[4:])), uint64(order.Uint32(e[8:])))
		}
		if len(keys[i]) == 0 || !within.holds(keys[i]) || i > 0 && bytes.Compare(keys[i-1], keys[i]) >= 0 {
			damage(fmt.Errorf("%w: names of page %d are not in order", errPages, order.Uint64(p)))
		}
	}
	for i, key := range keys {
		e := p[pageHeader+i*element:]
		if flags == flagBranch {
			child := span{key, within.high}
			if i+1 < count {
				child.high = keys[i+1]
			}
			if err := t.walk(order.Uint64(e[8:]), child, depth+1, f); err != nil {
				damage(err)
			}
			continue
		}
		kind := order.Uint32(e)
		at := uint64(order.Uint32(e[4:])) + uint64(order.Uint32(e[8:]))
		value := piece(uint64(pageHeader+i*element), at, uint64(order.Uint32(e[12:])))
		if kind > 1 || value == nil || len(key) == 0 {
			damage(fmt.Errorf("%w: an element of page %d", errPages, order.Uint64(p)))
			continue
		}
		if err := f(key, value, kind == 1); err != nil {
			damage(err)
		}
	}
	return first
}
