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

	"golang.org/x/sys/unix"
)

// Limits bound the processes of a group. What is 0 is not bounded.
type Limits struct {
	Memory    int64 `json:"memory,omitempty"`    // bytes, with files in memory; nothing of it is swapped
	Processes int   `json:"processes,omitempty"` // and threads
	// Shares is how many parts of the processors and the disks it gets where several
	// groups want them: what the others do not need it may have, too. 0 = 1.
	Shares int `json:"shares,omitempty"`
}

// Place is where the groups of a node's workers are. Its zero value is nowhere. It is
// plain data, for another process to use.
type Place struct {
	Unified bool `json:"unified,omitempty"` // version 2: the same directory for all controllers
	// Dirs are directories of their own, by controller: "memory", "pids", "cpu", "io",
	// with version 1 also "cpuacct", and "blkio" for "io".
	Dirs map[string]string `json:"dirs,omitempty"`
	All  Limits            `json:"all,omitzero"` // what the workers have together

	// Plain is the same directory, with version 1 one of version 2 beside it, if there are
	// such groups; "" = none. Around is one within, around all groups of this place; "" = none.
	Plain  string `json:"plain,omitempty"`
	Around string `json:"around,omitempty"`

	// Together names the group in which the workers of one job share the processors, those
	// of all of them, see Place.Jointly; "" = each worker has its own. Open: nothing but
	// that holds in Around, which whoever finds it missing may make.
	Together string `json:"together,omitempty"`
	Open     bool   `json:"open,omitempty"`
}

// required are the controllers without which Make finds no place.
var required = []string{"memory", "pids"}

// optional ones are used where they are there.
var optional = map[bool][]string{true: {"cpu", "io"}, false: {"cpu", "cpuacct", "blkio"}}

// prefix is what the names of all places begin with.
const prefix = "zorilla-"

// ErrNone is wrapped by the errors of Make: this process may not make groups.
var ErrNone = errors.New("no control groups")

// Make finds a place with room for groups, and makes it; name tells it from those of
// other nodes. With version 2 it may move the calling process to a group beside it:
// call it before other processes are started. What nodes that are gone have left
// behind is removed.
func Make(name string, all Limits) (Place, error) {
	if name == "" || strings.ContainsAny(name, "/\x00") {
		return Place{}, fmt.Errorf("%w: bad name %q", ErrNone, name)
	}
	mounts, err := hierarchies()
	if err != nil {
		return Place{}, fmt.Errorf("%w: %w", ErrNone, err)
	}
	p, err := mounts.place(prefix + name)
	if err != nil {
		return Place{}, fmt.Errorf("%w: %w", ErrNone, err)
	}
	p.All = all
	for _, dir := range p.dirs() {
		sweep(filepath.Dir(dir))
	}
	if p.Unified {
		p.Plain = p.Dirs[required[0]]
	} else if p.Plain = mounts.plain(prefix + name); p.Plain != "" {
		sweep(filepath.Dir(p.Plain))
	}
	for range 10 {
		if err = p.make(); !isSwept(err) {
			break
		}
	}
	if err != nil {
		p.Remove()
		return Place{}, fmt.Errorf("%w: %w", ErrNone, err)
	}
	if dir, ok := p.Dirs["blkio"]; ok {
		if _, err := os.Lstat(filepath.Join(dir, bfqWeight)); err != nil || !weighs("/sys/block") {
			_ = unix.Rmdir(dir)
			delete(p.Dirs, "blkio")
		}
	}
	mounts.sweepFormer(&p, prefix+name)
	return p, nil
}

// weighs reports whether a disk has a scheduler with weights: the file for them is there
// as soon as the kernel has one, and a group in a hierarchy costs each worker a quarter.
func weighs(disks string) bool {
	all, _ := filepath.Glob(filepath.Join(disks, "*", "queue", "scheduler"))
	return slices.ContainsFunc(all, func(file string) bool { return strings.Contains(read(file), "[bfq]") })
}

// IsZero reports whether there are no groups.
func (p *Place) IsZero() bool { return len(p.Dirs) == 0 }

// dirs returns each directory once.
func (p *Place) dirs() []string {
	return slices.Compact(slices.Sorted(maps.Values(p.Dirs)))
}

