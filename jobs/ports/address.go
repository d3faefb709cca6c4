package ports

import (
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// Addresses finds addresses for nodes that are started beside each other on one machine. The
// zero value is ready. Its method may be called from any goroutine.
//
// What it has returned stays with this process to its end, also while the node that has the
// address is down: no other process of the machine is given the same port by an Addresses.
type Addresses struct {
	mu    sync.Mutex
	last  int
	given []net.Listener
}

const (
	// Below those of programs, and below those that the kernel gives to connections: nobody's
	// takes one before its node listens, or while that is down.
	firstOfNodes, lastOfNodes = 10000, 19999
)

// perProcess is how far apart processes begin to look, so that they seldom try the same ports.
const perProcess = 128

// Free returns an address of a host whose port is free for TCP and UDP now, and that no
// Addresses of this machine has returned: not to this process, nor to another that lives.
func (a *Addresses) Free(host string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var last error
	for range lastOfNodes - firstOfNodes + 1 {
		a.last++
		port := firstOfNodes + (perProcess*os.Getpid()+a.last)%(lastOfNodes-firstOfNodes+1)
		address := net.JoinHostPort(host, strconv.Itoa(port))
		if last = free(address); last != nil {
			if !errors.Is(last, syscall.EADDRINUSE) {
				return "", last
			}
			continue
		}
		var udp net.PacketConn
		if udp, last = net.ListenPacket("udp", address); last != nil {
			continue
		}
		_ = udp.Close() // it was only a question
		var mark net.Listener
		if mark, last = marked(port); last == nil {
			a.given = append(a.given, mark)
			return address, nil
		}
	}
	return "", last
}
