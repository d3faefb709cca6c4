// Package ports chooses TCP ports for programs that must agree on one before any of them
// listens: ports of this machine at which nobody listens and that no other program was
// given, whichever of the machine's nodes gave it.
//
// Nodes that are started beside each other get their addresses here, too (Addresses).
//
// All are below those that the kernel gives to whoever asks for none, so that what
// another program opens by chance does not take them.
package ports

import (
	"net"
	"strconv"
	"sync"
)

// First and Last are the ports that are given.
const (
	First = 20000
	Last  = 29999
)

// maxTried bounds how many ports are tried for one owner.
const maxTried = 500

// Book is the ports that a node has given. The zero Book has given none; a nil one gives
// none. Its methods may be called from any goroutine.
type Book struct {
	mu    sync.Mutex
	given map[string]entry
}

// entry is a port and what keeps it from other nodes of the machine.
type entry struct {
	port int
	mark net.Listener // nil if another node has it
}

// Take gives an owner a port, the wanted one or one after it; 0 if there is none. An
// owner that has one keeps it.
func (b *Book) Take(owner string, want int) int {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.given[owner]; ok {
		return e.port
	}
	for i := range maxTried {
		port := First + (max(want, First)-First+i)%(Last-First+1)
		mark, err := marked(port)
		if err != nil {
			continue
		}
		if free(":"+strconv.Itoa(port)) != nil {
			mark.Close()
			continue
		}
		b.note(owner, entry{port, mark})
		return port
	}
	return 0
}

// Keep notes a port that an owner was given in an earlier life of the node, and may listen
// at.
func (b *Book) Keep(owner string, port int) {
	if b == nil || port < First || port > Last {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.given[owner]; ok {
		return
	}
	mark, _ := marked(port)
	b.note(owner, entry{port, mark})
}

func (b *Book) note(owner string, e entry) {
	if b.given == nil {
		b.given = map[string]entry{}
	}
	b.given[owner] = e
}

// Of returns the port of an owner, or 0.
func (b *Book) Of(owner string) int {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.given[owner].port
}

// Free takes back what an owner has, if it has any.
func (b *Book) Free(owner string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.given[owner]; ok && e.mark != nil {
		e.mark.Close()
	}
	delete(b.given, owner)
}

// Close takes back all.
func (b *Book) Close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.given {
		if e.mark != nil {
			e.mark.Close()
		}
	}
	b.given = nil
}

// marked says to all nodes of the machine that a port is given. A name without a file
// belongs to one network namespace, as the port does, and ends with the node.
func marked(port int) (net.Listener, error) {
	return net.Listen("unix", "@zorilla-port-"+strconv.Itoa(port))
}

// free reports why a program cannot listen at an address, which without a host is all of the
// machine's; nil = it can.
func free(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close() // it was only a question
}
