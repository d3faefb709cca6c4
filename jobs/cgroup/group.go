package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Group is the group of one worker.
type Group struct {
	place Place
	dirs  map[string]string
	all   []string
	plain string // of version 2, beside those of version 1; "" = none
	limit int64  // on memory; 0 = none of its own
	share int    // of the processors; see Limits.Shares
}

// New makes a group. The name is one that no other group of the place has.
func (p *Place) New(name string, l Limits) (*Group, error) {
	g := p.group(name)
	g.limit, g.share = l.Memory, max(l.Shares, 1)
	err := g.make(l)
	for range 10 {
		if !isSwept(err) || p.Unified && p.Around != "" && !p.Open { // what holds around it would be missing
			break
		}
		if err = p.again(); err == nil {
			err = g.make(l)
		}
	}
	if err != nil {
		g.Remove()
		return nil, fmt.Errorf("control group: %w", err)
	}
	return g, nil
}

// isSwept reports whether a place was swept away meanwhile, perhaps of one hierarchy after
// the other, or while a file of it was open.
func isSwept(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }

// groupName is the name of a group's directory.
func groupName(name string) string { return strings.ReplaceAll(name, "/", "_") }

func (p *Place) group(name string) *Group {
	name = groupName(name)
	g := &Group{place: *p, dirs: map[string]string{}}
	for c, dir := range p.Dirs {
		g.dirs[c] = filepath.Join(dir, name)
	}
	if p.Together != "" {
		p.share(g.dirs)
	}
	for _, dir := range p.dirs() {
		if dir == p.takes() {
			dir = filepath.Join(dir, p.Together)
		}
		g.all = append(g.all, filepath.Join(dir, name))
	}
	if p.Around != "" && !p.Unified {
		g.plain = filepath.Join(p.Around, name)
		g.all = append(g.all, g.plain)
	}
	return g
}

func (g *Group) make(l Limits) error {
	if err := g.place.gather(); err != nil {
		return err
	}
	fresh := true
	for _, dir := range g.all {
		err := os.Mkdir(dir, 0o755)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		fresh = fresh && err == nil
	}
	err := g.place.limit(g.dirs, l, true, fresh)
	g.place.weigh(g.share)
	return err
}

// Joiner returns files for NewJoiner, in this process or in another one that they are sent
// to. The caller closes them.
func (g *Group) JoinFiles() (files []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
			files, err = nil, fmt.Errorf("control group: %w", err)
		}
	}()
	if g.place.Unified {
		return files, appendFile(&files, g.all[0], unix.O_RDONLY|unix.O_DIRECTORY)
	}
	_, dirs := g.hierarchies()
	for _, dir := range dirs {
		if err := appendFile(&files, filepath.Join(dir, "tasks"), unix.O_WRONLY); err != nil {
			return files, err
		}
	}
	if g.plain != "" {
		err = appendFile(&files, g.plain, unix.O_RDONLY|unix.O_DIRECTORY)
	}
	return files, err
}

// hierarchies are those of version 1 that processes are put into, with the directories
// there, in an order that is the same for all groups of a place.
func (g *Group) hierarchies() (controllers, dirs []string) {
	for _, c := range slices.Sorted(maps.Keys(g.dirs)) {
		if !slices.Contains(dirs, g.dirs[c]) {
			controllers, dirs = append(controllers, c), append(dirs, g.dirs[c])
		}
	}
	return controllers, dirs
}

// A Way leads from the groups of a place back to where this process is: who starts
// something in one is there no longer than for that. All groups with the same Way have one.
type Way string

// Way returns that of the group, "" if nobody has to go in: with version 2.
func (g *Group) Way() Way {
	if g.place.Unified {
		return ""
	}
	controllers, _ := g.hierarchies()
	return Way(strings.Join(controllers, " "))
}

// Files returns what NewJoiner needs of a way. The caller closes them.
func (w Way) Files() ([]*os.File, error) {
	files, err := w.files(whereabouts)
	if err != nil { // this process was moved, perhaps
		files, err = w.files(hierarchies)
	}
	if err != nil {
		return nil, fmt.Errorf("control group: %w", err)
	}
	return files, nil
}

func (w Way) files(where func() (*mounts, error)) (files []*os.File, err error) {
	at, err := where()
	if err != nil {
		return nil, err
	}
	for c := range strings.FieldsSeq(string(w)) {
		if at.legacy[c] == nil {
			err = fmt.Errorf("controller %s: is gone", c)
		} else {
			err = appendFile(&files, filepath.Join(at.legacy[c].own, "tasks"), unix.O_WRONLY)
		}
		if err != nil {
			closeAll(files)
			return nil, err
		}
	}
	return files, nil
}

