package transfer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// source is a file that is to be chunked, or the entry of a directory or link.
type source struct {
	entry Entry
	size  int64                    // when it was found
	label string                   // how errors name it
	local string                   // where it can be found later, absolute; "" = nowhere
	path  string                   // with which open opens it; "" = there is none
	live  bool                     // it may change while it is read
	open  func() (*os.File, error) // nil if it is no file
	stamp Stamp                    // after it was hashed
}

// file is what chunks can be read from later, if they are worth it: small files are
// often edited between one job and the next.
func (s *source) file() (File, bool) {
	f := File{s.local, s.stamp, s.entry.Chunks}
	return f, s.entry.Size >= ChunkSize && s.local != "" && f.Check() == nil
}

// referrer is a Putter that can leave files where they are.
type referrer interface {
	refer(f File) error
}

// smallPutter is a Putter that takes files below ChunkSize, and bundles, in another way.
type smallPutter interface {
	putSmall(ctx context.Context, label string, h Hash, data []byte) error
}

// forSmall returns where small files, which errors call by a label, are put as long as ctx lasts.
func forSmall(ctx context.Context, put Putter, label string) Putter {
	if to, ok := put.(smallPutter); ok {
		return PutterFunc(func(h Hash, data []byte) error { return to.putSmall(ctx, label, h, data) })
	}
	return put
}

// chunkAll reads the files once, puts their chunks and bundles, and fills in the entries'
// sizes, modes, chunks and bundles. Small files that are as they are in skip (nil =
// nothing) are not put.
func chunkAll(ctx context.Context, put Putter, sources []*source, skip *Manifest) error {
	p := newPool(ctx, parallel, ChunkSize)
	var err error
	room := maxChunks // in one manifest
	for _, s := range sources {
		if s.open == nil || s.bundles() {
			continue
		}
		if err = s.chunk(p, put, &room); err != nil {
			return p.wait(err)
		}
	}
	for files := range bundles(smallOnes(sources)) {
		if room -= len(files); room < 0 {
			return p.wait(tooMany(files[0]))
		}
		if err = p.do(func(ctx context.Context, buf []byte) error {
			return (&bundling{put: put, skip: skip}).read(ctx, files, buf)
		}); err != nil {
			break
		}
	}
	return p.wait(err)
}

func tooMany(s *source) error {
	return fmt.Errorf("%s: all files together have more than %d bytes: pack them into fewer", s.label, int64(maxChunks)*ChunkSize)
}

// chunk hands the chunks of one file to the pool, except those that are holes: they
// take neither time nor room, however large the file says it is.
func (s *source) chunk(p *pool, put Putter, room *int) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	r := &reading{source: s, file: f, put: put}
	if to, ok := put.(referrer); ok && s.local != "" {
		r.to = to
	}
	e := &s.entry
	err = r.begin()
	if *room -= chunkCount(e.Size); err == nil && *room < 0 {
		err = tooMany(s)
	}
	if err != nil {
		f.Close()
		return err
	}
	e.Chunks = make(HashList, chunkCount(e.Size))
	if e.Size < ChunkSize {
		r.to, r.put = nil, forSmall(p.ctx, put, s.label)
	}
	r.users.Store(1)
	data, zero := int64(0), false // where the file holds something next; zeroChunk was put
	for i := range e.Chunks {
		begin := int64(i) * ChunkSize
		if data < begin+ChunkSize {
			data = nextData(f, begin, e.Size)
		}
		if data >= begin+ChunkSize && begin+ChunkSize <= e.Size {
			if e.Chunks[i] = zeroChunk(); zero {
				continue
			}
			if zero = true; r.to != nil {
				continue
			}
			if err = p.do(func(_ context.Context, buf []byte) error {
				clear(buf)
				return putVerified(put, zeroChunk(), buf)
			}); err != nil {
				break
			}
			continue
		}
		r.users.Add(1)
		err = p.do(func(ctx context.Context, buf []byte) error {
			return cmp.Or(r.chunk(ctx, i, buf), r.done(buf))
		})
		if err != nil {
			r.users.Add(-1)
			break
		}
	}
	return cmp.Or(err, r.done(nil))
}

// nextData returns where a file holds something at or after some place, or its end.
// Of a small file, and if the file system does not tell, that is the place itself.
func nextData(f *os.File, at, size int64) int64 {
	const seekData = 3
	if size < sparse {
		return at
	}
	data, err := f.Seek(at, seekData)
	switch {
	case errors.Is(err, syscall.ENXIO):
		return size
	case err != nil:
		return at
	}
	return data
}

// reading is a file while its chunks are read.
type reading struct {
	source *source
	file   *os.File
	before os.FileInfo
	put    Putter
	to     referrer     // gets the file instead of its chunks; nil = put gets them
	users  atomic.Int64 // chunks in work, and the one who hands them out
	failed atomic.Bool
}

// begin looks at the file before it is read.
func (r *reading) begin() (err error) {
	s := r.source
	if r.before, err = r.file.Stat(); err != nil {
		return fmt.Errorf("read %s: %w", s.label, err)
	}
	s.entry.Size = r.before.Size()
	s.entry.setMode(r.before.Mode())
	if s.entry.Size > maxFile {
		return fmt.Errorf("%s: %d bytes, at most %d", s.label, s.entry.Size, maxFile)
	}
	return checkEmpty(r.file, s.entry.Size, s.label)
}

