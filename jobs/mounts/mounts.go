// Package mounts has the allow-list of paths that an owner exposes to workers, and those that a
// job asks for: PATH:ro, PATH:rw. It looks at words only, never at files: links are the
// business of the code that mounts, and no answer says whether a path exists.
package mounts

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"zorilla/internal/sanitize"
)

// MaxPath bounds a path, in bytes.
const MaxPath = 255

// Path is a path, with all below it.
type Path struct {
	Path  string // absolute and clean
	Write bool   // workers may write there, too
}

// Parse reads PATH, PATH:ro or PATH:rw. Without an ending workers may only read.
func Parse(text string) (Path, error) {
	p := Path{Path: text}
	if before, ok := strings.CutSuffix(text, ":rw"); ok {
		p = Path{before, true}
	} else if before, ok := strings.CutSuffix(text, ":ro"); ok {
		p.Path = before
	} else if strings.Contains(path.Base(text), ":") { // more likely a slip than a name
		return Path{}, errors.New("want :ro or :rw behind the path")
	}
	switch {
	case !path.IsAbs(p.Path):
		return Path{}, errors.New("want an absolute path, as in /data:ro or /scratch:rw")
	case len(p.Path) > MaxPath:
		return Path{}, fmt.Errorf("a path of %d bytes, at most %d", len(p.Path), MaxPath)
	case !sanitize.Printable(p.Path) || strings.Contains(p.Path, ","):
		return Path{}, errors.New("want a path of printable characters, without commas")
	}
	p.Path = path.Clean(p.Path)
	return p, nil
}

// String returns what Parse reads, always with an ending.
func (p Path) String() string {
	if p.Write {
		return p.Path + ":rw"
	}
	return p.Path + ":ro"
}

// List is some paths. Of those that hold a path the longest counts for it.
type List []Path

// ParseAll reads what Parse reads, several times. The second of two about the same path
// is an error.
func ParseAll(texts []string) (List, error) {
	list := make(List, 0, len(texts))
	for _, t := range texts {
		p, err := Parse(t)
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", t, err)
		}
		for _, other := range list {
			if other.Path == p.Path {
				return nil, fmt.Errorf("%.80q: it is there twice", p.Path)
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// Strings is the other way.
func (l List) Strings() []string {
	texts := make([]string, 0, len(l))
	for _, p := range l {
		texts = append(texts, p.String())
	}
	return texts
}

// Allows reports whether a path is shown, with as much as it asks for.
func (l List) Allows(p Path) bool {
	longest := -1
	write := false
	for _, e := range l {
		if len(e.Path) > longest && Within(p.Path, e.Path) {
			longest, write = len(e.Path), e.Write
		}
	}
	return longest >= 0 && (write || !p.Write)
}

// Split tells those to read from those to write.
func (l List) Split() (read, write []string) {
	for _, p := range l {
		if p.Write {
			write = append(write, p.Path)
		} else {
			read = append(read, p.Path)
		}
	}
	return read, write
}

// Within reports whether a path is dir or lies below it; both are clean.
func Within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}
