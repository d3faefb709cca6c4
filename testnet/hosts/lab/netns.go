package lab

import (
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// Fabric is the network namespace of the bridges and of the script. No host can
// have this name, since those end with a number.
const Fabric = "fabric"

// Netns returns the file that stands for a host's network namespace.
func Netns(dir, host string) string { return filepath.Join(dir, "net", host) }

// EnterNetns moves the calling thread, to which the caller is locked, into the
// network namespace of a host. What it starts or opens then belongs there.
func EnterNetns(dir, host string) error {
	f, err := os.Open(Netns(dir, host))
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
}

// On runs f in the network of a host. The sockets that it opens stay there.
func On(dir, host string, f func() error) error {
	return OnThread(func() error {
		if err := EnterNetns(dir, host); err != nil {
			return err
		}
		return f()
	})
}

// OnThread runs f on a thread that ends with it, since f changes the thread.
func OnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}
