package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory is what processes need, in bytes, and cannot give back: pages of their own,
// also swapped ones, and pages of memory that they may share.
type Memory struct{ Private, Shared int64 }

// Add adds what others need.
func (m *Memory) Add(n Memory) { m.Private, m.Shared = m.Private+n.Private, m.Shared+n.Shared }

// Resident is what a process alone may need, pages that it shares included.
func Resident(pid int) Memory {
	return sumKB("/proc/"+strconv.Itoa(pid)+"/status", []string{"RssAnon:", "VmSwap:"}, "RssShmem:")
}

// Proportional is what the processes need together: shared pages count once.
func Proportional(pids []int) Memory {
	var sum Memory
	for _, pid := range pids {
		if sharesMemory(pid) {
			continue
		}
		n := sumKB("/proc/"+strconv.Itoa(pid)+"/smaps_rollup", []string{"Pss_Anon:", "SwapPss:"}, "Pss_Shmem:")
		if n == (Memory{}) { // not ours to read, or an older kernel
			n = Resident(pid)
		}
		sum.Add(n)
	}
	return sum
}

// sharesMemory reports whether a process still runs in the memory of its
// parent, as after vfork: both show all of it.
func sharesMemory(pid int) bool {
	st, err := ReadStat(pid)
	return err == nil && sameMemory(pid, st.Parent)
}

func sameMemory(a, b int) bool {
	const kcmpVM = 1
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return errno == 0 && order == 0
}

// MostResident is the most that a process ever had in memory, in bytes.
func MostResident(pid int) int64 {
	return sumKB("/proc/"+strconv.Itoa(pid)+"/status", nil, "VmHWM:").Shared
}

// sumKB adds up the named lines of a file in /proc, and returns bytes.
func sumKB(path string, private []string, shared string) Memory {
	var sum Memory
	b, err := os.ReadFile(path)
	if err != nil {
		return sum
	}
	for line := range bytes.Lines(b) {
		for _, name := range private {
			sum.Private += kilobytes(line, name)
		}
		sum.Shared += kilobytes(line, shared)
	}
	return sum
}

func kilobytes(line []byte, name string) int64 {
	rest, ok := bytes.CutPrefix(line, []byte(name))
	f := bytes.Fields(rest)
	if !ok || len(f) == 0 {
		return 0
	}
	kb, _ := strconv.ParseInt(string(f[0]), 10, 64)
	return kb << 10
}

// MemoryFiles is how much the files need that processes hold open and that are
// nowhere but in memory (memfd_create), mapped or not.
func MemoryFiles(pids []int) int64 {
	var sum int64
	seen := map[uint64]bool{}
	for _, pid := range pids {
		for _, table := range Tables(pid) {
			sum += memoryFiles(table, seen)
		}
	}
	return sum
}

// memoryFiles is how much those of a table of descriptors need that were not seen yet.
func memoryFiles(table string, seen map[uint64]bool) (sum int64) {
	fds, err := os.ReadDir(table)
	if err != nil {
		return 0
	}
	for _, fd := range fds {
		var st unix.Stat_t
		path := table + "/" + fd.Name()
		name, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(name, "/memfd:") || unix.Stat(path, &st) != nil || seen[st.Ino] {
			continue
		}
		seen[st.Ino] = true
		sum += st.Blocks * 512
	}
	return sum
}

// SharedSegments is how much the System V segments of this IPC namespace need.
func SharedSegments() int64 {
	b, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return 0
	}
	var sum int64
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) < 2 {
			continue
		}
		for _, column := range f[len(f)-2:] { // resident and swapped; words above them
			n, _ := strconv.ParseInt(string(column), 10, 64)
			sum += n
		}
	}
	return sum
}
