package transfer

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Input is a local file or directory and its place in the tree.
type Input struct {
	Path string // local
	// Name is the path in the tree: clean, relative, slash-separated. "."
	// puts the content of a directory at the top. Empty means Path itself if
	// that is relative and stays below the current directory, else its last
	// element.
	Name string
}

// Ingest puts the chunks of the inputs and returns their manifest, which it
// does not put itself. It reads every file once and holds a few chunks in
// memory. Symbolic links below an input stay links if they lead to something
// in the tree; of others that lead to a file the file is taken, as it is for an
// input that is a link itself. Errors name the file; it is ErrChanged if one is
// written to meanwhile.
func Ingest(ctx context.Context, put Putter, inputs []Input) (Manifest, error) {
	sources, err := plan(inputs)
	if err != nil {
		return Manifest{}, err
	}
	if err := chunkAll(ctx, put, sources, nil); err != nil {
		return Manifest{}, err
	}
	return manifestOf(sources)
}

func manifestOf(sources []*source) (Manifest, error) {
	entries := make([]Entry, 0, len(sources))
	for _, s := range sources {
		entries = append(entries, s.entry)
	}
	return NewManifest(entries)
}

// planner finds the files of the inputs without reading them.
type planner struct {
	places  []place // of the inputs
	sources []*source
	weight  int64 // least bytes of the manifest
}

func plan(inputs []Input) ([]*source, error) {
	var p planner
	var all []facts
	for _, in := range inputs {
		name, err := in.name()
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(in.Path)
		real := ""
		if err == nil {
			real, err = realPath(in.Path)
		}
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", shown(in.Path), bare(err))
		}
		all, p.places = append(all, factsOf(info)), append(p.places, place{real, name})
	}
	for i, in := range inputs {
		if err := p.add(in.Path, p.places[i].name, all[i], 0); err != nil {
			return nil, err
		}
	}
	return p.finish()
}

func (in Input) name() (string, error) {
	name := in.Name
	if name == "" {
		name = defaultName(in.Path)
	}
	name = path.Clean(name)
	if name == "." {
		return "", nil
	}
	if err := CheckPath(name); err != nil {
		return "", fmt.Errorf("input %s: name %.80q: %w", shown(in.Path), name, err)
	}
	return name, nil
}

// shown is the name as it is, or quoted if it would spoil a line.
func shown(local string) string {
	if !strings.ContainsFunc(local, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		return local // as most are
	}
	if q := strconv.Quote(local); q != `"`+local+`"` {
		return q
	}
	return local
}

func defaultName(local string) string {
	if filepath.IsLocal(local) {
		return filepath.ToSlash(filepath.Clean(local))
	}
	if abs, err := filepath.Abs(local); err == nil {
		local = abs
	}
	return filepath.Base(local)
}

// add plans one file or directory; name is "" for the top of the tree.
func (p *planner) add(local, name string, is facts, depth int) error {
	switch {
	case is.mode.IsDir():
		return p.addDir(local, name, depth)
	case !is.mode.IsRegular():
		return fmt.Errorf("input %s: is %s, want a file or a directory", shown(local), kind(is.mode))
	case name == "":
		return fmt.Errorf("input %s: a file needs a name other than '.'", shown(local))
	}
	if err := CheckPath(name); err != nil {
		return fmt.Errorf("input %s: %w", shown(local), err)
	}
	p.weight += int64(chunkCount(is.size) * len(Hash{}))
	real := ""
	if is.size >= ChunkSize {
		real, _ = realPath(local) // else it is copied
	}
	return p.append(&source{
		local: real,
		size:  is.size,
		entry: Entry{Path: name},
		label: shown(local),
		path:  local,
		open: func() (*os.File, error) {
			f, err := openRegular(local)
			if err != nil {
				return nil, fmt.Errorf("input %s: %w", shown(local), bare(err))
			}
			return f, nil
		},
	})
}

