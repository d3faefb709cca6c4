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

	"golang.org/x/sys/unix"
)

// around is what the names of groups around others begin with.
const around = "job-"

// plain finds where there can be groups of version 2 without controllers, beside those of
// version 1; "" = nowhere.
func (m *mounts) plain(name string) string {
	if m.unified == nil {
		return ""
	}
	for _, dir := range []string{m.unified.own, m.unified.top} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o755); err == nil || errors.Is(err, fs.ErrExist) {
			return path
		}
	}
	return ""
}

// Of returns the place for the groups of the workers of one job, which are in a group of
// version 2 (Around) of their own. Reserve makes it.
func (p *Place) Of(job string) (Place, error) {
	if p.Plain == "" || job == "" || strings.ContainsAny(job, "/\x00") {
		return Place{}, fmt.Errorf("%w of version 2 for a job", ErrNone)
	}
	its := *p
	its.Around = filepath.Join(p.Plain, around+job)
	if p.Unified {
		its.Dirs = map[string]string{}
		for c := range p.Dirs {
			its.Dirs[c] = its.Around
		}
	}
	return its, nil
}

// Reserve makes the group around the workers of a job, and that of one of them in it, so
// that it stays until they are removed. What is to hold in it has to be done before the worker
// is started, whether it was there or not. p is one of Place.Of.
func (p *Place) Reserve(worker string) (err error) {
	for range 10 {
		if err = p.surround(); err == nil {
			err = os.Mkdir(filepath.Join(p.Around, groupName(worker)), 0o755)
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			return nil
		}
		if !isSwept(err) {
			break
		}
	}
	return fmt.Errorf("control group of a job: %w", err)
}

// surround makes the group around others.
func (p *Place) surround() error {
	if err := os.Mkdir(p.Plain, 0o755); err == nil && p.Unified { // another node may have removed it while it was empty
		if err := errors.Join(enable(p.Plain, p.controllers()), p.limit(p.outer(), p.All, false, false)); err != nil {
			return err
		}
	} else if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Mkdir(p.Around, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if p.Unified {
		return enable(p.Around, p.within())
	}
	return nil
}

// within are the controllers that the groups of workers have for themselves.
func (p *Place) within() []string {
	return slices.DeleteFunc(p.controllers(), func(c string) bool { return c == "cpu" && p.Together != "" })
}

// outer are the directories of the place around that of a job.
func (p *Place) outer() map[string]string {
	dirs := map[string]string{}
	for c := range p.Dirs {
		dirs[c] = p.Plain
	}
	return dirs
}

// Left removes the group around others if none is left in it. p may be any place.
func (p *Place) Left() {
	if p.Around != "" && unix.Rmdir(p.Around) != nil && p.Together == "" {
		p.weigh(0)
	}
}

// weigh gives the group around others the shares of all of them, each so many where they
// are together. It goes on until what it sees is so, since others do the same.
func (p *Place) weigh(each int) {
	if p.Together != "" {
		p.weighTogether(each)
		return
	}
	if p.Around == "" || !p.Unified {
		return
	}
	for range 10 {
		sum := 0
		within, _ := filepath.Glob(filepath.Join(p.Around, "*", "cpu.weight"))
		for _, file := range within {
			sum += int(number(file))
		}
		if sum = min(sum, maxWeight); sum == 0 || number(filepath.Join(p.Around, "cpu.weight")) == int64(sum) {
			return
		}
		text := strconv.Itoa(sum)
		_ = set(p.Around, "io.weight", text)
		if set(p.Around, "cpu.weight", text) != nil {
			return
		}
	}
}

// Sweep removes the groups of jobs that have no workers. Those of workers stay: one may be
// between two tasks.
func (p *Place) Sweep() {
	if dir, ok := p.Dirs["cpu"]; ok {
		sweepJobs(dir)
	}
	if p.Plain == "" {
		return
	}
	sweepJobs(p.Plain)
}

func sweepJobs(dir string) {
	jobs, _ := filepath.Glob(filepath.Join(dir, around+"*"))
	for _, job := range jobs {
		_ = unix.Rmdir(job)
	}
}
