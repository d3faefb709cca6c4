package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const lockWait = 400 * time.Millisecond // twice at most

var root = []byte("zorilla journal 1")

// Bolt is a journal in a file.
type Bolt struct {
	queue
	path string
	db   *bbolt.DB
}

// Open opens the journal in the file, and makes the file if there is none (not
// its directory). It reads the whole file to see that it is sound. ErrLocked
// comes within a second if another process has the file open; ErrDamaged means
// that the file cannot be read. The file is closed by Run or by Close.
func Open(path string) (*Bolt, error) {
	info, err := os.Stat(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open journal %s: not a regular file", path)
	}
	if err == nil && info.Size() > 0 {
		if err := verify(path); err != nil {
			return nil, err
		}
	}
	db, err := openFile(path, false)
	if err != nil {
		return nil, err
	}
	b := &Bolt{queue: newQueue(), path: path, db: db}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(root)
		return err
	})
	if err == nil && fresh {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		db.Close()
		return nil, b.writeError(err)
	}
	return b, nil
}

// openFile opens the file with bbolt, which panics on some kinds of damage.
func openFile(path string, readOnly bool) (db *bbolt.DB, err error) {
	var file *os.File
	err = guard(path, func() (err error) {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:      lockWait,
			ReadOnly:     readOnly,
			FreelistType: bbolt.FreelistMapType,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				var err error
				file, err = os.OpenFile(name, flag, mode)
				return file, err
			},
		})
		return err
	})
	var errno syscall.Errno
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, ErrDamaged):
		if file != nil {
			// bbolt gave up in the middle: its memory map stays, and would
			// keep the lock beyond Close.
			syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
			file.Close()
		}
		return nil, err
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("open journal %s: %w", path, ErrLocked)
	case errors.As(err, &errno):
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return nil, fmt.Errorf("open journal %s: %w (%v)", path, ErrDamaged, err)
}

// verify reads the whole file without changing it. A file that is shorter than
// it says must be found before anything touches its missing pages, which would
// end the process.
func verify(path string) error {
	db, err := openFile(path, true)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) error {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("open journal: %w", err)
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("open journal %s: %w (%d of %d bytes are there)", path, ErrDamaged, info.Size(), tx.Size())
		}
		err = guard(path, func() error {
			return tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
				if string(name) != string(root) {
					return fmt.Errorf("open journal %s: made by another version of zorilla (it holds %.40q): use that version, or another directory with --state", path, name)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		return load(tx, path, func(Entry) error { return nil })
	})
}

// guard turns a panic or a fault while a damaged file is read into an error.
func guard(path string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("read journal %s: %w (%v)", path, ErrDamaged, r)
		}
	}()
	return f()
}

// Load calls f with every entry; see Journal.
func (b *Bolt) Load(f func(Entry) error) error {
	err := b.db.View(func(tx *bbolt.Tx) error { return load(tx, b.path, f) })
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// Read returns the entries of one key; see Journal.
func (b *Bolt) Read(key string) (entries []Entry, err error) {
	err = b.db.View(func(tx *bbolt.Tx) (err error) {
		if outer := tx.Bucket(root); outer.Bucket([]byte(key)) != nil {
			entries, err = readKey(outer, b.path, key)
		}
		return err
	})
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return nil, ErrClosed
	}
	return entries, err
}

// load keeps f outside of guard: a panic of f is no damage of the file.
func load(tx *bbolt.Tx, path string, f func(Entry) error) error {
	outer := tx.Bucket(root)
	if outer == nil {
		return nil
	}
	var keys []string
	err := guard(path, func() error {
		return outer.ForEach(func(name, value []byte) error {
			if value != nil || checkKey(string(name)) != nil {
				return fmt.Errorf("read journal %s: %w (%.40q is not a key)", path, ErrDamaged, name)
			}
			keys = append(keys, string(name))
			return nil
		})
	})
	for i := 0; i < len(keys) && err == nil; i++ {
		var entries []Entry
		if entries, err = readKey(outer, path, keys[i]); err != nil {
			break
		}
		for _, e := range entries {
			if err := f(e); err != nil {
				return err
			}
		}
	}
	return err
}

func readKey(outer *bbolt.Bucket, path, key string) (entries []Entry, err error) {
	err = guard(path, func() error {
		return outer.Bucket([]byte(key)).ForEach(func(seq, data []byte) error {
			want := binary.BigEndian.AppendUint64(nil, uint64(len(entries))+1)
			if string(seq) != string(want) || data == nil {
				return fmt.Errorf("read journal %s: %w (entry %d of %s is missing)", path, ErrDamaged, len(entries)+1, key)
			}
			entries = append(entries, Entry{key, append([]byte{}, data...)})
			return nil
		})
	})
	return entries, err
}

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
	if err := b.db.Close(); err != nil {
		return fmt.Errorf("close journal %s: %w", b.path, err)
	}
	return nil
}

func (b *Bolt) commit(ops []op) error {
	err := b.db.Update(func(tx *bbolt.Tx) error {
		outer := tx.Bucket(root)
		for _, o := range ops {
			if o.remove != "" {
				if err := outer.DeleteBucket([]byte(o.remove)); err != nil && !errors.Is(err, bolterrors.ErrBucketNotFound) {
					return err
				}
			}
			for _, e := range o.entries {
				if err := put(outer, e); err != nil {
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

func put(outer *bbolt.Bucket, e Entry) error {
	bucket, err := outer.CreateBucketIfNotExists([]byte(e.Key))
	if err != nil {
		return err
	}
	bucket.FillPercent = 0.9 // entries are only ever added at the end
	seq, err := bucket.NextSequence()
	if err != nil {
		return err
	}
	return bucket.Put(binary.BigEndian.AppendUint64(nil, seq), e.Data)
}

func (b *Bolt) writeError(err error) error {
	return fmt.Errorf("write journal %s: %w: check that the disk has room", b.path, err)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
