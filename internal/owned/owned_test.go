package owned

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zorilla/internal/needs"
)

func TestFileAndWay(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "project/mine")
	for name, c := range map[string]struct {
		change func() error
		want   string // in the error of either
	}{
		"as it should be":  {func() error { return nil }, ""},
		"a group writes":   {func() error { return os.Chmod(dir, 0o770) }, "chmod go-w " + dir},
		"everybody writes": {func() error { return os.Chmod(dir, 0o707) }, "chmod go-w " + dir},
		"a group above":    {func() error { return os.Chmod(filepath.Dir(dir), 0o775) }, ""},
		"everybody above":  {func() error { return os.Chmod(filepath.Dir(dir), 0o757) }, "chmod o-w " + filepath.Dir(dir)},
		"as in /tmp":       {func() error { return os.Chmod(filepath.Dir(dir), 0o777|os.ModeSticky) }, ""},
		"a link": {func() error {
			return errors.Join(os.Rename(dir, filepath.Join(top, "real")), os.Symlink(filepath.Join(top, "real"), dir))
		}, ""},
		"nothing": {func() error { return os.Remove(dir) }, "no such file"},
	} {
		if err := errors.Join(os.RemoveAll(filepath.Join(top, "project")), os.RemoveAll(filepath.Join(top, "real")), os.MkdirAll(dir, 0o700), c.change()); err != nil {
			t.Fatal(err)
		}
		err := Way(dir)
		if _, fail := os.Stat(dir); fail == nil {
			t.Chdir(dir)
			if here := Way("."); (here == nil) != (err == nil) {
				t.Errorf("%s: as the current directory: %v", name, here)
			}
			t.Chdir(top)
		}
		if info, fail := os.Stat(dir); err == nil && fail == nil {
			err = File(dir, info)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFilesOfOthers(t *testing.T) {
	needs.Root(t)
	const somebody = 1234
	top := t.TempDir()
	dir, link := filepath.Join(top, "theirs/mine"), filepath.Join(top, "link")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chown(filepath.Dir(dir), somebody, somebody), os.Mkdir(filepath.Join(top, "own"), 0o700), os.Symlink("own", link), os.Lchown(link, somebody, somebody)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Dir(dir), link} {
		if err := Way(path); err == nil || !strings.Contains(err.Error(), "belongs to user 1234") {
			t.Errorf("%s: %v", path, err)
		}
	}
	info, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := File("x", info); err == nil || err.Error() != "x belongs to user 1234, and you are 0" {
		t.Error(err)
	}
}
