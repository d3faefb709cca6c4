package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"zorilla/jobs"
	"zorilla/jobs/process"
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

// signalAll sends a signal to processes that may have ended.
func signalAll(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s)
	}
}
