package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Root looks at files with a user's eyes, and with its own again afterwards, whatever
// groups it has.
func TestAsUser(t *testing.T) {
	dir := t.TempDir()
	for p := dir; p != os.TempDir() && len(p) > 1; p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	modes := map[string]fs.FileMode{"own": 0o600, "group": 0o640, "all": 0o644}
	for name, mode := range modes {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	opens := func() (names []string) {
		for name := range modes {
			f, err := os.Open(filepath.Join(dir, name))
			if err == nil {
				_ = f.Close()
				names = append(names, name)
			} else if !errors.Is(err, fs.ErrPermission) {
				t.Error(err)
			}
		}
		slices.Sort(names)
		return names
	}
	everything := []string{"all", "group", "own"}
	want := everything // of who is not root, and stays who it is
	if os.Geteuid() == 0 {
		want = []string{"all"}
		before, err := unix.Getgroups()
		if err == nil {
			err = unix.Setgroups([]int{0, 7})
		}
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Setgroups(before)
	}
	var got []string
	if err := AsUser(65534, 65534, func() { got = opens() }); err != nil || !slices.Equal(got, want) {
		t.Errorf("as a user: %q, %v, want %q", got, err, want)
	}
	groups, err := unix.Getgroups()
	if got = opens(); !slices.Equal(got, everything) || err != nil || os.Geteuid() == 0 && !slices.Equal(groups, []int{0, 7}) {
		t.Errorf("afterwards: %q, groups %v, %v", got, groups, err)
	}
}
