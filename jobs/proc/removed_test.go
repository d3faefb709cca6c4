package proc

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// nameless opens a file of so many bytes that has no name any more.
func nameless(t *testing.T, dir string, size int) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	return f
}

// ofSelf looks at this process, for files in two directories.
func ofSelf(t *testing.T) (r *Removed, a, b string) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	owner := func(path string) string {
		rel, ok := strings.CutPrefix(path, dir+"/")
		name, _, _ := strings.Cut(rel, "/")
		if !ok {
			return ""
		}
		return name
	}
	return NewRemoved(func() []int { return []int{os.Getpid()} }, owner, dir), filepath.Join(dir, "a"), filepath.Join(dir, "b")
}

func TestRemoved(t *testing.T) {
	r, a, b := ofSelf(t)
	want := func(what string, a, b int64) {
		t.Helper()
		r.Pass(time.Minute)
		for name, want := range map[string]int64{"a": a, "b": b, "c": 0} {
			if got, _ := r.Of(name, false); got != want {
				t.Errorf("%s: %s has %d, want %d", what, name, got, want)
			}
		}
	}
	want("nothing", 0, 0)
	f := nameless(t, a, 1<<20)
	nameless(t, b, 2<<20)
	nameless(t, t.TempDir(), 4<<20)
	want("open", 1<<20, 2<<20)
	twice, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	want("open twice", 1<<20, 2<<20)
	_ = f.Close()
	want("still open", 1<<20, 2<<20)
	_ = unix.Close(twice)
	want("closed", 0, 2<<20)
	named, err := os.Create(filepath.Join(a, "x (deleted)"))
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	if _, err := named.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	_ = named.Sync()
	want("called so", 0, 2<<20)
}

// A thread may have descriptors that the process has not.
func TestDescriptorsOfAThread(t *testing.T) {
	r, a, _ := ofSelf(t)
	done, ended := make(chan struct{}), make(chan struct{})
	ready := make(chan error)
	var hold func()
	hold = func() {
		runtime.LockOSThread() // which ends with this
		if unix.Gettid() == os.Getpid() {
			go hold()
			<-ended
			return
		}
		defer close(ended)
		err := unix.Unshare(unix.CLONE_FILES)
		var fd int
		if err == nil {
			fd, err = unix.Open(a, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		}
		if err == nil {
			_, err = unix.Write(fd, make([]byte, 1<<20))
		}
		if err == nil {
			err = unix.Fsync(fd)
		}
		ready <- err
		<-done
	}
	go hold()
	err := <-ready
	r.Pass(time.Minute)
	got, _ := r.Of("a", false)
	close(done)
	<-ended
	if err != nil || got != 1<<20 {
		t.Errorf("%d, %v", got, err)
	}
}

// However many descriptors there are, a round is bounded, and the next one goes on.
func TestRoundsAreBounded(t *testing.T) {
	r, a, _ := ofSelf(t)
	f := nameless(t, a, 1<<20)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	many := min(2*roundSteps+500, int(limit.Cur)-200)
	if many < roundSteps+500 {
		t.Fatalf("only %d descriptors are to be had", limit.Cur)
	}
	for range many {
		fd, err := unix.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	rounds := 0
	for begun := (time.Time{}); begun.IsZero(); rounds++ {
		begin := time.Now()
		var got int64
		got, begun = r.Of("a", true)
		t.Logf("round %d: %v", rounds, time.Since(begin))
		if want := map[bool]int64{false: 1 << 20}[begun.IsZero()]; got != want {
			t.Errorf("round %d: %d, want %d", rounds, got, want)
		}
	}
	if want := many/roundSteps + 1; rounds != want {
		t.Errorf("%d rounds for %d descriptors, want %d", rounds, many, want)
	}
}

func TestMappings(t *testing.T) {
	long := strings.Repeat("/long", 5000)
	text := "55550000-55551000 r-xp 00000000 fe:00 1   /bin/sh\n" +
		"00400000-00401000 rw-s 00000000 fe:00 2   /d/a file (deleted)\n" +
		"7f0000-7f1000 rw-p 00000000 00:00 0 \n7f2000-7f3000 rw-p 00000000 00:00 0    [heap]\n" +
		"7f4000-7f5000 rw-s 00000000 fe:00 3   " + long + " (deleted)\n7f6000-7f7000 rw-s 00000000 fe:00 2   /b (deleted)\n"
	m := &mappings{file: os.NewFile(^uintptr(0), ""), lines: bufio.NewReaderSize(strings.NewReader(text), 4096)}
	for _, want := range [][2]string{{}, {"/d/a file", "400000-401000"}, {}, {}, {long, "7f4000-7f5000"}, {"/b", "7f6000-7f7000"}} {
		path, link, ok := m.next()
		if !ok || !strings.HasPrefix(want[0], string(path)) || link != want[1] || (len(path) == 0) != (want[0] == "") {
			t.Errorf("%q %q %v, want %q", path, link, ok, want)
		}
	}
	if _, _, ok := m.next(); ok {
		t.Error("there is more")
	}
}
