package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"zorilla/internal/atomicfile"
)

// examined is what the bytes of a journal tell.
type examined struct {
	keys    map[string]uint64 // that the tree names, and how many entries each has had
	claimed uint64            // how many keys there should be
	stamp   uint64            // highest
	applied uint64            // number of the last transaction whose log is in the table
	// appliedKnown is unset if that is damaged, or if there were no logs yet.
	appliedKnown bool
	root         string // what it is, if not a journal of this version
	nothing      bool   // not even that
	heads        int
	err          error // why bbolt must not open the file
}

// examine finds out whether the file can be used, and puts a new one in its place
// if it cannot.
func (f *File) examine() error {
	table, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.missed("is not there any more")
		return nil
	}
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	defer table.Close()
	info, err := table.Stat()
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("open journal %s: not a regular file", f.path)
	}
	if info.Size() == 0 {
		f.missed("is empty")
		return nil
	}
	if err := lockFile(table); err != nil {
		return fmt.Errorf("open journal %s: %w", f.path, err)
	}
	file, err := syscall.Mmap(int(table.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("read journal %s: %w", f.path, err)
	}
	defer syscall.Munmap(file)
	x := look(file)
	f.found = x
	if _, err := os.Stat(markFile(f.path)); err != nil && (x.nothing || len(bytes.Trim(file, "\x00")) == 0) {
		return f.begun(x) // the node, or its machine, died while it was made
	}
	if x.err != nil {
		return f.rescue(file, x)
	}
	if x.heads == 1 {
		f.lose("one of the two heads of journal %s is damaged: what was written last may be lost", f.path)
	}
	return nil
}

// begun removes what there is of a file that was never a journal, unless bbolt can
// go on with it.
func (f *File) begun(x examined) error {
	if x.nothing {
		return nil
	}
	if err := os.Remove(f.path); err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	return nil
}

func (f *File) lose(format string, args ...any) {
	f.lost = append(f.lost, fmt.Sprintf(format, args...))
}

// missed notes that a journal that was here is gone.
func (f *File) missed(how string) {
	if _, err := os.Stat(markFile(f.path)); err == nil {
		f.lose("journal %s %s: all jobs that it held are lost", f.path, how)
	}
}

// lockFile waits a moment until no other process writes the file.
func lockFile(f *os.File) error {
	for end := time.Now().Add(lockWait); ; time.Sleep(lockWait / 20) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return err
		case time.Now().After(end):
			return ErrLocked
		}
	}
}

// look reads all of the file's tree.
func look(file []byte) (x examined) {
	x.keys = map[string]uint64{}
	t, ok := openTree(file)
	if x.heads = t.heads; !ok {
		x.err = fmt.Errorf("%w: it has no head", errPages)
		return x
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", errPages, fmt.Sprintf(format, args...))
	}
	misnamed := map[string]bool{}
	inner := func(key string, head []byte) error {
		return t.bucket(head, func(name, value []byte, nested bool) error {
			r, size := parseRecord(value)
			x.stamp = max(x.stamp, r.stamp)
			if size > 0 && r.key != key {
				x.keys[r.key] = x.keys[key]
				misnamed[key] = true
			}
			if nested || len(name) != 8 || size > 0 && (r.key != key || !bytes.Equal(name, sequence(r.seq))) {
				return wrong("an entry of %s is in the wrong place", key)
			}
			return nil
		})
	}
	var inside error
	seen := false
	outer := func(key, head []byte, nested bool) error {
		if !nested || checkKey(string(key)) != nil || len(head) < bucketHead {
			return wrong("%.40q is not a key", key)
		}
		x.keys[string(key)] = order.Uint64(head[8:])
		if err := inner(string(key), head); err != nil && inside == nil {
			inside = err
		}
		return nil
	}
	x.err = t.walk(t.root, span{}, 0, func(name, head []byte, nested bool) error {
		if bytes.Equal(name, logRoot) && nested {
			return x.lookApplied(&t, head)
		}
		if !bytes.Equal(name, root) || !nested || len(head) < bucketHead {
			x.root = string(name)
			return wrong("it holds %.40q", name)
		}
		seen, x.claimed = true, order.Uint64(head[8:])
		err := t.bucket(head, outer)
		for key := range misnamed {
			delete(x.keys, key)
		}
		if err == nil && x.claimed != uint64(len(x.keys)) {
			err = wrong("%d jobs are there of %d", len(x.keys), x.claimed)
		}
		return err
	})
	if x.nothing = x.err == nil && x.claimed == 0 && !seen; x.nothing {
		x.err = wrong("it holds nothing")
	}
	if x.err == nil {
		x.err = inside
	}
	if x.err == nil && uint64(len(file)) < t.pages*t.pageSize {
		x.err = wrong("%d of %d bytes are there", len(file), t.pages*t.pageSize)
	}
	return x
}

