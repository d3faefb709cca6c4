package users

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/proc"
)

// Place is where the nodes of a machine keep their reservations, over its restarts.
const Place = "/var/lib/zorilla/users"

// blockSize is how many jobs may have directories at a node at once.
const blockSize = 1024

// Block is the numbers that a node has reserved. Its methods may be called from any
// goroutine. Those of a nil Block give no numbers.
type Block struct {
	numbers Range
	work    string
	files   []*os.File // of reservations, locked

	mu    sync.Mutex // guards what follows
	fresh bool       // nothing was ever there
	next  int        // to be given out
	alive map[int]bool
	roots map[string]tenant // directories
}

// tenant is who has a directory.
type tenant struct {
	job    string
	number int
}

// Reserve reserves numbers of a range for the node whose workers are in a directory, at a
// place that all nodes of the machine know.
func Reserve(place string, r Range, work string) (*Block, error) {
	// A state directory may be beside it, which workers pass to.
	if err := os.MkdirAll(filepath.Dir(place), 0o711); err != nil {
		return nil, fmt.Errorf("reserve users: %w", err)
	}
	if err := os.Mkdir(place, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("reserve users: %w", err)
	}
	all, err := os.Open(place)
	if err != nil {
		return nil, fmt.Errorf("reserve users: %w", err)
	}
	defer all.Close()
	if err := unix.Flock(int(all.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("reserve users: %w", err)
	}
	b := &Block{work: work, roots: map[string]tenant{}}
	if err := b.reserve(place, r); err != nil {
		b.letGo()
		return nil, fmt.Errorf("reserve users: %w", err)
	}
	b.next = b.numbers.First + rand.IntN(b.numbers.Last-b.numbers.First+1) // not those of just before a restart
	b.alive = b.living()
	return b, nil
}

// reservation is what another node of the machine has.
type reservation struct {
	path    string
	numbers Range
	begun   time.Time // when its node began last
	idle    bool      // nothing of its workers is to be seen
}

// reserve takes what the node had, or else what is free, of a range; what it had of
// others stays its own as long as it lives.
func (b *Block) reserve(place string, r Range) error {
	entries, err := os.ReadDir(place)
	if err != nil {
		return err
	}
	var others []reservation
	for _, e := range entries {
		numbers, err := Parse(e.Name())
		if err != nil {
			continue
		}
		other, stands, err := b.look(filepath.Join(place, e.Name()), numbers, r)
		if err != nil {
			return err
		}
		if stands {
			others = append(others, other)
		}
	}
	if b.numbers != (Range{}) {
		return nil
	}
	if numbers, ok := r.free(others); ok {
		return b.writeReservation(filepath.Join(place, numbers.String()), numbers)
	}
	// Files may be on a disk that is not there just now: those whose node was away longest
	// are the last that one misses.
	slices.SortFunc(others, func(a, b reservation) int { return a.begun.Compare(b.begun) })
	for i, other := range others {
		numbers, ok := r.free(slices.Delete(slices.Clone(others), i, i+1))
		if !other.idle || !ok {
			continue
		}
		if err := os.Remove(other.path); err != nil {
			return err
		}
		return b.writeReservation(filepath.Join(place, numbers.String()), numbers)
	}
	return fmt.Errorf("other nodes of this machine have all of %v: choose more, FIRST-LAST, with --run-as", r)
}

// free returns numbers of a range that no other node has.
func (r Range) free(others []reservation) (Range, bool) {
	for first := r.First; first <= r.Last; first += blockSize {
		numbers := Range{first, min(first+blockSize-1, r.Last)}
		if !slices.ContainsFunc(others, func(o reservation) bool { return numbers.overlaps(o.numbers) }) {
			return numbers, true
		}
	}
	return Range{}, false
}

// look takes a reservation that is this node's own, removes one that was never used, and
// reports whether it stands.
func (b *Block) look(path string, numbers, r Range) (other reservation, stands bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) { // its node has just ended
		return other, false, nil
	}
	if err != nil {
		return other, false, err
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	info, serr := f.Stat()
	if err = errors.Join(err, serr); err != nil {
		return other, false, errors.Join(err, f.Close())
	}
	other = reservation{path: path, numbers: numbers, begun: info.ModTime()}
	switch locked := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil; {
	case locked && string(text) == b.work:
		b.files = append(b.files, f)
		if b.numbers == (Range{}) && r.holds(numbers.First) && r.holds(numbers.Last) {
			b.numbers = numbers
		}
		now := time.Now()
		_ = os.Chtimes(path, now, now)
		return other, true, nil
	case locked && len(text) == 0: // whoever reserved it died before it had any
		if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) { // its node did
			err = nil
		}
		return other, false, errors.Join(err, f.Close())
	case locked:
		other.idle = seemsEmpty(string(text))
	}
	return other, true, f.Close()
}

// writeReservation writes a reservation; it fails if the file exists.
func (b *Block) writeReservation(path string, numbers Range) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	b.files, b.numbers, b.fresh = append(b.files, f), numbers, isMissing(b.work)
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	_, err = f.WriteString(b.work)
	return errors.Join(err, f.Sync())
}

// seemsEmpty reports whether there is nothing in a directory of workers, or no such
// directory. Its disk may not be there.
func seemsEmpty(work string) bool { return isEmpty(work) || isMissing(work) }

func isEmpty(work string) bool {
	entries, err := os.ReadDir(work)
	return err == nil && len(entries) == 0
}

func isMissing(work string) bool {
	_, err := os.Lstat(work)
	return errors.Is(err, fs.ErrNotExist)
}

// letGo gives the locks back.
func (b *Block) letGo() {
	for _, f := range b.files {
		_ = f.Close()
	}
}

// Close ends the reservation, unless there are workers, or files of theirs.
func (b *Block) Close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if isEmpty(b.work) || b.fresh {
		for _, f := range b.files {
			_ = os.Remove(f.Name()) // the next node that starts does it otherwise
		}
	}
	b.letGo()
}

// living returns the numbers that processes have.
func (b *Block) living() map[int]bool {
	alive := map[int]bool{}
	for _, pid := range proc.All() {
		if n := proc.User(pid); b.numbers.holds(n) {
			alive[n] = true
		}
	}
	return alive
}

// Number returns the number of a job's user and group, and notes that root is a directory
// of it. Of a nil Block it is -1.
func (b *Block) Number(job, root string) (int, error) {
	if b == nil {
		return -1, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fresh = false
	used := map[int]bool{}
	for _, t := range b.roots {
		used[t.number] = true
		if t.job == job && b.numbers.holds(t.number) {
			b.roots[root] = t
			return t.number, nil
		}
	}
	for range 2 * (b.numbers.Last - b.numbers.First + 1) {
		n := b.next
		if b.next++; b.next > b.numbers.Last {
			b.next, b.alive = b.numbers.First, b.living()
		}
		if !used[n] && !b.alive[n] {
			b.roots[root] = tenant{job, n}
			return n, nil
		}
	}
	return -1, fmt.Errorf("jobs that are not removed yet have all users %v", b.numbers)
}

// Known notes that a directory of a job belongs to a number, from an earlier life of the
// node.
func (b *Block) Known(job, root string, number int) {
	if b == nil || number < 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.roots[root] = tenant{job, number}
}

// Left notes that a directory is gone.
func (b *Block) Left(root string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.roots, root)
}
