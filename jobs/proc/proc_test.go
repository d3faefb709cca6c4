package proc

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestFindingDescendants(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "(sleep 1007; :) & (sleep 1008; :) & echo; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if me := os.Getpid(); !sameMemory(me, me) || sameMemory(me, cmd.Process.Pid) || sharesMemory(cmd.Process.Pid) {
		t.Error("a process shares memory with itself, not with its child")
	}
	for end := time.Now().Add(30 * time.Second); ; {
		fast, slow := Descendants(cmd.Process.Pid), scanDescendants(cmd.Process.Pid)
		slices.Sort(fast)
		slices.Sort(slow)
		if len(fast) == 4 && slices.Equal(fast, slow) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("children files say %v, scan says %v", fast, slow)
		}
	}
}

func TestParseStat(t *testing.T) {
	fields := " S 7 8 9 0 -1 4194560 0 0 0 0 250 50 0 0 20 0 1 0 12345 0 0"
	for _, name := range []string{"(sh)", "(a b)", "(evil) R 1 1 1)", "()"} {
		st, err := parseStat([]byte("42 " + name + fields))
		if err != nil || st != (Stat{State: 'S', Parent: 7, Session: 9, Start: 12345, CPU: 3 * time.Second}) {
			t.Errorf("%s: %+v %v", name, st, err)
		}
	}
	for _, bad := range []string{"", "42", "42 (sh) S 7", "42 (sh) S x" + fields[4:]} {
		if st, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was read as %+v", bad, st)
		}
	}
}

func TestHiddenProcesses(t *testing.T) {
	const disk, proc = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n", "23 22 0:21 / /proc rw,nosuid shared:5 - proc proc rw"
	for mounts, want := range map[string]bool{
		"":                           false,
		disk + proc + "\n":           false,
		disk + proc + ",hidepid=2\n": true,
		disk + proc + ",gid=4,hidepid=invisible\n":               true,
		disk + proc + ",hidepid=0\n":                             false,
		disk + proc + ",hidepid=off\n":                           false,
		proc + ",hidepid=2\n" + proc + "\n":                      false,
		"24 23 0:22 / /proc/sys/fs rw - autofs x rw,hidepid=2\n": false,
	} {
		if got := hidden([]byte(mounts)); got != want {
			t.Errorf("%q: %v", mounts, got)
		}
	}
}

func TestThreads(t *testing.T) {
	uid := os.Getuid()
	if n := Threads(uid); n < 2 { // those of this one's runtime
		t.Errorf("%d threads of this user", n)
	}
	const unused = 1<<31 - 7
	if n := Threads(unused); n != 0 {
		t.Errorf("%d threads of a user that there is not", n)
	}
	if n := statusNumber([]byte("Name:\tx\nUid:\t7\t8\nThreads:\t12\n"), "Threads"); n != 12 {
		t.Errorf("%d", n)
	}
	if n := statusNumber([]byte("Name:\tx\n"), "Threads"); n != -1 {
		t.Errorf("%d", n)
	}
}
