package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zorilla/jobs/work"
)

// sharers are specs of workers with one work directory, for so many users as eachWay has them.
func sharers(t *testing.T, cfg Config, spec func(string, ...string) Spec, text ...string) []Spec {
	t.Helper()
	first := spec("none")
	dir := filepath.Dir(first.Root)
	shared := filepath.Join(dir, "aaaaa@x-shared-1")
	if err := MakeRoot(shared, "test"); err != nil {
		t.Fatal(err)
	}
	if first.RunsAs() { // as who lays inputs there does
		if err := os.Chown(filepath.Join(shared, workDir), first.UID, first.GID); err != nil {
			t.Fatal(err)
		}
	}
	all := make([]Spec, len(text))
	for i := range all {
		s := first
		s.Root = filepath.Join(dir, fmt.Sprintf("aaaaa@x-%d-1", i))
		if err := MakeRoot(s.Root, "test"); err != nil {
			t.Fatal(err)
		}
		s.Group, s.Shared, s.Args = "aaaaa@x", &Shared{Root: shared, Workers: len(text)}, []string{"/bin/sh", "-c", text[i]}
		if !cfg.Basic {
			s.At = Inside(s.Root)
		}
		s.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + filepath.Join(s.Seen(), tmpDir), "HOME=" + s.SeenWork()}
		all[i] = s
	}
	return all
}

// Workers with one work directory begin there, write there, and see what others write, also when
// one of them has ended; each has a TMPDIR of its own. Nothing is in the directories that they
// would have had.
func TestWorkersWithOneDirectory(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		const until = `until test -e $1; do sleep 0.01; done; `
		specs := sharers(t, cfg, spec,
			`echo 0 >from0; echo own >$TMPDIR/own; `+strings.ReplaceAll(until, "$1", "from1")+`/bin/pwd`,
			strings.ReplaceAll(until, "$1", "from0")+`echo 1 >$HOME/from1; ls $TMPDIR; `+strings.ReplaceAll(until, "$1", "gone")+`/bin/pwd; cat $HOME/from0; echo late >late`)
		all := startAt(t, probed(t, cfg), specs...)
		want := filepath.Join(specs[0].SeenWork())
		if cfg.Basic {
			want = realPath(t, want)
		}
		if e := await(t, all[0]); e.Code != 0 || output(t, all[0], work.Stdout) != want+"\n" {
			t.Errorf("%+v: %q%q", e, output(t, all[0], work.Stdout), output(t, all[0], work.Stderr))
		}
		dir := specs[0].Work()
		if err := os.WriteFile(filepath.Join(dir, "gone"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if e := await(t, all[1]); e.Code != 0 || output(t, all[1], work.Stdout) != want+"\n0\n" {
			t.Errorf("%+v: %q%q", e, output(t, all[1], work.Stdout), output(t, all[1], work.Stderr))
		}
		if b, err := os.ReadFile(filepath.Join(dir, "late")); err != nil || string(b) != "late\n" {
			t.Errorf("%q, %v", b, err)
		}
		for _, s := range specs {
			if left, err := os.ReadDir(filepath.Join(s.Root, workDir)); err != nil || len(left) > 0 {
				t.Errorf("%v, %v", left, err)
			}
		}
	})
}

// What workers share counts for each of them in equal parts, where one is looked for that takes
// too much and where room is to be made; who makes room takes it away.
func TestDiskOfOneDirectory(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		const write = `head -c 8388608 /dev/zero >&3; sync /dev/fd/3; echo ready; exec sleep 3600`
		specs := sharers(t, cfg, spec, `exec 3>file; `+write, `exec 3>gone; rm gone; `+write, `exec sleep 3600`)
		specs[2].Disk = 2 << 20 // of 8 MiB its part is more
		all := startAt(t, probed(t, cfg), specs...)
		if e := await(t, all[2]); e.Cause != work.Disk {
			t.Errorf("%+v", e)
		}
		for _, w := range all[:2] {
			awaitOutput(t, w, 6)
		}
		if got := Measure(deadline, []string{specs[0].Root, specs[1].Root}); got[0] < 5<<20 || got[0] > 6<<20 || got[1] < 5<<20 || got[1] > 6<<20 {
			t.Error(got)
		}
		all[0].Yield(16 << 20)
		if e := await(t, all[0]); e.Cause != work.Full {
			t.Errorf("%+v", e)
		}
		if left, err := os.ReadDir(specs[0].Work()); err != nil || len(left) > 0 {
			t.Errorf("%v, %v", left, err)
		}
	})
}

// A worker shares nothing but a root that lies beside its own.
func TestSharedDirectoriesThatAreRefused(t *testing.T) {
	root := newRoot(t)
	beside := filepath.Join(filepath.Dir(root), "beside")
	if err := MakeRoot(beside, "test"); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Shared{
		"elsewhere": {newRoot(t), 2}, "its own": {root, 2}, "no root": {filepath.Join(filepath.Dir(root), "none"), 2},
		"not clean": {beside + "/.", 2}, "of nobody": {beside, 0},
	} {
		spec := Spec{Root: root, Args: []string{"true"}, UID: -1, Shared: &s}
		if err := spec.Check(); !errors.Is(err, ErrSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
	spec := Spec{Root: root, Args: []string{"true"}, UID: -1, Shared: &Shared{beside, 2}}
	if err := spec.Check(); err != nil {
		t.Error(err)
	}
	spec.Tasks = &TaskSpec{IDs: []work.TaskIDs{{First: 1, Last: 1, Step: 1}}}
	if err := spec.Check(); !errors.Is(err, ErrSpec) {
		t.Errorf("of tasks: %v", err)
	}
}
