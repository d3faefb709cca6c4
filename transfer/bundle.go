package transfer

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
)

const (
	// smallFile is where files begin that are chunked one by one; smaller ones
	// that are not empty travel in bundles.
	smallFile = 64 << 10
	// leastWeight is what a small file counts at least, in bytes, when bundles are
	// filled: making a file takes as long as moving so much, and bundles are what
	// is worked on side by side.
	leastWeight = 1 << 10
)

// bundle is a blob that holds several small files.
type bundle struct {
	hash Hash
	size int
}

// small reports whether a file belongs into a bundle, if there is another one for it.
func (e *Entry) small() bool {
	return !e.Dir && e.Link == "" && e.Size > 0 && e.Size < smallFile
}

// Blobs returns the blobs that hold the bytes of a file: its chunks, or the one that
// it shares with other small files.
func (e *Entry) Blobs() []Hash {
	if e.bundle != nil {
		return []Hash{e.bundle.hash}
	}
	return e.Chunks
}

// bundled checks where a file is in its bundle.
func (e *Entry) bundled() error {
	switch b := e.bundle; {
	case b == nil:
		return nil
	case !e.small():
		return fmt.Errorf("%d bytes in a bundle of small files", e.Size)
	case b.hash.IsZero():
		return fmt.Errorf("a bundle without a hash")
	case b.size > ChunkSize || e.at < 0 || int64(e.at)+e.Size > int64(b.size):
		return fmt.Errorf("%d bytes at %d of a bundle of %d", e.Size, e.at, b.size)
	}
	return nil
}

// Read returns the bytes of chunk i of a file, in buf's memory if it is large enough.
// Errors are those of get, ErrMismatch or ErrManifest.
func (e *Entry) Read(get Getter, i int, buf []byte) ([]byte, error) {
	h := e.Chunks[i]
	if e.bundle != nil {
		h = e.bundle.hash
	}
	data, err := getVerified(get, h, buf)
	if err != nil {
		return nil, err
	}
	if e.bundle != nil {
		return e.cut(data)
	}
	if len(data) != chunkLen(e.Size, i) {
		return nil, fmt.Errorf("%w: chunk %d of %.100q has %d bytes", ErrManifest, i, e.Path, len(data))
	}
	return data, nil
}

// cut returns the bytes of a file from those of its bundle.
func (e *Entry) cut(data []byte) ([]byte, error) {
	if len(data) != e.bundle.size {
		return nil, fmt.Errorf("%w: bundle %s has %d bytes, want %d", ErrManifest, e.bundle.hash, len(data), e.bundle.size)
	}
	data = data[e.at : e.at+int(e.Size)]
	if HashOf(data) != e.Chunks[0] {
		return nil, fmt.Errorf("%w: bundle %s holds something else", ErrManifest, e.bundle.hash)
	}
	return data, nil
}

// bundles groups small files, which are in the order of their paths, by the bundle
// that they go into. Bundles end with files whose path has a hash below some number,
// or where they are full, so that most of them stay as they are when a file is added,
// removed or changed.
func bundles(small []*source) iter.Seq[[]*source] {
	return func(yield func([]*source) bool) {
		weight, begin := int64(0), 0
		for i, s := range small {
			w := max(s.size, leastWeight)
			if weight+w > ChunkSize {
				if !yield(small[begin:i]) {
					return
				}
				weight, begin = 0, i
			}
			weight += w
			at := HashOf([]byte(s.entry.Path))
			// One file for each half of ChunkSize, whatever the sizes are.
			if int64(binary.BigEndian.Uint32(at[:]))*(ChunkSize/2) < w<<32 {
				if !yield(small[begin : i+1]) {
					return
				}
				weight, begin = 0, i+1
			}
		}
		if begin < len(small) {
			yield(small[begin:])
		}
	}
}

// bundling is the work on the files of one bundle.
type bundling struct {
	put  Putter
	skip *Manifest // what need not be put
	in   []*source // that were read
	size int       // of these
}

// read reads files one after the other and puts them as a bundle, or as two if they
// have grown since they were found.
func (b *bundling) read(ctx context.Context, files []*source, buf []byte) error {
	for _, s := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := b.add(ctx, s, buf); err != nil {
			return err
		}
	}
	return b.end(ctx, buf)
}

