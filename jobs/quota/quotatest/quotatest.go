// Package quotatest has a file system with project quotas for tests.
package quotatest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Mount returns a directory in a new ext4 file system of 512 MiB. Where the kernel, or the
// user, cannot have one with quotas of projects, it is an ordinary directory, without any.
func Mount(t testing.TB) (dir string, quotas bool) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "quotas")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return dir, false
	}
	image := dir + ".img"
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 512<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-O", "quota,project", image).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command("mount", "-t", "ext4", "-o", "loop,prjquota", image, dir).CombinedOutput(); err != nil {
		if os.Getenv("ZORILLA_QUOTAS") != "" { // the machine is one that has them
			t.Fatalf("%s", out)
		}
		t.Logf("no file system with quotas: %s", out)
		return dir, false
	}
	t.Cleanup(func() { // a supervisor may still be there for a moment
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return dir, true
}
