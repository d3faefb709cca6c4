package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// spot is where the bytes of a blob are.
type spot struct {
	name string
	from *backing // nil = a file of the store, which is the blob
	at   int64
	size int64
	seen Stamp // of the file when the bytes were compared with the hash; zero = not in this life
	sure bool  // they are right, though the file is written to
	move int   // how often the file had another path before
}

// spot returns where to read a blob: a file of the store is better than one of others.
func (s *directory) spot(h Hash) (spot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.index.items[h]
	switch {
	case it == nil:
		return spot{}, false
	case it.own:
		return spot{name: s.file(h), seen: it.seen}, true
	}
	r := it.best()
	p := spot{r.from.Path, r.from, r.at, r.length, r.seen, r.sure(), 0}
	if r.from.own != nil {
		p.move = r.from.own.moved
	}
	return p, true
}

// Get implements Getter. A blob whose file is damaged, or cannot be read
// any more, is removed and reported as ErrNotFound.
//
// The bytes are compared with the hash once in a life of the store, and again
// whenever something has been written to their file since.
func (s *DirStore) Get(h Hash, buf []byte) ([]byte, error) {
	s.Has(h) // counts as a use
	if _, held := s.spot(h); !held {
		return nil, notFound(h)
	}
	data, _, err := s.read(h, buf)
	if err == nil {
		return data, nil
	}
	// The file may have been evicted and put again meanwhile: look once
	// more where nobody else can write or delete it.
	s.claims.take(h)
	defer s.claims.release(h)
	return s.getClaimed(h, buf)
}

// getClaimed is Get for who has the claim on the blob.
func (s *DirStore) getClaimed(h Hash, buf []byte) ([]byte, error) {
	for {
		data, p, err := s.read(h, buf)
		if err == nil {
			return data, nil
		}
		if p.from == nil {
			return nil, s.damaged(h, err)
		}
		if s.moved(h, p) {
			continue
		}
		if p.from.own != nil && mayPass(err) {
			return nil, fmt.Errorf("read blob: %w", err)
		}
		if err := s.lost(h, p.from, err); err != nil {
			return nil, err
		}
	}
}

// mayPass reports whether who reads a file again may get it: there were too few descriptors, or
// too little memory, or it must not be read now.
func mayPass(err error) bool {
	passing := []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EACCES, syscall.EPERM, syscall.EINTR, syscall.EAGAIN,
	}
	return slices.ContainsFunc(passing, func(e error) bool { return errors.Is(err, e) })
}

// damaged removes a blob of the store that could not be read. The caller has the
// claim on it.
func (s *DirStore) damaged(h Hash, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.forget(h)
		return notFound(h)
	case errors.Is(err, ErrMismatch), errors.Is(err, syscall.EIO):
		s.forget(h)
		if err := os.Remove(s.file(h)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove damaged blob: %w", err)
		}
		return fmt.Errorf("%w (its file was damaged)", notFound(h))
	}
	return fmt.Errorf("read blob: %w", err)
}

// openWith opens the file of a blob, and returns its stamp and the length of the blob.
// Files of the store are opened with a function of the store.
func (p spot) openWith(open func(string) (fs.File, error)) (f fs.File, now Stamp, length int64, err error) {
	if p.from != nil {
		open = openOutside
	}
	f, err = open(p.name)
	if err != nil {
		return nil, now, 0, err
	}
	info, err := f.Stat()
	if err == nil {
		if length = p.size; p.from == nil {
			length = info.Size()
		}
		if !info.Mode().IsRegular() || length > MaxBlob || p.at+length > info.Size() {
			err = ErrMismatch
		}
	}
	if err != nil {
		f.Close()
		return nil, now, 0, err
	}
	return f, StampOf(info), length, nil
}

// read returns the content of the blob, which is verified unless it is known to be
// whole.
func (s *DirStore) read(h Hash, buf []byte) (data []byte, p spot, err error) {
	p, held := s.spot(h)
	if !held {
		return nil, p, fs.ErrNotExist
	}
	f, now, length, err := p.openWith(s.open)
	if err != nil {
		return nil, p, err
	}
	defer f.Close()
	buf = sized(buf, int(length))
	if at, ok := f.(io.ReaderAt); ok && p.at > 0 {
		_, err = at.ReadAt(buf, p.at)
	} else {
		_, err = io.ReadFull(f, buf)
	}
	if err != nil || p.whole(s, h, f) {
		return buf, p, err
	}
	if err := check(h, buf); err != nil {
		return nil, p, err
	}
	s.mu.Lock()
	s.index.saw(h, p.from, now)
	s.mu.Unlock()
	return buf, p, nil
}

