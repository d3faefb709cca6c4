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
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"zorilla/internal/reserved"
)

// Obstacle is something in the way of a file that is to be written.
type Obstacle struct {
	Path string // as the user knows it
	Why  string // "exists", or what else
	File bool   // replacing it would help
}

// Obstacles looks for what is in the way of the tree below dir, without writing
// anything. A reserved place is always an obstacle, also with replace. A file that is
// there with the same content is in nobody's way: rest
// is the tree without those. With replace other files and links are not either.
func (m *Manifest) Obstacles(ctx context.Context, dir string, places *reserved.Places, replace bool) (rest Manifest, list []Obstacle, err error) {
	s := newSurveyor(dir, places, replace)
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.Dir {
			if s.reserved(e.Path) {
				continue
			}
			if !s.directory(e.Path).exists {
				s.make(e.Path)
				rest.Entries = append(rest.Entries, *e)
			}
			continue
		}
		info := s.file(e.Path)
		if info != nil && info.Mode().IsRegular() && e.Link == "" {
			same, err := s.holds(ctx, e, info)
			if err != nil {
				return rest, nil, err
			}
			if same {
				continue
			}
		}
		if s.reserved(e.Path) {
			continue
		}
		if info != nil {
			s.taken(e.Path, info)
		}
		s.make(path.Dir(e.Path))
		rest.Entries = append(rest.Entries, *e)
	}
	return rest, s.list, nil
}

// NameObstacles is Obstacles for what is known only by its name: there may be a
// directory already, as it may be one.
func NameObstacles(dir string, names []string, places *reserved.Places, replace bool) []Obstacle {
	s := newSurveyor(dir, places, replace)
	for _, name := range names {
		name = path.Clean(name)
		if s.reserved(name) {
			continue
		}
		info := s.file(name)
		switch {
		case info == nil || name == ".":
			s.make(path.Dir(name))
		case !info.IsDir():
			s.taken(name, info)
			s.make(path.Dir(name))
		}
	}
	return s.list
}

// surveyor looks for obstacles below a directory.
type surveyor struct {
	dir     string
	replace bool
	dirs    map[string]surveyed // by path below dir; "." = dir itself
	asked   map[string]bool     // directories whose permissions are known
	list    []Obstacle

	real   string // dir without links
	places *reserved.Places
}

// surveyed is a directory that files go to.
type surveyed struct {
	exists  bool
	blocked bool   // it is none and cannot become one
	deepest string // which exists, on the way to it
}

func newSurveyor(dir string, places *reserved.Places, replace bool) *surveyor {
	return &surveyor{
		dir: filepath.Clean(dir), real: reserved.Real(dir), replace: replace, places: places,
		dirs: map[string]surveyed{}, asked: map[string]bool{},
	}
}

// reserved reports whether nothing may be written at a path, and notes that as an obstacle.
func (s *surveyor) reserved(p string) bool {
	why := s.places.Why(filepath.Join(s.real, filepath.FromSlash(p)))
	if why != "" {
		s.obstacle(s.at(p), why, false)
	}
	return why != ""
}

func (s *surveyor) at(p string) string { return filepath.Join(s.dir, filepath.FromSlash(p)) }

func (s *surveyor) obstacle(at, why string, file bool) {
	s.list = append(s.list, Obstacle{at, why, file})
}

// directory reports what is known of a directory below dir.
func (s *surveyor) directory(p string) surveyed {
	if d, ok := s.dirs[p]; ok {
		return d
	}
	var d surveyed
	if p == "." {
		d = s.top()
	} else if d = s.directory(path.Dir(p)); d.exists && !d.blocked {
		at := s.at(p)
		switch info, err := os.Lstat(at); {
		case errors.Is(err, fs.ErrNotExist):
			d.exists = false
		case err != nil:
			s.obstacle(at, bare(err).Error(), false)
			d = surveyed{blocked: true}
		case !info.IsDir():
			s.obstacle(at, "is no directory, where one is needed", false)
			d = surveyed{blocked: true}
		default:
			d.deepest = at
		}
	}
	s.dirs[p] = d
	return d
}

// top looks at dir itself, or the nearest directory above it that is there. The
// way to it may lead through links, which its user made.
func (s *surveyor) top() surveyed {
	for at := s.dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && info.IsDir():
			return surveyed{exists: at == s.dir, deepest: at}
		case err == nil:
			s.obstacle(at, "is no directory, where one is needed", false)
		case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && at != filepath.Dir(at):
			continue
		default:
			s.obstacle(at, bare(err).Error(), false)
		}
		return surveyed{blocked: true}
	}
}

// make notes that something is to be made in a directory.
func (s *surveyor) make(p string) {
	d := s.directory(p)
	if d.blocked || s.asked[d.deepest] {
		return
	}
	s.asked[d.deepest] = true
	if err := unix.Access(d.deepest, unix.W_OK|unix.X_OK); err != nil {
		s.obstacle(d.deepest, "cannot be written to: "+err.Error(), false)
	}
}

// file returns what is at the place of a file, or nil.
func (s *surveyor) file(p string) fs.FileInfo {
	if d := s.directory(path.Dir(p)); d.blocked || !d.exists {
		return nil
	}
	info, err := os.Lstat(s.at(p))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.obstacle(s.at(p), bare(err).Error(), false)
	}
	if err != nil {
		return nil
	}
	return info
}

// taken notes that there is something else at the place of a file.
func (s *surveyor) taken(p string, info fs.FileInfo) {
	switch {
	case info.IsDir():
		s.obstacle(s.at(p), "is a directory, where a file is needed", false)
	case !s.replace:
		s.obstacle(s.at(p), "exists", true)
	}
}

// holds reports whether the regular file is what is to be written.
func (s *surveyor) holds(ctx context.Context, e *Entry, info fs.FileInfo) (bool, error) {
	if info.Size() != e.Size || (info.Mode()&0o100 != 0) != e.Exec {
		return false, nil
	}
	f, err := os.OpenFile(s.at(e.Path), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, nil // what cannot be read is not known to be the same
	}
	defer f.Close()
	buf := make([]byte, min(e.Size, ChunkSize))
	for i, h := range e.Chunks {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		data := buf[:chunkLen(e.Size, i)]
		if _, err := io.ReadFull(f, data); err != nil || HashOf(data) != h {
			return false, nil
		}
	}
	return true, nil
}

// maxObstacles is how many obstacles ObstacleError names.
const maxObstacles = 20

// ObstacleError tells all that was in the way. Nothing was written then.
type ObstacleError []Obstacle

// Error implements error.
func (e ObstacleError) Error() string {
	var words []string
	for _, o := range e[:min(len(e), maxObstacles)] {
		words = append(words, fmt.Sprintf("%s %s", o.Path, o.Why))
	}
	if n := len(e) - maxObstacles; n > 0 {
		words = append(words, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(words, ", ")
}

// Replaceable reports whether the write can be done if files are replaced.
func (e ObstacleError) Replaceable() bool {
	return !slices.ContainsFunc(e, func(o Obstacle) bool { return !o.File })
}
