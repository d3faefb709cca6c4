package process

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"zorilla/jobs/proc"
	"zorilla/jobs/work"
)

// groupOf returns where the control group of a running worker is.
func groupOf(t *testing.T, root string) string {
	t.Helper()
	var spec Spec
	if err := loadSpec(root, &spec); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(spec.terms.Groups.Dirs["pids"], filepath.Base(root))
}

// hasGroups reports whether this user may have control groups, as root must.
func hasGroups(t *testing.T) bool {
	t.Helper()
	known, err := enforced()
	if err != nil {
		t.Fatal(err)
	}
	if known.groups.IsZero() && os.Geteuid() == 0 {
		t.Fatal("root can have no control groups on this machine: what this test shows cannot be shown here")
	}
	return !known.groups.IsZero()
}

// All of a worker is in its group, which bounds it, and which goes with it.
func TestGroupOfAWorker(t *testing.T) {
	if !hasGroups(t) {
		return
	}
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		s := spec("none")
		s.Args = []string{"/bin/sh", "-c", "(setsid sleep 1000 &); sleep 1000 & echo $$; " + gateText + "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; : > done; exec sleep 1000) & until [ -e done ]; do sleep 0.01; done"}
		w := start(t, cfg, s)
		awaitOutput(t, w, 1)
		dir := groupOf(t, s.Root)
		if b, err := os.ReadFile(filepath.Join(dir, "pids.max")); err != nil || strings.TrimSpace(string(b)) != strconv.Itoa(maxProcesses) {
			t.Errorf("%q %v", b, err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); err != nil || len(strings.Fields(string(b))) < 3 {
			t.Errorf("%q %v, want its three processes", b, err)
		}
		openGate(t, s.Root)
		if e := await(t, w); e.Cause != work.Exited || e.CPU < 0.05 { // of a process that nobody waited for
			t.Errorf("%+v", e)
		}
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	})
}

// What a node made for the groups of its workers goes when it stops, unless one goes on.
func TestPlaceGoesWithItsNode(t *testing.T) {
	if !hasGroups(t) {
		return
	}
	r := New(Config{Groups: "test-closed", Log: zerolog.Nop()})
	if err := r.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	there := func() (n int) {
		for _, dir := range append(slices.Collect(maps.Values(r.groups.Dirs)), r.groups.Plain) {
			if _, err := os.Lstat(dir); err == nil {
				n++
			}
		}
		return n
	}
	before := there()
	w, err := r.Start(t.Context(), script(t, "echo begun; "+gateText))
	if err != nil {
		t.Fatal(err)
	}
	awaitOutput(t, w, 1)
	if r.Close(); before == 0 || there() < before-1 { // that for jobs alone may go
		t.Errorf("%d directories while a worker goes on, had %d", there(), before)
	}
	w.Stop(0, 0)
	await(t, w)
	if r.Close(); there() != 0 {
		t.Errorf("%d directories are left", there())
	}
}

// What is left of a group, whose supervisor could not remove it, goes with the worker's
// directory.
func TestGroupGoesWithItsRoot(t *testing.T) {
	if !hasGroups(t) {
		return
	}
	s := script(t, "true")
	run(t, Config{}, s)
	dir := groupOf(t, s.Root)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := CleanRoot(s.Root, nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Errorf("%s is left", dir)
	}
}

// Processes that hide from all but the kernel go, also when those that would end them
// were killed at once.
func TestLauncherAndSupervisorAreKilled(t *testing.T) {
	if !hasGroups(t) {
		return
	}
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		s := spec("none")
		s.Args = []string{"/bin/sh", "-c", "(cd /; env -i setsid sleep 3021 &); echo begun; exec sleep 3022"}
		w, err := probed(t, cfg).Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		awaitOutput(t, w, 1)
		dir := groupOf(t, s.Root)
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			t.Fatal(err)
		}
		var all []proc.ID
		for _, f := range strings.Fields(string(b)) {
			pid, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			if id, err := proc.Identify(pid); err == nil {
				all = append(all, id)
			}
		}
		var rec record
		if err := load(s.Root, recordEntry, &rec); err != nil {
			t.Fatal(err)
		}
		for _, id := range []proc.ID{rec.Supervisor, rec.Launcher} {
			if err := syscall.Kill(id.PID, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []proc.ID{rec.Launcher, rec.Supervisor} {
			if err := syscall.Kill(id.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		if e := await(t, w); e.Cause != work.Lost {
			t.Errorf("%+v", e)
		}
		mustBeGone(t, all)
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}