func appendFile(files *[]*os.File, path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	*files = append(*files, os.NewFile(uintptr(fd), path))
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// MaxJoinFiles is how many files a Joiner has at most.
const MaxJoinFiles = 6

// OutOfMemory returns how many of the group's processes the kernel has killed for want
// of memory, and whether that was because of the group's own limit.
func (g *Group) OutOfMemory() (kills int, own bool) {
	dir := g.dirs["memory"]
	if g.place.Unified {
		events := numbers(filepath.Join(dir, "memory.events"))
		return int(events["oom_kill"]), g.limit > 0 && events["oom"] > 0
	}
	kills = int(numbers(filepath.Join(dir, "memory.oom_control"))["oom_kill"])
	// Kernels that charge in batches count no failures: who was killed at its limit had
	// come near it.
	return kills, g.limit > 0 && number(filepath.Join(dir, "memory.max_usage_in_bytes")) > g.limit-g.limit/16
}

// CPU returns how much time of the processors all that ran in the group has had; 0 if
// nobody counts that, as with version 1 where cpuacct has a hierarchy for itself.
func (g *Group) CPU() time.Duration {
	if g.place.Unified {
		return time.Duration(numbers(filepath.Join(g.all[0], "cpu.stat"))["usage_usec"]) * time.Microsecond
	}
	if dir, ok := g.dirs["cpuacct"]; ok {
		return time.Duration(number(filepath.Join(dir, "cpuacct.usage")))
	}
	return 0
}

// Remove removes the group when its processes have ended, and reports whether it is
// gone: a process that has just ended may hold it up.
func (g *Group) Remove() bool { return g.remove(rmdir) }

func (g *Group) remove(one func(dir string) error) bool {
	gone := true
	for _, dir := range g.all {
		err := one(dir)
		gone = gone && (err == nil || err == unix.ENOENT)
	}
	g.place.scatter(g.share)
	return gone
}

// rmdir removes a group, which the kernel may still think busy with what has just ended.
func rmdir(dir string) error {
	err := unix.Rmdir(dir)
	for end := time.Now().Add(removeWithin); err == unix.EBUSY && time.Now().Before(end); err = unix.Rmdir(dir) {
		time.Sleep(time.Millisecond)
	}
	return err
}

const removeWithin = 100 * time.Millisecond

// Kill kills whatever is in the group of that name, until nothing is left, and removes
// it: for who finds it without a supervisor. It gives up after some seconds, for a
// process that even the kernel cannot end, and reports whether all is gone.
func (p *Place) Kill(name string) bool {
	g := p.group(name)
	if g.remove(unix.Rmdir) { // mostly nobody is there
		return true
	}
	_ = set(g.dirs["pids"], "pids.max", "0") // nothing new begins
	for end := time.Now().Add(killWithin); time.Now().Before(end); {
		for _, dir := range g.all {
			if !p.Unified || set(dir, "cgroup.kill", "1") != nil {
				killAll(dir)
			}
		}
		if g.Remove() {
			return true
		}
	}
	return false
}

const killWithin = 5 * time.Second

func killAll(dir string) {
	b, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	for line := range strings.FieldsSeq(string(b)) {
		if pid, err := strconv.Atoi(line); err == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// read reads a short file of a group, of which nothing comes later: what os.ReadFile asks
// the runtime's poller for costs as much again. "" if it is not there.
func read(file string) string {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	b := make([]byte, 4096)
	n, _ := unix.Read(fd, b)
	return string(b[:max(n, 0)])
}

// numbers reads a file of lines with a name and a number.
func numbers(file string) map[string]int64 {
	all := map[string]int64{}
	for line := range strings.Lines(read(file)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all[name], _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return all
}

// number reads a file of one number; 0 if it is not there.
func number(file string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(read(file)), 10, 64)
	return n
}

// Joiner starts processes in a group. It belongs to one thread at a time.
type Joiner struct {
	in, out []int // version 1: for each hierarchy
	dir     []int // version 2: one at most
}

// NewJoiner makes one of the descriptors of Group.JoinFiles, which are the Joiner's from
// then on, and those of the group's Way, which stay the caller's, for as long as there is
// a Joiner. If it fails all stay the caller's.
func NewJoiner(fds, way []int) (*Joiner, error) {
	if len(fds) == 0 || len(fds) > MaxJoinFiles || len(fds) < len(way) || len(fds) > len(way)+1 {
		return nil, fmt.Errorf("control group: %d descriptors, and %d for the way back", len(fds), len(way))
	}
	return &Joiner{in: fds[:len(way)], out: way, dir: fds[len(way):]}, nil
}

// Close closes it. d may be nil.
func (d *Joiner) Close() {
	if d == nil {
		return
	}
	for _, fd := range slices.Concat(d.in, d.dir) {
		_ = unix.Close(fd)
	}
	d.in, d.out, d.dir = nil, nil, nil
}

// Fork has fork start a process in the group, with attributes that may be changed for
// it. With version 1 the calling thread, to which the caller is locked, is in the group
// meanwhile: what it starts begins where it is. A nil Joiner changes nothing.
func (d *Joiner) Fork(attr *syscall.SysProcAttr, fork func() (int, error)) (int, error) {
	if d != nil && len(d.dir) > 0 {
		attr.UseCgroupFD, attr.CgroupFD = true, d.dir[0]
	}
	if d == nil || len(d.in) == 0 {
		return fork()
	}
	defer step(d.out)
	if err := step(d.in); err != nil {
		return 0, fmt.Errorf("control group: %v", err) // its number says nothing of the command
	}
	return fork()
}

// step moves the calling thread.
func step(to []int) error {
	var all error
	for _, fd := range to {
		if _, err := unix.Write(fd, []byte("0")); err != nil {
			all = errors.Join(all, err)
		}
	}
	return all
}
