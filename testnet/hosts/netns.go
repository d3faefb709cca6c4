package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// fabric is the network namespace of the bridges and of the script. No host
// can have this name, since those end with a number.
const fabric = "fabric"

// netns returns the file that stands for a host's network namespace.
func netns(dir, name string) string { return filepath.Join(dir, "net", name) }

// makeNetns makes a network namespace that lasts as long as its file.
func makeNetns(file string) error {
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	return onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		return unix.Mount("/proc/thread-self/ns/net", file, "", unix.MS_BIND, "")
	})
}

// enterNetns moves the calling thread, to which the caller is locked, into a
// network namespace. What it starts or opens then belongs there.
func enterNetns(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
}

// inNetns runs f in a network namespace.
func inNetns(file string, f func() error) error {
	return onOwnThread(func() error {
		if err := enterNetns(file); err != nil {
			return err
		}
		return f()
	})
}

// onOwnThread runs f on a thread that ends with it, since f changes the
// thread.
func onOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// openTap makes a TAP port with this name in the calling thread's network
// namespace.
func openTap(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w: run as root, or let your user open it (load the module tun if it is not there)", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("make the port %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