func (r *reading) chunk(ctx context.Context, i int, buf []byte) (err error) {
	defer func() {
		if err != nil {
			r.failed.Store(true)
		}
	}()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := &r.source.entry
	if r.to != nil {
		return r.hash(i, buf)
	}
	buf = buf[:chunkLen(e.Size, i)]
	if err := readChunk(r.file, i, buf, r.source.label); err != nil {
		return err
	}
	e.Chunks[i] = HashOf(buf)
	return putVerified(r.put, e.Chunks[i], buf)
}

// hash only hashes a chunk, in parts that stay near the processor.
func (r *reading) hash(i int, buf []byte) error {
	e, sum := &r.source.entry, sha256.New()
	begin := int64(i) * ChunkSize
	for end := begin + int64(chunkLen(e.Size, i)); begin < end; begin += readSize {
		p := buf[:min(readSize, end-begin)]
		if err := readPart(r.file, begin, p, r.source.label); err != nil {
			return err
		}
		sum.Write(p)
	}
	sum.Sum(e.Chunks[i][:0])
	return nil
}

// done closes the file after its last chunk and reports whether it changed.
func (r *reading) done(buf []byte) error {
	if r.users.Add(-1) > 0 {
		return nil
	}
	defer r.file.Close()
	after, err := r.file.Stat()
	if err != nil {
		return fmt.Errorf("read %s: %w", r.source.label, err)
	}
	if !r.source.live && (after.Size() != r.before.Size() || !after.ModTime().Equal(r.before.ModTime())) {
		return changed(r.source.label)
	}
	r.source.stamp = StampOf(after)
	if r.to == nil || r.failed.Load() {
		return nil
	}
	if f, ok := r.source.file(); ok && r.to.refer(f) == nil {
		return nil
	}
	return r.putAll(buf)
}

// putAll puts the chunks that were only hashed.
func (r *reading) putAll(buf []byte) error {
	e := &r.source.entry
	buf = sized(buf, ChunkSize)
	put := make(map[Hash]bool)
	for i, h := range e.Chunks {
		if put[h] {
			continue
		}
		put[h] = true
		b := buf[:chunkLen(e.Size, i)]
		if err := readChunk(r.file, i, b, r.source.label); err != nil {
			return err
		}
		if HashOf(b) != h {
			return changed(r.source.label)
		}
		if err := putVerified(r.put, h, b); err != nil {
			return err
		}
	}
	return nil
}

func changed(label string) error { return fmt.Errorf("%s: %w", label, ErrChanged) }

// checkEmpty makes sure that a file without a size has no content either, as
// those below /proc do.
func checkEmpty(f *os.File, size int64, label string) error {
	if size > 0 {
		return nil
	}
	switch n, err := f.ReadAt(make([]byte, 1), 0); {
	case n > 0:
		if info, err := f.Stat(); err == nil && info.Size() > 0 {
			return changed(label)
		}
		return fmt.Errorf("%s: has content but no size: copy it to an ordinary file", label)
	case errors.Is(err, io.EOF):
		return nil
	default:
		return fmt.Errorf("%s: %w", label, bare(err))
	}
}

func readChunk(f io.ReaderAt, i int, buf []byte, label string) error {
	return readPart(f, int64(i)*ChunkSize, buf, label)
}

// readSize is how much of a chunk is read at a time by who needs no more: a processor's cache has it
// still when it is hashed, or encrypted.
const readSize = 128 << 10

func readPart(f io.ReaderAt, at int64, buf []byte, label string) error {
	n, err := f.ReadAt(buf, at)
	if n == len(buf) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return changed(label)
	}
	return fmt.Errorf("read %s: %w", label, bare(err))
}

// parallel is how many chunks one call works on at a time.
const parallel = 4

// pool runs tasks on a few goroutines, each with one buffer. The
// first error ends it: tasks that were taken still run, with a context that
// has ended.
type pool struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	buffer int // bytes; 0 = tasks need none
	tasks  chan task
	wg     sync.WaitGroup
}

type task func(ctx context.Context, buf []byte) error

func newPool(ctx context.Context, workers, buffer int) *pool {
	p := &pool{buffer: buffer, tasks: make(chan task)}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	for range workers {
		p.wg.Go(p.work)
	}
	return p
}

func (p *pool) work() {
	var buf []byte
	for t := range p.tasks {
		if buf == nil && p.buffer > 0 {
			buf = make([]byte, p.buffer)
		}
		if err := t(p.ctx, buf); err != nil {
			p.cancel(err)
		}
	}
}

// do waits until a goroutine takes the task. It returns an error, and does
// not run the task, if the pool has ended.
func (p *pool) do(t task) error {
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	select {
	case p.tasks <- t:
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

// wait ends the pool, with err if it is not nil, and returns the first error
// when all tasks have ended.
func (p *pool) wait(err error) error {
	if err != nil {
		p.cancel(err)
	}
	close(p.tasks)
	p.wg.Wait()
	err = context.Cause(p.ctx)
	p.cancel(nil)
	return err
}

// inParallel calls f with each, a few at a time, and a buffer of so many bytes, until the first
// error, which it returns.
func inParallel[T any](all []T, buffer int, f func(one T, buf []byte) error) error {
	p := newPool(context.Background(), min(parallel, len(all)), buffer)
	var err error
	for _, one := range all {
		if err = p.do(func(_ context.Context, buf []byte) error { return f(one, buf) }); err != nil {
			break
		}
	}
	return p.wait(err)
}
