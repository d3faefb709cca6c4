package ports

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

// Addresses finds addresses for nodes that are started beside each other on one machine. The
// zero value is ready. Its method may be called from any goroutine.
type Addresses struct{ last atomic.Int32 }

const (
	// Below those of programs, and below those that the kernel gives to connections: nobody's
	// takes one before its node listens, or while that is down.
	firstOfNodes, lastOfNodes = 10000, 19999
)

// PerProcess is how many addresses a process may want for its nodes: those of the next process
// begin after as many.
const PerProcess = 128

// Free returns an address of a host whose port is free for TCP and UDP now, and that it has not
// returned for long.
func (a *Addresses) Free(host string) (string, error) {
	var last error
	for range 100 {
		port := firstOfNodes + (PerProcess*os.Getpid()+int(a.last.Add(1)))%(lastOfNodes-firstOfNodes+1)
		address := net.JoinHostPort(host, strconv.Itoa(port))
		if last = free(address); last != nil {
			continue
		}
		var udp net.PacketConn
		if udp, last = net.ListenPacket("udp", address); last == nil {
			return address, udp.Close()
		}
	}
	return "", last
}
