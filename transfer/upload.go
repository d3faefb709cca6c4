package transfer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// Remote is a store that is asked over a network, from several goroutines at a time.
type Remote interface {
	// Missing returns those of the chunks that the remote does not hold.
	Missing(ctx context.Context, chunks []Hash) ([]Hash, error)
	// PutChunk stores one blob; it must not keep data.
	PutChunk(ctx context.Context, h Hash, data []byte) error
}

// LocalRemote is a Remote that may be on this machine.
type LocalRemote interface {
	Remote
	// Refer makes the remote read chunks from a file instead of having them put. It
	// fails with ErrElsewhere if the file is not there.
	Refer(ctx context.Context, f File) error
}

// askBatch is how many hashes one call of Missing names.
const askBatch = 4096

// Uploaded reports what Upload did.
type Uploaded struct {
	Manifest Hash
	Files    int
	Total    int64 // bytes of all files
	Sent     int64 // bytes of chunks that the remote did not hold
}

// Tell is told how far a step of some work is, in bytes: from any goroutine, by one at a time,
// and often. It must return at once.
type Tell func(s Step, done, total int64)

// adder returns a function, for any goroutine, that adds to the bytes of a step that are done
// and passes the sum on.
func (t Tell) adder(s Step, total int64) func(bytes int) {
	var mu sync.Mutex // held while t is called, so that the sums come in order
	var done int64
	return func(bytes int) {
		mu.Lock()
		defer mu.Unlock()
		done += int64(bytes)
		t(s, done, total)
	}
}

// Step is a step of an upload.
type Step string

// The steps.
const (
	Hashing Step = "hashing inputs" // and small ones are sent
	Sending Step = "sending inputs"
)

// Upload brings the inputs and their manifest to the remote, and tells, unless tell is nil,
// how far it is. It sends only what is missing there: files below ChunkSize while others
// are being hashed, the rest when all are. Files of at least
// ChunkSize stay where they are if the remote is a LocalRemote that finds them: they
// must not change as long as somebody needs them. Errors are those of Ingest and of
// the remote, which may have got some files before.
func Upload(ctx context.Context, remote Remote, inputs []Input, tell Tell) (Uploaded, error) {
	if tell == nil {
		tell = func(Step, int64, int64) {}
	}
	sources, err := plan(inputs)
	if err != nil {
		return Uploaded{}, err
	}
	var size int64 // as it was found
	for _, s := range sources {
		size += s.size
	}
	first := &early{remote: remote, met: map[Hash]bool{}, tell: tell.adder(Hashing, size)}
	if err := chunkAll(ctx, first, sources, nil); err != nil {
		return Uploaded{}, err
	}
	if err := first.flush(ctx); err != nil {
		return Uploaded{}, err
	}
	m, err := manifestOf(sources)
	if err != nil {
		return Uploaded{}, err
	}
	blob, err := m.Encode()
	if err != nil {
		return Uploaded{}, err
	}
	up := Uploaded{Manifest: HashOf(blob), Files: m.Files(), Total: m.Size()}
	// Of the small files too: the remote may have needed their room meanwhile.
	missing, err := askMissing(ctx, remote, m.Chunks())
	if err != nil {
		return Uploaded{}, err
	}
	if err := referFiles(ctx, remote, sources, missing); err != nil {
		return Uploaded{}, err
	}
	if up.Sent, err = sendChunks(ctx, remote, sources, missing, tell); err != nil {
		return Uploaded{}, err
	}
	up.Sent += first.sent.Load()
	if err := remote.PutChunk(ctx, up.Manifest, blob); err != nil {
		return Uploaded{}, fmt.Errorf("send manifest: %w", err)
	}
	return up, nil
}

// earlyBatch is how many bytes of small files wait to be sent together.
const earlyBatch = 4 << 20

// early is a Putter that sends small files while others are being hashed. Chunks of larger
// ones it only counts.
type early struct {
	remote Remote
	tell   func(bytes int)
	sent   atomic.Int64 // bytes

	mu      sync.Mutex    // guards what follows
	met     map[Hash]bool // what was put
	waiting []blobToSend
	bytes   int // of these
}

type blobToSend struct {
	label string // how errors name it
	hash  Hash
	data  []byte
}

// Put implements Putter.
func (e *early) Put(_ Hash, data []byte) error {
	e.tell(len(data))
	return nil
}

// putSmall implements smallPutter.
func (e *early) putSmall(ctx context.Context, label string, h Hash, data []byte) error {
	e.tell(len(data))
	e.mu.Lock()
	if e.met[h] {
		e.mu.Unlock()
		return nil
	}
	e.met[h] = true
	e.waiting, e.bytes = append(e.waiting, blobToSend{label, h, slices.Clone(data)}), e.bytes+len(data)
	full := e.bytes >= earlyBatch
	e.mu.Unlock()
	if full {
		return e.flush(ctx)
	}
	return nil
}

