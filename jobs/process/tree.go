package process

import (
	"bytes"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// descendants lists the living processes below pid. Processes that are made
// or moved meanwhile may be missing: callers look again.
func descendants(pid int) []int {
	if _, err := os.Stat("/proc/thread-self/children"); err != nil {
		return scanDescendants(pid)
	}
	var all []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		kids := children(queue[0])
		all = append(all, kids...)
		queue = append(queue, kids...)
	}
	return all
}

// children asks the kernel for the children of each thread of a process,
// which costs no look at the rest of the machine.
func children(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var kids []int
	for _, t := range threads {
		b, _ := os.ReadFile(dir + "/" + t.Name() + "/children")
		for _, f := range bytes.Fields(b) {
			if kid, err := strconv.Atoi(string(f)); err == nil {
				kids = append(kids, kid)
			}
		}
	}
	return kids
}

// scanDescendants does the same on kernels without the children files.
func scanDescendants(pid int) []int {
	kids := map[int][]int{}
	for _, p := range processes() {
		if st, err := readStat(p); err == nil {
			kids[st.parent] = append(kids[st.parent], p)
		}
	}
	var all []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		all = append(all, kids[queue[0]]...)
		queue = append(queue, kids[queue[0]]...)
	}
	return all
}

// processes lists all processes of the machine.
func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []int
	for _, n := range names {
		if p, err := strconv.Atoi(n); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// signalTree sends a signal to everything below this process. After a polite
// signal it wakes what is stopped, else that could not follow it.
func signalTree(sig unix.Signal) {
	for _, pid := range descendants(os.Getpid()) {
		_ = unix.Kill(pid, sig)
		if sig != unix.SIGKILL {
			_ = unix.Kill(pid, unix.SIGCONT)
		}
	}
}

// The watchdog's pace: often enough that a tree which fills memory at fillRate
// is seen before it is far over its limit, and never more than a twentieth of
// a core.
const (
	fillRate    = 8 << 30 // bytes per second
	watchAtMost = 100 * time.Millisecond
	watchLeast  = 5 * time.Millisecond
	watchShare  = 20
)

// watchMemory calls over once when the processes below this one need more
// than limit bytes, and keeps the highest sum seen in peak. It returns then,
// or when done is closed.
//
// What counts is memory that cannot be dropped: anonymous, shared and swapped
// pages, not mapped files. The cheap sum counts shared pages several times,
// so what is over the limit by that sum is measured again by shares.
func watchMemory(limit int64, peak *atomic.Int64, done <-chan struct{}, over func()) {
	for {
		begin := time.Now()
		pids := descendants(os.Getpid())
		var used int64
		for _, pid := range pids {
			used += resident(pid)
		}
		if used > limit {
			used = proportional(pids)
		}
		peak.Store(max(peak.Load(), used))
		if used > limit {
			over()
			return
		}
		pace := time.Duration(float64(limit-used) / fillRate * float64(time.Second))
		pace = max(min(pace, watchAtMost), watchLeast, watchShare*time.Since(begin))
		select {
		case <-time.After(pace):
		case <-done:
			return
		}
	}
}

// resident is what a process alone may need, pages that it shares included.
func resident(pid int) int64 {
	return sumKB("/proc/"+strconv.Itoa(pid)+"/status", "RssAnon:", "RssShmem:", "VmSwap:")
}

// proportional is what the processes need together: shared pages count once.
func proportional(pids []int) int64 {
	var sum int64
	for _, pid := range pids {
		if sharesMemory(pid) {
			continue
		}
		n := sumKB("/proc/"+strconv.Itoa(pid)+"/smaps_rollup", "Pss_Anon:", "Pss_Shmem:", "SwapPss:")
		if n == 0 { // not ours to read, or an older kernel
			n = resident(pid)
		}
		sum += n
	}
	return sum
}

// sharesMemory reports whether a process still runs in the memory of its
// parent, as after vfork: both show all of it.
func sharesMemory(pid int) bool {
	st, err := readStat(pid)
	return err == nil && sameMemory(pid, st.parent)
}

func sameMemory(a, b int) bool {
	const kcmpVM = 1
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return errno == 0 && order == 0
}

// sumKB adds up the named lines of a file in /proc, and returns bytes.
func sumKB(path string, names ...string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	var sum int64
	for line := range bytes.Lines(b) {
		for _, name := range names {
			rest, ok := bytes.CutPrefix(line, []byte(name))
			if !ok {
				continue
			}
			if f := bytes.Fields(rest); len(f) > 0 {
				kb, _ := strconv.ParseInt(string(f[0]), 10, 64)
				sum += kb << 10
			}
		}
	}
	return sum
}
