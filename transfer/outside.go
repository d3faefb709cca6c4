package transfer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
)

// Refer implements Referrer.
func (s *directory) Refer(f File, how Reference) error {
	o := &backing{File: f, brief: how == Brief}
	var seen Stamp
	if how != Claimed {
		seen = f.Stamp
	}
	if err := o.Check(); err != nil {
		return err
	}
	file, err := openOutside(o.Path)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrElsewhere, o.Path, bare(err))
	}
	info, err := file.Stat()
	file.Close()
	if err != nil || StampOf(info) != o.Stamp {
		return fmt.Errorf("%w: %s: it is another one, or has changed", ErrElsewhere, o.Path)
	}
	o.name = rand.Text()
	if err := s.notes.write(o, false); err != nil {
		return fmt.Errorf("refer to %s: %w", o.Path, bare(err))
	}
	s.mu.Lock()
	s.index.refer(o, seen)
	for _, h := range o.Chunks {
		delete(s.changed, h)
	}
	s.mu.Unlock()
	s.sweep()
	return nil
}

// sameFiles is which files were looked at, and are as they were when they were hashed.
type sameFiles map[*backing]bool

// has reports whether a file is among these.
func (all sameFiles) has(o *backing) bool {
	if o == nil {
		return false
	}
	same, known := all[o]
	if !known {
		info, err := os.Lstat(o.Path)
		same = err == nil && StampOf(info) == o.Stamp
		all[o] = same
	}
	return same
}

// Keep implements Referrer.
func (s *DirStore) Keep(h Hash, own bool) bool {
	stays := func() bool { return s.known(h).kept || !own && s.Has(h) }
	if known := s.known(h).held; !known || stays() {
		return known
	}
	data, err := s.Get(h, nil)
	return err == nil && (stays() || s.PutVerified(h, data) == nil) // of an assembled file it may only have been in doubt
}

// sweep removes the notes of files that are not needed any more.
func (s *directory) sweep() {
	s.mu.Lock()
	stale := s.index.stale
	s.index.stale = nil
	var files []string
	for _, o := range stale {
		if o.own != nil && !o.own.away {
			files = append(files, o.Path)
		}
	}
	s.mu.Unlock()
	for _, o := range stale {
		s.notes.remove(o)
	}
	for _, name := range files {
		os.Remove(name) // what stays is removed at the next Open
	}
}

// maxLost bounds what is remembered of files that changed.
const maxLost = 1000

// lost lets go of a place that does not have a blob any more. The error is that of
// Get, nil if there are other places.
func (s *directory) lost(h Hash, from *backing, why error) error {
	if from.own != nil {
		return s.spoiled(h, from)
	}
	switch {
	case errors.Is(why, fs.ErrNotExist), errors.Is(why, syscall.ENOTDIR):
		why = errors.New("was removed since")
	case errors.Is(why, ErrMismatch), errors.Is(why, io.EOF), errors.Is(why, io.ErrUnexpectedEOF):
		why = ErrChangedSince
	default:
		why = bare(why)
	}
	why = fmt.Errorf("%s %w", from.Path, why)
	s.mu.Lock()
	if it := s.index.items[h]; it != nil {
		s.index.unrefer(it, func(r *ref) bool { return r.from == from })
	}
	_, left := s.index.items[h]
	var tell func([]string)
	var owners []string
	if !left {
		if len(s.changed) >= maxLost {
			clear(s.changed)
		}
		s.changed[h] = why
		tell, owners = s.onLost, s.index.ownersOf(h)
	}
	s.mu.Unlock()
	s.sweep()
	if left {
		return nil
	}
	if tell != nil {
		tell(owners)
	}
	return fmt.Errorf("%w: %w", notFound(h), why)
}

// ErrChangedSince: a file is not what it was when its chunks were hashed.
var ErrChangedSince = errors.New("was changed since")

// noteDir keeps what is to be known of files outside in the next life of a store, each
// in a file of its own: a note.
type noteDir struct{ dir, temp string }

// note is what is written down of a file outside.
type note struct {
	File
	Brief bool `json:"brief,omitempty"`
	// Of an assembled file, and whether all of it was there when that was written down.
	Assembled bool `json:"assembled,omitempty"`
	Whole     bool `json:"whole,omitempty"`
	// Of an assembled file that a worker has, as it was when the worker got it.
	Given *Stamp `json:"given,omitempty"`
}

func (d noteDir) path(o *backing) string { return filepath.Join(d.dir, o.name) }

// write writes down what is known of a file; whole: all of an assembled one is there.
func (d noteDir) write(o *backing, whole bool) error {
	n := note{File: o.File, Brief: o.brief, Assembled: o.own != nil, Whole: whole}
	if o.own != nil && o.own.away {
		n.Given = &o.own.sealed
	}
	b, err := codec.Marshal(n)
	if err == nil {
		err = os.MkdirAll(d.dir, 0o700)
	}
	if err == nil {
		err = atomicfile.How{Temp: d.temp, Loose: true}.Write(d.path(o), b)
	}
	return err
}

