package transfer

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a manifest. What is beyond them is refused.
const (
	MaxEntries = 1 << 20
	MaxPath    = 4096 // bytes
	MaxDepth   = 100  // elements of a path
	maxElement = 255  // bytes; what file systems take
	maxChunks  = MaxBlob / len(Hash{})
)

// Manifest lists a tree of files: the chunks of each. Make one with
// NewManifest, Ingest, Collect or DecodeManifest; what came from elsewhere is
// to be trusted only after Validate.
type Manifest struct {
	Entries []Entry `json:"entries"` // in the order of ComparePaths
}

// Entry is a file, a symbolic link to something in the tree, or a directory
// that would not be made for a file.
type Entry struct {
	Path string `json:"path"` // relative, slash-separated, clean
	Dir  bool   `json:"dir,omitempty"`
	Exec bool   `json:"exec,omitempty"`
	// Mode is the permissions of a file that has others than 0644 or, if it is
	// executable, 0755; else 0.
	Mode   uint32   `json:"mode,omitempty"`
	Size   int64    `json:"size,omitempty"`   // bytes
	Chunks HashList `json:"chunks,omitempty"` // all of ChunkSize but the last
	Link   string   `json:"link,omitempty"`   // relative to the entry's directory, clean; "" is no link

	bundle *bundle // that holds its only chunk; nil = chunks are blobs of their own
	at     int     // where in the bundle
}

// HashList is a list of hashes that travels as raw bytes.
type HashList []Hash

// MarshalBinary returns the hashes one after the other.
func (l HashList) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, len(l)*len(Hash{}))
	for _, h := range l {
		b = append(b, h[:]...)
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary writes.
func (l *HashList) UnmarshalBinary(b []byte) error {
	const size = len(Hash{})
	if len(b)%size != 0 {
		return fmt.Errorf("%d bytes are no list of hashes", len(b))
	}
	*l = make(HashList, len(b)/size)
	for i := range *l {
		copy((*l)[i][:], b[i*size:])
	}
	return nil
}

// NewManifest sorts the entries and checks them.
func NewManifest(entries []Entry) (Manifest, error) {
	m := Manifest{slices.Clone(entries)}
	slices.SortStableFunc(m.Entries, func(a, b Entry) int { return ComparePaths(a.Path, b.Path) })
	return m, m.Validate()
}

// ComparePaths orders paths so that everything below a directory follows it
// at once: bytewise, with the slash before everything else.
func ComparePaths(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return cmp.Compare(slashFirst(a[i]), slashFirst(b[i]))
		}
	}
	return cmp.Compare(len(a), len(b))
}

func slashFirst(c byte) int {
	if c == '/' {
		return -1
	}
	return int(c)
}

// Validate reports whether the manifest may be used: paths and links stay below
// a directory, entries do not conflict, sizes and chunks agree, and all is
// within the limits. Errors wrap ErrManifest.
func (m *Manifest) Validate() error {
	if len(m.Entries) > MaxEntries {
		return fmt.Errorf("%w: %d entries, at most %d", ErrManifest, len(m.Entries), MaxEntries)
	}
	chunks := 0
	for i := range m.Entries {
		e := &m.Entries[i]
		if err := checkEntry(e); err != nil {
			return fmt.Errorf("%w: %.100q: %v", ErrManifest, e.Path, err)
		}
		if chunks += len(e.Chunks); chunks > maxChunks {
			return fmt.Errorf("%w: more than %d chunks", ErrManifest, maxChunks)
		}
		if i == 0 {
			continue
		}
		prev := &m.Entries[i-1]
		switch order := ComparePaths(prev.Path, e.Path); {
		case order == 0:
			return fmt.Errorf("%w: %.100q is there twice", ErrManifest, e.Path)
		case order > 0:
			return fmt.Errorf("%w: %.100q is out of order", ErrManifest, e.Path)
		case !prev.Dir && strings.HasPrefix(e.Path, prev.Path+"/"):
			return fmt.Errorf("%w: %.100q is below %.100q, which is no directory", ErrManifest, e.Path, prev.Path)
		}
	}
	return nil
}

