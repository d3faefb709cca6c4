package output

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
)

// Bounds of what is kept of standard input, in bytes.
const (
	// InputWindow is how much is kept that rank 0 has not taken yet: who sends more waits.
	InputWindow = 64 << 20
	// inputBehind is how much is kept of what it has taken: more than can be on its way to its
	// node and lost with a connection.
	inputBehind = 32 << 20
	// inputStep is how much is let go at a time.
	inputStep = 16 << 20
)

// Input is the standard input of a job: a Spool of which nobody writes more than InputWindow
// ahead of who reads it.
type Input struct {
	*Spool
	// Whole: all of it is kept until Drop, for an attempt that begins again. Set it before Append.
	Whole bool

	noting sync.Mutex // held while it is written down what is let go; guards noted
	noted  part

	mu    sync.Mutex // guards what follows; never held while waiting
	taken int64
	base  part   // what is below is not here any more
	marks []part // where it may be let go from
	more  chan struct{}
}

// part is the beginning of an input: how long it is, and its CRC-32C.
type part struct {
	size int64
	sum  uint32
}

func (p part) digest() []byte { return Digest(p.size, p.sum) }

// OpenInput returns the input of a file that may exist already.
func OpenInput(path string) (*Input, error) {
	s, err := OpenSpool(path)
	if err != nil {
		return nil, err
	}
	in := &Input{Spool: s, more: make(chan struct{})}
	if b, err := os.ReadFile(in.note()); err == nil {
		if b, err = codec.Unseal(b); err == nil && len(b) == len(part{}.digest()) {
			in.base = part{int64(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint32(b[8:])}
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	in.noted = in.base
	return in, nil
}

// note is the file that reports what was let go.
func (in *Input) note() string { return in.Path + ".base" }

// Append waits until so little is kept that nobody has taken that p may be, and adds it.
// Errors are os.ErrClosed, those of ctx, or the disk's: then nothing was added.
func (in *Input) Append(ctx context.Context, p []byte) error {
	for {
		size, closed, changed := in.State()
		in.mu.Lock()
		ahead, more := size-in.taken, in.more
		in.mu.Unlock()
		if closed || ahead < InputWindow {
			break
		}
		select {
		case <-more:
		case <-changed: // it may be closed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := in.Spool.Append(p); err != nil {
		return err
	}
	in.mark()
	return nil
}

// mark notes where the input may be let go from, now and then.
func (in *Input) mark() {
	in.Spool.mu.Lock()
	now := part{in.Spool.size, in.Spool.sum}
	in.Spool.mu.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	last := in.base
	if n := len(in.marks); n > 0 {
		last = in.marks[n-1]
	}
	if !in.Whole && now.size-last.size >= inputStep {
		in.marks = append(in.marks, now)
	}
}

// Took says that rank 0 has taken what is below an offset, of which little may be on its way
// to it yet. What no attempt will ask for again is let go.
func (in *Input) Took(upTo int64) {
	size, _, _ := in.State()
	upTo = min(upTo, size)
	in.mu.Lock()
	if upTo <= in.taken {
		in.mu.Unlock()
		return
	}
	in.taken = upTo
	close(in.more)
	in.more = make(chan struct{})
	base, n := in.base, 0
	for ; n < len(in.marks) && in.marks[n].size <= upTo-inputBehind; n++ {
		base = in.marks[n]
	}
	in.marks, in.base = in.marks[n:], base
	in.mu.Unlock()
	if n > 0 {
		in.letGo(base)
	}
}

// letGo gives back the room of what is below base. A stream that a later one has overtaken must
// not note less than is let go already.
func (in *Input) letGo(base part) {
	in.noting.Lock()
	defer in.noting.Unlock()
	if base.size <= in.noted.size {
		return
	}
	// Who finds the hole must find the note.
	if atomicfile.Write(in.note(), codec.Seal(base.digest())) != nil {
		return // it takes room until the next, or the end
	}
	if f, err := os.OpenFile(in.Path, os.O_WRONLY, 0); err == nil {
		// Not every file system can.
		_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, in.noted.size, base.size-in.noted.size)
		f.Close()
	}
	in.noted = base
}

// Base returns the offset that the input is here from.
func (in *Input) Base() int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.base.size
}

// Kept returns how many bytes are here.
func (in *Input) Kept() int64 {
	size, _, _ := in.State()
	return size - min(in.Base(), size)
}

// Drop ends the input, which nobody asks for any more, and returns what is to be done to give
// its room back. How long it was is known on.
func (in *Input) Drop() (hollow func() error) {
	_ = in.Close()
	size, _, _ := in.State()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.base, in.marks = part{size: size}, nil
	return func() error { return Hollow(in.Path) }
}

// Hollow gives back the room of a file, which keeps its length. That there is none is fine.
func Hollow(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Blocks == 0 {
		return nil
	}
	return errors.Join(os.Truncate(path, 0), os.Truncate(path, info.Size()))
}

// EndsWith reports whether the input, as far as it is here, is what its Digest says.
func (in *Input) EndsWith(digest []byte) bool {
	in.mu.Lock()
	base := in.base
	in.mu.Unlock()
	f, err := os.Open(in.Path)
	if errors.Is(err, os.ErrNotExist) { // of no input there is no file
		return string(base.digest()) == string(digest)
	}
	if err != nil {
		return false
	}
	defer f.Close()
	rest := rolling{part: base}
	_, err = io.Copy(&rest, io.NewSectionReader(f, base.size, 1<<62))
	return err == nil && string(rest.digest()) == string(digest)
}

// rolling is a part that grows by what is written to it.
type rolling struct{ part }

func (r *rolling) Write(p []byte) (int, error) {
	r.size += int64(len(p))
	r.sum = crc32.Update(r.sum, codec.Castagnoli(), p)
	return len(p), nil
}
