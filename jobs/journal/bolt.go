package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"zorilla/internal/atomicfile"
)

const lockWait = 400 * time.Millisecond // twice at most

var root = []byte("zorilla journal 2")

// Bolt is a journal in a file.
type Bolt struct {
	queue
	path  string
	db    *bbolt.DB
	lost  []string
	loose bool   // nothing is synced
	stamp uint64 // of the last transaction; owned by the writer
}

// Open opens the journal in the file, and makes the file if there is none (not
// its directory). It reads the whole file to see that it is sound; if it is not,
// what is left of the entries is copied into a new file and the damaged one is
// kept beside it. ErrLocked comes within a second if another process has the file
// open; ErrDamaged means that nothing can be read of it. The file is closed by Run
// or by Close.
func Open(path string) (*Bolt, error) { return open(path, false) }

// open is Open; loose is for tests that do not end the machine.
func open(path string, loose bool) (*Bolt, error) {
	b := &Bolt{queue: newQueue(), path: path, loose: loose}
	if err := b.examine(); err != nil {
		return nil, err
	}
	db, err := b.openFile(path)
	if err != nil {
		return nil, err
	}
	b.db = db
	err = db.Update(func(tx *bbolt.Tx) error { // both heads of the file say the same now
		outer, err := tx.CreateBucketIfNotExists(root)
		if err != nil {
			return err
		}
		n := uint64(0)
		err = outer.ForEachBucket(func([]byte) error { n++; return nil })
		return errors.Join(err, outer.SetSequence(n))
	})
	if err == nil {
		err = b.leaveMark()
	}
	if isFull(err) && b.holdsRoot() { // it can be read, and who writes is told
		err = nil
	}
	if err != nil {
		db.Close()
		return nil, b.writeError(err)
	}
	return b, nil
}

// holdsRoot reports whether the file is a journal already.
func (b *Bolt) holdsRoot() (ok bool) {
	_ = b.db.View(func(tx *bbolt.Tx) error {
		ok = tx.Bucket(root) != nil
		return nil
	})
	return ok
}

// Lost tells in a line each what was found to be lost when the journal was
// opened, but for entries: of these Load tells.
func (b *Bolt) Lost() []string { return b.lost }

// markFile, beside the journal, tells that there was one.
func markFile(path string) string { return path + ".mark" }

func (b *Bolt) leaveMark() error {
	if _, err := os.Stat(markFile(b.path)); err == nil {
		return nil
	}
	return atomicfile.Write(markFile(b.path), []byte("there is a journal beside this file; if there is none, it was lost\n"))
}

// openFile opens a file that is sound, or new, with bbolt. Its list of free pages
// is not kept in the file, where it could be damaged, but made anew.
func (b *Bolt) openFile(path string) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType, NoFreelistSync: true, NoSync: b.loose})
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

// Load calls f with every entry; see Journal.
func (b *Bolt) Load(f func(Entry) error) error {
	err := b.db.View(func(tx *bbolt.Tx) error {
		outer := tx.Bucket(root)
		return outer.ForEachBucket(func(key []byte) error {
			for _, e := range readKey(outer.Bucket(key), string(key)) {
				if err := f(e); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// Read returns the entries of one key; see Journal.
func (b *Bolt) Read(key string) (entries []Entry, err error) {
	err = b.db.View(func(tx *bbolt.Tx) (err error) {
		if bucket := tx.Bucket(root).Bucket([]byte(key)); bucket != nil {
			entries = readKey(bucket, key)
		}
		return err
	})
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return nil, ErrClosed
	}
	return entries, err
}

// readKey returns the entries of a key up to the first that is damaged or missing,
// and then one that says so.
func readKey(bucket *bbolt.Bucket, key string) (entries []Entry) {
	total, n := bucket.Sequence(), uint64(0)
	damage := func(format string, args ...any) []Entry {
		return append(entries, Entry{Key: key, Damage: fmt.Sprintf(format, args...)})
	}
	born := uint64(0)
	for c, i := bucket.Cursor(), 0; ; i++ {
		name, value := c.Next()
		if i == 0 {
			name, value = c.First()
		}
		if name == nil {
			break
		}
		r, size := parseRecord(value)
		if n++; string(name) != string(sequence(n)) {
			return damage("entry %d of %d is missing", n, max(total, n))
		}
		if size == 0 || size != len(value) || r.key != key || r.seq != n || n > 1 && r.born != born {
			return damage("entry %d of %d is damaged", n, max(total, n))
		}
		born = r.born
		entries = append(entries, Entry{Key: key, Data: append([]byte{}, r.data...)})
	}
	if n != total {
		return damage("%d entries are there of %d", n, total)
	}
	return entries
}

func sequence(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// Run writes until ctx ends, then closes the file.
func (b *Bolt) Run(ctx context.Context) error {
	b.run(ctx, b.commit)
	return b.Close()
}

// Close closes the file of a journal that was never run. What is queued is
// lost.
func (b *Bolt) Close() error {
	for _, o := range b.take(true) {
		o.err = ErrClosed
		o.finish()
	}
	_ = b.db.Update(func(*bbolt.Tx) error { return nil }) // see Open; all that counts is on disk
	if err := b.db.Close(); err != nil {
		return fmt.Errorf("close journal %s: %w", b.path, err)
	}
	return nil
}

func (b *Bolt) commit(ops []op) error {
	b.stamp++
	err := b.db.Update(func(tx *bbolt.Tx) error {
		outer := tx.Bucket(root)
		for _, o := range ops {
			if o.remove != "" {
				if err := remove(outer, o.remove); err != nil {
					return err
				}
			}
			for _, e := range o.entries {
				if err := put(outer, e, b.stamp); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return b.writeError(err)
	}
	return nil
}

// remove removes a key. The outer bucket's sequence counts the keys.
func remove(outer *bbolt.Bucket, key string) error {
	err := outer.DeleteBucket([]byte(key))
	if errors.Is(err, bolterrors.ErrBucketNotFound) {
		return nil
	}
	return errors.Join(err, outer.SetSequence(outer.Sequence()-1))
}

func put(outer *bbolt.Bucket, e Entry, stamp uint64) error {
	bucket, err := outer.CreateBucket([]byte(e.Key))
	switch {
	case errors.Is(err, bolterrors.ErrBucketExists):
		bucket = outer.Bucket([]byte(e.Key))
	case err != nil:
		return err
	default:
		if err := outer.SetSequence(outer.Sequence() + 1); err != nil {
			return err
		}
	}
	bucket.FillPercent = 0.9 // entries are only ever added at the end
	born := stamp
	if _, first := bucket.Cursor().First(); first != nil {
		born = bornOf(first)
	}
	seq, err := bucket.NextSequence()
	if err != nil {
		return err
	}
	r := record{seq: seq, stamp: stamp, born: born, key: e.Key, data: e.Data}
	return bucket.Put(sequence(seq), r.append(nil))
}

func (b *Bolt) writeError(err error) error {
	return fmt.Errorf("write journal %s: %w: check that the disk has room", b.path, err)
}
