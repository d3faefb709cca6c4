package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"zorilla/testnet/hosts/lab"
)

// makeNetns makes a network namespace that lasts as long as its file.
func makeNetns(file string) error {
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	return lab.OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		return unix.Mount("/proc/thread-self/ns/net", file, "", unix.MS_BIND, "")
	})
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
