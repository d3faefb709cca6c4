package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// ofJob makes the place of a job's workers, which needs groups of version 2.
func ofJob(t *testing.T, p *Place, job string) *Place {
	t.Helper()
	if p.Plain == "" {
		t.Skip("no groups of version 2")
	}
	its, err := p.Of(job)
	if err != nil {
		t.Fatal(err)
	}
	return &its
}

// The workers of a job have a group around theirs, which is there before the first of them
// and as long as one is; nobody makes it again who does not know what held there.
func TestGroupAroundWorkers(t *testing.T) {
	p := place(t, Limits{})
	its := ofJob(t, p, "a")
	var before uint64
	reserve := func(worker string, want bool) {
		t.Helper()
		var st unix.Stat_t
		if err := errors.Join(its.Reserve(worker), unix.Lstat(its.Around, &st)); err != nil || (st.Ino != before) != want {
			t.Errorf("%s: %v, new: %t", worker, err, st.Ino != before)
		}
		before = st.Ino
	}
	reserve("w/1", true)
	its.Left()
	reserve("w/2", false)
	p.Sweep()
	reserve("w/1", false)
	if !its.Kill("w/2") || !its.Kill("w/1") {
		t.Error("what is empty stays")
	}
	p.Sweep()
	reserve("w/1", true)
	g, err := its.New("w/1", Limits{Memory: 64 << 20, Processes: 8, Shares: 3})
	if err != nil {
		t.Fatal(err)
	}
	if p.Unified {
		if n, all := number(filepath.Join(its.Around, "cpu.weight")), number(filepath.Join(p.Plain, "memory.oom.group")); n != 3*weight || all != 0 {
			t.Errorf("its weight is %d, and the want of memory of one ends all: %d", n, all)
		}
	}
	pid, err := begin(t, g, "sleep", "1000")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(its.Around, "w_1", "cgroup.procs"))
	if err != nil || strings.TrimSpace(string(b)) == "" {
		t.Errorf("in the group: %q, %v", b, err)
	}
	p.Sweep()
	its.Left()
	if _, err := os.Lstat(filepath.Join(its.Around, "w_1")); err != nil {
		t.Errorf("a group that is in use: %v", err)
	}
	_ = unix.Kill(pid, unix.SIGKILL)
	wait(t, pid)
	if !its.Kill("w/1") {
		t.Error("it stays")
	}
	its.Left()
	if _, err := os.Lstat(its.Around); err == nil {
		t.Error("the group of the job is left")
	}
	if g, err := its.New("w/3", Limits{}); err == nil {
		t.Error("the group of a job was made by who knows nothing of it")
		g.Remove()
	}
}

func TestNamesOfJobs(t *testing.T) {
	p := &Place{Plain: "/x", Unified: true, Dirs: map[string]string{"memory": "/x"}}
	for _, name := range []string{"", "a/b", "a\x00"} {
		if its, err := p.Of(name); err == nil {
			t.Errorf("%q: %+v", name, its)
		}
	}
	if its, err := p.Of("a"); err != nil || its.Around != "/x/job-a" || its.Dirs["memory"] != its.Around || p.Around != "" {
		t.Errorf("got %+v, %v", its, err)
	}
	if _, err := (&Place{}).Of("a"); err == nil {
		t.Error("where there are no groups of version 2")
	}
}

// A job has the shares of its workers, and what bounds one of these does not bound all.
func TestSharesOfJob(t *testing.T) {
	dir := t.TempDir()
	p := &Place{Plain: dir, Unified: true, Dirs: map[string]string{"memory": dir, "pids": dir, "cpu": dir, "io": dir}}
	its, err := p.Of("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{dir, its.Around, filepath.Join(its.Around, "w_1"), filepath.Join(its.Around, "w_2")} {
		err := os.MkdirAll(group, 0o755)
		for file, text := range map[string]string{"cpu.weight": "100", "io.weight": "100", "memory.oom.group": "0"} {
			err = errors.Join(err, os.WriteFile(filepath.Join(group, file), []byte(text), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(group, file, want string) {
		t.Helper()
		if b, err := os.ReadFile(filepath.Join(group, file)); err != nil || string(b) != want {
			t.Errorf("%s of %s: %q, %v, want %q", file, group, b, err, want)
		}
	}
	if _, err := its.New("w/1", Limits{Shares: 4}); err != nil {
		t.Fatal(err)
	}
	if err := its.limit(its.outer(), Limits{}, false, false); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"cpu.weight", "io.weight"} {
		want(its.Around, file, "500")
		want(filepath.Join(its.Around, "w_1"), file, "400")
		want(dir, file, "100")
	}
	want(filepath.Join(its.Around, "w_1"), "memory.oom.group", "1")
	want(its.Around, "memory.oom.group", "0")
	want(dir, "memory.oom.group", "0")
	if err := os.RemoveAll(filepath.Join(its.Around, "w_2")); err != nil {
		t.Fatal(err)
	}
	its.Left()
	want(its.Around, "cpu.weight", "400")
}

// What former versions have left in hierarchies that are not used any more goes.
func TestSweepOfFormerHierarchies(t *testing.T) {
	p := place(t, Limits{})
	at, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"cpuacct", "blkio"} {
		h := at.legacy[c]
		if h == nil || p.Dirs[c] != "" {
			continue
		}
		name := fmt.Sprintf("former-%s-%d", c, os.Getpid())
		left := filepath.Join(h.own, prefix+name)
		if err := os.MkdirAll(filepath.Join(left, "worker"), 0o755); err != nil {
			t.Fatal(err)
		}
		again, err := Make(name, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		again.Remove()
		if _, err := os.Lstat(left); err == nil {
			t.Errorf("%s is left", left)
			_ = unix.Rmdir(filepath.Join(left, "worker"))
			_ = unix.Rmdir(left)
		}
	}
}

// Nodes that start at the same time sweep each other's places away while these are empty;
// each has one all the same.
func TestPlacesMadeTogether(t *testing.T) {
	place(t, Limits{}) // skips where there are none
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 100 {
				p, err := Make(fmt.Sprintf("together-%d-%d", i, os.Getpid()), Limits{Memory: 1 << 30})
				if err != nil {
					t.Error(err)
					return
				}
				p.Remove()
			}
		})
	}
	all.Wait()
}
