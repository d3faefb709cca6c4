package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadable(t *testing.T) {
	base := resolve(t.TempDir())
	for _, d := range []string{"a/state/x", "a/prog", "a/deep/er", "b", "ab"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(base, "a/state"), filepath.Join(base, "a/link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, hide, want string }{
		{"b", "", "b"},
		{"none", "", "none"},
		{"a", "b", "a"},
		{"ab", "a", "ab"},
		{"a", "a", ""},
		{"a/state/x", "a/state", ""},
		{"a/link", "a/state", ""},
		{"a", "a/state", "a/deep a/prog"},
		{"", "a/state a/deep/er", "a/prog ab b"},
	} {
		var hide, got []string
		for _, h := range strings.Fields(c.hide) {
			hide = append(hide, filepath.Join(base, h))
		}
		for _, p := range around(resolve(filepath.Join(base, c.path)), hide) {
			rel, err := filepath.Rel(base, p)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rel)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q without %q: got %q, want %q", c.path, c.hide, got, c.want)
		}
	}
}

// A path that had no links in it when it was looked at may have some now: it is not what
// was meant then.
func TestDirectPathsFollowNoLinks(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "there"), 0o755), os.Symlink("there", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	if _, err := openDirect(filepath.Join(dir, "link")); !errors.Is(err, unix.ELOOP) {
		t.Errorf("to be mounted: %v", err)
	}
	for direct, want := range map[bool]error{true: nil, false: unix.EBADF} { // no rule, or one for no set
		if err := addRule(-1, rule{filepath.Join(dir, "link"), readRights, direct}, readRights); !errors.Is(err, want) {
			t.Errorf("to be opened, direct %v: %v, want %v", direct, err, want)
		}
	}
}