func (p *planner) append(s *source) error {
	p.weight += int64(len(s.entry.Path)) + 16
	if len(p.sources) >= MaxEntries || p.weight > MaxBlob {
		return fmt.Errorf("inputs up to %s: too many files or bytes for one manifest, at most %d files and %d bytes: pack them into fewer",
			s.label, MaxEntries, int64(maxChunks)*ChunkSize)
	}
	p.sources = append(p.sources, s)
	return nil
}

func (p *planner) addDir(local, name string, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("input %s: deeper than %d directories", shown(local), MaxDepth)
	}
	dir, err := os.OpenFile(local, os.O_RDONLY|unix.O_DIRECTORY, 0)
	var kids []os.DirEntry
	if err == nil {
		defer dir.Close()
		kids, err = dir.ReadDir(-1)
	}
	if err != nil {
		return fmt.Errorf("input %s: %w", shown(local), bare(err))
	}
	if len(kids) == 0 && name != "" {
		if err := CheckPath(name); err != nil {
			return fmt.Errorf("input %s: %w", shown(local), err)
		}
		return p.append(&source{entry: Entry{Path: name, Dir: true}, label: shown(local)})
	}
	slices.SortFunc(kids, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	from, to := before(filepath.Clean(local)), before(name)
	for some := range slices.Chunk(kids, 4096) {
		all, err := lookAt(dir, from, some)
		if err != nil {
			return err
		}
		for i, kid := range some {
			at, as := from+kid.Name(), to+kid.Name()
			if all[i].mode&os.ModeSymlink != 0 {
				err = p.addLink(at, as, depth)
			} else {
				err = p.add(at, as, all[i], depth+1)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// before is what paths of what is in a clean directory begin with.
func before(dir string) string {
	if dir == "." || dir == "" || strings.HasSuffix(dir, "/") {
		return strings.TrimPrefix(dir, ".")
	}
	return dir + "/"
}

// facts is what is known of a file before it is read.
type facts struct {
	mode os.FileMode // of what is no regular file; else 0
	size int64
}

// lookAt looks at what is in a directory, at several at a time where there is much; errors name it
// with what its paths begin with.
func lookAt(dir *os.File, from string, kids []os.DirEntry) ([]facts, error) {
	const share = 256
	all := make([]facts, len(kids))
	var shares []int // where they begin
	for i := 0; i < len(kids); i += share {
		shares = append(shares, i)
	}
	return all, inParallel(shares, 0, func(begin int, _ []byte) (err error) {
		for i := begin; i < min(begin+share, len(kids)); i++ {
			if all[i], err = look(dir, from, kids[i].Name()); err != nil {
				return fmt.Errorf("input %s: %w", shown(from+kids[i].Name()), bare(err))
			}
		}
		return nil
	})
}

// look is one call of the system for a regular file, without the rest of its path.
func look(dir *os.File, from, name string) (facts, error) {
	var st unix.Stat_t
	err := unbroken(func() error { return unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
		return facts{size: st.Size}, nil
	}
	info, err := os.Lstat(from + name)
	if err != nil {
		return facts{}, err
	}
	return factsOf(info), nil
}

func factsOf(info os.FileInfo) facts { return facts{info.Mode().Type(), info.Size()} }

// finish sorts the sources, drops those that were named twice, and refuses
// those that want the same place.
func (p *planner) finish() ([]*source, error) {
	slices.SortStableFunc(p.sources, byPath)
	var out []*source
	for _, s := range p.sources {
		if len(out) == 0 {
			out = append(out, s)
			continue
		}
		last := out[len(out)-1]
		switch {
		case s.entry.Path == last.entry.Path:
			if filepath.Clean(s.label) != filepath.Clean(last.label) && (!s.entry.Dir || !last.entry.Dir) {
				return nil, fmt.Errorf("inputs %s and %s would both be %s: give one another name with PATH:NAME", last.label, s.label, s.entry.Path)
			}
			continue
		case !last.entry.Dir && strings.HasPrefix(s.entry.Path, last.entry.Path+"/"):
			what := "file"
			if last.entry.Link != "" {
				what = "symbolic link"
			}
			return nil, fmt.Errorf("input %s would be %s, below the %s %s: give one another name with PATH:NAME", s.label, s.entry.Path, what, last.label)
		}
		out = append(out, s)
	}
	return out, nil
}
