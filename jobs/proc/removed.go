package proc

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// roundSteps is how many descriptors and mappings are looked at in one go, some 20 ms.
	roundSteps = 4000
	// processSteps is what a process costs beside them.
	processSteps = 20
	// readAtOnce is how many descriptors of a table are listed at once.
	readAtOnce = 512
	// maxRemoved bounds the memory of a pass: files that are open several times count
	// for each of them beyond that.
	maxRemoved = 1 << 18
	// restLeast is how long is rested after a round, and restShare how much longer than
	// it has taken, at least.
	restLeast = 50 * time.Millisecond
	restShare = 19
)

// deleted ends the path of what has no name any more.
var deleted = []byte(" (deleted)")

// Removed adds up what files take that have been removed and that processes still hold
// open, or mapped, where this process may see that: it is root of the machine. It goes through all of their descriptors in passes: a round looks at a bounded
// number of them, and the next one goes on there. Descriptors that are on their way
// through a socket nobody can see.
type Removed struct {
	pids  func() []int
	owner func(path string) string
	dev   uint64
	maps  bool // mappings can be seen

	mu    sync.Mutex // guards what follows
	due   time.Time  // no round before
	pass  *pass
	whole *pass // the latest that was finished
	buf   [4096 + 1]byte
}

// pass is one look at all descriptors.
type pass struct {
	begun time.Time
	used  map[string]int64
	seen  map[file]bool
	pids  []int    // still to come
	dirs  []string // tables of the process that it is at, still to come
	table *os.File // being read
	names []string // of it, still to come
	maps  *mappings
}

type file struct{ dev, ino uint64 }

// NewRemoved returns who adds up what processes hold, which pids lists at the beginning of
// each pass. A file counts for the owner that its last path names, "" = nobody; one whose
// path is too long to be told counts for all if it is in the file system of dir.
func NewRemoved(pids func() []int, owner func(path string) string, dir string) *Removed {
	r := &Removed{pids: pids, owner: owner, maps: seesMappings(), whole: &pass{}}
	var st unix.Stat_t
	if unix.Stat(dir, &st) == nil {
		r.dev = uint64(st.Dev)
	}
	return r
}

// Of returns what such files of an owner take in the latest whole pass, and when that
// began. If a round is due, or if it is needed at once, the caller makes it.
func (r *Removed) Of(owner string, now bool) (used int64, begun time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if begin := time.Now(); now || begin.After(r.due) {
		r.round()
		end := time.Now()
		r.due = end.Add(max(restLeast, restShare*end.Sub(begin)))
	}
	return r.whole.of(owner), r.whole.begun
}

// Pass makes a whole pass, unless that takes longer: then what it has not seen does not
// count.
func (r *Removed) Pass(limit time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := time.Now().Add(limit)
	r.drop()
	for r.round(); r.pass != nil && time.Now().Before(end); {
		r.round()
	}
	if r.pass != nil {
		r.whole = r.pass
		r.drop()
	}
}

// drop gives up the pass that is not finished. The caller holds mu.
func (r *Removed) drop() {
	if r.pass != nil && r.pass.table != nil {
		_ = r.pass.table.Close()
	}
	if r.pass != nil && r.pass.maps != nil {
		_ = r.pass.maps.file.Close()
	}
	r.pass = nil
}

// of is what an owner's files take, with those that are everybody's.
func (p *pass) of(owner string) int64 {
	if owner == "" {
		return p.used[""]
	}
	return p.used[owner] + p.used[""]
}

