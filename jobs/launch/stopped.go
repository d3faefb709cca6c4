package launch

import (
	"os"
	"os/exec"
	"os/signal"

	"golang.org/x/sys/unix"
)

// endStopped kills a launcher that is stopped, as a command of the same user can do
// without namespaces: it would obey nobody, and keep no limit.
func (l *Launcher) endStopped(cmd *exec.Cmd) {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, unix.SIGCHLD)
	go func() {
		defer signal.Stop(changes)
		for {
			select {
			case <-l.done:
				return
			case <-changes:
			}
			var info unix.Siginfo
			err := unix.Waitid(unix.P_PID, l.pid, &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
			if err == nil && info.Signo != 0 {
				_ = cmd.Process.Kill()
			}
		}
	}()
}
