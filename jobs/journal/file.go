package journal

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"zorilla/internal/atomicfile"
)

// File is a journal on disk: a table, and logs in front of it.
type File struct {
	queue
	path    string
	loose   bool // nothing is synced
	medium  medium
	logSize int // bytes
	db      *bbolt.DB
	lost    []string
	found   examined // in the table, when it was opened

	tails tails // what is in the logs
	// spare holds the log that is written next, or nil; who takes it out puts
	// something back.
	spare chan *log
	kick  chan struct{} // has room for one: there is something for the keeper
	freed chan error    // has room for one: how the keeper fared

	log    *log   // that is written; nil = none; owned by the writer
	number uint64 // of the last transaction; owned by the writer
	files  uint64 // number of the last log; owned by who has the spare
}

// Open opens the journal in the file, and makes the file if there is none (not
// its directory). It reads the whole file to see that it is sound; if it is not,
// what is left of the entries is copied into a new file and the damaged one is
// kept beside it. ErrLocked comes within a second if another process has the file
// open; ErrDamaged means that nothing can be read of it. The file is closed by Run
// or by Close.
func Open(path string) (*File, error) { return open(path, realMedium{}) }

func open(path string, m medium) (*File, error) {
	f := &File{
		queue: newQueue(), path: path, loose: m.loose(), medium: m, logSize: defaultLog,
		spare: make(chan *log, 1), kick: make(chan struct{}, 1), freed: make(chan error, 1),
	}
	f.spare <- nil
	if err := f.examine(); err != nil {
		return nil, err
	}
	db, err := openTable(path, f.loose)
	if err != nil {
		return nil, err
	}
	f.db = db
	if err = f.begin(); err != nil {
		db.Close()
		return nil, f.writeError(err)
	}
	f.found.keys = nil // there may be very many
	return f, nil
}

// begin applies the logs that are there, so that there are none.
func (f *File) begin() error {
	logs, err := f.recover()
	if err != nil {
		return err
	}
	f.number = max(f.found.applied, f.found.stamp, logs.last)
	err = f.db.Update(func(tx *bbolt.Tx) error { // both heads of the file say the same now
		logs.last = f.number
		if err := apply(tx, &logs.tail); err != nil {
			return err
		}
		outer, n := tx.Bucket(root), uint64(0)
		err := outer.ForEachBucket(func([]byte) error { n++; return nil })
		return errors.Join(err, outer.SetSequence(n))
	})
	applied := err == nil
	if applied {
		err = f.leaveMark()
	}
	if isFull(err) && holdsRoot(f.db) { // it can be read, and who writes is told
		err = nil
	}
	if err != nil {
		return err
	}
	if !applied {
		f.tails.list = append(f.tails.list, &logs.tail)
		return nil
	}
	return f.dispose(logs)
}

// Lost tells in a line each what was found to be lost when the journal was
// opened, but for entries: of these Load tells.
func (f *File) Lost() []string { return f.lost }

// markFile, beside the journal, tells that there was one.
func markFile(path string) string { return path + ".mark" }

func (f *File) leaveMark() error {
	if _, err := os.Stat(markFile(f.path)); err == nil {
		return nil
	}
	return atomicfile.Write(markFile(f.path), []byte("there is a journal beside this file; if there is none, it was lost\n"))
}

// Load calls f with every entry; see Journal.
func (f *File) Load(each func(Entry) error) error {
	logs := f.tails.copy() // before the table is looked at: what leaves the logs is there
	err := f.db.View(func(tx *bbolt.Tx) error {
		logs := missingIn(tx, logs)
		outer := tx.Bucket(root)
		tell := func(key string) error {
			k := keptIn(outer.Bucket([]byte(key)))
			for _, t := range logs {
				if part := t.keys[key]; part != nil {
					k = part.onto(k)
				}
			}
			for _, e := range k.entries(key) {
				if err := each(e); err != nil {
					return err
				}
			}
			return nil
		}
		if err := outer.ForEachBucket(func(key []byte) error { return tell(string(key)) }); err != nil {
			return err
		}
		told := map[string]bool{}
		for _, t := range logs {
			for key := range t.keys {
				if told[key] || outer.Bucket([]byte(key)) != nil {
					continue
				}
				told[key] = true
				if err := tell(key); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return closedError(err)
}

// missingIn returns the logs that are not in the table yet.
func missingIn(tx *bbolt.Tx, logs []*tail) (missing []*tail) {
	applied := appliedOf(tx)
	for _, t := range logs {
		if t.last > applied {
			missing = append(missing, t)
		}
	}
	return missing
}

// Read returns the entries of one key; see Journal.
func (f *File) Read(key string) (entries []Entry, err error) {
	logs := f.tails.of(key)
	err = f.db.View(func(tx *bbolt.Tx) error {
		k := keptIn(tx.Bucket(root).Bucket([]byte(key)))
		for _, t := range missingIn(tx, logs) {
			k = t.keys[key].onto(k)
		}
		entries = k.entries(key)
		return nil
	})
	return entries, closedError(err)
}

// placeOf is where a key has got to, in the table and the logs.
func (f *File) placeOf(key string) (p place, err error) {
	logs := f.tails.of(key)
	err = f.db.View(func(tx *bbolt.Tx) error {
		p = placeOf(tx.Bucket(root).Bucket([]byte(key)))
		for _, t := range missingIn(tx, logs) {
			p, _, _ = t.keys[key].after(p)
		}
		return nil
	})
	return p, closedError(err)
}

func closedError(err error) error {
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// Run writes until ctx ends, then closes the files.
func (f *File) Run(ctx context.Context) error {
	keeping, end := context.WithCancel(context.WithoutCancel(ctx))
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		f.compact(keeping)
	}()
	f.run(ctx, f.commit)
	end()
	<-kept
	return f.Close()
}

// Close closes the files of a journal that was never run. What is queued is
// lost.
func (f *File) Close() error {
	for _, o := range f.dequeue(true) {
		o.err = ErrClosed
		o.finish()
	}
	f.closeLogs()
	_ = f.db.Update(func(*bbolt.Tx) error { return nil }) // both heads say the same; all that counts is on disk
	if err := f.db.Close(); err != nil {
		return fmt.Errorf("close journal %s: %w", f.path, err)
	}
	return nil
}

// commit writes operations to the log, all or none.
func (f *File) commit(ops []op) error {
	steps, err := f.plan(ops)
	if err == nil {
		err = f.write(steps)
	}
	if err != nil {
		return f.writeError(err)
	}
	return nil
}

// plan says what the operations change.
func (f *File) plan(ops []op) (steps []step, err error) {
	number := f.number + 1
	places := map[string]place{}
	for _, o := range ops {
		if o.remove != "" {
			steps = append(steps, step{key: o.remove})
			places[o.remove] = place{}
		}
		for _, e := range o.entries {
			p, ok := places[e.Key]
			if !ok {
				if p, err = f.placeOf(e.Key); err != nil {
					return nil, err
				}
			}
			if p.total == 0 {
				p.born = number
			}
			p.total++
			places[e.Key] = p
			r := record{seq: p.total, stamp: number, born: p.born, key: e.Key, data: e.Data}
			steps = append(steps, step{key: e.Key, seq: p.total, record: r.append(make([]byte, 0, recordHeader+len(e.Key)+len(e.Data)))})
		}
	}
	return steps, nil
}

func (f *File) writeError(err error) error {
	return fmt.Errorf("write journal %s: %w: check that the disk has room", f.path, err)
}
