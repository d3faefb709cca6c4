package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// pattern is an output glob, or what is left of one below a directory.
type pattern struct {
	// left has its elements; without any it takes everything. An element "**" stands for any number of
	// directories, at the end for all that is below.
	left []string
	// wild: the last name above was taken by a wildcard, which takes no hidden names below it.
	wild bool
	dots bool // wildcards take hidden names, too
}

func parsePattern(glob string) (p pattern, err error) {
	bad := func(err error) error { return fmt.Errorf("output pattern %.80q: %w", glob, err) }
	if glob == "" || path.IsAbs(glob) {
		return p, bad(errors.New("want one relative to the work directory"))
	}
	if _, err := path.Match(glob, ""); err != nil {
		return p, bad(err)
	}
	clean := path.Clean(glob)
	if clean == "." {
		return pattern{wild: true}, nil
	}
	elements := strings.Split(clean, "/")
	if elements[0] == ".." {
		return p, bad(errors.New("must stay inside the work directory"))
	}
	for _, element := range elements {
		if _, err := path.Match(element, ""); err != nil {
			return p, bad(err)
		}
	}
	return pattern{left: elements}, nil
}

// CheckPattern returns why a pattern cannot be one of output files, if so.
func CheckPattern(glob string) error {
	_, err := parsePattern(glob)
	return err
}

// deep is the element that stands for any number of directories.
const deep = "**"

// Hidden reports whether an element of a path begins with a dot.
func Hidden(path string) bool { return strings.HasPrefix(path, ".") || strings.Contains(path, "/.") }

// dotted reports whether an element of a pattern begins with a dot that was written there.
func dotted(element string) bool {
	return strings.HasPrefix(element, ".") || strings.HasPrefix(element, `\.`)
}

// hasWildcard reports whether an element of a pattern may stand for several names.
func hasWildcard(element string) bool {
	for i := 0; i < len(element); i++ {
		switch element[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		}
	}
	return false
}

// NamesHidden reports whether a pattern of output files names something that is hidden.
func NamesHidden(glob string) bool {
	return slices.ContainsFunc(strings.Split(path.Clean(glob), "/"), func(element string) bool { return element != "." && dotted(element) })
}

// from returns what a pattern may have left at its beginning: itself and, as deep may stand
// for no directory, what follows that.
func (p pattern) from() []pattern {
	all := []pattern{p}
	for len(p.left) > 1 && p.left[0] == deep {
		p.left = p.left[1:]
		all = append(all, p)
	}
	return all
}

// after returns what is left of a pattern below a name; of an empty one, which takes
// everything, it is the same. None = the name does not match. As in shells a wildcard takes
// no name that begins with a dot: programs keep there what others run or trust.
func (p pattern) after(name string) []pattern {
	hidden := strings.HasPrefix(name, ".") && !p.dots // no wildcard takes it
	switch {
	case len(p.left) == 0:
		if hidden && p.wild {
			return nil
		}
		return []pattern{p}
	case p.left[0] == deep:
		if p.wild = true; hidden {
			return nil
		}
		if len(p.left) == 1 {
			p.left = nil
			return []pattern{p}
		}
		return p.from()
	}
	first := p.left[0]
	if ok, _ := path.Match(first, name); !ok || hidden && !dotted(first) { // parsePattern has checked that there is no error
		return nil
	}
	p.left, p.wild = p.left[1:], hasWildcard(first)
	return p.from()
}

// same reports whether two ends of one pattern are the same.
func (p pattern) same(o pattern) bool { return len(p.left) == len(o.left) && p.wild == o.wild }

// all reports whether a pattern takes everything, or everything that is not hidden.
func (p pattern) all() bool { return len(p.left) == 0 }

// below returns what is left of patterns, which are ends of one, below a name.
func below(all []pattern, name string) []pattern {
	var next []pattern
	for _, p := range all {
		for _, rest := range p.after(name) {
			if !slices.ContainsFunc(next, rest.same) {
				next = append(next, rest)
			}
		}
	}
	return next
}

// LeadsThrough reports whether a pattern of output files may name something below a
// directory, other than all of it.
func LeadsThrough(glob, dir string) bool {
	p, err := parsePattern(glob)
	left := p.from()
	for element := range strings.SplitSeq(dir, "/") {
		left = below(left, element)
	}
	return err == nil && slices.ContainsFunc(left, func(p pattern) bool { return !p.all() })
}

// MatchOutput reports whether one of the globs takes the path: by matching it
// or a directory above it. A name that begins with a dot is taken by an element that begins
// with one, or with a directory that is named without a wildcard. With it the receiver of outputs makes sure that
// the sender names only what was asked for. Globs that are malformed take
// nothing.
func MatchOutput(globs []string, p string) bool {
	for _, glob := range globs {
		pat, err := parsePattern(glob)
		if err == nil && pat.takes(p) {
			return true
		}
	}
	return false
}

// MatchedBefore is MatchOutput of earlier nodes, whose wildcards took hidden names.
func MatchedBefore(globs []string, p string) bool {
	return Hidden(p) && slices.ContainsFunc(globs, func(glob string) bool {
		pat, err := parsePattern(glob)
		pat.dots = true
		return err == nil && pat.takes(p)
	})
}

func (p pattern) takes(file string) bool {
	left := p.from()
	for element := range strings.SplitSeq(file, "/") {
		left = below(left, element)
	}
	return slices.ContainsFunc(left, pattern.all)
}

