package quota

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The projects that New takes: numbers that no tool gives by itself, and so many that two
// nodes do not take the same one.
const (
	firstProject = 2200000000
	projects     = 100000000
	tries        = 16
)

// Quota is a project that directories are in.
type Quota struct {
	id uint32
	at string // a directory of the file system
}

// ErrNone says that the file system of a directory bounds no projects, or not for this
// process.
var ErrNone = errors.New("no project quotas")

// Works reports whether New can be of use in a directory, which need not exist yet.
func Works(dir string) bool {
	for {
		if f, err := openDir(dir); err == nil {
			defer f.Close()
			return works(f) == nil
		} else if up := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && up != dir {
			dir = up
		} else {
			return false
		}
	}
}

func works(f *os.File) error {
	if os.Geteuid() != 0 || !enforces(f) {
		return ErrNone
	}
	if _, err := get(f, firstProject); err != nil { // only root of the machine is told
		return errors.Join(ErrNone, err)
	}
	a, err := attributesOf(f)
	if err != nil || a.project != 0 {
		return errors.Join(ErrNone, err)
	}
	return nil
}

// New has the file system let directories take so many bytes together, with what is in
// them already. They lie in the directory around, which does not belong to that, and
// nobody changes them meanwhile.
func New(around string, most int64, dirs ...string) (*Quota, error) {
	f, err := openDir(around)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := works(f); err != nil {
		return nil, err
	}
	q := &Quota{at: around}
	if q.id, err = free(f); err != nil {
		return nil, err
	}
	// First the limit: it is what others know the number to be taken by.
	if err := limit(f, q.id, most); err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		if err := q.assignTree(dir); err != nil {
			_ = q.Remove()
			return nil, err
		}
	}
	return q, nil
}

// free returns a project that nobody has.
func free(f *os.File) (uint32, error) {
	named, err := namedProjects()
	if err != nil {
		return 0, err
	}
	for range tries {
		id := uint32(firstProject + rand.IntN(projects))
		if q, err := get(f, id); err != nil {
			return 0, err
		} else if q.hard == 0 && q.soft == 0 && q.used == 0 && q.inodes == 0 && !named[id] {
			return id, nil
		}
	}
	return 0, fmt.Errorf("%w: no number is free", ErrNone)
}

// namedProjects are those that have a name, as name:number.
func namedProjects() (map[uint32]bool, error) {
	f, err := os.Open("/etc/projid")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := map[uint32]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		_, number, _ := strings.Cut(lines.Text(), ":")
		if n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 32); err == nil {
			all[uint32(n)] = true
		}
	}
	return all, lines.Err()
}

// assignTree puts a tree into the project: directories and files, which are all that takes
// blocks worth counting. A file that has other names, too, stays where it is: it belongs to
// several.
func (q *Quota) assignTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !d.IsDir() && info.Sys().(*syscall.Stat_t).Nlink > 1 {
			return err
		}
		return assign(f, q.id, d.IsDir())
	})
}

// Join puts a file into the project of a directory, if that is in one: so that it can be
// moved there.
func Join(file *os.File, dir string) error {
	d, err := openDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	a, err := attributesOf(d)
	if err != nil || a.project == 0 {
		return err
	}
	return assign(file, a.project, false)
}

// Leave takes a file out of the project that New had it in, if it is in one.
func Leave(file *os.File) error {
	a, err := attributesOf(file)
	if err != nil || !ours(a.project) {
		return nil // whose file system has no projects, or not for us
	}
	return assign(file, 0, false)
}

// ours reports whether a project may be one that New has made.
func ours(project uint32) bool { return project >= firstProject && project < firstProject+projects }

// Of returns the quota that New has made for a directory, nil if there is none.
func Of(dir string) *Quota {
	f, err := openDir(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	a, err := attributesOf(f)
	if err != nil || !ours(a.project) {
		return nil
	}
	return &Quota{id: a.project, at: filepath.Dir(dir)}
}

// Used returns how many bytes the project takes, and how many it may; 0 = anything.
func (q *Quota) Used() (used, most int64, err error) {
	f, err := openDir(q.at)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if !enforces(f) { // somebody has switched it off: what is told would be of before
		return 0, 0, ErrNone
	}
	now, err := get(f, q.id)
	return int64(now.used), int64(now.hard * limitUnit), err
}

// Remove takes the limit away, and with that, when nothing is left in the directories, the
// project.
func (q *Quota) Remove() error {
	f, err := openDir(q.at)
	if err != nil {
		return err
	}
	defer f.Close()
	return limit(f, q.id, 0)
}

func openDir(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
}
