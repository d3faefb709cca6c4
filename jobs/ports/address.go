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

	perProcess = 64 // those of another process begin elsewhere
)

// Free returns an address of a host whose port is free for TCP and UDP now, and that it has not
// returned for long.
func (a *Addresses) Free(host string) (string, error) {
	var last error
	for range 100 {
		port := firstOfNodes + (perProcess*os.Getpid()+int(a.last.Add(1)))%(lastOfNodes-firstOfNodes+1)
		address := net.JoinHostPort(host, strconv.Itoa(port))
		tcp, err := net.Listen("tcp", address)
		if err != nil {
			last = err
			continue
		}
		udp, err := net.ListenPacket("udp", address)
		_ = tcp.Close() // it was only a question
		if err == nil {
			return address, udp.Close()
		}
		last = err
	}
	return "", last
}
