package executor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
)

// What a worker has put in the place of its files is replaced, never followed.
func TestHostFileIsNotWrittenThroughALink(t *testing.T) {
	root := t.TempDir()
	if err := writeTable(root, "a\n", 1); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{wire.HostFileName, wire.EpochFileName, wire.HostFileName + ".new"} {
		path := filepath.Join(root, "tmp", name)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(secret, path); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeTable(root, "10.0.0.9 slots=1\n", 2); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{wire.HostFileName: "10.0.0.9 slots=1\n", wire.EpochFileName: "2\n"} {
		if b, err := os.ReadFile(filepath.Join(root, "tmp", name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "kept" {
		t.Errorf("another file was changed: %q, %v", b, err)
	}
}

// Workers that begin with the same table share its files; what one is told later, or puts
// in their place, is not for others.
func TestTablesAreShared(t *testing.T) {
	dir := t.TempDir()
	all := tables{made: map[jobs.ID]madeTable{}}
	root := func(name string) string {
		r := filepath.Join(dir, name)
		if err := os.MkdirAll(r, 0o755); err != nil {
			t.Fatal(err)
		}
		return r
	}
	inode := func(name string) uint64 {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(dir, name, "tmp", wire.HostFileName), &st); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}
	written := 0
	topology := func() string {
		written++
		return "groups\n"
	}
	give := func(name string, job jobs.ID, hosts string, epoch int64) {
		t.Helper()
		if err := all.give(root(name), job, hosts, epoch, topology); err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]string{wire.HostFileName: hosts, wire.EpochFileName: fmt.Sprintln(epoch), wire.TopologyFileName: "groups\n"} {
			if b, err := os.ReadFile(filepath.Join(dir, name, "tmp", file)); err != nil || string(b) != want {
				t.Errorf("%s of %s: %q, %v", file, name, b, err)
			}
		}
	}
	give("a", "job", "one\n", 1)
	if err := os.Remove(filepath.Join(dir, "a", "tmp", wire.HostFileName)); err != nil {
		t.Fatal(err)
	}
	give("b", "job", "one\n", 1)
	give("c", "job", "one\n", 1)
	if inode("b") != inode("c") || written > 2 { // that of a was removed
		t.Errorf("two have files of their own: the topology was written %d times", written)
	}
	if err := writeTable(filepath.Join(dir, "b"), "two\n", 2); err != nil {
		t.Fatal(err)
	}
	give("d", "job", "one\n", 1)
	give("e", "job", "two\n", 2)
	give("f", "other", "two\n", 2)
	if inode("e") == inode("b") || inode("e") == inode("f") || inode("d") != inode("c") {
		t.Error("files are shared that should not be")
	}
	if err := os.RemoveAll(filepath.Join(dir, "e")); err != nil {
		t.Fatal(err)
	}
	give("g", "job", "two\n", 2)
	all.forget("job")
	if len(all.made) != 1 {
		t.Errorf("%d jobs are known", len(all.made))
	}
}

// A table without hosts is no other one's: nothing is linked from where the node happens
// to be.
func TestTableOfNobodyIsNotShared(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile(wire.HostFileName, []byte("the owner's"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	all := tables{made: map[jobs.ID]madeTable{}}
	if err := all.give(root, "job", "", 0, nil); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(root, "tmp", wire.HostFileName)); err != nil || len(b) > 0 {
		t.Errorf("got %q, %v", b, err)
	}
}