// read returns what was written down, and which notes could not be read, but perhaps the next
// time; what is no note is removed.
func (d noteDir) read() (all []*backing, unread []string, err error) {
	names, err := os.ReadDir(d.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	for _, n := range names {
		var known note
		o := &backing{name: n.Name()}
		b, err := os.ReadFile(d.path(o))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			unread = append(unread, n.Name())
			continue
		}
		if err == nil {
			err = codec.UnmarshalLarge(b, &known, MaxEntries)
		}
		if o.File, o.brief = known.File, known.Brief; err != nil || o.Check() != nil {
			d.remove(o)
			continue
		}
		if known.Assembled {
			o.own = &assembly{key: keyOf(o.Stamp.Size, o.Chunks), right: make([]bool, len(o.Chunks)), doubted: !known.Whole, noted: known.Whole}
			if known.Given != nil {
				o.own.sealed = *known.Given
			}
		}
		all = append(all, o)
	}
	return all, unread, nil
}

func (d noteDir) remove(o *backing) { os.Remove(d.path(o)) } // what stays is looked at again at the next Open

// Locator is somebody who has files in chunks and may be on this machine.
type Locator interface {
	// Locate names a file in which all chunks of a large file are at their places, by a hash of
	// what it holds (keyOf), without them; zero = there is none. With a stamp they were all
	// compared with their hashes when the file had that. It may be gone, or another one, at any time.
	Locate(ctx context.Context, content Hash) (File, error)
}

// Locate implements WholeFiles.
func (s *directory) Locate(content Hash) (f File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.index.whole[content]
	if c == nil || !c.own.made {
		return f
	}
	if f.Path = c.Path; !c.own.busy() && c.complete() {
		f.Stamp = c.own.sealed
	}
	return f
}

// Nearby gets the chunks of large files where they are, if from can tell and this process may
// read them there, and all others from get. Who writes files of it has the file system copy
// what was compared already. Told is told how many bytes get was not asked for, from any goroutine.
func Nearby(ctx context.Context, from Locator, get VerifiedFunc, files []Entry, told func(n int)) Getter {
	n := nearby{get, told, make(map[Hash]nearbyChunk)}
	for _, e := range files {
		if len(e.Chunks) < 2 || e.bundle != nil {
			continue
		}
		of := sync.OnceValue(func() File {
			f, _ := from.Locate(ctx, keyOf(e.Size, e.Chunks)) // who cannot tell is asked for chunks
			return f
		})
		for i, h := range e.Chunks {
			n.chunks[h] = nearbyChunk{of, e.Size, i}
		}
	}
	return n
}

// nearby is the Getter of Nearby.
type nearby struct {
	get    VerifiedFunc
	told   func(n int)
	chunks map[Hash]nearbyChunk
}

// nearbyChunk is where a chunk may be.
type nearbyChunk struct {
	of   func() File
	size int64 // of the file
	i    int
}

func (n nearby) verified() {}

// Get implements Getter.
func (n nearby) Get(h Hash, buf []byte) ([]byte, error) {
	if c, ok := n.chunks[h]; ok {
		if f, _, err := c.open(); err == nil {
			defer f.Close()
			b := sized(buf, chunkLen(c.size, c.i))
			if _, err := f.ReadAt(b, int64(c.i)*ChunkSize); err == nil && HashOf(b) == h {
				n.told(len(b))
				return b, nil
			}
		}
	}
	return n.get(h, buf)
}

// CopyTo implements copier.
func (n nearby) CopyTo(h Hash, size int, to *os.File, at int64) bool {
	c, ok := n.chunks[h]
	if !ok || c.of().Stamp == (Stamp{}) {
		return false
	}
	f, now, err := c.open()
	if err != nil {
		return false
	}
	defer f.Close()
	if now != c.of().Stamp || !copyRange(f, int64(c.i)*ChunkSize, to, at, size) {
		return false
	}
	if info, err := f.Stat(); err != nil || StampOf(info) != now {
		return false
	}
	n.told(size)
	return true
}

// open opens the file.
func (c nearbyChunk) open() (f *os.File, now Stamp, err error) {
	name := c.of().Path
	if !filepath.IsAbs(name) {
		return nil, now, ErrElsewhere
	}
	outside, err := openOutside(name)
	if err != nil {
		return nil, now, err
	}
	f = outside.(*os.File)
	info, err := f.Stat()
	if err != nil || info.Size() != c.size {
		f.Close()
		return nil, now, cmp.Or(err, ErrElsewhere)
	}
	return f, StampOf(info), nil
}
