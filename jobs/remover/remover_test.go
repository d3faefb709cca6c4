package remover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/needs"
)

// nest makes that many directories, one in the other, with a file and a closed directory
// in some.
func nest(t *testing.T, dir string, levels int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for i := range levels {
		if err != nil {
			t.Fatal(err)
		}
		err = unix.Mkdirat(at, "out.d", 0o755)
		if i%500 == 0 {
			err = errors.Join(err, unix.Mkdirat(at, ".removed-1", 0o755), unix.Mkdirat(at, "shut", 0), unix.Mknodat(at, "file", unix.S_IFREG, 0))
		}
		if err == nil {
			var next int
			next, err = unix.Openat(at, "out.d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			unix.Close(at)
			at = next
		}
	}
	unix.Close(at)
}

// fill makes files, a hundred in each directory, of which some are shut.
func fill(t testing.TB, dir string, files int) {
	t.Helper()
	for i := range files {
		sub := filepath.Join(dir, fmt.Sprint(i/100))
		if i%100 == 0 {
			if err := os.Mkdir(sub, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(i)), nil, 0o400); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 99 {
			if err := os.Chmod(sub, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// More entries than are read before the first of them goes.
func TestManyInOneDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root")
	for _, at := range []string{dir, filepath.Join(dir, "sub")} {
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range removeBatch + 1 {
			if err := os.Mkdir(filepath.Join(at, fmt.Sprint(i)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Remove(dir, nil, "7", "8"); err != nil {
		t.Error(err)
	}
	gone(t, dir)
}

func gone(t testing.TB, dir string) {
	t.Helper()
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// A tree may be deeper than a process may have files open, and than a path may be long.
func TestDeepTree(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "deep") // a disk would have its own work with it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	nest(t, dir, 20_000)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = 100
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	err = Remove(dir, nil)
	if e := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); e != nil {
		t.Fatal(e)
	}
	if err != nil {
		t.Fatalf("%.300s", err)
	}
	gone(t, dir)
}

// What is small goes at once; what is large, one after the other, by a thread that makes
// way for others.
func TestBin(t *testing.T) {
	dir := t.TempDir()
	b := NewBackground()
	for name, files := range map[string]int{"small": quickly / 4, "large": quickly + 100} {
		root := filepath.Join(dir, name)
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		fill(t, root, files)
		var nice []int
		if err := b.Run(t.Context(), func(pace Pace) error {
			n, err := niceness()
			nice = append(nice, n)
			return errors.Join(err, Remove(root, pace))
		}); err != nil {
			t.Fatal(err)
		}
		gone(t, root)
		want := nice[:1]
		if name == "large" {
			want = append(want, min(nice[0]+lowly, 19))
		}
		if !slices.Equal(nice, want) {
			t.Errorf("%s: niceness %v, want %v", name, nice, want)
		}
	}
}

// A large tree holds others up no longer than its node is there, and pauses as long as it
// works.
func TestBinLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBackground()
		ctx, cancel := context.WithCancel(t.Context())
		began, slept := time.Now(), time.Duration(0)
		large := func(pace Pace) error {
			for calls := 1; ; calls++ {
				if err := pace(); err != nil {
					return err
				}
				if calls > quickly { // it is not quick any more
					time.Sleep(burst)
					slept += burst
				}
			}
		}
		ends := make(chan error)
		for range 2 {
			go func() { ends <- b.Run(ctx, large) }()
		}
		if err := b.Run(ctx, func(pace Pace) error { return pace() }); err != nil {
			t.Errorf("a small one: %v", err)
		}
		time.Sleep(10 * time.Second)
		cancel()
		for range 2 {
			if err := <-ends; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if all := time.Since(began); slept < all/3 || slept > all*2/3 {
			t.Errorf("worked for %v of %v", slept, all)
		}
	})
}

// What somebody has mounted in a tree is not its own.
func TestMountsStay(t *testing.T) {
	needs.Root(t)
	dir, kept := t.TempDir(), t.TempDir()
	point := filepath.Join(dir, "a", "point")
	if err := errors.Join(os.MkdirAll(point, 0o755), os.WriteFile(filepath.Join(kept, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { // its thread, and with that the namespace, ends with it
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "")
		}
		if err == nil {
			err = unix.Mount(kept, point, "", unix.MS_BIND, "")
		}
		done <- err
		if err == nil {
			done <- Remove(dir, nil)
		}
	}()
	if err := <-done; errors.Is(err, unix.EPERM) { // a container
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "point: something is mounted there") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(filepath.Join(kept, "file")); err != nil {
		t.Error(err)
	}
}

// One at a time has a tree.
func TestEnter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBackground()
		leave := b.Enter("a")
		b.Enter("b")()
		began := time.Now()
		go func() {
			time.Sleep(time.Second)
			leave()
		}()
		b.Wait("a")
		if took := time.Since(began); took != time.Second {
			t.Errorf("waited %v", took)
		}
		b.Wait("a")
	})
}
