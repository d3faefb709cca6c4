package executor

import (
	"path/filepath"
	"slices"
	"sync"

	"zorilla/jobs/internal/participant"
	"zorilla/jobs/process"
)

// sharing is the work directories that workers of this node have together (jobs.Spec.ShareWork).
// The participant says who has which one, by its number. Each has a root of its own, which is made
// with the first worker that has it, and goes with the last.
type sharing struct {
	in     string                  // the directory of all roots
	make   func(root string) error // or empties it
	remove func(root string)

	mu   sync.Mutex // guards what follows, and sharedDir.left
	of   map[participant.WorkerID]*sharedDir
	dirs map[string]*sharedDir // by root
}

type sharedDir struct {
	root string
	left map[participant.WorkerID]bool // who has it; true = it has ended before others, to whom it leaves the files

	ending sync.Mutex // one of them after the other

	mu   sync.Mutex // held while the directory is made, filled and removed; guards what follows
	made bool       // and empty
	laid bool       // the inputs are in it, or what was made of them
}

func newSharing(in string, make func(root string) error, remove func(root string)) *sharing {
	return &sharing{in: in, make: make, remove: remove, of: map[participant.WorkerID]*sharedDir{}, dirs: map[string]*sharedDir{}}
}

// leftNote notes in the root of a worker that has ended that it leaves the files to others.
const leftNote = "left"

// join notes that a worker has a directory together with others; nil = it has its own.
func (s *sharing) join(c *participant.ClaimRecord) *sharedDir {
	if c.Shared() == "" {
		return nil
	}
	id, root := participant.WorkerID{Job: c.Job, RankAttempt: c.RankAttempt}, filepath.Join(s.in, c.Shared())
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.dirs[root]
	if d == nil {
		d = &sharedDir{root: root, left: map[participant.WorkerID]bool{}}
		s.dirs[root] = d
	}
	s.of[id], d.left[id] = d, false
	return d
}

// adopt is join for the worker of a root of an earlier life of this node. It returns the root of
// what it shares, or "".
func (s *sharing) adopt(c *participant.ClaimRecord, root string) string {
	d := s.join(c)
	if d == nil {
		return ""
	}
	_, err := process.Noted(root, leftNote)
	d.left[participant.WorkerID{Job: c.Job, RankAttempt: c.RankAttempt}] = err == nil
	if c.Start != nil {
		d.made, d.laid = true, true
	}
	return d.root
}

// dir returns the directory that a worker has with others, or nil.
func (s *sharing) dir(id participant.WorkerID) *sharedDir {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[id]
}

// has reports whether a worker has the directory of a root.
func (s *sharing) has(root string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dirs[root] != nil
}

// around returns the root that has the files of a worker, if not its own.
func (s *sharing) around(id participant.WorkerID, own string) string {
	if d := s.dir(id); d != nil {
		return d.root
	}
	return own
}

// config returns what the supervisor of a worker needs to know of a shared directory.
func (s *sharing) config(id participant.WorkerID) *process.Shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.of[id]
	if d == nil {
		return nil
	}
	return &process.Shared{Root: d.root, Workers: len(d.left)}
}

// claim has the directory be there that a worker has with others.
func (s *sharing) claim(c *participant.ClaimRecord) error {
	d := s.join(c)
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return s.ready(d)
}

// ready makes a directory, or empties what an earlier try has left. d.mu is held.
func (s *sharing) ready(d *sharedDir) error {
	if d.made {
		return nil
	}
	err := s.make(d.root)
	d.made = err == nil
	return err
}

// lay has f write the inputs of a worker, to its own root or, if it is the first one there, to that
// which it shares.
func (s *sharing) lay(id participant.WorkerID, own string, f func(root string) error) error {
	d := s.dir(id)
	if d == nil {
		return f(own)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.laid {
		return nil
	}
	err := s.ready(d)
	if err == nil {
		err = f(d.root)
	}
	d.made, d.laid = err == nil, err == nil
	return err
}

// awaited reports whether another worker of a job is to have inputs of its own, and has not all of
// them yet.
func (s *sharing) awaited(w *participant.Work, but participant.WorkerID) bool {
	shared := s.dir(but)
	return w != nil && slices.ContainsFunc(w.Workers, func(k *participant.Worker) bool {
		other := participant.WorkerID{Job: but.Job, RankAttempt: k.RankAttempt}
		return other != but && k.Phase <= participant.PhaseLaying && (shared == nil || s.dir(other) != shared)
	})
}

// last reports whether the files are to be stored that a worker of a root, which has ended, has with
// others, since all of these have ended before. Else that they are not is durable before anybody
// hears how it has ended: if the node begins anew they must come with another one.
func (s *sharing) last(id participant.WorkerID, root string) (bool, error) {
	d := s.dir(id)
	if d == nil {
		return true, nil
	}
	d.ending.Lock()
	defer d.ending.Unlock()
	s.mu.Lock()
	leaves := d.left[id]
	for other, left := range d.left {
		leaves = leaves || other != id && !left
	}
	s.mu.Unlock()
	if !leaves {
		return true, nil
	}
	if err := process.Note(root, leftNote, []byte{1}, true); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d.left[id] = true
	return false, nil
}

// leave removes the directory that a worker has with others, if it is the last that has it.
func (s *sharing) leave(id participant.WorkerID) {
	s.mu.Lock()
	d := s.of[id]
	if d != nil {
		delete(s.of, id)
		delete(d.left, id)
	}
	s.mu.Unlock()
	if d == nil {
		return
	}
	d.mu.Lock() // who comes meanwhile waits
	defer d.mu.Unlock()
	if s.isUsed(d) {
		return
	}
	s.remove(d.root)
	d.made, d.laid = false, false
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(d.left) == 0 {
		delete(s.dirs, d.root)
	}
}

// isUsed reports whether anybody has a directory.
func (s *sharing) isUsed(d *sharedDir) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(d.left) > 0
}
