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

// A file of /etc may be a link to one that a service writes, by way of others.
func TestLinked(t *testing.T) {
	base, err := os.MkdirTemp("/var/tmp", "linked")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	in := func(name string) string { return filepath.Join(base, name) }
	for link, target := range map[string]string{"etc": "run/stub", "run": in("real"), "round": "round", "short": "/tmp/x"} {
		if err := os.Symlink(target, in(link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"etc": in("run/stub"), "run": in("real"), "short": "", "none": ""} {
		if got := strings.Join(linked(in(name)), " "); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got := linked(in("round")); len(got) != 8 {
		t.Errorf("a circle: %q", got)
	}
}

// What is shown of /dev is for reading and writing where the owner says so, and nothing
// can be made there.
func TestDevicesThatAreShown(t *testing.T) {
	for path, want := range map[string]uint64{"/dev/null": readRights, "/dev/full": deviceRights | listRights, "/dev/shm": 0} {
		var got uint64
		a := Access{Expose: []string{"/dev/null"}, Writable: []string{"/dev"}}
		if path == "/dev/full" {
			a.Writable = []string{path}
		}
		for _, r := range a.rules() {
			if r.path == path && r.direct {
				got |= r.rights
			}
		}
		if got &^= deviceRights &^ want; got != want { // null is among the devices of all
			t.Errorf("%s: %x, want %x", path, got, want)
		}
	}
}
