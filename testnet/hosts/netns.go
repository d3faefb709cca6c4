package main

import (
	"cmp"
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

// offloads are what a port leaves to its readers: checksums, and to cut what TCP sends into
// packets.
const offloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4

// openTap makes a TAP port with this name in the calling thread's network
// namespace. Frames have a header of vnetHeader bytes in front, which says what is left to do
// about them.
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
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("make the port %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// cutPackets has a port give single packets, or what TCP sends in one piece.
func cutPackets(tap *os.File, cut bool) error {
	raw, err := tap.SyscallConn()
	if err != nil {
		return err
	}
	left := offloads
	if cut {
		left = 0
	}
	cerr := raw.Control(func(fd uintptr) { err = unix.IoctlSetInt(int(fd), unix.TUNSETOFFLOAD, left) })
	return cmp.Or(cerr, err)
}
