package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// pattern is an output glob, split into elements; empty for "." (everything).
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

// match reports whether the pattern's first element matches name.
func (p pattern) match(name string) bool {
	ok, _ := path.Match(p[0], name) // parsePattern has seen to it that there is no error
	return ok
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
	rest := strings.Split(file, "/")
	for len(p) > 0 {
		if len(rest) == 0 || !p.match(rest[0]) {
			return false
		}
		p, rest = p[1:], rest[1:]
	}
	return true
}

// ExpandInputs reads arguments of the form PATH[:NAME]. PATH may be a pattern
// of path/filepath.Match; NAME is then the directory that the matches go to,
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
	into := strings.HasSuffix(name, "/")
	matches := []string{local}
	if !exists(local) && strings.ContainsAny(local, `*?[`) {
		var err error
		if matches, err = filepath.Glob(local); err != nil {
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