// Glob is filepath.Glob of which an element "**" stands for any number of directories; links
// to directories are not among these.
func Glob(name string) ([]string, error) {
	if _, err := path.Match(name, ""); err != nil {
		return nil, err
	}
	elements := strings.Split(filepath.Clean(name), "/")
	first := slices.Index(elements, deep)
	if first < 0 {
		return filepath.Glob(name)
	}
	tops := []string{"."}
	if first > 0 {
		var err error
		if tops, err = filepath.Glob(cmp.Or(strings.Join(elements[:first], "/"), "/")); err != nil {
			return nil, err
		}
	}
	var all []string
	for _, top := range tops {
		found, err := globBelow(top, pattern{left: elements[first:], dots: true})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// globBelow lists what matches below a directory, but for what lies in a directory that
// matches itself.
func globBelow(top string, p pattern) (all []string, err error) {
	left := map[string][]pattern{top: p.from()}
	err = filepath.WalkDir(top, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == top {
			return err
		}
		next := below(left[filepath.Dir(at)], d.Name())
		if slices.ContainsFunc(next, pattern.all) {
			all = append(all, at)
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		if d.IsDir() {
			left[at] = next
		}
		return nil
	})
	return all, err
}

// ExpandInputs reads arguments of the form PATH[:NAME]. PATH may be a pattern
// of Glob; NAME is then the directory that the matches go to,
// as it is when it ends in a slash. What exists under the whole argument is
// taken literally. A pattern that matches nothing is an error that names it;
// a file that does not exist is left for Ingest to report.
func ExpandInputs(args []string) ([]Input, error) {
	var out []Input
	for _, arg := range args {
		if arg == "" {
			return nil, errors.New("input: empty name, want PATH or PATH:NAME")
		}
		more, err := expandInput(arg)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

func expandInput(arg string) ([]Input, error) {
	if exists(arg) {
		return []Input{{Path: arg}}, nil
	}
	local, name := arg, ""
	if i := strings.LastIndexByte(arg, ':'); i > 0 {
		local, name = arg[:i], arg[i+1:]
		if name == "" {
			return nil, fmt.Errorf("input %q: no name after the colon, want PATH or PATH:NAME", arg)
		}
	}
	if strings.HasPrefix(name, "//") && !exists(local) {
		return nil, fmt.Errorf("input %s: an input is a file or directory of this machine, or a pattern: fetch it first, or have the job fetch it", arg)
	}
	into := strings.HasSuffix(name, "/")
	matches := []string{local}
	if !exists(local) && strings.ContainsAny(local, `*?[`) {
		var err error
		if matches, err = Glob(local); err != nil {
			return nil, fmt.Errorf("input %q: %w", arg, err)
		}
		if len(matches) == 0 {
			return nil, fmt.Errorf("input %q: nothing matches", local)
		}
		into = name != ""
	}
	out := make([]Input, 0, len(matches))
	for _, m := range matches {
		in := Input{Path: m, Name: name}
		if into {
			in.Name = path.Join(name, path.Base(defaultName(m)))
		}
		out = append(out, in)
	}
	return out, nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// Left is a file that no pattern names.
type Left struct {
	Path string
	Size int64
}

// ForPeople reports whether a file that no pattern names is reported and kept: files that programs
// keep for themselves are hidden, or are Python's.
func ForPeople(path string) bool {
	return !Hidden(path) && !slices.Contains(strings.Split(path, "/"), "__pycache__")
}

// maxLooked bounds how many names FindLeft looks at.
const maxLooked = 100_000

// FindLeft lists regular files below dir that are not in skip (nil = nothing), by their
// paths and as far as they are wanted: at most limit of them, and how many and how large all are
// of those that it has looked at. Links are not followed. A name may be one that CheckPath refuses.
func FindLeft(dir string, skip *Manifest, limit int, wanted func(path string) bool) (some []Left, files int, bytes int64) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, 0, 0
	}
	defer root.Close()
	brought := map[string]bool{}
	if skip != nil {
		for i := range skip.Entries {
			brought[skip.Entries[i].Path] = true
		}
	}
	looked := 0
	_ = fs.WalkDir(root.FS(), ".", func(at string, d fs.DirEntry, err error) error {
		if looked++; looked > maxLooked {
			return fs.SkipAll
		}
		switch {
		case at == ".":
			return nil
		case err != nil || !wanted(at):
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular() || brought[at]:
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if files++; len(some) < limit {
			some = append(some, Left{at, info.Size()})
		}
		bytes += info.Size()
		return nil
	})
	return some, files, bytes
}

// literal is a pattern that names one path alone.
func literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// CollectLeft is Collect for files that FindLeft has found.
func CollectLeft(ctx context.Context, put Putter, dir string, left []Left) (Manifest, []string, error) {
	return collect(ctx, put, dir, literals(left), nil, false)
}

// GatherLeft is Gather for files that FindLeft has found.
func GatherLeft(ctx context.Context, dir string, left []Left) (*Pack, error) {
	pack, _, err := Gather(ctx, dir, literals(left), nil)
	return pack, err
}

func literals(left []Left) []string {
	globs := make([]string, len(left))
	for i, l := range left {
		globs[i] = literal(l.Path)
	}
	return globs
}
