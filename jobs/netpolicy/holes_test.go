package netpolicy

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"zorilla/jobs/cgroup"
)

// stray sends a datagram from a socket that the kernel does not find by what it sends: one
// that is connected elsewhere ("connected"), or bound to a device.
func stray(how, to string) error {
	at, err := netip.ParseAddrPort(to)
	if err != nil {
		return err
	}
	address := func(a netip.AddrPort) (int, unix.Sockaddr) {
		if a.Addr().Is4() {
			return unix.AF_INET, &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
		}
		return unix.AF_INET6, &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
	}
	family, peer := address(at)
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if how == "connected" {
		_, elsewhere := address(netip.AddrPortFrom(at.Addr(), 9))
		err = unix.Connect(fd, elsewhere)
	} else {
		err = unix.BindToDevice(fd, how)
	}
	if err != nil {
		return err
	}
	return unix.Sendto(fd, []byte("x"), 0, peer)
}

// Who is of the same machine does not reach a group by a socket that is hard to find.
func TestStraySenders(t *testing.T) {
	group, stage, _, inside := machines(t)
	stage.must(t, "set "+group)
	inside.must(t, "listen udp [::]:8000")
	for _, at := range []string{"127.0.0.1:8000", "[::1]:8000", "10.9.0.1:8000", "[fd09::1]:8000"} {
		for _, how := range []string{"connected", "lo", "near"} {
			before := inside.ask("came")
			stage.ask("stray " + how + " " + at) // perhaps the kernel itself knows better
			if got := inside.ask("say udp 127.0.0.1:8000 10s"); got != "heard" {
				t.Fatal(got)
			}
			var was, is int
			_, _ = fmt.Sscan(before, &was)
			_, _ = fmt.Sscan(inside.ask("came"), &is)
			if is != was+1 { // what has just been sent is behind it
				t.Errorf("%s to %s arrived", how, at)
			}
		}
	}
}

// count returns how many of the programs are in a group.
func count(t *testing.T, group string) (n int) {
	t.Helper()
	dir, err := os.Open(group)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for _, p := range programs {
		there, err := link.QueryPrograms(link.QueryOptions{Target: int(dir.Fd()), Attach: p.attach})
		if err != nil {
			t.Fatal(err)
		}
		n += len(there.Programs)
	}
	return n
}

// A group that was made by an attempt that failed then has nothing yet, whatever one of
// its name had.
func TestGroupOfFailedAttempt(t *testing.T) {
	dir := newGroup(t)
	its, err := (&cgroup.Place{Plain: dir}).Of("a")
	if err != nil {
		t.Fatal(err)
	}
	k := new(Keeper)
	admit := func(worker string) error { return k.Admit(&its, worker, addrs("10.0.0.2")) }
	if err := admit("worker"); errors.Is(err, unix.EPERM) { // a container
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	its.Kill("worker")
	its.Left()
	most := filepath.Join(dir, "cgroup.max.descendants")
	if err := os.WriteFile(most, []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	if err := admit("worker"); err == nil {
		t.Error("there was room for it")
	}
	if err := os.WriteFile(most, []byte("max"), 0); err != nil {
		t.Fatal(err)
	}
	if err := admit("worker"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, its.Around); n != len(programs) {
		t.Errorf("%d programs hold, want %d", n, len(programs))
	}
}

// The next life of a node, which learns where others are as it goes, takes nothing from a
// job for a while.
func TestHandover(t *testing.T) {
	group, stage, far, inside := machines(t)
	far.must(t, "listen udp 10.9.0.2:7000", "listen udp 10.9.0.3:7000")
	stage.must(t, "set "+group+" 10.9.0.2")
	for range 100 { // the link takes a moment
		if inside.ask("say udp 10.9.0.2:7000 100ms") == "heard" {
			break
		}
	}
	want := func(when, first, second string) {
		t.Helper()
		for at, want := range map[string]string{"10.9.0.2:7000": first, "10.9.0.3:7000": second} {
			if got := inside.ask("say udp " + at + " 10s"); got != want {
				t.Errorf("%s: %s: %s, want %s", when, at, got, want)
			}
		}
	}
	want("first", "heard", "denied")
	stage.must(t, "successor", "set "+group+" 10.9.0.3")
	want("then", "heard", "heard")
	stage.must(t, "admit "+filepath.Dir(group)+" worker 10.9.0.3")
	want("with another worker", "heard", "heard")
	stage.must(t, "later", "set "+group+" 10.9.0.3")
	want("later", "denied", "heard")
	stage.must(t, "set "+group+" 10.9.0.2")
	want("at last", "heard", "denied")
}
