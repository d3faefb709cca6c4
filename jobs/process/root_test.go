package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/jobs/work"
)

// Whatever a worker leaves in the way, nothing outside of its root changes.
func TestRemovalFollowsNoLink(t *testing.T) {
	outside := t.TempDir()
	kept := filepath.Join(outside, "kept")
	if err := os.WriteFile(kept, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(outside, 0o750); err != nil {
		t.Fatal(err)
	}
	root := newRoot(t)
	top := filepath.Join(root, workDir)
	if err := errors.Join(os.Symlink(outside, filepath.Join(top, "dir")), os.Symlink(kept, filepath.Join(top, "file")), os.Link(kept, filepath.Join(top, "hard")),
		os.Mkdir(filepath.Join(top, "shut"), 0), unix.Mkfifo(filepath.Join(top, "fifo"), 0)); err != nil {
		t.Fatal(err)
	}
	if err := CleanRoot(root, nil); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{outside: 0o750, kept: 0o640} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want it as it was", path, info, err)
		}
	}
	swapped := filepath.Join(t.TempDir(), "root")
	if err := os.Symlink(outside, swapped); err != nil {
		t.Fatal(err)
	}
	if err := CleanRoot(swapped, nil); !errors.Is(err, ErrNotMade) {
		t.Errorf("a link instead of a root: %v", err)
	}
}

// What no node made is not removed.
func TestStrangersDirectoriesAreNotRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "thesis")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "t.tex"), []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := CleanRoot(dir, nil); !errors.Is(err, ErrNotMade) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "t.tex")); err != nil {
		t.Error(err)
	}
}

// A state directory that was copied belongs to another node, which must leave
// the processes and the sockets of the first one alone.
func TestWorkersOutliveACopyOfTheirRoot(t *testing.T) {
	root := newRoot(t)
	spec := Spec{Root: root, Args: []string{"/bin/sh", "-c", `echo running; ` + gateText + `echo done`}, UID: -1,
		Env: []string{"PATH=/usr/bin:/bin", "TMPDIR=" + filepath.Join(root, tmpDir)}}
	w := start(t, Config{}, spec)
	awaitOutput(t, w, 8)
	for name, end := range map[string]func(copied string) error{
		"clean": func(copied string) error { return CleanRoot(copied, nil) },
		"adopt": func(copied string) error {
			_, err := New(Config{}).Adopt(t.Context(), copied)
			if !errors.Is(err, ErrLost) {
				t.Errorf("adopt: %v", err)
			}
			return CleanRoot(copied, nil)
		},
	} {
		copied := filepath.Join(t.TempDir(), "root")
		if out, err := exec.Command("cp", "-a", root, copied).CombinedOutput(); err != nil {
			t.Fatal(string(out))
		}
		if owner, err := RootOwner(copied); owner != "test" || !errors.Is(err, ErrCopied) {
			t.Errorf("%s: the copy is of %q, %v", name, owner, err)
		}
		if err := end(copied); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(copied); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the copy is still there: %v", name, err)
		}
	}
	openGate(t, root)
	if e := await(t, w); e.Cause != work.Exited || e.Code != 0 || output(t, w, work.Stdout) != "running\ndone\n" {
		t.Errorf("%+v, %q", e, output(t, w, work.Stdout))
	}
}

// A root that was moved is still that of its processes.
func TestMovedRootIsNoCopy(t *testing.T) {
	root := newRoot(t)
	moved := root + ".moved"
	if err := os.Rename(root, moved); err != nil {
		t.Fatal(err)
	}
	if owner, err := RootOwner(moved); owner != "test" || err != nil {
		t.Errorf("%q, %v", owner, err)
	}
}

