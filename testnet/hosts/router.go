package main

import (
	"container/heap"
	"math/rand/v2"
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
	atOnce     = 16   // packets that are taken from one site before others have their turn
)

// router carries packets between sites: one port per site, one line per direction between
// two sites. One thread does it, which the kernel wakes up when a packet comes or is due.
// Methods may be called by any goroutine.
type router struct {
	plan  *lab.Plan
	ports []int   // files, of which each write and each read is one frame, behind a header of vnetHeader bytes
	lines [][]int // packets on the way, by site from and to
	way   ways
	taken uint64 // packets, so far
	buf   []byte
	spare [][]byte

	mu  sync.Mutex                 // for changes of now
	now atomic.Pointer[conditions] // never changed in place

	carried, lost, dropped atomic.Int64 // packets: delivered; lost on purpose or cut off; beyond a queue
}

// conditions is what can be changed while the network is up.
type conditions struct {
	cut  []bool  // by site
	loss float64 // percent
}

// parcel is a packet on its way.
type parcel struct {
	frame    []byte
	from, to int // sites
	due      time.Time
	number   uint64
}

// ways has the packets that are on their way, the next one first.
type ways []parcel

func (w ways) Len() int      { return len(w) }
func (w ways) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w ways) Less(i, j int) bool {
	return w[i].due.Before(w[j].due) || w[i].due.Equal(w[j].due) && w[i].number < w[j].number
}
func (w *ways) Push(p any) { *w = append(*w, p.(parcel)) }
func (w *ways) Pop() any {
	last := len(*w) - 1
	p := (*w)[last]
	(*w)[last] = parcel{}
	*w = (*w)[:last]
	return p
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

// change replaces the conditions by a changed copy.
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
		if _, err := unix.Ppoll(polled, wait, nil); err != nil {
			continue // a signal only makes us look again
		}
		for site := range polled {
			if p := &polled[site]; p.Revents != 0 && !r.take(site) {
				_ = unix.Close(int(p.Fd))
				p.Fd = -1
				open--
			}
		}
	}
}

// deliver delivers what is due. It returns for how long nothing else is, unless nothing is on
// its way.
func (r *router) deliver() (time.Duration, bool) {
	for len(r.way) > 0 {
		if wait := time.Until(r.way[0].due); wait > 0 {
			return wait, true
		}
		p := heap.Pop(&r.way).(parcel)
		r.lines[p.from][p.to]--
		if _, err := at(unix.SYS_WRITE, r.ports[p.to], p.frame); err != nil {
			r.dropped.Add(1) // a full port, or one that is being closed
		} else {
			r.carried.Add(1)
		}
		r.spare = append(r.spare, p.frame[:0])
	}
	return 0, false
}

// take takes some frames of a site. It reports false if there will be no more.
func (r *router) take(site int) bool {
	for range atOnce {
		n, err := at(unix.SYS_READ, r.ports[site], r.buf)
		if err != nil || n == 0 {
			return err == unix.EAGAIN || err == unix.EINTR
		}
		r.send(site, r.buf[:n])
	}
	return true
}

// at reads or writes a frame, which no port makes anybody wait for. The scheduler of package
// runtime, which would hand this thread's turn on for that time, is not told.
func at(call uintptr, port int, frame []byte) (int, error) {
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
	if n := len(r.spare); n > 0 {
		kept, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	r.lines[site][to]++
	r.taken++
	heap.Push(&r.way, parcel{append(kept, frame...), site, to, time.Now().Add(r.plan.OneWay(site, to)), r.taken})
}
