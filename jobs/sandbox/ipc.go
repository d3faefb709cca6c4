package sandbox

import (
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What System V's calls are told: of the namespace, how much there is; of one object, to remove it.
const (
	msgInfo = 12
	shmInfo = 14
	semInfo = 19
	ipcRmid = 0
)

// ipcInUse reports whether there are objects of System V in the namespace of this process.
func ipcInUse() bool {
	var shm [16]uint64 // struct shm_info begins with how many there are
	var sem, msg [16]int32
	_, _, errno := unix.Syscall(unix.SYS_SHMCTL, 0, shmInfo, uintptr(unsafe.Pointer(&shm)))
	if errno == 0 && uint32(shm[0]) > 0 {
		return true
	}
	_, _, errno = unix.Syscall6(unix.SYS_SEMCTL, 0, 0, semInfo, uintptr(unsafe.Pointer(&sem)), 0, 0)
	if errno == 0 && sem[7] > 0 { // semusz
		return true
	}
	_, _, errno = unix.Syscall(unix.SYS_MSGCTL, 0, msgInfo, uintptr(unsafe.Pointer(&msg)))
	return errno == 0 && msg[0] > 0 // msgpool
}

// RemoveIPC removes all objects of System V in the namespace of this process, which has to be
// one that only workers share with it.
func RemoveIPC() {
	for _, id := range ipcIDs("shm") {
		_, _, _ = unix.Syscall(unix.SYS_SHMCTL, id, ipcRmid, 0)
	}
	for _, id := range ipcIDs("sem") {
		_, _, _ = unix.Syscall6(unix.SYS_SEMCTL, id, 0, ipcRmid, 0, 0, 0)
	}
	for _, id := range ipcIDs("msg") {
		_, _, _ = unix.Syscall(unix.SYS_MSGCTL, id, ipcRmid, 0)
	}
}

// ipcIDs lists the objects of a kind.
func ipcIDs(kind string) (ids []uintptr) {
	b, err := os.ReadFile("/proc/sysvipc/" + kind)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 {
			if id, err := strconv.Atoi(f[1]); err == nil && id >= 0 {
				ids = append(ids, uintptr(id))
			}
		}
	}
	return ids
}