// The sockets lie where only the node can make them, whoever was quicker where
// everybody can, and however long the path is.
func TestControlSocketIsWhereOnlyTheNodeCanMakeIt(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	t.Setenv("XDG_RUNTIME_DIR", tmp)
	root := filepath.Join(t.TempDir(), strings.Repeat("long", 50))
	if err := MakeRoot(root, "test"); err != nil {
		t.Fatal(err)
	}
	w, err := New(Config{}).Start(t.Context(), Spec{Root: root, Args: []string{"/bin/sh", "-c", "echo running; exec sleep 1000"}, UID: -1})
	if err != nil {
		t.Fatal(err)
	}
	awaitOutput(t, w, 8)
	var spec Spec
	if err := loadSpec(root, &spec); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(spec.terms.Socket)
	if err != nil || info.Mode().Type() != os.ModeSocket || !strings.HasPrefix(spec.terms.Socket, root+"/") {
		t.Errorf("socket %s: %v, %v", spec.terms.Socket, info, err)
	}
	if dir, err := os.Stat(filepath.Dir(spec.terms.Socket)); err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("its directory: %v, %v", dir, err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("the directory for everybody holds %v, %v", left, err)
	}
	w.Leave()
	again := adopt(t, root)
	again.Stop(0, 0)
	if e := await(t, again); e.Cause != work.Stopped {
		t.Errorf("%+v", e)
	}
	if _, err := os.Lstat(spec.terms.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

// Whoever dies while it makes a root leaves nothing that is not known to be one.
func TestRootIsMadeOfItsMark(t *testing.T) {
	root := newRoot(t)
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if err := os.Remove(filepath.Join(root, entriesFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.InotifyAddWatch(watch, root, unix.IN_CREATE|unix.IN_MOVED_TO); err != nil {
		t.Fatal(err)
	}
	if err := MarkRoot(root, "test"); err != nil {
		t.Fatal(err)
	}
	events := make([]byte, 4096)
	n, err := unix.Read(watch, events)
	if name := strings.TrimRight(string(events[unix.SizeofInotifyEvent:n]), "\x00"); err != nil || name != entriesFile {
		t.Errorf("what was made is %q, %v", name, err)
	}
}

// A root can be laid out again without losing what is known of it.
func TestCleanRootKeeps(t *testing.T) {
	root := newRoot(t)
	if err := errors.Join(Note(root, "claim", []byte("mine"), false), Note(root, specEntry, nil, false), os.WriteFile(filepath.Join(root, "work", "input"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := CleanRoot(root, nil, "claim", "none"); err != nil {
			t.Fatal(err)
		}
		var left []string
		if err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			left = append(left, strings.TrimPrefix(path, root))
			return err
		}); err != nil || !slices.Equal(left, []string{"", "/entries", "/work"}) {
			t.Errorf("left: %q, %v", left, err)
		}
		if owner, err := RootOwner(root); owner != "test" || err != nil {
			t.Errorf("it is of %q, %v", owner, err)
		}
		if claim, err := Noted(root, "claim"); string(claim) != "mine" || err != nil || isNoted(root, specEntry) {
			t.Errorf("noted is %q, %v", claim, err)
		}
	}
	if err := Forget(root, "claim"); err != nil || isNoted(root, "claim") || !isNoted(root, markEntry) {
		t.Errorf("forgotten: %v", err)
	}
}

// stick is a helper: it tries to make a file that nobody can remove, and shuts all that
// it has made.
func stick(args []string) int {
	for _, name := range args {
		f, err := os.Open(name)
		if err != nil {
			fmt.Println(err)
			return 2
		}
		for _, flag := range []int{unix.STATX_ATTR_IMMUTABLE, unix.STATX_ATTR_APPEND} { // the same bits
			if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flag); err == nil {
				fmt.Println(name, "sticks")
			}
		}
		if err := errors.Join(f.Close(), os.Chmod(name, 0)); err != nil {
			fmt.Println(err)
			return 2
		}
	}
	return 0
}

// No worker can make files that stay.
func TestFilesThatAreToStay(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		s := spec("stick", "dir/file", "dir", ".")
		if err := errors.Join(os.Mkdir(filepath.Join(s.Root, workDir, "dir"), 0o777), os.WriteFile(filepath.Join(s.Root, workDir, "dir/file"), nil, 0o666)); err != nil {
			t.Fatal(err)
		}
		if e, out, stderr := run(t, cfg, s); e.Code != 0 || out != "" {
			t.Errorf("%+v %q %q", e, out, stderr)
		}
		if err := CleanRoot(s.Root, nil); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(s.Root); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("its directory is left: %v", err)
		}
	})
}