// round goes on with a pass, or begins one. The caller holds mu.
func (r *Removed) round() {
	if r.pass == nil {
		r.pass = &pass{begun: time.Now(), used: map[string]int64{}, seen: map[file]bool{}}
		r.pass.pids = r.pids()
	}
	p := r.pass
	for steps := 0; steps < roundSteps; {
		switch {
		case len(p.names) > 0:
			r.look(p, p.names[0])
			p.names = p.names[1:]
			steps++
		case p.table != nil:
			if p.names, _ = p.table.Readdirnames(readAtOnce); len(p.names) == 0 { // the end, or it has ended
				_ = p.table.Close()
				p.table = nil
			}
		case len(p.dirs) > 0:
			p.table, _ = os.Open(p.dirs[0])
			p.dirs = p.dirs[1:]
			steps++
		case p.maps != nil:
			if path, name, ok := p.maps.next(); ok {
				r.count(p, path, unix.AT_FDCWD, p.maps.dir+name)
			} else {
				p.maps = nil
			}
			steps++
		case len(p.pids) > 0:
			p.dirs = Tables(p.pids[0])
			if r.maps {
				p.maps = openMappings(p.pids[0])
			}
			p.pids = p.pids[1:]
			steps += processSteps
		default:
			r.whole, r.pass = p, nil
			return
		}
	}
}

// look counts what a descriptor stands for if it has no name any more.
func (r *Removed) look(p *pass, fd string) {
	table := int(p.table.Fd())
	n, err := unix.Readlinkat(table, fd, r.buf[:])
	if path, ok := bytes.CutSuffix(r.buf[:max(n, 0)], deleted); ok {
		r.count(p, path, table, fd)
	} else if err == unix.ENAMETOOLONG {
		var st unix.Stat_t
		if unix.Fstatat(table, fd, &st, 0) == nil && uint64(st.Dev) == r.dev {
			p.add("", &st)
		}
	}
}

// count counts what a link in /proc leads to. Only what is somebody's is asked for its
// size: a file of a server that is away would not answer.
func (r *Removed) count(p *pass, path []byte, dir int, link string) {
	var st unix.Stat_t
	if owner := r.owner(string(path)); owner != "" && unix.Fstatat(dir, link, &st, 0) == nil {
		p.add(owner, &st)
	}
}

// add counts a file, once, if it has no name.
func (p *pass) add(owner string, st *unix.Stat_t) {
	id := file{uint64(st.Dev), st.Ino}
	if st.Nlink > 0 || st.Blocks <= 0 || p.seen[id] {
		return
	}
	if len(p.seen) < maxRemoved {
		p.seen[id] = true
	}
	p.used[owner] += st.Blocks * 512
}

// mappings are the files that a process has mapped.
type mappings struct {
	dir   string // of links to them
	file  *os.File
	lines *bufio.Reader
}

func openMappings(pid int) *mappings {
	dir := "/proc/" + strconv.Itoa(pid)
	f, err := os.Open(dir + "/maps")
	if err != nil {
		return nil
	}
	return &mappings{dir + "/map_files/", f, bufio.NewReaderSize(f, 2*len(Removed{}.buf))}
}

// next returns the path of the next file, or the beginning of a long one, without its
// ending if it seems to be removed, and the name of the link to it. Of other mappings the
// path is empty.
func (m *mappings) next() (path []byte, link string, ok bool) {
	line, err := m.lines.ReadSlice('\n')
	long := err == bufio.ErrBufferFull
	if long {
		line = bytes.Clone(line)
		for err == bufio.ErrBufferFull {
			_, err = m.lines.ReadSlice('\n')
		}
	}
	if err != nil {
		_ = m.file.Close()
		return nil, "", false
	}
	path, gone := bytes.CutSuffix(bytes.TrimSuffix(line, []byte("\n")), deleted)
	at := bytes.IndexByte(path, '/')
	begin, rest, _ := bytes.Cut(line, []byte("-"))
	end, _, _ := bytes.Cut(rest, []byte(" "))
	if at < 0 || !gone && !long {
		return nil, "", true
	}
	return path[at:], string(bytes.TrimLeft(begin, "0")) + "-" + string(bytes.TrimLeft(end, "0")), true
}

// seesMappings reports whether this process may follow the links to what is mapped.
func seesMappings() bool {
	const dir = "/proc/self/map_files/"
	names, err := os.ReadDir(dir)
	if err != nil || len(names) == 0 {
		return false
	}
	_, err = os.Stat(dir + names[0].Name())
	return err == nil
}
