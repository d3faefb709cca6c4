package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"zorilla/internal/atomicfile"
)

// The file is durable before it has its name, and then the name is.
func TestFileIsDurableBeforeItHasItsName(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := atomicfile.Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	var steps []string
	how := atomicfile.How{Sync: func(f *os.File) error {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		what := "file"
		if f.Name() == dir {
			what = "directory"
		}
		steps = append(steps, what+" while it is "+string(b))
		return nil
	}}
	if err := how.Write(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"file while it is old", "directory while it is new"}; !slices.Equal(steps, want) {
		t.Errorf("synced %q, want %q", steps, want)
	}
}

func TestWhatFailsLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := atomicfile.Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		how  atomicfile.How
		want error
	}{
		"sync fails":     {atomicfile.How{Sync: func(*os.File) error { return syscall.EIO }}, syscall.EIO},
		"it is there":    {atomicfile.How{New: true}, fs.ErrExist},
		"nowhere to go":  {atomicfile.How{Temp: filepath.Join(dir, "none")}, fs.ErrNotExist},
		"all as it is":   {atomicfile.How{}, nil},
		"beside, loose":  {atomicfile.How{Temp: t.TempDir(), Loose: true}, nil},
		"open to others": {atomicfile.How{Mode: 0o644}, nil},
	} {
		want := "old"
		if c.want == nil {
			want = name
		}
		if err := c.how.Write(path, []byte(name)); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		b, err := os.ReadFile(path)
		info, _ := os.Stat(path)
		if c.want == nil && (string(b) != want || info.Mode().Perm() != max(c.how.Mode, 0o600)) || err != nil || strings.HasPrefix(string(b), "sync") {
			t.Errorf("%s: the file holds %q with mode %v, %v", name, b, info.Mode(), err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("unfinished files are left: %v", left)
	}
	fresh := filepath.Join(dir, "fresh")
	if err := (atomicfile.How{New: true}).Write(fresh, []byte("first")); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(fresh); string(b) != "first" {
		t.Errorf("got %q", b)
	}
}
