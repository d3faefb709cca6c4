package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// reception meets those who connect to a supervisor's control sockets, and passes each
// on to the worker whose key it has.
type reception struct {
	room chan struct{} // a place for each connection that has not said hello

	mu        sync.Mutex // guards what follows
	listeners []net.Listener
	places    int // connections that came
	coming    int // workers that will be there in a moment
	workers   map[string]visited
	changed   chan struct{} // closed at the next change of workers or coming
}

// visited is who serves the connections of a worker. It knows the same key.
type visited interface {
	serve(conn net.Conn, hello message, place int)
}

// maxStrangers is how many connections may not have said hello yet; more wait.
const maxStrangers = 64

func newReception() *reception {
	return &reception{room: make(chan struct{}, maxStrangers), workers: map[string]visited{}, changed: make(chan struct{})}
}

// expect says that a worker will come.
func (r *reception) expect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.coming++
}

// listen serves one more socket. Earlier ones have no name any more if no other worker is
// here.
func (r *reception) listen(socket *os.File) {
	ln, err := net.FileListener(socket)
	_ = socket.Close()
	if err != nil { // whoever wants to adopt the worker finds nobody
		fmt.Fprintln(os.Stderr, "control socket:", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.coming+len(r.workers) == 1 {
		for _, old := range r.listeners {
			_ = old.Close()
		}
		r.listeners = nil
	}
	r.listeners = append(r.listeners, ln)
	go r.accept(ln)
}

func (r *reception) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(helloWithin / 100) // out of descriptors: that may pass
			continue
		}
		r.room <- struct{}{}
		r.mu.Lock()
		r.places++
		place := r.places
		r.mu.Unlock()
		go r.meet(conn, place)
	}
}

// meet finds out whom a connection is for.
func (r *reception) meet(conn net.Conn, place int) {
	m, err := hello(conn)
	<-r.room
	if err != nil {
		return
	}
	why := "want hello first"
	if m.Kind == kindHello {
		if c := r.find(m.Key); c != nil {
			c.serve(conn, m, place)
			return
		}
		why = wrongKey
	}
	_ = writeMessage(conn, message{Kind: kindRefused, Text: why})
	_ = conn.Close()
}

// find returns the worker of a key, which may be about to come.
func (r *reception) find(key string) visited {
	late := time.After(helloWithin)
	for {
		r.mu.Lock()
		c, more, changed := r.workers[key], r.coming > 0, r.changed
		r.mu.Unlock()
		if c != nil || !more {
			return c
		}
		select {
		case <-changed:
		case <-late:
			return nil
		}
	}
}

// open says that the worker of a key has come.
func (r *reception) open(key string, c visited) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.coming--
	r.workers[key] = c
	r.notify()
}

// close says that a worker has ended, or does not come.
func (r *reception) close(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.workers[key] != nil {
		delete(r.workers, key)
	} else {
		r.coming--
	}
	r.notify()
}

func (r *reception) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}
