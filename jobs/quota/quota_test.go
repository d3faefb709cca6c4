package quota

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/jobs/quota/quotatest"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// asWorker writes as who has no powers over quotas.
func asWorker(t *testing.T, path string, size int) error {
	t.Helper()
	var caps [2]unix.CapUserData
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	done := make(chan error)
	go func() { // the thread is not used again
		runtime.LockOSThread()
		err := unix.Capget(&head, &caps[0])
		if err == nil {
			caps[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
			err = unix.Capset(&head, &caps[0])
		}
		if err == nil {
			err = os.WriteFile(path, make([]byte, size), 0o644)
		}
		done <- err
	}()
	return <-done
}

func TestQuota(t *testing.T) {
	dir, has := quotatest.Mount(t)
	if got := Works(filepath.Join(dir, "not", "there")); got != has {
		t.Errorf("quotas work: %v, want %v", got, has)
	}
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	must(t, os.MkdirAll(filepath.Join(a, "sub"), 0o755), os.Mkdir(b, 0o755))
	must(t, os.WriteFile(filepath.Join(a, "sub", "input"), make([]byte, 1<<20), 0o644), os.Symlink("/none", filepath.Join(a, "link")), unix.Mkfifo(filepath.Join(a, "pipe"), 0o600))
	q, err := New(dir, 4<<20, a, b)
	if !has {
		if !errors.Is(err, ErrNone) || Of(a) != nil {
			t.Errorf("%v, %v", err, Of(a))
		}
		return
	}
	must(t, err)
	uses := func(least, most int64) {
		t.Helper()
		for _, q := range []*Quota{q, Of(a), Of(b)} {
			if used, may, err := q.Used(); err != nil || used < least || used > most || may != 4<<20 {
				t.Errorf("%d of %d, %v, want %d to %d", used, may, err, least, most)
			}
		}
	}
	uses(1<<20, 1<<20+64<<10)
	must(t, asWorker(t, filepath.Join(b, "one"), 1<<20))
	uses(2<<20, 2<<20+64<<10)
	f, err := os.Open(filepath.Join(b, "one"))
	must(t, err, os.Remove(f.Name()))
	uses(2<<20, 2<<20+64<<10)
	if err := asWorker(t, filepath.Join(a, "sub", "big"), 4<<20); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("too much: %v", err)
	}
	uses(3<<20, 4<<20)
	must(t, f.Close())
	outside := filepath.Join(dir, "outside")
	must(t, os.WriteFile(outside, nil, 0o644))
	if err := os.Rename(outside, filepath.Join(a, "outside")); !errors.Is(err, unix.EXDEV) {
		t.Errorf("from outside: %v", err)
	}
	must(t, os.Rename(filepath.Join(a, "sub", "input"), filepath.Join(b, "input")), os.Rename(filepath.Join(b, "input"), filepath.Join(dir, "input")))
	other, err := New(dir, 1<<20, filepath.Join(dir, "b"))
	if err == nil && other.id == q.id {
		t.Error("two have the same project")
	}
	must(t, q.Remove(), other.Remove())
	must(t, asWorker(t, filepath.Join(a, "big"), 8<<20), os.RemoveAll(a), os.RemoveAll(b))
	if used, may, err := q.Used(); used > 1<<20+64<<10 || may != 0 || err != nil { // the input that was moved away
		t.Errorf("%d of %d, %v", used, may, err)
	}
}

// What the administrator has put into a project stays there.
// A file that leaves counts no more, and can go where another project is made around it.
func TestFileLeavesItsProject(t *testing.T) {
	dir, has := quotatest.Mount(t)
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	must(t, os.Mkdir(a, 0o755), os.Mkdir(b, 0o755), os.WriteFile(filepath.Join(a, "input"), make([]byte, 1<<20), 0o644))
	if !has {
		f, err := os.Open(filepath.Join(a, "input"))
		must(t, err, Leave(f), f.Close())
		return
	}
	q, err := New(dir, 4<<20, a)
	must(t, err)
	must(t, os.Rename(filepath.Join(a, "input"), filepath.Join(dir, "input")))
	f, err := os.Open(filepath.Join(dir, "input"))
	must(t, err, Leave(f), f.Sync(), f.Close())
	if used, _, err := q.Used(); err != nil || used >= 1<<20 {
		t.Errorf("%d bytes count (%v)", used, err)
	}
	must(t, os.Rename(filepath.Join(dir, "input"), filepath.Join(b, "input")))
	other, err := New(dir, 4<<20, b)
	must(t, err)
	if used, _, err := other.Used(); err != nil || used < 1<<20 {
		t.Errorf("%d bytes count where it is now (%v)", used, err)
	}
}

func TestProjectOfOthers(t *testing.T) {
	dir, has := quotatest.Mount(t)
	own := filepath.Join(dir, "own")
	must(t, os.MkdirAll(filepath.Join(own, "work"), 0o755))
	if !has {
		return // TestQuota shows that nothing is done then
	}
	f, err := os.Open(own)
	must(t, err, assign(f, 42, true), f.Close())
	if q, err := New(own, 1<<20, filepath.Join(own, "work")); !errors.Is(err, ErrNone) || Works(own) {
		t.Errorf("%v, %v", q, err)
	}
	if Of(own) != nil {
		t.Error("a project of others is taken for an own one")
	}
}