// flush sends what waits.
func (e *early) flush(ctx context.Context) error {
	e.mu.Lock()
	batch := e.waiting
	e.waiting, e.bytes = nil, 0
	e.mu.Unlock()
	hashes := make([]Hash, len(batch))
	for i, b := range batch {
		hashes[i] = b.hash
	}
	missing, err := askMissing(ctx, e.remote, hashes)
	if err != nil {
		return err
	}
	return inParallel(batch, 0, func(b blobToSend, _ []byte) error {
		if !missing[b.hash] {
			return nil
		}
		if err := e.remote.PutChunk(ctx, b.hash, b.data); err != nil {
			return fmt.Errorf("send %s: %w", b.label, err)
		}
		e.sent.Add(int64(len(b.data)))
		return nil
	})
}

func askMissing(ctx context.Context, remote Remote, chunks []Hash) (map[Hash]bool, error) {
	missing := make(map[Hash]bool)
	for len(chunks) > 0 {
		batch := chunks[:min(askBatch, len(chunks))]
		chunks = chunks[len(batch):]
		answer, err := remote.Missing(ctx, batch)
		if err != nil {
			return nil, fmt.Errorf("ask for missing chunks: %w", err)
		}
		for _, h := range answer {
			missing[h] = true
		}
	}
	return missing, nil
}

// referFiles names the files that chunks are missing of; what the remote can read
// itself is not missing any more.
func referFiles(ctx context.Context, remote Remote, sources []*source, missing map[Hash]bool) error {
	to, ok := remote.(LocalRemote)
	if !ok {
		return nil
	}
	for _, s := range sources {
		f, large := s.file()
		if !large || !slices.ContainsFunc(f.Chunks, func(h Hash) bool { return missing[h] }) {
			continue
		}
		switch err := to.Refer(ctx, f); {
		case errors.Is(err, ErrElsewhere):
			continue
		case err != nil:
			return fmt.Errorf("send %s: %w", s.label, err)
		}
		for _, h := range f.Chunks {
			delete(missing, h)
		}
	}
	return nil
}

// sendChunks reads each of the missing blobs again, checks that it is still the same, and sends it.
// It returns how many bytes they have.
func sendChunks(ctx context.Context, remote Remote, sources []*source, missing map[Hash]bool, tell Tell) (int64, error) {
	var total int64
	counted := map[Hash]bool{}
	for part := range parts(sources) {
		if missing[part.hash] && !counted[part.hash] {
			counted[part.hash] = true
			total += int64(part.size)
		}
	}
	p := newPool(ctx, parallel, ChunkSize)
	add := tell.adder(Sending, total)
	var err error
	for part := range parts(sources) {
		if !missing[part.hash] {
			continue
		}
		delete(missing, part.hash)
		err = p.do(func(ctx context.Context, buf []byte) error {
			data := buf[:part.size]
			if err := part.read(ctx, data); err != nil {
				return err
			}
			if err := remote.PutChunk(ctx, part.hash, data); err != nil {
				return fmt.Errorf("send %s: %w", part.label, err)
			}
			add(len(data))
			return nil
		})
		if err != nil {
			break
		}
	}
	return total, p.wait(err)
}

// part is a blob of files that were chunked.
type part struct {
	hash  Hash
	size  int
	label string                                      // how errors name it
	read  func(ctx context.Context, buf []byte) error // once more
}

func parts(sources []*source) iter.Seq[part] {
	return func(yield func(part) bool) {
		bundles := map[*bundle][]*source{}
		for _, s := range sources {
			if b := s.entry.bundle; b != nil {
				bundles[b] = append(bundles[b], s)
				continue
			}
			for i, h := range s.entry.Chunks {
				read := func(ctx context.Context, buf []byte) error { return s.reread(ctx, i, h, buf) }
				if !yield(part{h, chunkLen(s.entry.Size, i), s.label, read}) {
					return
				}
			}
		}
		for b, files := range bundles {
			read := func(ctx context.Context, buf []byte) error { return rereadAll(ctx, files, buf) }
			if !yield(part{b.hash, b.size, named(files[0].label, len(files)), read}) {
				return
			}
		}
	}
}

func (s *source) reread(ctx context.Context, i int, h Hash, buf []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f, err := s.open()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := readChunk(f, i, buf, s.label); err != nil {
		return err
	}
	if HashOf(buf) != h {
		return changed(s.label)
	}
	return nil
}

// rereadAll reads the files of a bundle again.
func rereadAll(ctx context.Context, files []*source, buf []byte) error {
	for _, s := range files {
		e := &s.entry
		if err := s.reread(ctx, 0, e.Chunks[0], buf[e.at:e.at+int(e.Size)]); err != nil {
			return err
		}
	}
	return nil
}