func checkEntry(e *Entry) error {
	if err := CheckPath(e.Path); err != nil {
		return err
	}
	if e.Link != "" {
		return checkLink(e)
	}
	if e.Dir {
		if e.Exec || e.Mode != 0 || e.Size != 0 || len(e.Chunks) != 0 || e.bundle != nil {
			return fmt.Errorf("a directory with content")
		}
		return nil
	}
	if e.Mode > 0o777 || e.Mode != 0 && (e.Mode&0o111 != 0) != e.Exec {
		return fmt.Errorf("mode %#o", e.Mode)
	}
	if e.Size < 0 || e.Size > int64(maxChunks)*ChunkSize {
		return fmt.Errorf("size of %d bytes", e.Size)
	}
	if len(e.Chunks) != chunkCount(e.Size) {
		return fmt.Errorf("%d chunks for %d bytes", len(e.Chunks), e.Size)
	}
	for _, h := range e.Chunks {
		if h.IsZero() {
			return fmt.Errorf("a chunk without a hash")
		}
	}
	return e.bundled()
}

// CheckPath reports why p cannot be the path of an entry, if so.
func CheckPath(p string) error {
	switch {
	case p == "":
		return fmt.Errorf("path is empty")
	case len(p) > MaxPath:
		return fmt.Errorf("path is longer than %d bytes", MaxPath)
	case !utf8.ValidString(p):
		return fmt.Errorf("path is not valid UTF-8")
	case strings.ContainsFunc(p, unicode.IsControl):
		return fmt.Errorf("path holds a control character")
	case p[0] == '/':
		return fmt.Errorf("path is absolute")
	case path.Clean(p) != p || p == ".":
		return fmt.Errorf("path is not clean")
	}
	depth := 0
	for part := range strings.SplitSeq(p, "/") {
		if depth++; depth > MaxDepth {
			return fmt.Errorf("path is deeper than %d", MaxDepth)
		}
		if part == ".." {
			return fmt.Errorf("path leads outside")
		}
		if len(part) > maxElement {
			return fmt.Errorf("name %.40q... is longer than %d bytes", part, maxElement)
		}
	}
	return nil
}

func chunkCount(size int64) int { return int((size + ChunkSize - 1) / ChunkSize) }

// chunkLen returns the length of chunk i of a file.
func chunkLen(size int64, i int) int {
	return int(min(size-int64(i)*ChunkSize, ChunkSize))
}

// Size returns the bytes of all files.
func (m *Manifest) Size() int64 {
	var n int64
	for i := range m.Entries {
		n += m.Entries[i].Size
	}
	return n
}

// Files returns the number of files and links.
func (m *Manifest) Files() int {
	n := 0
	for i := range m.Entries {
		if !m.Entries[i].Dir {
			n++
		}
	}
	return n
}

// Chunks returns the hashes of DistinctChunks.
func (m *Manifest) Chunks() []Hash {
	chunks := m.DistinctChunks()
	out := make([]Hash, len(chunks))
	for i, c := range chunks {
		out[i] = c.Hash
	}
	return out
}

// Pin pins a manifest that has the hash h, and its chunks, for the owner.
func (m *Manifest) Pin(s Pinner, owner string, h Hash) { s.Pin(owner, append(m.Chunks(), h)...) }

// Chunk is a blob of a tree, a chunk or a bundle, and how long it should be.
type Chunk struct {
	Hash Hash
	Size int
}

// Distinct returns the bytes of all distinct chunks: what there is to fetch.
func (m *Manifest) Distinct() int64 {
	n := int64(0)
	for _, c := range m.DistinctChunks() {
		n += int64(c.Size)
	}
	return n
}

// DistinctChunks returns the distinct blobs of the files, chunks and bundles, in the
// order in which they first occur.
func (m *Manifest) DistinctChunks() []Chunk {
	var out []Chunk
	seen := make(map[Hash]struct{})
	add := func(h Hash, size int) {
		if _, ok := seen[h]; !ok {
			seen[h] = struct{}{}
			out = append(out, Chunk{h, size})
		}
	}
	var last *bundle // whose files follow each other
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.bundle != nil {
			if e.bundle != last {
				add(e.bundle.hash, e.bundle.size)
				last = e.bundle
			}
			continue
		}
		for k, h := range e.Chunks {
			add(h, chunkLen(e.Size, k))
		}
	}
	return out
}

// Stats counts the bytes of the distinct chunks of a tree that is fetched.
type Stats struct {
	Fetched int64 `json:"fetched"` // moved for this fetch
	Cached  int64 `json:"cached"`  // held already, or moved for another fetch
}
