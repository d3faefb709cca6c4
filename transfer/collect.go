package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
)

// MatchesNothing ends the warning of Collect that a pattern did.
const MatchesNothing = "matches nothing"

// maxWarnings is how many warnings Collect gives in full.
const maxWarnings = 100

// Collect puts the chunks of the files below dir that the globs name, and
// returns their manifest, which it does not put itself. A glob is relative to
// dir and matched element by element as path.Match does, where "**" is any number of
// directories, and no wildcard takes a leading dot; one that names a directory takes all of it.
// Files and links that are as they are in skip (nil = nothing) are left out.
//
// dir may belong to a hostile program that still runs. Nothing outside dir is
// read, no symbolic link is followed, nothing but regular files is opened.
// What is left out for such a reason, and a glob that matches nothing, is
// named in the warnings, one line each. A file that changes meanwhile is
// ErrChanged; one that cannot be read is an error, too: it is lost.
func Collect(ctx context.Context, put Putter, dir string, globs []string, skip *Manifest) (Manifest, []string, error) {
	return collect(ctx, put, dir, globs, skip, false)
}

// Snapshot is Collect for files that a program may be writing to: each is what was read of
// it, up to the length that it had at first; only one that became shorter meanwhile is
// ErrChanged. Chunks are put, and not left where they are.
func Snapshot(ctx context.Context, put Putter, dir string, globs []string, skip *Manifest) (Manifest, []string, error) {
	return collect(ctx, put, dir, globs, skip, true)
}

func collect(ctx context.Context, put Putter, dir string, globs []string, skip *Manifest, live bool) (Manifest, []string, error) {
	c, err := newCollector(ctx, dir, globs, skip)
	if err != nil {
		return Manifest{}, nil, err
	}
	c.live = live
	defer c.root.Close()
	if err := c.walk("", c.want, 0); err != nil {
		return Manifest{}, nil, err
	}
	if err := chunkAll(ctx, put, c.sources(), skip); err != nil {
		return Manifest{}, nil, err
	}
	kept := c.drop()
	m, err := manifestOf(kept)
	if err != nil {
		return Manifest{}, nil, err
	}
	return m, c.allWarnings(globs), nil
}

// newCollector opens the directory; root is closed by the caller.
func newCollector(ctx context.Context, dir string, globs []string, skip *Manifest) (*collector, error) {
	c := &collector{ctx: ctx, skip: skip, globs: make([]globState, len(globs)), warned: make(map[string]bool)}
	for i, glob := range globs {
		pat, err := parsePattern(glob)
		if err != nil {
			return nil, err
		}
		for _, rest := range pat.from() {
			c.want = append(c.want, wanted{i, rest})
		}
	}
	var err error
	if c.root, err = os.OpenRoot(dir); err != nil {
		return nil, fmt.Errorf("collect outputs: %w", err)
	}
	return c, nil
}

type collector struct {
	ctx      context.Context
	root     *os.Root
	skip     *Manifest
	live     bool // files may change
	want     []wanted
	globs    []globState
	found    []found
	warnings []string
	warned   map[string]bool
	hushed   int
}

type globState struct{ matched, kept, unchanged bool }

// found is a file that is to be chunked, with the globs that took it.
type found struct {
	source *source
	by     []int
}

// wanted is what is left of a glob below some directory; an empty rest takes
// everything.
type wanted struct {
	glob int
	rest pattern
}

func (c *collector) sources() []*source {
	out := make([]*source, len(c.found))
	for i, f := range c.found {
		out[i] = f.source
	}
	return out
}

func (c *collector) warn(format string, args ...any) {
	w := fmt.Sprintf(format, args...)
	switch {
	case c.warned[w]:
	case len(c.warned) >= maxWarnings:
		c.hushed++
	default:
		c.warned[w] = true
		c.warnings = append(c.warnings, w)
	}
}

func (c *collector) allWarnings(globs []string) []string {
	for i, glob := range globs {
		switch g := c.globs[i]; {
		case !g.matched:
			c.warn("output pattern %q %s", glob, MatchesNothing)
		case g.unchanged && !g.kept:
			c.warn("output pattern %q matches only unchanged inputs", glob)
		}
	}
	slices.Sort(c.warnings)
	if c.hushed > 0 {
		c.warnings = append(c.warnings, fmt.Sprintf("and %d more warnings about outputs", c.hushed))
	}
	return c.warnings
}