// Read implements PinStore.
func (s *DirStore) Read(h Hash, buf []byte, f func(p []byte, size int) error) ([]byte, error) {
	n := 0
	s.Has(h) // counts as a use
	if p, held := s.spot(h); held {
		buf = sized(buf, readSize)
		var all bool
		var err error
		if n, all, err = p.read(s, h, buf, f); all || err != nil {
			return buf, err
		}
	}
	data, err := s.Get(h, buf)
	if err != nil {
		return buf, err
	}
	return data, f(data[n:], len(data))
}

// read is Read for a blob that is known to be whole, until something happens to its file. It returns
// how many bytes f got, and whether they are all; the error is that of f.
func (p spot) read(s *DirStore, h Hash, buf []byte, f func(p []byte, size int) error) (n int, all bool, err error) {
	file, now, size, err := p.openWith(s.open)
	if err != nil {
		return 0, false, nil
	}
	defer file.Close()
	from, ok := file.(io.ReaderAt)
	if !ok || !p.sure && p.seen != now {
		return 0, false, nil
	}
	for n < int(size) {
		part := buf[:min(len(buf), int(size)-n)]
		if readPart(from, p.at+int64(n), part, p.name) != nil || n+len(part) == int(size) && !p.whole(s, h, file) {
			return n, false, nil
		}
		if err := f(part, int(size)); err != nil {
			return n, false, err
		}
		n += len(part)
	}
	return n, n > 0, nil
}

// whole reports whether what was read of a file until now is what was compared with the hash.
func (p spot) whole(s *DirStore, h Hash, f fs.File) bool {
	if p.sure { // a worker may have the file meanwhile
		now, held := s.spot(h)
		return held && now.sure
	}
	info, err := f.Stat()
	return err == nil && StampOf(info) == p.seen
}

// CopyTo implements WholeFiles. It does not look at the bytes: the blob must be known to be whole, and
// the file systems must do it.
func (s *DirStore) CopyTo(h Hash, size int, to *os.File, at int64) bool {
	p, held := s.spot(h)
	if !held || p.seen == (Stamp{}) {
		return false
	}
	file, now, length, err := p.openWith(s.open)
	if err != nil {
		return false
	}
	defer file.Close()
	f, ok := file.(*os.File)
	if !ok || now != p.seen || length != int64(size) {
		return false
	}
	return copyRange(f, p.at, to, at, size) && p.whole(s, h, f)
}

// Verify implements Keeper. It trusts nothing that was found out before.
func (s *DirStore) Verify(ctx context.Context) (Checked, error) {
	s.mu.Lock()
	all := make([]Hash, 0, len(s.index.items))
	for h := range s.index.items {
		all = append(all, h)
	}
	s.mu.Unlock()
	c := Checked{Damaged: []Hash{}}
	var buf []byte
	for _, h := range all {
		if err := ctx.Err(); err != nil {
			return c, err
		}
		var damaged bool
		var err error
		buf, damaged, err = inspect(s, h, buf)
		switch {
		case err != nil:
			return c, fmt.Errorf("verify blobs: %w", err)
		case damaged:
			c.Damaged = append(c.Damaged, h)
		case buf != nil:
			c.Blobs++
			c.Bytes += int64(len(buf))
		}
	}
	return c, nil
}

// inspect compares a blob with its name whatever is known of it, and removes it if it is
// another; one that was evicted meanwhile is neither returned nor damaged.
func inspect(s *DirStore, h Hash, buf []byte) (data []byte, damaged bool, err error) {
	s.claims.take(h)
	defer s.claims.release(h)
	if !s.known(h).held {
		return nil, false, nil
	}
	s.note(func(it *item) {
		it.seen = Stamp{}
		for i := range it.refs {
			it.refs[i].forget()
		}
	}, h)
	data, err = s.getClaimed(h, buf)
	if errors.Is(err, ErrNotFound) {
		return nil, true, nil
	}
	return data, false, err
}
