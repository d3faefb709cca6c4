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

// pattern is an output glob, split into elements; empty for "." (everything). An element
// "**" stands for any number of directories, at the end for all that is below.
type pattern []string

func parsePattern(glob string) (pattern, error) {
	bad := func(err error) error { return fmt.Errorf("output pattern %.80q: %w", glob, err) }
	if glob == "" || path.IsAbs(glob) {
		return nil, bad(errors.New("want one relative to the work directory"))
	}
	if _, err := path.Match(glob, ""); err != nil {
		return nil, bad(err)
	}
	clean := path.Clean(glob)
	if clean == "." {
		return nil, nil
	}
	p := pattern(strings.Split(clean, "/"))
	if p[0] == ".." {
		return nil, bad(errors.New("must stay inside the work directory"))
	}
	for _, element := range p {
		if _, err := path.Match(element, ""); err != nil {
			return nil, bad(err)
		}
	}
	return p, nil
}

// CheckPattern returns why a pattern cannot be one of output files, if so.
func CheckPattern(glob string) error {
	_, err := parsePattern(glob)
	return err
}

// deep is the element that stands for any number of directories.
const deep = "**"

// from returns what a pattern may have left at its beginning: itself and, as deep may stand
// for no directory, what follows that.
func (p pattern) from() []pattern {
	all := []pattern{p}
	for ; len(p) > 1 && p[0] == deep; p = p[1:] {
		all = append(all, p[1:])
	}
	return all
}

// after returns what is left of a pattern below a name; of an empty one, which takes
// everything, it is the same. None = the name does not match.
func (p pattern) after(name string) []pattern {
	switch {
	case len(p) == 0:
		return []pattern{p}
	case p[0] == deep && len(p) == 1:
		return []pattern{{}}
	case p[0] == deep:
		return p.from()
	}
	if ok, _ := path.Match(p[0], name); !ok { // parsePattern has seen to it that there is no error
		return nil
	}
	return p[1:].from()
}

// below returns what is left of patterns, which are ends of one, below a name.
func below(all []pattern, name string) []pattern {
	var next []pattern
	for _, p := range all {
		for _, rest := range p.after(name) {
			if !slices.ContainsFunc(next, func(o pattern) bool { return len(o) == len(rest) }) {
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
	return err == nil && slices.ContainsFunc(left, func(p pattern) bool { return len(p) > 0 })
}

// MatchOutput reports whether one of the globs takes the path: by matching it
// or a directory above it. With it the receiver of outputs makes sure that
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

func (p pattern) takes(file string) bool {
	left := p.from()
	for element := range strings.SplitSeq(file, "/") {
		left = below(left, element)
	}
	return slices.ContainsFunc(left, func(p pattern) bool { return len(p) == 0 })
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
		found, err := globBelow(top, elements[first:])
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
		if slices.ContainsFunc(next, func(p pattern) bool { return len(p) == 0 }) {
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

// ForPeople reports whether a file that no pattern names is reported and kept: what programs have at
// home for themselves is hidden, or is Python's.
func ForPeople(path string) bool {
	for element := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(element, ".") || element == "__pycache__" {
			return false
		}
	}
	return true
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
