package main

import (
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/testnet/hosts/lab"
)

const (
	vnetHeader = 10 // bytes of struct virtio_net_hdr
	maxFrame   = vnetHeader + ethernetHeader + 1<<16
	maxQueue   = 4096 // packets on one line
)

// router carries packets between sites: one port per site, one line per
// direction between two sites. Its methods may be called by any goroutine.
type router struct {
	plan  *lab.Plan
	ports []io.ReadWriter // each write and each read is one frame, behind a header of vnetHeader bytes
	frees sync.Pool

	mu  sync.Mutex                 // for changes of now
	now atomic.Pointer[conditions] // never changed in place

	carried, lost, dropped atomic.Int64 // packets: delivered; lost on purpose or cut off; beyond a queue
}

// conditions is what can be changed while the network is up.
type conditions struct {
	cut  []bool  // by site
	loss float64 // percent
}

type parcel struct {
	frame *[]byte
	due   time.Time
}

// newRouter starts the router; it ends with the process.
func newRouter(p *lab.Plan, ports []io.ReadWriter) *router {
	r := &router{plan: p, ports: ports, frees: sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}}
	r.now.Store(&conditions{cut: make([]bool, len(p.Sites))})
	for site := range ports {
		go r.read(site)
	}
	return r
}

// hurry lets all threads of this process go before others, as far as it may:
// on a busy machine the links would else be as slow as the scheduler.
func hurry() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads { // later ones inherit it
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, -15) // only root may
		}
	}
	return nil
}

// change replaces the conditions by a changed copy.
func (r *router) change(f func(*conditions)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := *r.now.Load()
	c.cut = slices.Clone(c.cut)
	f(&c)
	r.now.Store(&c)
}

// read takes frames from a site until its port is closed, and owns the queues
// of the lines that begin there.
func (r *router) read(site int) {
	queues := make([]chan parcel, len(r.ports)) // nil until it is needed: each has a thread
	buf := make([]byte, maxFrame)
	for {
		n, err := r.ports[site].Read(buf)
		if err != nil {
			return
		}
		to, ok := route(r.plan, site, buf[min(vnetHeader, n):n])
		if !ok {
			continue
		}
		c := r.now.Load()
		if c.cut[site] || c.cut[to] || rand.Float64()*100 < c.loss {
			r.lost.Add(1)
			continue
		}
		if queues[to] == nil {
			queues[to] = make(chan parcel, maxQueue)
			go r.carry(queues[to], r.ports[to])
		}
		frame := r.frees.Get().(*[]byte)
		*frame = append((*frame)[:0], buf[:n]...)
		select {
		case queues[to] <- parcel{frame, time.Now().Add(r.plan.OneWay(site, to))}:
		default:
			r.dropped.Add(1)
			r.frees.Put(frame)
		}
	}
}

// carry delivers the frames of one line. It has a thread of its own and sleeps
// in the kernel, because the timers of an idle Go process are up to 1 ms late.
func (r *router) carry(queue <-chan parcel, to io.Writer) {
	runtime.LockOSThread()
	// Without it the kernel adds 50 µs; with an old kernel it will.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0)
	for p := range queue {
		for wait := time.Until(p.due); wait > 0; wait = time.Until(p.due) {
			ts := unix.NsecToTimespec(int64(wait))
			_ = unix.Nanosleep(&ts, nil) // a signal only makes us look again
		}
		if _, err := to.Write(*p.frame); err != nil {
			r.dropped.Add(1) // a full port, or one that is being closed
		} else {
			r.carried.Add(1)
		}
		r.frees.Put(p.frame)
	}
}
