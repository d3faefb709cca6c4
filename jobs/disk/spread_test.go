package disk

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/internal/needs"
)

// Where there is a journal a directory is left as it is.
func TestDirectoriesAreSpreadWithoutAJournal(t *testing.T) {
	for options, want := range map[string]bool{"^has_journal": true, "has_journal": false} {
		t.Run(options, func(t *testing.T) {
			dir := mountExt4(t, options)
			for range 2 { // the second time it is so
				Spread(dir)
				if got := isSpread(t, dir); got != want {
					t.Errorf("spread: %t, want %t", got, want)
				}
			}
		})
	}
	Spread(filepath.Join(t.TempDir(), "missing"))
	Spread("/proc") // has no flags
}

func isSpread(t *testing.T, dir string) bool {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		t.Fatal(err)
	}
	return flags&topDir != 0
}

// mountExt4 makes a small file system.
func mountExt4(t *testing.T, options string) string {
	t.Helper()
	needs.Root(t)
	dir := t.TempDir()
	image, at := filepath.Join(dir, "image"), filepath.Join(dir, "mounted")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{
		{"truncate", "-s", "64M", image}, {"mkfs.ext4", "-q", "-F", "-O", options, image},
		{"mkdir", at}, {"mount", "-t", "ext4", "-o", "loop", image, at},
	} {
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", words, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return at
}