// lookApplied reads the bucket that tells of the logs.
func (x *examined) lookApplied(t *tree, head []byte) error {
	return t.bucket(head, func(name, value []byte, nested bool) error {
		if nested || !bytes.Equal(name, appliedName) {
			return fmt.Errorf("%w: %.40q is not of the logs", errPages, name)
		}
		x.applied, x.appliedKnown = parseApplied(value)
		return nil
	})
}

// rescue puts a new file in the place of a damaged one, with all entries that are
// found in its bytes, and keeps the damaged one beside it. Keys that were removed
// may be found too, as long as nothing was written over them.
func (f *File) rescue(file []byte, x examined) error {
	found := map[string]map[uint64]record{}
	findRecords(file, func(r record) {
		f.found.stamp = max(f.found.stamp, r.stamp)
		of := found[r.key]
		if of == nil {
			of = map[uint64]record{}
			found[r.key] = of
		}
		if old, ok := of[r.seq]; !ok || r.born > old.born || r.born == old.born && r.stamp > old.stamp {
			of[r.seq] = r
		}
	})
	if len(found) == 0 && x.root != "" {
		return fmt.Errorf("open journal %s: made by another version of zorilla (it holds %.40q): "+
			"use that version, or another directory with --state-dir",
			f.path, x.root)
	}
	if len(found) == 0 && x.heads == 0 {
		return fmt.Errorf("open journal %s: %w (%v)", f.path, ErrDamaged, x.err)
	}
	for key := range x.keys {
		if found[key] == nil {
			found[key] = map[uint64]record{} // somebody must miss what it held
		}
	}
	fresh := f.path + ".new"
	if err := f.writeRescued(fresh, found, x.keys); err != nil {
		os.Remove(fresh)
		return f.writeError(fmt.Errorf("copy what is left of it: %w", err))
	}
	kept, err := keepDamaged(f.path)
	if err == nil {
		err = os.Rename(fresh, f.path)
	}
	if err == nil && !f.loose {
		err = atomicfile.Sync(filepath.Dir(f.path))
	}
	if err != nil {
		return f.writeError(err)
	}
	f.lose("journal %s was damaged (%v): it was written anew with what is left of %d jobs, "+
		"some of which may have been forgotten before; the damaged one is kept as %s",
		f.path, x.err, len(found), kept)
	return nil
}

// writeRescued makes a journal of records. A key whose records have gaps keeps them.
func (f *File) writeRescued(path string, found map[string]map[uint64]record, claimed map[string]uint64) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db, err := openTable(path, f.loose)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		outer, err := tx.CreateBucket(root)
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(found)) {
			if err := putAll(outer, key, found[key], claimed[key]); err != nil {
				return err
			}
		}
		if f.found.appliedKnown {
			err = setApplied(tx, f.found.applied)
		}
		return errors.Join(err, outer.SetSequence(uint64(len(found))))
	})
	return errors.Join(err, db.Close())
}

func putAll(outer *bbolt.Bucket, key string, records map[uint64]record, claimed uint64) error {
	bucket, err := outer.CreateBucket([]byte(key))
	if err != nil {
		return err
	}
	born, last := uint64(0), uint64(1) // a key without entries misses at least one
	for _, r := range records {
		born = max(born, r.born)
	}
	for _, seq := range slices.Sorted(maps.Keys(records)) {
		r := records[seq]
		if r.born != born { // it was removed before the key was used again
			continue
		}
		if err := bucket.Put(sequence(seq), r.append(nil)); err != nil {
			return err
		}
		last = seq
	}
	if claimed > last && claimed < last+1000 { // else that is damaged too
		last = claimed
	}
	return bucket.SetSequence(last)
}