// walk looks through the directory dir ("" = the top) for what is wanted.
func (c *collector) walk(dir string, want []wanted, depth int) error {
	names, err := c.list(dir)
	if err != nil {
		return err
	}
	defer names.Close()
	empty := true
	for {
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		batch, err := names.Readdirnames(1024)
		for _, name := range batch {
			empty = false
			if err := c.visit(path.Join(dir, name), name, want, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("collect outputs in %q: %w", dir, raced(err))
		}
	}
	if by := taken(want); empty && dir != "" && len(by) > 0 && c.nameable(dir) {
		return c.add(&source{entry: Entry{Path: dir, Dir: true}, label: dir}, by)
	}
	return nil
}

// list opens a directory. It is the one that was there a moment ago, not what a
// symbolic link leads to.
func (c *collector) list(dir string) (*os.File, error) {
	at := path.Join(".", dir)
	seen, err := c.root.Lstat(at)
	if err == nil && !seen.IsDir() {
		err = ErrChanged
	}
	if err != nil {
		return nil, fmt.Errorf("collect outputs in %q: %w", dir, raced(err))
	}
	return c.open(at, seen, syscall.O_DIRECTORY)
}

// open opens what was seen, not something else of the same name.
func (c *collector) open(at string, seen os.FileInfo, flag int) (*os.File, error) {
	f, err := c.root.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK|flag, 0)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("collect output %q: its permissions forbid reading it: chmod u+r", at)
	}
	if err != nil {
		return nil, fmt.Errorf("collect output %q: %w", at, raced(err))
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(info, seen) {
		err = ErrChanged
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("collect output %q: %w", at, err)
	}
	return f, nil
}

// raced turns the errors that come of a path that is swapped meanwhile, which
// os.Root refuses or does not find, into ErrChanged.
func raced(err error) error {
	errno, ok := errors.AsType[syscall.Errno](err)
	if ok && errno != syscall.ENOENT && errno != syscall.ENOTDIR && errno != syscall.ELOOP && errno != syscall.ENXIO {
		return bare(err)
	}
	return ErrChanged
}

// taken lists the globs that take everything.
func taken(want []wanted) []int {
	var by []int
	for _, w := range want {
		if w.rest.all() {
			by = append(by, w.glob)
		}
	}
	return by
}

// visit looks at one name in a directory.
func (c *collector) visit(at, name string, want []wanted, depth int) error {
	var next []wanted
	for _, w := range want {
		for _, rest := range w.rest.after(name) {
			if !slices.ContainsFunc(next, func(o wanted) bool { return o.glob == w.glob && o.rest.same(rest) }) {
				next = append(next, wanted{w.glob, rest})
			}
		}
	}
	if len(next) == 0 {
		if by := taken(want); len(by) > 0 && depth > 0 {
			c.warn("output directory %.200q: hidden names in it are left out, which wildcards do not take: -o %.200[1]q takes all of it", path.Dir(at))
		}
		return nil
	}
	info, err := c.root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("collect output %q: %w", at, raced(err))
	}
	by := taken(next)
	for _, g := range by {
		c.globs[g].matched = true
	}
	switch {
	case info.IsDir() && depth >= MaxDepth:
		c.warn("output directory %.200q is deeper than %d, left out", at, MaxDepth)
		return nil
	case info.IsDir():
		return c.walk(at, next, depth+1)
	case len(by) == 0:
		return nil // a file where a glob wants a directory
	case info.Mode()&fs.ModeSymlink != 0 && c.isInput(at):
		for _, g := range by {
			c.globs[g].unchanged = true
		}
		return nil
	case !info.Mode().IsRegular():
		c.warn("output %q is %s, left out: only regular files are outputs", at, kind(info.Mode()))
		return nil
	case !c.nameable(at):
		return nil
	}
	local := filepath.Join(c.root.Name(), at)
	if c.live {
		local = ""
	}
	return c.add(&source{
		entry: Entry{Path: at},
		size:  info.Size(),
		local: local,
		live:  c.live,
		label: fmt.Sprintf("output %q", at),
		open:  func() (*os.File, error) { return c.open(at, info, 0) },
	}, by)
}

// isInput reports whether a link is as it was in the inputs.
func (c *collector) isInput(link string) bool {
	to, err := c.root.Readlink(link)
	return err == nil && c.skip.holds(&Entry{Path: link, Link: to})
}

func (c *collector) nameable(at string) bool {
	err := CheckPath(at)
	if err != nil {
		c.warn("output %.200q is left out: %v", at, err)
	}
	return err == nil
}

func (c *collector) add(s *source, by []int) error {
	if len(c.found) >= MaxEntries {
		return fmt.Errorf("collect outputs: more than %d files: pack them into fewer", MaxEntries)
	}
	c.found = append(c.found, found{s, by})
	return nil
}

// drop leaves out what is as it is in skip and notes which globs are left
// with something.
func (c *collector) drop() []*source {
	var kept []*source
	for _, f := range c.found {
		unchanged := c.skip.holds(&f.source.entry)
		for _, g := range f.by {
			c.globs[g].unchanged = c.globs[g].unchanged || unchanged
			c.globs[g].kept = c.globs[g].kept || !unchanged
		}
		if !unchanged {
			kept = append(kept, f.source)
		}
	}
	return kept
}

// holds reports whether the same entry is in the manifest, if there is one.
func (m *Manifest) holds(e *Entry) bool {
	if m == nil {
		return false
	}
	i, ok := slices.BinarySearchFunc(m.Entries, e.Path, func(have Entry, p string) int {
		return ComparePaths(have.Path, p)
	})
	if !ok {
		return false
	}
	have := &m.Entries[i]
	return have.Dir == e.Dir && have.Exec == e.Exec && have.Size == e.Size && have.Link == e.Link && slices.Equal(have.Chunks, e.Chunks)
}
