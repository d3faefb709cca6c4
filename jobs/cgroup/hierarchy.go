package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// mounts are the hierarchies of groups that this process sees, and where it is in
// them itself.
type mounts struct {
	unified *hierarchy            // nil = there is none
	legacy  map[string]*hierarchy // version 1, by controller
}

// hierarchy is one, as far as it is mounted here.
type hierarchy struct {
	top string // where it is mounted
	own string // the directory of this process's group
}

// hierarchies reads what is mounted.
func hierarchies() (*mounts, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parse(string(groups), string(info)), nil
}

// whereabouts is hierarchies for a process that nobody moves.
var whereabouts = sync.OnceValues(hierarchies)

// parse reads /proc/PID/cgroup and /proc/PID/mountinfo, see proc(5) and cgroups(7).
func parse(groups, info string) *mounts {
	paths := map[string]string{} // by controller; "" = of version 2
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			paths[c] = parts[2]
		}
	}
	m := &mounts{legacy: map[string]*hierarchy{}}
	for line := range strings.Lines(info) {
		before, after, found := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 5 || len(kind) < 3 {
			continue
		}
		add := func(path string) *hierarchy {
			rel, err := filepath.Rel(unescape(fields[3]), path)
			if err != nil || rel == ".." || strings.HasPrefix(rel, "../") { // in a part that is not mounted
				return nil
			}
			top := unescape(fields[4])
			return &hierarchy{top: top, own: filepath.Join(top, rel)}
		}
		switch kind[0] {
		case "cgroup2":
			if path, ok := paths[""]; ok && m.unified == nil {
				m.unified = add(path)
			}
		case "cgroup":
			for option := range strings.SplitSeq(kind[2], ",") {
				if path, ok := paths[option]; ok && option != "" && m.legacy[option] == nil {
					if h := add(path); h != nil {
						m.legacy[option] = h
					}
				}
			}
		}
	}
	return m
}

// unescape reads a path of mountinfo, where some bytes are written as \NNN.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// place finds where a place of that name can be: with version 2, if it has the
// controllers.
func (m *mounts) place(name string) (Place, error) {
	var why error
	if m.unified != nil {
		p, err := m.unified.place(name)
		if err == nil {
			return p, nil
		}
		why = err
	}
	p := Place{Dirs: map[string]string{}}
	for _, c := range append(slices.Clone(required), optional[false]...) {
		if c == "cpuacct" && m.legacy["cpu"] != nil && m.legacy[c] != nil && m.legacy["cpu"].top != m.legacy[c].top {
			continue // a hierarchy only to count costs more than it tells
		}
		if h := m.legacy[c]; h != nil && unix.Access(h.own, unix.W_OK) == nil {
			p.Dirs[c] = filepath.Join(h.own, name)
		} else if slices.Contains(required, c) {
			return Place{}, errors.Join(why, fmt.Errorf("version 1: controller %s is not to be had", c))
		}
	}
	return p, nil
}

// place finds the highest group from the own one upwards that belongs to this process's
// user and has no processes: such ones cannot have groups below them, and whoever starts
// this process again may want to put it where it is now. Else it takes the own one, if
// this process is alone there; root may take the root of all.
func (h *hierarchy) place(name string) (Place, error) {
	var above []string
	for dir := h.own; len(dir) > len(h.top); dir = filepath.Dir(dir) {
		above = append(above, dir)
	}
	var why []error
	for _, dir := range slices.Backward(above) {
		if !h.delegated(dir) || !isVacant(dir) {
			continue
		}
		p, err := h.below(dir, name)
		if err == nil {
			return p, nil
		}
		why = append(why, err)
	}
	for _, dir := range []string{h.own, h.top} {
		p, err := h.below(dir, name)
		if err == nil {
			return p, nil
		}
		why = append(why, err)
	}
	return Place{}, errors.Join(why...)
}

// isVacant reports whether a group has no processes of its own.
func isVacant(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	return err == nil && len(strings.TrimSpace(string(b))) == 0
}

// below tries a group for a place.
func (h *hierarchy) below(dir, name string) (Place, error) {
	if !h.delegated(dir) {
		return Place{}, fmt.Errorf("%s: was not delegated to this user", dir)
	}
	has, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return Place{}, err
	}
	p := Place{Unified: true, Dirs: map[string]string{}}
	for _, c := range append(slices.Clone(required), optional[true]...) {
		if slices.Contains(strings.Fields(string(has)), c) {
			p.Dirs[c] = filepath.Join(dir, name)
		} else if slices.Contains(required, c) {
			return Place{}, fmt.Errorf("%s: has no controller %s", dir, c)
		}
	}
	if err := h.vacate(dir); err != nil {
		return Place{}, err
	}
	return p, enable(dir, p.controllers())
}

// delegated reports whether a group is this process's to manage: root has to look
// whether systemd says so, since it may write everywhere.
func (h *hierarchy) delegated(dir string) bool {
	if unix.Access(dir, unix.W_OK) != nil || unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) != nil {
		return false
	}
	if os.Geteuid() != 0 || dir == h.top {
		return true
	}
	value := make([]byte, 8)
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		if n, err := unix.Lgetxattr(dir, name, value); err == nil && n == 1 && value[0] == '1' {
			return true
		}
	}
	return false
}

// leaf is where this process goes if its own group is to have others below it.
const leaf = "zorilla.node"

// vacate makes a group be without processes, if it is the root of all or there is only
// this one.
func (h *hierarchy) vacate(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, "cgroup.type")); errors.Is(err, fs.ErrNotExist) {
		return nil // the root, which may have both
	}
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	switch pids := strings.Fields(string(b)); {
	case len(pids) == 0:
		return nil
	case len(pids) > 1 || pids[0] != strconv.Itoa(os.Getpid()):
		return fmt.Errorf("%s: other processes are in it", dir)
	}
	to := filepath.Join(dir, leaf)
	if err := os.Mkdir(to, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return set(to, "cgroup.procs", "0")
}

// enable gives the groups below a group of version 2 controllers.
func enable(dir string, controllers []string) error {
	return set(dir, "cgroup.subtree_control", "+"+strings.Join(controllers, " +"))
}
