package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"zorilla/jobs/quota"
	"zorilla/jobs/quota/quotatest"
	"zorilla/jobs/work"
)

// quotaRoot makes a root in a directory of a file system that may have quotas.
func quotaRoot(t *testing.T, dir, name string) string {
	t.Helper()
	root := filepath.Join(dir, name)
	if err := MakeRoot(root, "test"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := CleanRoot(root, nil); err != nil {
			t.Error(err)
		}
	})
	return root
}

// onQuotas returns a runner for roots in a directory, and whether the kernel bounds them.
func onQuotas(t *testing.T, basic bool) (cfg Config, dir string, has bool) {
	t.Helper()
	dir, has = quotatest.Mount(t)
	for d := dir; os.Geteuid() == 0 && d != "/tmp" && len(d) > 1; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cfg = Config{Grace: time.Second, Basic: basic, Work: dir}
	if has = has && !basic; slices.Contains(probed(t, cfg).Enforces(), quotas) != has {
		t.Errorf("a node says that its file system bounds its workers: %v", !has)
	}
	return cfg, dir, has
}

// Whoever fills its disk ends with the same cause, with quotas and without, and with them
// it has never taken much more than its limit.
func TestQuota(t *testing.T) {
	const limit = 8 << 20
	for _, basic := range []bool{false, true} {
		cfg, dir, has := onQuotas(t, basic)
		for name, command := range map[string]string{
			"waits": "head -c 67108864 /dev/zero >big; sleep 3600", "ends": "head -c 67108864 /dev/zero >big; sync big; exit 3",
			"removed": "exec 3>big; rm big; head -c 67108864 /dev/zero >&3; sleep 3600", "tmp": "head -c 67108864 /dev/zero >$TMPDIR/big; sleep 3600",
		} {
			if !has && name == "ends" { // nobody may have seen it
				continue
			}
			spec := Spec{Root: quotaRoot(t, dir, fmt.Sprint(name, basic)), Args: []string{"/bin/sh", "-c", command}, UID: 65534, GID: 65534, Disk: limit}
			if spec.Env = []string{"TMPDIR=" + filepath.Join(spec.Root, tmpDir), "PATH=/usr/bin:/bin"}; os.Geteuid() != 0 {
				spec.UID, spec.GID = -1, -1
			}
			if e := await(t, start(t, cfg, spec)); e.Cause != work.Disk || e.Code != 137 || e.Detail != "needed more than 8 MiB of disk space (--disk)" {
				t.Errorf("%s, basic %v: %+v", name, basic, e)
			}
			var st unix.Stat_t
			for _, file := range []string{"work/big", "tmp/big"} {
				if unix.Stat(filepath.Join(spec.Root, file), &st) == nil && has && st.Blocks*512 > limit+spareFiles(limit) {
					t.Errorf("%s: %d bytes", name, st.Blocks*512)
				}
			}
			if q := quota.Of(filepath.Join(spec.Root, workDir)); (q != nil) != has {
				t.Errorf("%s: %v", name, q)
			}
		}
	}
}

// Each task has the whole limit, also one that comes after one that was over it.
func TestQuotaOfTasks(t *testing.T) {
	cfg, dir, _ := onQuotas(t, false)
	spec := array(t, 3, "case $ZORILLA_TASK_ID in 1) head -c 67108864 /dev/zero >big; sync big; sleep 60;; *) head -c 6291456 /dev/zero >big;; esac")
	spec.Root, spec.Disk = quotaRoot(t, dir, "tasks"), 8<<20
	if err := os.WriteFile(filepath.Join(spec.Root, workDir, "input"), make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	w := start(t, cfg, spec)
	w.Tasks().Add(0, []TaskRange{{0, 3}}, true)
	e := await(t, w)
	all, _, stderr := results(t, w)
	for i, want := range []int{137, 0, 0} {
		if i >= len(all) || all[i].Code != want {
			t.Fatalf("%+v, %+v %q", e, all, stderr)
		}
	}
}

// leaveProject tries to get out of the project of the file system that it is in, and has
// files made outside of it.
func leaveProject([]string) int {
	for _, name := range []string{".", "file"} {
		if name != "." {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				fmt.Println(err)
				return 2
			}
		}
		f, err := os.Open(name)
		if err != nil {
			fmt.Println(err)
			return 2
		}
		var a [7]uint32 // struct fsxattr
		call := func(request uintptr, p unsafe.Pointer) error {
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(p)); errno != 0 {
				return errno
			}
			return nil
		}
		if err := call(0x801c581f, unsafe.Pointer(&a)); err != nil {
			fmt.Println("none", err)
			return 0
		}
		left := a
		left[3] = 0
		plain, flags := a, int32(0)
		plain[0] &^= 0x200
		won := call(0x401c5820, unsafe.Pointer(&left)) == nil && a[3] != 0
		won = call(0x401c5820, unsafe.Pointer(&plain)) == nil && a[0]&0x200 != 0 || won
		_ = call(0x40086602, unsafe.Pointer(&flags)) // FS_IOC_SETFLAGS
		var now [7]uint32
		err = call(0x801c581f, unsafe.Pointer(&now))
		fmt.Println(name, "won:", won || err != nil || now[3] != a[3] || (now[0]^a[0])&0x200 != 0, "project:", now[3] != 0)
	}
	return 0
}

func TestNobodyLeavesItsProject(t *testing.T) {
	cfg, dir, has := onQuotas(t, false)
	spec := helperSpec(t, "leave")
	spec.Root, spec.Disk = quotaRoot(t, dir, "leave"), 8<<20
	e, out, _ := run(t, cfg, spec)
	if has && out != ". won: false project: true\nfile won: false project: true\n" || e.Code != 0 || strings.Contains(out, "won: true") {
		t.Errorf("%+v %q", e, out)
	}
}

// However a worker and its supervisor ended, there is no limit any more when the node has
// cleaned up.
func TestQuotaIsRemoved(t *testing.T) {
	cfg, dir, has := onQuotas(t, false)
	spec := Spec{Root: quotaRoot(t, dir, "killed"), Args: []string{"/bin/sh", "-c", "echo ready; sleep 3600"}, UID: -1, Disk: 8 << 20}
	w := start(t, cfg, spec)
	awaitOutput(t, w, 6)
	q := quota.Of(filepath.Join(spec.Root, workDir))
	if (q != nil) != has {
		t.Fatalf("%v", q)
	}
	w.Stop(0, 0)
	await(t, w)
	if err := CleanRoot(spec.Root, nil, "note"); err != nil { // by what is kept, the file system can be asked
		t.Error(err)
	}
	if has {
		if used, most, err := q.Used(); used != 0 || most != 0 || err != nil {
			t.Errorf("the project takes %d of %d, %v", used, most, err)
		}
	}
}
