package process

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// sendsAll sends all signals there are to each thread of its launcher, in all ways.
const sendsAll = `import ctypes, os, json
call, numbers = ctypes.CDLL(None).syscall, json.loads(os.environ["CALLS"])
sent = 0
for t in map(int, os.listdir("/proc/1/task")):
    for s in range(1, 65):
        info = (ctypes.c_int * 32)(s, 0, -1)
        for got in (call(numbers["kill"], t, s), call(numbers["tgkill"], 1, t, s), call(numbers["rt_tgsigqueueinfo"], 1, t, s, info)):
            sent += got == 0
print("sent" if sent else "refused", flush=True)
`

// No signal that a worker can send ends the launcher that it shares with others of its job,
// and workers find none ignored or blocked because of that.
func TestSignalsToTheLauncherOfAJob(t *testing.T) {
	needNamespaces(t)
	numbers, err := json.Marshal(map[string]int{"kill": unix.SYS_KILL, "tgkill": unix.SYS_TGKILL, "rt_tgsigqueueinfo": unix.SYS_RT_TGSIGQUEUEINFO})
	if err != nil {
		t.Fatal(err)
	}
	first, other := member(t, "job", "grep -E 'Sig(Blk|Ign)' /proc/self/status; "+gateText), member(t, "job", "echo started; "+gateText+"exit 4")
	together(t, &first, &other)
	first.Args = []string{"/bin/sh", "-c", first.Args[2] + "exec python3 -c \"$0\"", sendsAll}
	first.Env = append(first.Env, "CALLS="+string(numbers))
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
			e, out := await(t, w), output(t, w, Stdout)
			const none = "0000000000000000\n"
			if i == 2 {
				want = "sent\n"
			}
			if e.Code != 0 || out != fmt.Sprintf("SigBlk:\t%sSigIgn:\t%s%s", none, none, want) {
				t.Errorf("worker %d: %+v %q %q", i, e, out, output(t, w, Stderr))
			}
		}
	}
	openGate(t, other.Root)
	if e := await(t, all[1]); e.Code != 4 {
		t.Errorf("another one: %+v %s", e, strings.TrimSpace(output(t, all[1], Stderr)))
	}
}
