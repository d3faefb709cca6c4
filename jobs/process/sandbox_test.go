package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/internal/needs"
	"zorilla/jobs/sandbox"
	"zorilla/jobs/work"
)

func TestProbe(t *testing.T) {
	r := New(Config{})
	if got := r.Enforces(); len(got) > 0 {
		t.Errorf("before the probe: %v", got)
	}
	if err := r.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := r.Enforces()
	t.Log("this machine enforces", got)
	for _, always := range []string{"memory", "tree-kill", "walltime"} {
		if !slices.Contains(got, always) {
			t.Errorf("no %s in %v", always, got)
		}
	}
	if slices.Contains(got, "landlock") != (sandbox.LandlockVersion() > 0) {
		t.Errorf("landlock version %d, but %v", sandbox.LandlockVersion(), got)
	}
	if _, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); slices.Contains(got, "seccomp") != (err == nil) {
		t.Errorf("whether the kernel has seccomp: %v, but %v", err, got)
	}
}

func needLandlock(t *testing.T) {
	t.Helper()
	if sandbox.LandlockVersion() == 0 {
		t.Fatal("this kernel has no Landlock: what this test shows cannot be shown here")
	}
}

// fileAccess is what the script of the test below says. What is marked is in memory
// of the worker's own, where it has namespaces, and comes nowhere else.
const fileAccess = `yes: write_ here
yes: mkdir d
yes: mv here d/there
yes: ln d/there link
yes: write_ $TMPDIR/t
yes: write_ /dev/null
yes: read_ /etc/passwd
yes: ls /usr/bin
yes: read_ $SHOWN
yes: write_ /dev/stdout
own: write_ ../up
own: write_ ../../up
no: write_ $SHOWN
own: write_ /tmp/zorilla-test-up
own: write_ /dev/shm/zorilla-test-up
no: read_ $SECRET
own: ls $STATE
no: read_ $OTHER
no: read_ ../spec
own: ls /
own: ls $HOME
no: read_ /proc/$NODE/environ
no: kill -0 $NODE
yes: ln -s $SECRET trick
no: read_ trick
own: touch $STATE/new
no: rm $SECRET
no: mv $SECRET mine
no: ln $SECRET mine
`

func TestFilesOutsideAreClosed(t *testing.T) {
	needLandlock(t)
	t.Run("with namespaces", func(t *testing.T) { filesOutsideAreClosed(t, Config{}) })
	t.Run("without", func(t *testing.T) { filesOutsideAreClosed(t, Config{Basic: true}) })
}

