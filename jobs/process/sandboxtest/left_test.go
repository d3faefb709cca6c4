package sandboxtest

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"zorilla/jobs/process"
	"zorilla/jobs/sandbox"
	"zorilla/jobs/work"
)

// scopes is the version of Landlock from which on it keeps signals within.
const scopes = 6

//go:embed testdata/leave.py
var leave []byte

// leaver is a worker that leaves behind what it can, and goes on as told: "end", "close"
// its descriptors, or "wait".
func leaver(t *testing.T, w way, name, how string) process.Spec {
	t.Helper()
	numbers, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	spec := w.spec(t, map[string][]byte{"leave.py": leave}, "python3", "leave.py", name, how)
	spec.Env = append(spec.Env, "CALLS="+string(numbers))
	return spec
}

// objects are those of the kernel that outlive processes, where this process is.
func objects(t *testing.T) (all string) {
	t.Helper()
	for _, kind := range []string{"shm", "sem", "msg"} {
		b, err := os.ReadFile("/proc/sysvipc/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		all += strings.Repeat(kind+" ", strings.Count(string(b), "\n"))
	}
	name, _ := unix.BytePtrFromString("sandboxtest")
	if _, _, errno := unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0); errno == 0 {
		all += "queue"
	}
	return all
}

// Nothing is left of a worker that has hidden its processes in every way there is, and
// made what outlives them; however it ends.
func TestNothingIsLeft(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		before := objects(t)
		for how, code := range map[string]int{"end": 0, "close": 7, "wait": 137} {
			name := mark(t)
			spec := leaver(t, w, name, how)
			worker := start(t, w.runner(t), spec)
			if how == "wait" {
				if !awaitLine(t, worker, "left") {
					t.Error("it ended first")
				}
				worker.Stop(0, 0)
			}
			if e := await(t, worker); e.Code != code {
				t.Errorf("%s: %+v %q", how, e, output(t, worker, work.Stderr))
			}
			nothingNamed(t, name)
			if _, err := os.Lstat(filepath.Join(spec.Root, "tmp")); err != nil {
				t.Errorf("%s: %v", how, err)
			}
		}
		// Those of other programs may go meanwhile.
		now := objects(t)
		for _, kind := range strings.Fields("shm sem msg") {
			if strings.Count(now, kind) > strings.Count(before, kind) {
				t.Errorf("objects: %s, before %s", now, before)
			}
		}
	})
}

// stopsAll stops its launcher, by each of its threads, and whatever else it may.
const stopsAll = `import os, signal, sys
for top in {1, os.getppid()} - {os.getpid()}:
    threads = os.listdir(f"/proc/{top}/task") if os.path.exists(f"/proc/{top}/task") else []
    for pid in [top] + [int(t) for t in threads]:
        try:
            os.kill(pid, signal.SIGSTOP)
        except OSError:
            pass
print("stopped", flush=True)
signal.pause()
`

// A worker that has stopped its launcher can be stopped itself, and its walltime holds.
func TestLauncherIsStopped(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		name := mark(t)
		worker := start(t, w.runner(t), w.spec(t, nil, "python3", "-c", stopsAll, name))
		awaitLine(t, worker, "stopped") // or it was ended for that
		worker.Stop(0, 0)
		if e := await(t, worker); e.Cause != work.Stopped && e.Cause != work.Failed {
			t.Errorf("%+v", e)
		}
		nothingNamed(t, name)
	})
}

// killsAbove has a grandchild, with a session and an environment of its own, kill its
// launcher and its supervisor by each of their threads, one of which is confined as it is.
const killsAbove = `import ctypes, json, os, sys, time
call, numbers = ctypes.CDLL(None).syscall, json.loads(os.environ["CALLS"])
def parent(pid):
    try:
        return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    except OSError:
        return 0
above = [os.getppid(), parent(os.getppid())]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        text = "import ctypes, os, time\ncall = ctypes.CDLL(None).syscall\n"
        text += f"for p in {above}:\n for t in (os.listdir(f'/proc/{{p}}/task') if p else []):\n  call({numbers['tgkill']}, p, int(t), 9)\n"
        text += "print('tried', flush=True)\ntime.sleep(3600)"
        os.execve(sys.executable, ["python3", "-c", text, sys.argv[1]], {})
    os._exit(0)
os.wait()
time.sleep(3600)
`

// Who kills what looks after it, by a thread that the kernel lets it kill, takes nobody but
// itself along, and hides nothing from its end.
func TestWhoLooksAfterItIsKilledByItsThreads(t *testing.T) {
	numbers, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	eachWay(t, func(t *testing.T, w way) {
		if w.basic && w.uid < 0 && sandbox.LandlockVersion() < scopes {
			return // its supervisor would be killed, see docs/sandbox.md
		}
		r, name := w.runner(t), mark(t)
		spec := w.spec(t, nil, "python3", "-c", killsAbove, name)
		spec.Env = append(spec.Env, "CALLS="+string(numbers))
		next := start(t, r, w.spec(t, nil, "cat"))
		worker := start(t, r, spec)
		if awaitLine(t, worker, "tried") {
			worker.Stop(0, 0)
		}
		if e := await(t, worker); e.Cause != work.Stopped && e.Cause != work.Failed {
			t.Errorf("%+v %q", e, output(t, worker, work.Stderr))
		}
		nothingNamed(t, name)
		if e := await(t, next); e.Code != 0 {
			t.Errorf("another worker: %+v", e)
		}
	})
}
