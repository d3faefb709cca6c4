package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zorilla/internal/needs"
	"zorilla/jobs/proc"
)

// What a worker has is its user's own: a worker of another job, who is another user, can
// do nothing with it, and neither can another user of the machine whom nothing confines.
func TestUsersOfJobs(t *testing.T) {
	needs.Root(t)
	for _, basic := range []bool{false, true} {
		t.Run(fmt.Sprintf("basic %v", basic), func(t *testing.T) {
			if !basic {
				needNamespaces(t)
			}
			own, other := member(t, "own", `umask 000; echo text > file; echo started; `+gateText), member(t, "other", "")
			together(t, &own, &other)
			own.UID, own.GID, other.UID, other.GID = 2100000001, 2100000001, 2100000002, 2100000002
			for dir := filepath.Dir(own.Root); dir != "/tmp" && len(dir) > 1; dir = filepath.Dir(dir) {
				if err := os.Chmod(dir, 0o711); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(own.Root, workDir, "input"), []byte("input"), 0o666); err != nil {
				t.Fatal(err)
			}
			cfg := Config{Basic: basic}
			w := start(t, cfg, own)
			awaitOutput(t, w, 8)
			var rec record
			if err := load(own.Root, recordEntry, &rec); err != nil {
				t.Fatal(err)
			}
			text := `cd /; may() { if "$@" > /dev/null 2>&1; then echo "$*"; fi; }; write_() { echo x > $1; }
for f in work/file work/input stdout spec claim; do may cat ROOT/$f; may write_ ROOT/$f; may rm ROOT/$f; done
for d in . work tmp control; do may ls ROOT/$d; may write_ ROOT/$d/new; may mv ROOT/$d ROOT/moved; done
for p in PIDS; do may kill -0 $p; may ls /proc/$p/fd; may cat /proc/$p/environ; may write_ /proc/$p/oom_score_adj; done; echo done`
			pids := proc.Descendants(rec.Launcher.PID)
			if len(pids) == 0 {
				t.Fatal("the worker has no processes")
			}
			text = strings.ReplaceAll(strings.ReplaceAll(text, "ROOT", own.Root), "PIDS", strings.Trim(fmt.Sprint(pids), "[]"))
			other.Args = []string{"/bin/sh", "-c", text}
			if e, out, stderr := run(t, cfg, other); e.Code != 0 || !basic && strings.Contains(out, own.Root) || basic && out != "done\n" {
				t.Errorf("another job can: %+v\n%s%s", e, out, stderr)
			}
			stranger := exec.Command("/bin/sh", "-c", text)
			stranger.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 2100000002, Gid: 2100000002}}
			if out, err := stranger.CombinedOutput(); err != nil || string(out) != "done\n" {
				t.Errorf("another user can: %v\n%s", err, out)
			}
			if got := UserOf(own.Root); got != own.UID {
				t.Errorf("the directory is of user %d", got)
			}
			openGate(t, own.Root)
			if e := await(t, w); e.Code != 0 {
				t.Errorf("%+v", e)
			}
		})
	}
}

// All that is in a worker's directories becomes its user's, links themselves and not what they
// lead to, but for files in its temporary directory that have other names elsewhere.
func TestFilesBecomeTheUsers(t *testing.T) {
	needs.Root(t)
	root, outside := newRoot(t), filepath.Join(t.TempDir(), "outside")
	work, tmp := filepath.Join(root, workDir), filepath.Join(root, tmpDir)
	if err := errors.Join(os.MkdirAll(work+"/a/b", 0o755), os.MkdirAll(tmp+"/c", 0o755),
		os.WriteFile(outside, nil, 0o600), os.WriteFile(work+"/a/b/file", nil, 0o400), os.WriteFile(work+"/run", nil, 0o755), os.WriteFile(tmp+"/c/own", nil, 0o600),
		os.Symlink(outside, work+"/a/link"), os.Symlink("/nowhere", work+"/a/b/broken"), os.Link(outside, tmp+"/c/shared")); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		dir := fmt.Sprintf("%s/many/%d/sub", work, i)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(dir+"/file", nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const user = 2100000005
	if err := (&Spec{Root: root, UID: user, GID: user + 1}).giveFiles(); err != nil {
		t.Fatal(err)
	}
	given := 0
	for at, want := range map[string]uint32{
		work: user, work + "/a": user, work + "/a/b": user, work + "/a/b/file": user, work + "/run": user, work + "/a/link": user, work + "/a/b/broken": user,
		tmp: user, tmp + "/c": user, tmp + "/c/own": user, tmp + "/c/shared": 0, outside: 0, root: 0,
	} {
		info, err := os.Lstat(at)
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != want || want == user && st.Gid != user+1 {
			t.Errorf("%s is of %d:%d, want %d", strings.TrimPrefix(at, root), st.Uid, st.Gid, want)
		} else if want == user {
			given++
		}
	}
	if given != 10 {
		t.Errorf("%d are the user's", given)
	}
	if err := filepath.WalkDir(work+"/many", func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		given++
		info, err := d.Info()
		if err == nil && info.Sys().(*syscall.Stat_t).Uid != user {
			t.Errorf("%s is not the user's", strings.TrimPrefix(at, root))
		}
		return err
	}); err != nil || given != 10+1+40*3 {
		t.Errorf("%d are there: %v", given, err)
	}

	// What was made as the user's is not looked at again.
	if err := os.Lchown(work+"/run", 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := (&Spec{Root: root, UID: user, GID: user + 1}).giveFiles(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(work + "/run"); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("a file below a directory of the user's was given again: %v", err)
	}
}

// With namespaces workers need not pass the directories above theirs.
func TestDirectoriesThatNobodyPasses(t *testing.T) {
	needNamespaces(t)
	spec := member(t, "", `pwd; cat input; echo out > out; echo $PWD/out > $TMPDIR/x; cat $(cat $TMPDIR/x)`)
	together(t, &spec)
	for _, dir := range []string{spec.Root, filepath.Dir(spec.Root)} {
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(spec.Root, workDir, "input"), []byte("in\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e, out, stderr := run(t, Config{}, spec); e.Code != 0 || out != filepath.Join(spec.Root, workDir)+"\nin\nout\n" {
		t.Errorf("%+v\n%s%s", e, out, stderr)
	}
	if info, err := os.Stat(spec.Root); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A job that has a user of its own cannot take all processes of the machine, without
// namespaces neither.
func TestProcessesOfAUser(t *testing.T) {
	needs.Root(t)
	for own, want := range map[bool]int{true: maxProcesses, false: -1} {
		spec := script(t, "ulimit -u")
		for dir := filepath.Dir(spec.Root); dir != "/tmp" && len(dir) > 1; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o711); err != nil {
				t.Fatal(err)
			}
		}
		spec.Args[0] = "/bin/bash"
		spec.UID, spec.GID, spec.OwnUser = 2100000003, 2100000003, own
		_, out, stderr := run(t, Config{Basic: true}, spec)
		if got := strings.TrimSpace(out); (got == fmt.Sprint(want)) != own {
			t.Errorf("own user %v: at most %q processes %s", own, got, stderr)
		}
	}
}
