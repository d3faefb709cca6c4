package netpolicy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/cgroup"
)

// The job and its worker that are tried.
const (
	trial = "probe"
	tried = "try"
)

// Tried removes what Try has left, when the process that has called it has ended, and the
// groups of jobs that are empty.
func Tried(p *cgroup.Place) {
	if its, err := p.Of(trial); err == nil {
		its.Kill(tried)
		p.Sweep()
	}
}

// Try finds out whether this machine can do it, by doing it: the calling process, which is
// in the group of a job from then on, sends datagrams. It leaves that group behind.
func Try(p *cgroup.Place) error {
	var system unix.Utsname
	if err := unix.Uname(&system); err != nil {
		return err
	}
	if release := unix.ByteSliceToString(system.Release[:]); !keepsGroups(p.Unified, release) {
		return fmt.Errorf("linux %s: sockets may lose their group where there are those of version 1", release)
	}
	its, err := p.Of(trial)
	if err != nil {
		return err
	}
	out, err := socket()
	if err != nil {
		return err
	}
	defer out.Close()
	if err := new(Keeper).Admit(&its, tried, nil); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(its.Around, tried, "cgroup.procs"), []byte("0"), 0); err != nil {
		return err
	}
	a, err := socket()
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := socket()
	if err != nil {
		return err
	}
	defer b.Close()
	if _, err := a.WriteTo([]byte("x"), out.LocalAddr()); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("a service of the machine is reached: %v", err)
	}
	if _, err := a.WriteTo([]byte("x"), b.LocalAddr()); err != nil {
		return err
	}
	if err := b.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, _, err = b.ReadFrom(make([]byte, 1))
	return err
}

// keepsGroups reports whether sockets have groups of version 2 whatever is done with
// net_cls and net_prio, which there are with version 1.
func keepsGroups(unified bool, release string) bool {
	var major, minor int
	_, _ = fmt.Sscanf(release, "%d.%d", &major, &minor)
	return unified || major > 5 || major == 5 && minor >= 15
}

func socket() (net.PacketConn, error) { return net.ListenPacket("udp4", "127.0.0.1:0") }
