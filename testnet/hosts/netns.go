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

// offloads are what a port leaves to its readers: checksums, and to cut what TCP sends into
// packets.
const offloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4

// openTap makes a TAP port with this name in the calling thread's network
// namespace. Frames have a header of vnetHeader bytes in front, which says what is left to do
// about them.
func openTap(name string) (fd int, err error) {
	fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, fmt.Errorf("open /dev/net/tun: %w: run as root, or let your user open it (load the module tun if it is not there)", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		_ = unix.Close(fd)
		return 0, err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads)
	}
	if err != nil {
		_ = unix.Close(fd)
		return 0, fmt.Errorf("make the port %s: %w", name, err)
	}
	return fd, nil
}

// cutPackets has a port give single packets, or what TCP sends in one piece.
func cutPackets(tap int, cut bool) error {
	if cut {
		return unix.IoctlSetInt(tap, unix.TUNSETOFFLOAD, 0)
	}
	return unix.IoctlSetInt(tap, unix.TUNSETOFFLOAD, offloads)
}
