package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"zorilla/jobs"
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

// supervises returns the directory of the worker that a process looks after, or
// "".
func (p *proc) supervises() string {
	if len(p.args) == 3 && p.args[0] == "zorilla-supervisor" && p.args[1] == "run" {
		return p.args[2]
	}
	return ""
}

// supervisors returns those of a host.
func supervisors(all []proc, state string) []proc {
	return slices.DeleteFunc(slices.Clone(all), func(p proc) bool {
		return filepath.Dir(filepath.Dir(p.supervises())) != state
	})
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
