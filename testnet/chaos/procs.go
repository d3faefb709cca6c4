package main

import (
	"bytes"
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

	"zorilla/jobs"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// proc is a process of the lab, whose process numbers are its own.
type proc struct {
	pid    int
	parent int
	args   []string
}

// processes lists all processes of the lab that have arguments: not those that
// have ended and wait to be buried.
func processes() []proc {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is good
	var all []proc
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil || len(b) == 0 {
			continue
		}
		p := proc{args: strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")}
		p.pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat")); err == nil {
			if f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]); len(f) > 1 {
				p.parent, _ = strconv.Atoi(string(f[1]))
			}
		}
		all = append(all, p)
	}
	return all
}

// supervisor is a process that looks after workers.
type supervisor struct {
	pid   int
	roots []string // directories of the workers
}

// supervisors returns those of a host, in the order of their numbers.
func supervisors(state string) []supervisor {
	roots, _ := filepath.Glob(filepath.Join(state, "work", "*")) // the pattern is good
	found := map[int]*supervisor{}
	for _, root := range roots {
		if pid := process.SupervisorOf(root); pid > 0 {
			if found[pid] == nil {
				found[pid] = &supervisor{pid: pid}
			}
			found[pid].roots = append(found[pid].roots, root)
		}
	}
	var list []supervisor
	for _, pid := range slices.Sorted(maps.Keys(found)) {
		list = append(list, *found[pid])
	}
	return list
}

// names lists the directories of its workers for people.
func (s *supervisor) names() string {
	var names []string
	for _, root := range s.roots {
		names = append(names, filepath.Base(root))
	}
	return strings.Join(names, ", ")
}

// jobOf returns whose worker a directory belongs to: its name is JOB-RANK-ATTEMPT.
func jobOf(root string) jobs.ID {
	name := filepath.Base(root)
	for range 2 {
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i]
		}
	}
	return jobs.ID(name)
}

// below returns the processes below one.
func below(all []proc, pid int) []int {
	var list []int
	for _, p := range all {
		if p.parent == pid {
			list = append(append(list, p.pid), below(all, p.pid)...)
		}
	}
	return list
}

// launcherName is the first argument of what starts workers for a supervisor.
const launcherName = "zorilla-launcher"

// workersBelow returns the processes below one that are workers: a launcher that is
// stopped is ended by its supervisor where a worker could have done it.
func workersBelow(all []proc, pid int) []int {
	return slices.DeleteFunc(below(all, pid), func(pid int) bool {
		return slices.ContainsFunc(all, func(p proc) bool { return p.pid == pid && len(p.args) > 0 && p.args[0] == launcherName })
	})
}

// signalAll sends a signal to processes that may have ended.
func signalAll(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s)
	}
}

// groupRoot is where control groups are, of both versions.
const groupRoot = "/sys/fs/cgroup"

// controlGroups lists the control groups of a node's workers below a directory: the node has
// a place for them in each hierarchy.
func controlGroups(root string, node vicinity.ID) []string {
	var list []string
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() { // groups of others come and go
			return nil
		}
		if filepath.Base(filepath.Dir(path)) == "zorilla-"+string(node) {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// systemV reports shared memory, semaphores and queues of System V, "" if there are
// none in the lab.
func systemV(dir string) string {
	for _, kind := range []string{"shm", "sem", "msg"} {
		b, err := os.ReadFile(filepath.Join(dir, kind))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without them
			return err.Error()
		}
		if n := bytes.Count(b, []byte("\n")); n > 1 { // below the heading
			return fmt.Sprintf("%d of System V's %s", n-1, kind)
		}
	}
	return ""
}
