package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// whose is in which group for a controller a process is.
func whose(t *testing.T, p *Place, pid int, controller string) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if p.Unified && part[1] == "" || !p.Unified && part[1] != "" && strings.Contains(","+part[1]+",", ","+controller+",") {
			return part[2]
		}
	}
	return ""
}

// Workers that are together have one part of the processors, as large as all of theirs,
// and the rest each for itself. The last one takes it along.
func TestWorkersTogether(t *testing.T) {
	t.Run("no network of their own", func(t *testing.T) {
		p := place(t, Limits{})
		its := p.Jointly("a@b")
		together(t, p, &its)
	})
	t.Run("a network of their own", func(t *testing.T) {
		p := place(t, Limits{})
		its := ofJob(t, p, "a@b").Jointly("a@b")
		for i := range 3 {
			if err := its.Reserve(fmt.Sprintf("w/%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		together(t, p, &its)
		its.Left()
		if _, err := os.Lstat(its.Around); err == nil {
			t.Error("the group of the job is left")
		}
	})
}

func together(t *testing.T, p, its *Place) {
	t.Helper()
	if _, ok := p.Dirs["cpu"]; !ok {
		t.Fatal("no groups for the processors")
	}
	one, most := "cpu.weight", weight
	if !p.Unified {
		one, most = "cpu.shares", cpuShares
	}
	check := func(what string, want int) {
		t.Helper()
		if n := number(filepath.Join(its.common(), one)); n != int64(want*most) {
			t.Errorf("%s: together they have %d, want %d times %d", what, n, want, most)
		}
	}
	var groups []*Group
	var pids []int
	for i := range 3 {
		g, err := its.New(fmt.Sprintf("w/%d", i), Limits{Memory: 64 << 20, Processes: 8, Shares: 2})
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, g)
		if !p.Unified || its.Open { // else those that are to come count as well
			check("one more", 2*(i+1))
		}
		pid, err := begin(t, g, "sleep", "1000")
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	a, b := whose(t, p, pids[0], "cpu"), whose(t, p, pids[1], "cpu")
	if m, n := whose(t, p, pids[0], "memory"), whose(t, p, pids[1], "memory"); m == n || m == "" {
		t.Errorf("two workers have memory in %q and %q", m, n)
	}
	if p.Unified {
		if kernel, err := os.ReadFile(filepath.Join(its.Around, "cgroup.subtree_control")); err != nil || strings.Contains(" "+string(kernel), " cpu ") {
			t.Errorf("each has processors of its own: %q, %v", kernel, err)
		}
	} else if a != b || a == "" {
		t.Errorf("two workers have processors in %q and %q", a, b)
	}
	for i, g := range groups {
		_ = unix.Kill(pids[i], unix.SIGKILL)
		wait(t, pids[i])
		if !g.Remove() {
			t.Errorf("group %d stays", i)
		}
		if i < 2 {
			check("one less", 2*(2-i))
		}
	}
	if _, err := os.Lstat(its.common()); err == nil && (!p.Unified || its.Open) { // else others made it
		t.Error("what they had together is left")
	}
}

// Who has found nothing of the others gives them nothing less.
func TestKillOneOfThemTogether(t *testing.T) {
	p := place(t, Limits{})
	its := p.Jointly("a")
	for _, name := range []string{"one", "two"} {
		if _, err := its.New(name, Limits{Shares: 3}); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(its.common(), map[bool]string{true: "cpu.weight", false: "cpu.shares"}[p.Unified])
	before := number(file)
	p.Sweep()
	if !its.Kill("one") || number(file) != before {
		t.Errorf("the other one has %d, had %d", number(file), before)
	}
	if !its.Kill("two") {
		t.Error("it stays")
	}
	if _, err := os.Lstat(its.common()); err == nil {
		t.Error("what they had together is left")
	}
}

func TestJointlyWithoutProcessors(t *testing.T) {
	p := Place{Dirs: map[string]string{"memory": "/x", "pids": "/y"}}
	if its := p.Jointly("a"); its.Together != "" {
		t.Errorf("got %+v", its)
	}
	p.Dirs["cpu"], p.Dirs["cpuacct"] = "/z", "/z"
	if its := p.Jointly(""); its.Together != "" {
		t.Errorf("got %+v", its)
	}
	its := p.Jointly("a/b")
	if g := its.group("w"); g.dirs["cpu"] != "/z/job-a_b" || g.dirs["cpuacct"] != "" || strings.Join(g.all, " ") != "/x/w /y/w /z/job-a_b/w" {
		t.Errorf("got %+v", g)
	}
}