func filesOutsideAreClosed(t *testing.T, cfg Config) {
	state := t.TempDir() // of the node
	secret := filepath.Join(state, "secret")
	shown := filepath.Join(t.TempDir(), "shown")
	other := filepath.Join(newRoot(t), workDir, "data") // of another worker
	for _, f := range []string{secret, shown, other} {
		if err := os.WriteFile(f, []byte("text"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	spec := script(t, `
may() { if "$@" > /dev/null 2>&1; then echo "yes: $*"; else echo "no: $*"; fi; }
read_() { cat "$1"; }; write_() { echo x > "$1"; }
may write_ here; may mkdir d; may mv here d/there; may ln d/there link; may write_ $TMPDIR/t; may write_ /dev/null
may read_ /etc/passwd; may ls /usr/bin; may read_ $SHOWN; may write_ /dev/stdout
may write_ ../up; may write_ ../../up; may write_ $SHOWN; may write_ /tmp/zorilla-test-up; may write_ /dev/shm/zorilla-test-up
may read_ $SECRET; may ls $STATE; may read_ $OTHER; may read_ ../spec; may ls /; may ls $HOME; may read_ /proc/$NODE/environ; may kill -0 $NODE
may ln -s $SECRET trick; may read_ trick; may touch $STATE/new; may rm $SECRET; may mv $SECRET mine; may ln $SECRET mine
`)
	spec.Expose, spec.Hide = []string{shown}, []string{state}
	home, _ := os.UserHomeDir()
	spec.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home, "STATE=" + state, "SECRET=" + secret, "SHOWN=" + shown, "OTHER=" + other,
		"TMPDIR=" + filepath.Join(spec.Root, tmpDir), "NODE=" + strconv.Itoa(os.Getpid())}
	_, out, stderr := run(t, cfg, spec)
	vars := map[string]string{}
	for _, kv := range spec.Env {
		k, v, _ := strings.Cut(kv, "=")
		vars[k] = v
	}
	want := os.Expand(fileAccess, func(k string) string { return vars[k] })
	for line := range strings.Lines(want) {
		if access, ok := strings.CutPrefix(line, "own: "); ok && cfg.Basic {
			want = strings.Replace(want, line, "no: "+access, 1)
		} else if ok {
			want = strings.Replace(want, line, "", 1)
			out = strings.Replace(strings.Replace(out, "yes: "+access, "", 1), "no: "+access, "", 1)
		}
	}
	if cfg.Basic && sandbox.LandlockVersion() < scopes { // signals are not confined before
		want = strings.Replace(want, "no: kill", "yes: kill", 1)
	}
	if out != want {
		t.Errorf("got\n%s%s\nwant\n%s", out, stderr, want)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "text" {
		t.Errorf("the node's state has changed: %q, %v", b, err)
	}
	for _, f := range []string{filepath.Join(spec.Root, "up"), filepath.Join(filepath.Dir(spec.Root), "up"), "/tmp/zorilla-test-up", "/dev/shm/zorilla-test-up", filepath.Join(state, "new")} {
		if _, err := os.Lstat(f); err == nil {
			t.Errorf("the worker has made %s", f)
			_ = os.Remove(f)
		}
	}
}

func TestDevicesAreOpen(t *testing.T) {
	needLandlock(t)
	device := filepath.Join(t.TempDir(), "device")
	if err := os.WriteFile(device, []byte("old\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, devices := range [][]string{nil, {device, "/dev/not-there"}} {
		spec := script(t, "cat "+device+" && echo new >> "+device)
		spec.Devices = devices
		e, out, _ := run(t, Config{}, spec)
		if want := devices != nil; (e.Code == 0 && out == "old\n") != want {
			t.Errorf("with the devices %v: %+v %q", devices, e, out)
		}
	}
	if b, err := os.ReadFile(device); err != nil || string(b) != "old\nnew\n" {
		t.Errorf("the device has %q, %v", b, err)
	}
}

func TestProgramsOutsideDoNotRun(t *testing.T) {
	needLandlock(t)
	dir := t.TempDir()
	prog := filepath.Join(dir, "prog")
	if err := os.WriteFile(prog, []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Root: newRoot(t), Args: []string{prog}, UID: -1}
	if e, _, _ := run(t, Config{}, spec); e.Cause != work.NotFound || e.Code != 127 || !strings.Contains(e.Detail, "--mount") {
		t.Errorf("%+v", e)
	}
	spec.Root, spec.Expose = newRoot(t), []string{dir}
	if e, out, _ := run(t, Config{}, spec); e.Code != 0 || out != "ran\n" {
		t.Errorf("exposed: %+v %q", e, out)
	}
	spec.Root, spec.Hide = newRoot(t), []string{dir}
	if e, _, _ := run(t, Config{}, spec); e.Cause != work.NotFound {
		t.Errorf("exposed and hidden: %+v", e)
	}
}

// nobody is a user that owns nothing.
const nobody = 65534

// strangerUID is a user that owns nothing, another one in each process of tests: the kernel
// counts processes by user, so that bombs of others would leave workers none.
var strangerUID = 1_000_000 + os.Getpid()

func TestRunAsAnotherUser(t *testing.T) {
	needs.Root(t)
	spec := script(t, `id -u; id -g; id -G; echo new > new; echo more >> given; echo x > $TMPDIR/y && echo tmp; echo err > /dev/stderr; cat ../spec || echo closed`)
	// what t.TempDir makes is closed for others; a node's state must not be
	for dir := spec.Root; dir != "/tmp" && len(dir) > 1; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	spec.UID, spec.GID = nobody, nobody
	spec.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + filepath.Join(spec.Root, tmpDir)}
	given := filepath.Join(spec.Root, workDir, "given")
	if err := os.WriteFile(given, []byte("in\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e, out, stderr := run(t, Config{}, spec)
	if e.Code != 0 || out != "65534\n65534\n65534\ntmp\nclosed\n" || !strings.HasPrefix(stderr, "err\n") {
		t.Fatalf("%+v\n%s%s", e, out, stderr)
	}
	if b, err := os.ReadFile(given); err != nil || string(b) != "in\nmore\n" {
		t.Errorf("%q %v", b, err)
	}
	info, err := os.Stat(filepath.Join(spec.Root, workDir, "new"))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != nobody {
		t.Errorf("%v %v", info, err)
	}
}

func TestCheckReach(t *testing.T) {
	base := realPath(t, t.TempDir())
	dir := filepath.Join(base, "shut", "deep")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for p := base; p != "/tmp" && len(p) > 1 && os.Chmod(p, 0o755) == nil; p = filepath.Dir(p) {
	}
	if err := CheckReach(dir, nobody, nobody); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := CheckReach(dir, nobody+1, nobody+1); err == nil || !strings.Contains(err.Error(), "cannot pass "+filepath.Dir(dir)+" (mode 0700)") {
		t.Errorf("got %v", err)
	}
	if err := CheckReach(dir, os.Getuid(), os.Getgid()); err != nil {
		t.Error(err)
	}
}

// What the owner opens may lie around what is hidden, above all the node's state in a
// home: that is not there then, and its neighbours are.
func TestWhatIsHiddenInWhatIsExposed(t *testing.T) {
	needLandlock(t)
	for _, basic := range []bool{false, true} {
		home := realPath(t, t.TempDir())
		state := filepath.Join(home, "state")
		for _, f := range []string{filepath.Join(home, "tool"), filepath.Join(state, "secret")} {
			if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(f, []byte("text\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		spec := script(t, "cat "+home+"/tool; cat "+state+"/secret; ls "+state)
		spec.Expose, spec.Hide = []string{home}, []string{state}
		if e, out, stderr := run(t, Config{Basic: basic}, spec); out != "text\n" {
			t.Errorf("basic %v: %+v %q %q", basic, e, out, stderr)
		}
	}
}

// What is told of a machine is what holds there.
func TestConcluded(t *testing.T) {
	for _, c := range []struct {
		works    string
		landlock int
		root     bool
		want     string
	}{
		{"landlock namespaces seccomp", 7, false, "affinity signals unix-sockets processes"},
		{"landlock namespaces seccomp", 5, false, "affinity signals processes"}, // abstract sockets are the machine's
		{"namespaces", 7, true, "affinity signals"},
		{"landlock seccomp", 7, false, "signals unix-sockets processes"},
		{"landlock seccomp", 5, false, "unix-sockets processes"},
		{"landlock", 9, true, "signals unix-sockets"},
		{"", 0, false, "processes"},
		{"cgroups user seccomp", 0, true, "unix-sockets processes"},
	} {
		works := strings.Fields(c.works)
		if got := strings.Join(concluded(works, c.landlock, c.root)[len(works):], " "); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
