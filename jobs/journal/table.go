package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"zorilla/internal/codec"
)

// The table is the bbolt file, which has all entries but those of the logs.

const lockWait = 400 * time.Millisecond // twice at most

var (
	root = []byte("zorilla journal 2")
	// logRoot says that there may be logs beside the file. A version that knows of
	// none finds it, and does not take the file for the whole journal.
	logRoot     = []byte("zorilla journal log")
	appliedName = []byte("applied")
)

// openTable opens a file that is sound, or new, with bbolt. Its list of free pages
// is not kept in the file, where it could be damaged, but made anew.
func openTable(path string, loose bool) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType, NoFreelistSync: true, NoSync: loose})
	var errno syscall.Errno
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("open journal %s: %w", path, ErrLocked)
	case errors.As(err, &errno):
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return nil, fmt.Errorf("open journal %s: %w (%v)", path, ErrDamaged, err)
}

// holdsRoot reports whether the file is a journal already.
func holdsRoot(db *bbolt.DB) (ok bool) {
	_ = db.View(func(tx *bbolt.Tx) error {
		ok = tx.Bucket(root) != nil
		return nil
	})
	return ok
}

// parseApplied reads which transaction was the last whose log was applied to the
// table. ok is false if that is damaged.
func parseApplied(b []byte) (number uint64, ok bool) {
	if len(b) != 12 || crc32.Checksum(b[:8], codec.Castagnoli()) != binary.BigEndian.Uint32(b[8:]) {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}

func appliedOf(tx *bbolt.Tx) (number uint64) {
	if b := tx.Bucket(logRoot); b != nil {
		number, _ = parseApplied(b.Get(appliedName))
	}
	return number
}

func setApplied(tx *bbolt.Tx, number uint64) error {
	b, err := tx.CreateBucketIfNotExists(logRoot)
	if err != nil {
		return err
	}
	value := binary.BigEndian.AppendUint64(nil, max(number, appliedOf(tx)))
	return b.Put(appliedName, binary.BigEndian.AppendUint32(value, crc32.Checksum(value, codec.Castagnoli())))
}

// apply brings what is in a log into the table.
func apply(tx *bbolt.Tx, t *tail) error {
	outer, err := tx.CreateBucketIfNotExists(root)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(t.keys)) {
		if err := applyKey(outer, key, t.keys[key]); err != nil {
			return err
		}
	}
	return setApplied(tx, t.last)
}

func applyKey(outer *bbolt.Bucket, key string, k *keyTail) error {
	bucket := outer.Bucket([]byte(key))
	next, removes, news := k.after(placeOf(bucket))
	if removes && bucket != nil {
		if err := remove(outer, key); err != nil {
			return err
		}
		bucket = nil
	}
	if len(news) == 0 {
		return nil
	}
	if bucket == nil {
		var err error
		if bucket, err = outer.CreateBucket([]byte(key)); err != nil {
			return err
		}
		if err := outer.SetSequence(outer.Sequence() + 1); err != nil {
			return err
		}
	}
	bucket.FillPercent = 0.9 // entries are only ever added at the end
	for _, s := range news {
		if err := bucket.Put(sequence(s.seq), s.record); err != nil {
			return err
		}
	}
	return bucket.SetSequence(next.total)
}

// remove removes a key. The outer bucket's sequence counts the keys.
func remove(outer *bbolt.Bucket, key string) error {
	return errors.Join(outer.DeleteBucket([]byte(key)), outer.SetSequence(outer.Sequence()-1))
}

// placeOf is where a key has got to in the table; there may be no bucket of it.
func placeOf(bucket *bbolt.Bucket) (p place) {
	if bucket == nil {
		return p
	}
	p.total = bucket.Sequence()
	if _, first := bucket.Cursor().First(); first != nil {
		p.born = bornOf(first)
	}
	return p
}

// keptIn is what the table has of a key. The records are the table's.
func keptIn(bucket *bbolt.Bucket) (k kept) {
	if bucket == nil {
		return k
	}
	k.place = placeOf(bucket)
	k.records = make([]stored, 0, min(k.total, 1<<16))
	_ = bucket.ForEach(func(name, record []byte) error {
		s := stored{record: record}
		if len(name) == 8 {
			s.seq = binary.BigEndian.Uint64(name)
		}
		k.records = append(k.records, s)
		return nil
	})
	return k
}

func sequence(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