func (b *bundling) add(ctx context.Context, s *source, buf []byte) error {
	if b.size+int(s.size) <= ChunkSize && s.readSmall(buf[b.size:b.size+int(s.size)]) {
		b.take(s, buf)
		return nil
	}
	f, err := s.open()
	if err != nil {
		return err
	}
	r := &reading{source: s, file: f, put: b.put}
	r.users.Store(1)
	if err := r.begin(); err != nil {
		f.Close()
		return err
	}
	e := &s.entry
	if !e.small() { // any more
		f.Close()
		p, room := newPool(ctx, 1, ChunkSize), maxChunks
		return p.wait(s.chunk(p, b.put, &room))
	}
	if b.size+int(e.Size) > ChunkSize {
		if err := b.end(ctx, buf); err != nil {
			f.Close()
			return err
		}
	}
	if err := r.all(buf[b.size : b.size+int(e.Size)]); err != nil {
		return err
	}
	b.take(s, buf)
	return nil
}

// take adds a file that is in buf, behind the others.
func (b *bundling) take(s *source, buf []byte) {
	e := &s.entry
	data := buf[b.size : b.size+int(e.Size)]
	e.Chunks = HashList{HashOf(data)}
	if !b.skip.holds(e) {
		e.at = b.size
		b.in, b.size = append(b.in, s), b.size+len(data)
	}
}

// all reads a small file and closes it.
func (r *reading) all(buf []byte) error {
	err := readChunk(r.file, 0, buf, r.source.label)
	return cmp.Or(err, r.done(nil))
}

// end puts what was read. One file is a blob of its own.
func (b *bundling) end(ctx context.Context, buf []byte) error {
	files, data := b.in, buf[:b.size]
	b.in, b.size = nil, 0
	if len(files) == 0 {
		return nil
	}
	to := forSmall(ctx, b.put, named(files[0].label, len(files)))
	if len(files) == 1 {
		return putVerified(to, files[0].entry.Chunks[0], data)
	}
	in := &bundle{HashOf(data), len(data)}
	for _, s := range files {
		s.entry.bundle = in
	}
	return putVerified(to, in.hash, data)
}

// byPath sorts sources.
func byPath(a, b *source) int { return ComparePaths(a.entry.Path, b.entry.Path) }

// smallOnes returns the small files in the order of their paths.
func smallOnes(sources []*source) []*source {
	var small []*source
	for _, s := range sources {
		if s.bundles() {
			small = append(small, s)
		}
	}
	slices.SortFunc(small, byPath)
	return small
}

// bundles reports whether a file was small when it was found.
func (s *source) bundles() bool { return s.open != nil && s.size > 0 && s.size < smallFile }

// spread puts far from each other in a tree what is worked on at a time: a file system makes
// one file after the other in a directory, and lets others wait with their processors busy.
func spread(order []Hash) []Hash {
	share := (len(order) + parallel - 1) / parallel
	out := make([]Hash, 0, len(order))
	for i := range share {
		for k := i; k < len(order); k += share {
			out = append(out, order[k])
		}
	}
	return out
}

// bundle writes files of one bundle.
func (w *treeWriter) bundle(ctx context.Context, at *descent, files []*Entry, buf []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	data, err := getVerified(w.get, files[0].bundle.hash, buf)
	if err != nil {
		return fmt.Errorf("write %s: %w", named(files[0].Path, len(files)), err)
	}
	for _, e := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		content, err := e.cut(data)
		if err != nil {
			return fmt.Errorf("write %s: %w", e.Path, err)
		}
		d, err := at.enter(dirOf(e.Path))
		if err != nil {
			return err
		}
		if err := w.small(d, e, content); err != nil {
			return err
		}
		w.how.step()
	}
	return nil
}

// step notes that something is written.
func (h *How) step() {
	if h.Steps != nil {
		h.Steps.Add(1)
	}
}

// named names the first of some files, and says how many more there are.
func named(first string, files int) string {
	switch files {
	case 1:
		return first
	case 2:
		return first + " and one more file"
	}
	return fmt.Sprintf("%s and %d more files", first, files-1)
}

// small writes one file at once.
func (w *treeWriter) small(d *openDir, e *Entry, content []byte) error {
	if w.how.Fresh {
		if err := w.fill(d, path.Base(e.Path), e, content); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	temp := w.temp()
	if err := w.fill(d, temp, e, content); err != nil {
		return err
	}
	return d.place(temp, e, w.how.New)
}

// fill makes a file of that name.
func (w *treeWriter) fill(d *openDir, name string, e *Entry, content []byte) error {
	mode := e.mode() &^ w.how.Umask
	at, err := d.file()
	if err == nil {
		err = makeFile(at, name, content, making{mode, mode&w.masked != 0, w.how.Owner})
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", e.Path, bare(err))
	}
	return nil
}
