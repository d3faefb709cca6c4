package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"zorilla/jobs/work"
)

// sendAll is a helper that sends all signals there are to each thread of its launcher, in
// all ways.
func sendAll() int {
	threads, err := os.ReadDir("/proc/1/task")
	if err != nil {
		return 2
	}
	sent := 0
	for _, e := range threads {
		tid, _ := strconv.Atoi(e.Name())
		for sig := range 65 {
			info := [32]int32{int32(sig), 0, -1} // as of sigqueue
			_, _, errno := unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, 1, uintptr(tid), uintptr(sig), uintptr(unsafe.Pointer(&info)), 0, 0)
			for _, err := range []error{failed(errno), unix.Kill(tid, unix.Signal(sig)), unix.Tgkill(1, tid, unix.Signal(sig))} {
				if err == nil && sig > 0 {
					sent++
				}
			}
		}
	}
	if sent == 0 {
		fmt.Println("refused")
		return 0
	}
	fmt.Println("sent")
	return 0
}

// No signal that a worker can send ends the launcher that it shares with others of its job,
// and workers find none ignored or blocked because of that.
func TestSignalsToTheLauncherOfAJob(t *testing.T) {
	needNamespaces(t)
	first, other := member(t, "job", "grep -E 'Sig(Blk|Ign)' /proc/self/status; "+gateText), member(t, "job", "echo started; "+gateText+"exit 4")
	together(t, &first, &other)
	sender := helperSpec(t, "send")
	first.Args = append([]string{"/bin/sh", "-c", first.Args[2] + `exec "$0" "$@"`}, sender.Args...)
	first.Expose, first.Env = append(first.Expose, sender.Expose...), append(first.Env, sender.Env...)
	specs, want := []Spec{first, other}, "sent\n"
	if os.Geteuid() == 0 { // one that is of the launcher's own user, and one that is not
		alone := first
		alone.Root += "-alone"
		if err := MakeRoot(alone.Root, "test"); err != nil {
			t.Fatal(err)
		}
		alone.UID, alone.GID, alone.Group = -1, -1, ""
		specs, want = append(specs, alone), "refused\n"
	}
	all := startAll(t, specs...)
	for i, w := range all {
		awaitOutput(t, w, 8)
		if i != 1 {
			openGate(t, specs[i].Root)
			e, out := await(t, w), output(t, w, work.Stdout)
			const none = "0000000000000000\n"
			if i == 2 {
				want = "sent\n"
			}
			if e.Code != 0 || out != fmt.Sprintf("SigBlk:\t%sSigIgn:\t%s%s", none, none, want) {
				t.Errorf("worker %d: %+v %q %q", i, e, out, output(t, w, work.Stderr))
			}
		}
	}
	openGate(t, other.Root)
	if e := await(t, all[1]); e.Code != 4 {
		t.Errorf("another one: %+v %s", e, strings.TrimSpace(output(t, all[1], work.Stderr)))
	}
}
