package disk

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// enough is a limit that no test reaches.
const enough = math.MaxInt64

func write(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.WriteFile(path, slices.Repeat([]byte("x"), size), 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// grown is how much more a directory takes after something was done.
func grown(t *testing.T, dir string, do func()) int64 {
	t.Helper()
	before := Used(enough, dir)
	do()
	unix.Sync() // blocks are allocated late
	return Used(enough, dir) - before
}

func TestUsed(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "big"), 8<<20)
	for _, test := range []struct {
		what     string
		do       func()
		from, to int64
	}{
		{"a file", func() { write(t, filepath.Join(dir, "a"), 1<<20) }, 1 << 20, 1<<20 + 64<<10},
		{"another name of it", func() { must(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b"))) }, 0, 8 << 10},
		{"a sparse file", func() {
			write(t, filepath.Join(dir, "sparse"), 4096)
			must(t, os.Truncate(filepath.Join(dir, "sparse"), 1<<30))
		}, 4096, 64 << 10},
		{"links to what is outside", func() {
			must(t, os.Symlink(outside, filepath.Join(dir, "out")), os.Symlink(filepath.Join(outside, "big"), filepath.Join(dir, "big")))
		}, 0, 16 << 10},
		{"a pipe", func() { must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600)) }, 0, 8 << 10},
		{"a file below", func() {
			must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
			write(t, filepath.Join(dir, "sub", "c"), 2<<20)
		}, 2 << 20, 2<<20 + 64<<10},
	} {
		if got := grown(t, dir, test.do); got < test.from || got > test.to {
			t.Errorf("%s takes %d bytes, want %d to %d", test.what, got, test.from, test.to)
		}
	}
	if got := Used(enough, filepath.Join(dir, "none")); got != 0 {
		t.Errorf("what does not exist takes %d", got)
	}
	if got := Used(enough, filepath.Join(dir, "out")); got != 0 {
		t.Errorf("a link takes %d", got)
	}
	if got := Used(1000, dir); got <= 1000 {
		t.Errorf("it stops at %d", got)
	}
}

// nest makes directories, one in the other, and writes a file into the last one and
// into some that are deep.
func nest(t *testing.T, dir string, levels int) {
	t.Helper()
	at, err := unix.Open(dir, dirOnly, 0)
	must(t, err)
	for i := range levels {
		must(t, unix.Mkdirat(at, "d", 0o755))
		next, err := unix.Openat(at, "d", dirOnly, 0)
		must(t, err)
		unix.Close(at)
		if at = next; i == levels-1 || i%1000 == 500 { // beside the way down, too
			for k := range 300 {
				must(t, unix.Mkdirat(at, fmt.Sprintf("side%d", k), 0o755))
			}
			fd, err := unix.Openat(at, "side7/file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
			must(t, err, unix.Fallocate(fd, 0, 0, 1<<20), unix.Close(fd))
		}
	}
	unix.Close(at)
}

// descriptors is how many this process has.
func descriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(names)
}

// A worker may nest directories deeper than a path may be long, or descriptors go.
func TestDeepTreesAreCounted(t *testing.T) {
	dir := t.TempDir()
	const levels = 3000
	nest(t, dir, levels)
	t.Cleanup(func() { flatten(t, dir) })
	before := descriptors(t)
	var limit, few unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	few = limit
	few.Cur = uint64(before + openDirs + 8)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	got := Used(enough, dir)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	// 3 and the last one, each of 1 MiB
	if got < 4<<20 || got > 4<<20+2*(levels+4*301)*4096 {
		t.Errorf("a deep tree takes %d bytes", got)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// flatten makes a deep tree one that the tests can remove.
func flatten(t *testing.T, dir string) {
	top, err := unix.Open(dir, dirOnly, 0)
	must(t, err)
	defer unix.Close(top)
	for i := 0; unix.Renameat(top, "d", top, fmt.Sprint("t", i)) == nil; i++ {
		if unix.Renameat(top, fmt.Sprint("t", i, "/d"), top, "d") != nil {
			return
		}
	}
}

// Directories that the owner shuts are counted, and shut again. For root none is shut.
func TestShutDirectories(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	dir := t.TempDir()
	modes := map[string]os.FileMode{"shut": 0, "list": 0o400, "pass": 0o100, "sticky": 0o1000 | 0o300}
	for name, mode := range modes {
		sub := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Join(sub, "below"), 0o755))
		write(t, filepath.Join(sub, "below", "file"), 1<<20)
		must(t, unix.Chmod(filepath.Join(sub, "below"), 0), unix.Chmod(sub, uint32(mode)))
		t.Cleanup(func() {
			must(t, unix.Chmod(sub, 0o755), unix.Chmod(filepath.Join(sub, "below"), 0o755))
		})
	}
	unix.Sync()
	if got := Used(enough, dir); got < 4<<20 || got > 5<<20 {
		t.Errorf("shut directories take %d", got)
	}
	for name, mode := range modes {
		var st unix.Stat_t
		must(t, unix.Stat(filepath.Join(dir, name), &st))
		if st.Mode&0o7777 != uint32(mode) {
			t.Errorf("%s has mode %o, had %o", name, st.Mode&0o7777, mode)
		}
	}
}

// What changes while it is counted, makes a walk neither fail nor last.
func TestTreeThatChanges(t *testing.T) {
	dir := t.TempDir()
	nest(t, dir, 200)
	write(t, filepath.Join(dir, "kept"), 1<<20)
	unix.Sync()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		a, b := filepath.Join(dir, "d"), filepath.Join(dir, "moved")
		deep := filepath.Join(dir, "d/d/d/d")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(deep, b)
			_ = os.Rename(b, deep)
			_ = os.Rename(a, b)
			_ = os.Rename(b, a)
			name := filepath.Join(dir, fmt.Sprint("x", i%50))
			_ = os.Mkdir(name, 0o755)
			_ = os.Symlink("/", filepath.Join(name, "root"))
			_ = os.RemoveAll(name)
		}
	}()
	before := descriptors(t)
	for range 40 {
		if got := Used(enough, dir); got < 1<<20 || got > 64<<20 {
			t.Fatalf("it takes %d", got)
		}
	}
	close(stop)
	<-ended
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func TestPace(t *testing.T) {
	for _, test := range []struct {
		room      int64
		cpu, took time.Duration
		want      time.Duration
	}{
		{100 << 30, 0, 0, time.Second},
		{512 << 20, 0, 0, 500 * time.Millisecond},
		{1 << 20, time.Millisecond, time.Millisecond, 100 * time.Millisecond},
		{-5, 0, 0, 100 * time.Millisecond},
		{1 << 20, 100 * time.Millisecond, time.Second, 2 * time.Second},
		{100 << 30, 200 * time.Millisecond, 210 * time.Millisecond, 3800 * time.Millisecond},
	} {
		if got := pace(test.room, test.cpu, test.took); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

func TestSoon(t *testing.T) {
	for room, want := range map[int64]time.Duration{100 << 30: time.Second, 512 << 20: 500 * time.Millisecond, 1 << 20: glanceLeast, -5: glanceLeast} {
		if got := Soon(room); got != want {
			t.Errorf("with %d left: %v, want %v", room, got, want)
		}
	}
}

// A guard has at most a twentieth of a processor, also for many files.
func TestManyFilesCostLittle(t *testing.T) {
	dir := t.TempDir()
	for i := range 5000 {
		sub := filepath.Join(dir, fmt.Sprint(i/1000))
		if i%1000 == 0 {
			must(t, os.Mkdir(sub, 0o755))
		}
		f, err := os.Create(filepath.Join(sub, fmt.Sprint("file", i)))
		must(t, err, f.Close())
	}
	begin, cpu := time.Now(), threadTimeOf(func() { Used(enough, dir) })
	t.Logf("5000 files: %v of a processor, %v", cpu, time.Since(begin))
	if cpu > time.Second {
		t.Errorf("5000 files cost %v", cpu)
	}
}

// threadTimeOf is how much time of a processor something takes.
func threadTimeOf(do func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadTime()
	do()
	return threadTime() - begin
}

// asNobody runs the test again as an ordinary user.
func asNobody(t *testing.T) {
	const nobody = 65534
	dir := t.TempDir()
	exe, err := os.Executable()
	must(t, err)
	b, err := os.ReadFile(exe)
	program := filepath.Join(dir, "disk.test")
	must(t, err, os.WriteFile(program, b, 0o755), os.Chown(dir, nobody, nobody))
	for p := dir; p != "/tmp" && len(p) > 1; p = filepath.Dir(p) {
		must(t, os.Chmod(p, 0o755))
	}
	cmd := exec.Command(program, "-test.run", "^"+t.Name()+"$")
	cmd.Dir, cmd.Env = dir, []string{"TMPDIR=" + dir, "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
