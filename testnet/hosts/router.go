package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"zorilla/testnet/hosts/lab"
)

const (
	vnetHeader = 10 // bytes of struct virtio_net_hdr
	maxFrame   = vnetHeader + ethernetHeader + 1<<16
	maxQueue   = 4096 // packets on one line
	maxFree    = 256  // buffers
	atOnce     = 16   // packets that are taken from one site before others have their turn
)

// router carries packets between sites: one port per site, one line per direction between
// two sites. One thread does it, which the kernel wakes up when a packet comes or is due.
type router struct {
	plan   *lab.Plan
	ports  []int   // files, of which each write and each read is one frame, behind a header of vnetHeader bytes
	lines  [][]int // packets on the way, by site from and to
	queue  packetQueue
	number uint64 // of the last packet
	buf    []byte
	free   [][]byte // for frames

	mu  sync.Mutex                 // for changes of now
	now atomic.Pointer[conditions] // never changed in place

	carried, lost, dropped atomic.Int64 // packets: delivered; lost on purpose or cut off; beyond a queue
}

// conditions is what can be changed while the network is up.
type conditions struct {
	cut  []bool  // by site
	loss float64 // percent
}

// packet is on its way.
type packet struct {
	frame    []byte
	from, to int // sites
	due      time.Time
	number   uint64
}

// packetQueue has packets that are on their way, the next one first.
type packetQueue []packet

// push adds a packet. Package container/heap would allocate memory for each, and its collector
// makes a thread wait that goes before all others.
func (q *packetQueue) push(p packet) {
	*q = append(*q, p)
	for i := len(*q) - 1; i > 0 && q.less(i, (i-1)/2); i = (i - 1) / 2 {
		q.swap(i, (i-1)/2)
	}
}

// pop takes the next packet.
func (q *packetQueue) pop() packet {
	last := len(*q) - 1
	q.swap(0, last)
	p := (*q)[last]
	(*q)[last] = packet{}
	*q = (*q)[:last]
	for i := 0; 2*i+1 < last; {
		next := 2*i + 1
		if next+1 < last && q.less(next+1, next) {
			next++
		}
		if !q.less(next, i) {
			break
		}
		q.swap(i, next)
		i = next
	}
	return p
}

func (q packetQueue) swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q packetQueue) less(i, j int) bool {
	return q[i].due.Before(q[j].due) || q[i].due.Equal(q[j].due) && q[i].number < q[j].number
}

// newRouter returns a router that does nothing yet.
func newRouter(p *lab.Plan, ports []int) *router {
	r := &router{plan: p, ports: ports, buf: make([]byte, maxFrame)}
	for range p.Sites {
		r.lines = append(r.lines, make([]int, len(p.Sites)))
	}
	r.now.Store(&conditions{cut: make([]bool, len(p.Sites))})
	return r
}

// change replaces the conditions by a changed copy. Any goroutine may call it.
func (r *router) change(f func(*conditions)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := *r.now.Load()
	c.cut = slices.Clone(c.cut)
	f(&c)
	r.now.Store(&c)
}

// hurry lets this thread go before others, as far as it may: on a busy machine the lines would
// else be as slow as the scheduler. Without exact timers the kernel adds 50 µs.
func hurry() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0)
	realtime := &unix.SchedAttr{Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	realtime.Size = unix.SizeofSchedAttr
	if unix.SchedSetAttr(0, realtime, 0) != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -15)
	}
}

// run carries packets until all ports are closed at their other ends. It takes a thread.
func (r *router) run() {
	runtime.LockOSThread()
	hurry()
	polled := make([]unix.PollFd, len(r.ports))
	for i, fd := range r.ports {
		polled[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	for open := len(polled); open > 0; {
		var wait *unix.Timespec // without end
		if d, ok := r.deliver(); ok {
			ts := unix.NsecToTimespec(int64(d))
			wait = &ts
		}
		if _, err := unix.Ppoll(polled, wait, nil); err == unix.EINTR {
			continue // a signal only makes us look again
		} else if err != nil {
			fmt.Fprintln(os.Stderr, "lab: the router has ended:", err)
			return
		}
		for site := range polled {
			if p := &polled[site]; p.Revents != 0 && !r.take(site) {
				p.Fd = -1 // it stays open: what is on its way there is dropped
				open--
			}
		}
	}
}

// deliver delivers what is due. It returns for how long nothing else is, unless nothing is on
// its way.
func (r *router) deliver() (time.Duration, bool) {
	for len(r.queue) > 0 {
		if wait := time.Until(r.queue[0].due); wait > 0 {
			return wait, true
		}
		p := r.queue.pop()
		r.lines[p.from][p.to]--
		if _, err := rawIO(unix.SYS_WRITE, r.ports[p.to], p.frame); err != nil {
			r.dropped.Add(1) // a full port, or one that is being closed
		} else {
			r.carried.Add(1)
		}
		if len(r.free) < maxFree {
			r.free = append(r.free, p.frame[:0])
		}
	}
	return 0, false
}

// take takes some frames of a site. It reports false if there will be no more.
func (r *router) take(site int) bool {
	for range atOnce {
		n, err := rawIO(unix.SYS_READ, r.ports[site], r.buf)
		if err == unix.EAGAIN || err == unix.EINTR {
			return true
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "lab: site %s is cut off: %v\n", r.plan.Sites[site].Name, err)
		}
		if err != nil || n == 0 {
			return false
		}
		r.send(site, r.buf[:n])
	}
	return true
}

// rawIO reads or writes a frame, which no port makes anybody wait for. The runtime, which would
// give the processor of this thread to others for that time, is not told.
func rawIO(call uintptr, port int, frame []byte) (int, error) {
	n, _, errno := unix.RawSyscall(call, uintptr(port), uintptr(unsafe.Pointer(unsafe.SliceData(frame))), uintptr(len(frame)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// send puts a frame of a site on its line.
func (r *router) send(site int, frame []byte) {
	to, ok := route(r.plan, site, frame[min(vnetHeader, len(frame)):])
	if !ok {
		return
	}
	c := r.now.Load()
	if c.cut[site] || c.cut[to] || rand.Float64()*100 < c.loss {
		r.lost.Add(1)
		return
	}
	if r.lines[site][to] == maxQueue {
		r.dropped.Add(1)
		return
	}
	var kept []byte
	if n := len(r.free); n > 0 {
		kept, r.free = r.free[n-1], r.free[:n-1]
	}
	r.lines[site][to]++
	r.number++
	r.queue.push(packet{append(kept, frame...), site, to, time.Now().Add(r.plan.OneWay(site, to)), r.number})
}
