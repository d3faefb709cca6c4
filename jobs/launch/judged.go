package launch

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"zorilla/jobs/judge"
)

// judged returns what starts a judge of a user's commands, on a thread of its own that may do with
// files what the commands may, but for where these are. A user of 0 or less is the launcher's.
func judged(uid, gid int) func(fd int, allowed []string) error {
	return func(fd int, allowed []string) error {
		began := make(chan error)
		go func() {
			runtime.LockOSThread() // it ends with the thread
			err := asJudge(uid, gid)
			if began <- err; err != nil {
				_ = unix.Close(fd)
				return
			}
			(&judge.Judge{Allowed: allowed}).Serve(fd)
		}()
		return <-began
	}
}

// asJudge makes the calling thread one of the commands' user, as far as files are concerned: a
// thread that is wholly that user's could be killed by it.
func asJudge(uid, gid int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if uid > 0 {
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
			return fmt.Errorf("groups of a judge: %w", errno)
		}
		_, _ = unix.SetfsgidRetGid(gid) // these return what was before, and no errors
		_, _ = unix.SetfsuidRetUid(uid)
		isGID, _ := unix.SetfsgidRetGid(-1)
		isUID, _ := unix.SetfsuidRetUid(-1)
		if isUID != uid || isGID != gid {
			return fmt.Errorf("judge as user %d: not permitted", uid)
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("powers of a judge: %w", err)
	}
	return nil
}
