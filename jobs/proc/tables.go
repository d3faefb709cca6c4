package proc

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Tables lists the directories in /proc that show what a process holds open: its own
// table of descriptors, and those of threads that have left it (unshare, CLONE_FILES).
func Tables(pid int) []string {
	base := "/proc/" + strconv.Itoa(pid)
	all := []string{base + "/fd"}
	dir, err := os.Open(base + "/task")
	if err != nil {
		return all
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	other := pid // the thread whose table was found last
	for _, name := range names {
		thread, err := strconv.Atoi(name)
		if err != nil || thread == pid || sameFiles(thread, pid) || other != pid && sameFiles(thread, other) {
			continue
		}
		all, other = append(all, base+"/task/"+name+"/fd"), thread
	}
	return all
}

// sameFiles reports whether two threads have one table of descriptors. Where the kernel
// does not tell, they have not.
func sameFiles(a, b int) bool {
	const kcmpFiles = 2
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpFiles, 0, 0, 0)
	return errno == 0 && order == 0
}
