package reach

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

func socket() (net.PacketConn, error) { return net.ListenPacket("udp4", "127.0.0.1:0") }