// make makes the place, which another node may have removed while it was empty.
func (p *Place) make() error {
	for _, dir := range p.dirs() {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if p.Unified {
			if err := enable(dir, p.controllers()); err != nil {
				return err
			}
		}
	}
	return p.limit(p.Dirs, p.All, false, false)
}

// again makes the place after it was swept away.
func (p *Place) again() error {
	if p.Open { // what is around it is made with its groups
		return nil
	}
	return p.make()
}

func (p *Place) controllers() []string { return slices.Sorted(maps.Keys(p.Dirs)) }

// sweep removes places that are empty: whoever still wants one makes it again.
func sweep(dir string) {
	places, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
	for _, p := range places {
		_ = unix.Rmdir(p)
	}
}

// sweepFormer removes what is empty in hierarchies that former versions have used, and p does
// not: places, and of this node groups of workers that have none where p is.
func (m *mounts) sweepFormer(p *Place, name string) {
	for _, c := range append(slices.Clone(required), optional[false]...) {
		h := m.legacy[c]
		if h == nil || slices.Contains(p.dirs(), filepath.Join(h.own, name)) {
			continue
		}
		left, _ := filepath.Glob(filepath.Join(h.own, name, "*", "tasks"))
		for _, tasks := range left {
			worker := filepath.Dir(tasks)
			if _, err := os.Lstat(filepath.Join(p.Dirs[required[0]], filepath.Base(worker))); err != nil {
				_ = unix.Rmdir(worker)
			}
		}
		sweep(h.own)
	}
}

// Remove removes the place, with the groups of jobs in it, if no worker is there.
func (p *Place) Remove() {
	p.Left()
	p.Sweep()
	for _, dir := range append(p.dirs(), p.Plain) {
		if dir == "" {
			continue
		}
		within, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
		if len(within) == 0 { // else there are workers
			_ = rmdir(dir)
		}
	}
}

// set writes a value to a file of a group, without which a limit would not hold.
func set(dir, file, value string) error {
	path := filepath.Join(dir, file)
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(value)); err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// The kernel's bounds, and its values of a share.
const (
	maxWeight    = 10000
	maxBFQ       = 1000
	weight       = 100  // version 2, and of the disk
	cpuShares    = 1024 // version 1
	maxCPUShares = 262144

	bfqWeight = "blkio.bfq.weight"
)

// limit sets the limits of a group, by its directories, that of a worker or one around such.
// One that is fresh has one share as it is.
func (p *Place) limit(dirs map[string]string, l Limits, worker, fresh bool) error {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	shares, together := int64(max(l.Shares, 1)), worker && p.Together != ""
	plain := fresh && shares == 1
	type setting struct {
		controller, file, value string
		must                    bool
	}
	var all []setting
	add := func(controller, file, value string, must bool) {
		all = append(all, setting{controller, file, value, must})
	}
	switch {
	case p.Unified:
		if l.Memory > 0 {
			add("memory", "memory.max", number(l.Memory), true)
			add("memory", "memory.swap.max", "0", false) // not there without swap
		}
		if worker { // others go on
			add("memory", "memory.oom.group", "1", false)
		}
		if !together && !plain {
			add("cpu", "cpu.weight", number(min(weight*shares, maxWeight)), false)
		}
		if !plain {
			add("io", "io.weight", number(min(weight*shares, maxWeight)), false)
		}
	default:
		if l.Memory > 0 {
			add("memory", "memory.limit_in_bytes", number(l.Memory), true)
			add("memory", "memory.memsw.limit_in_bytes", number(l.Memory), false)
		}
		if !together && !plain {
			add("cpu", "cpu.shares", number(min(cpuShares*shares, maxCPUShares)), false)
		}
		if !plain {
			add("blkio", bfqWeight, number(min(weight*shares, maxBFQ)), false)
		}
	}
	if l.Processes > 0 {
		add("pids", "pids.max", strconv.Itoa(l.Processes), true)
	}
	for _, s := range all {
		dir, ok := dirs[s.controller]
		if !ok {
			continue
		}
		if err := set(dir, s.file, s.value); err != nil && s.must {
			return err
		}
	}
	return nil
}
