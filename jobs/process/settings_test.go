package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/jobs/launch"
)

// settings are what the kernel lets a process write in /proc of itself; the rest of a name
// is below /proc/self. A program that must write them fails where it cannot, as CUDA does
// which names its threads.
var settings = map[string]string{
	"comm": "named", "oom_score_adj": "900", "coredump_filter": "0x00000037",
}

// slack is a setting that only the first thread of a process may write, which a shell has alone.
const slack = "echo 60000 >/proc/self/timerslack_ns && read got </proc/self/timerslack_ns && test $got = 60000"

// setItself is a helper: it writes all that it may of itself, with flags as of fopen and of
// CUDA, and says what was refused.
func setItself([]string) int {
	code := 0
	write := func(path, text string, flags int) {
		f, err := os.OpenFile(path, flags, 0o666)
		if err == nil {
			_, err = f.WriteString(text)
			_ = f.Close()
		}
		b, rerr := os.ReadFile(path)
		if err != nil || rerr != nil || strings.TrimSpace(string(b)) != strings.TrimPrefix(text, "0x") {
			fmt.Printf("%s: %v, %v, %q\n", path, err, rerr, b)
			code = 1
		}
	}
	for name, text := range settings {
		write("/proc/self/"+name, text, os.O_WRONLY)
		write("/proc/self/"+name, text, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	}
	if out, err := exec.Command("/bin/sh", "-c", slack).CombinedOutput(); err != nil {
		fmt.Printf("%v: %s\n", err, out)
		code = 1
	}
	threads, done := make(chan int), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		threads <- unix.Gettid()
		<-done
	}()
	thread := strconv.Itoa(<-threads)
	write("/proc/self/task/"+thread+"/comm", "cuda-EvtHandlr", os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	close(done)
	return code
}

// A worker sets itself what the kernel lets it, with namespaces and without; without them
// root, whose powers over the machine lie in /proc, too, does not.
func TestSettingsOfItself(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		s := spec("settings")
		e, out, stderr := run(t, cfg, s)
		if root := cfg.Basic && os.Geteuid() == 0 && s.UID < 0; (e.Code == 0) == root {
			t.Errorf("%+v\n%s%s", e, out, stderr)
		}
	})
}

// What is above a worker's processes is not for it to set: its supervisor, its node, and but
// for root its launcher.
func TestSettingsOfOthers(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		s := spec("others")
		s.Args = []string{"/bin/sh", "-c", `for f in /proc/[0-9]*/oom_score_adj; do
			case $f in /proc/$$/*) ;; *) (echo 1000 >$f) 2>/dev/null && tr '\0' ' ' <${f%oom*}cmdline && echo; esac; done; true`}
		e, out, stderr := run(t, cfg, s)
		launcher := strings.Contains(out, launch.Name) && (os.Geteuid() != 0 || s.UID >= 0)
		if e.Code != 0 || launcher || strings.Contains(out, supervisorName) || strings.Contains(out, filepath.Base(os.Args[0])) && !cfg.Basic {
			t.Errorf("%+v: it could set\n%s%s", e, out, stderr)
		}
	})
}
