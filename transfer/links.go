package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkLink reports why e cannot be a symbolic link, if so.
//
// One that passes never leads out of the tree: it climbs only first, from a
// directory that is no link, as nothing is below one, and not above the top;
// whatever it then goes down through is in the tree or a link like it.
func checkLink(e *Entry) error {
	if e.Dir || e.Exec || e.Mode != 0 || e.Size != 0 || len(e.Chunks) != 0 || e.bundle != nil {
		return fmt.Errorf("a symbolic link with content")
	}
	switch to := e.Link; {
	case len(to) >= MaxPath:
		return fmt.Errorf("link is longer than %d bytes", MaxPath-1)
	case !utf8.ValidString(to):
		return fmt.Errorf("link is not valid UTF-8")
	case strings.ContainsFunc(to, unicode.IsControl):
		return fmt.Errorf("link holds a control character")
	case path.IsAbs(to):
		return fmt.Errorf("link is absolute")
	case path.Clean(to) != to:
		return fmt.Errorf("link is not clean")
	}
	if up, _ := climb(e.Link); up > strings.Count(e.Path, "/") {
		return fmt.Errorf("link leads outside")
	}
	return nil
}

// climb counts the ".." that a relative path begins with. It is not plain if
// there are more of them behind a name: what these lead to is not known if
// that name is a link.
func climb(to string) (up int, plain bool) {
	below := false
	for part := range strings.SplitSeq(to, "/") {
		switch part {
		case "", ".":
		case "..":
			if below {
				return up, false
			}
			up++
		default:
			below = true
		}
	}
	return up, true
}

// place is where an input is on this machine and in the tree.
type place struct {
	local string // absolute, without symbolic links
	name  string // "" for the top
}

func realPath(local string) (string, error) {
	abs, err := filepath.Abs(local)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	}
	if _, err := os.Stat(abs); err != nil {
		return "", err
	}
	return abs, nil // of an open file below /proc, which may have no name any more
}

// addLink plans a symbolic link that lies depth directories below an input, if
// it leads to something in the tree, whether that is there or not. Otherwise
// it plans the file that it leads to.
func (p *planner) addLink(local, name string, depth int) error {
	bad := func(err error) error { return fmt.Errorf("input %s: %w", shown(local), bare(err)) }
	to, err := os.Readlink(local)
	if err != nil {
		return bad(err)
	}
	target, ok := p.inTree(local, to, name, depth)
	if !ok {
		info, err := os.Stat(local)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return bad(fmt.Errorf("is a symbolic link to %s, which does not exist: remove it", shown(to)))
		case err != nil:
			return bad(err)
		case info.IsDir():
			return bad(fmt.Errorf("is a symbolic link to a directory that is not sent: send it too, with -i %s, or remove the link", shown(realOr(local, to))))
		}
		return p.add(local, name, factsOf(info), depth)
	}
	e := Entry{Path: name, Link: target}
	if err := checkEntry(&e); err != nil {
		return bad(err)
	}
	p.weight += int64(len(target))
	return p.append(&source{entry: e, label: shown(local)})
}

func realOr(local, other string) string {
	if real, err := realPath(local); err == nil {
		return real
	}
	return other
}

// inTree returns what a link to "to" leads to in the tree. One that stays
// below its own input is kept as it is, since the tree has the same
// directories; others are written anew.
func (p *planner) inTree(local, to, name string, depth int) (target string, ok bool) {
	if up, plain := climb(to); plain && up <= depth && !filepath.IsAbs(to) {
		return path.Clean(to), true
	}
	real, err := destination(local, to)
	if err != nil {
		return "", false
	}
	for _, at := range p.places {
		if rel, err := filepath.Rel(at.local, real); err == nil && filepath.IsLocal(rel) {
			return relative(path.Dir(name), path.Join(at.name, filepath.ToSlash(rel))), true
		}
	}
	return "", false
}

// destination returns where a link leads in one step: its last element may be
// a link again, or not be there.
func destination(local, to string) (string, error) {
	if !filepath.IsAbs(to) {
		dir, err := realPath(filepath.Dir(local))
		if err != nil {
			return "", err
		}
		to = dir + "/" + to // Join would take a name and the ".." behind it away, and the name may be a link
	}
	to = strings.TrimRight(to, "/")
	i := strings.LastIndexByte(to, '/')
	if base := to[i+1:]; i > 0 && base != "." && base != ".." {
		dir, err := filepath.EvalSymlinks(to[:i])
		return filepath.Join(dir, base), err
	}
	return filepath.EvalSymlinks(to + "/")
}

// relative returns the way from a directory of the tree to a path in it.
func relative(dir, to string) string {
	up := ""
	for dir != "." && to != dir && !strings.HasPrefix(to, dir+"/") {
		dir = path.Dir(dir)
		up += "../"
	}
	if dir != "." {
		to = strings.TrimPrefix(strings.TrimPrefix(to, dir), "/")
	}
	return path.Clean(up + to)
}
