package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Paths reports how long packets take between sites, where that differs by direction or time.
type Paths interface {
	// Way is the delay from a site to another one, without noise and what hosts
	// add: as it is on the whole or, if rnd is not nil, at some time.
	Way(rnd *rand.Rand, from, to int) time.Duration
}

// openFor is how long a guarded node gets packets of whom it has sent one to.
const openFor = time.Minute

// Noise is what the network adds to the truth.
type Noise struct {
	Jitter  float64       // each delay is longer by up to this share
	Queue   time.Duration // mean of an exponential addition to each delay
	Spikes  float64       // share of packets that are late
	Spike   time.Duration // by up to this
	Loss    float64       // share of packets that are lost
	Doubled float64       // share of packets that come twice
	Wander  float64       // each delay is multiplied by a lognormal number of this deviation,
	Slow    float64       // and this share of them by three
}

// Usual is the noise of a healthy network: 3 % jitter, 25 µs of queues, one
// packet of 200 late by up to 20 ms and one of 1000 lost.
func Usual() Noise {
	return Noise{
		Jitter: 0.03, Queue: 25 * time.Microsecond, Loss: 0.001,
		Spikes: 0.005, Spike: 20 * time.Millisecond,
	}
}

// Heavy is the noise of a crowded network: delays vary by a third, and every fifth packet
// takes three times as long.
func Heavy() Noise {
	n := Usual()
	n.Wander, n.Slow = 0.3, 0.2
	return n
}

// RTT returns the true round trip between two nodes, without noise.
func (o *Overlay) RTT(a, b int) time.Duration {
	if a == b {
		return 20 * time.Microsecond
	}
	from, to := o.hosts[a], o.hosts[b]
	d := from.access + to.access
	if from.site != to.site {
		d += o.cfg.Layout.RTT[from.site][to.site]
	}
	return d
}

// Send carries a packet of so many bytes to another node and calls arrive
// there, if it is not lost and the node runs by then; twice if it is doubled.
// Packets may overtake each other. It reports whether the packet will arrive.
// The bytes are not part of Traffic: who sends counts his own.
func (o *Overlay) Send(from, to int, arrive func()) bool {
	return o.carry(from, to, event{call: func() {
		if !o.hosts[to].down {
			arrive()
		}
	}})
}

func (o *Overlay) carry(from, to int, e event) bool {
	noise := &o.cfg.Noise
	if o.severed(from, to) || o.hosts[to].down || noise.Loss > 0 && o.rnd.Float64() < noise.Loss {
		return false
	}
	if g := o.cfg.Guarded; g != nil && from != to {
		if g(from) {
			o.opened[[2]int{from, to}] = o.at
		}
		if at, ok := o.opened[[2]int{to, from}]; g(to) && (!ok || o.at > at+openFor) {
			return false
		}
	}
	e.at = o.at + o.delay(from, to)
	o.queue.push(e)
	if noise.Doubled > 0 && o.rnd.Float64() < noise.Doubled {
		e.at = o.at + o.delay(from, to)
		o.queue.push(e)
	}
	return true
}

// delay is how long a packet takes, with noise.
func (o *Overlay) delay(from, to int) time.Duration {
	noise := &o.cfg.Noise
	d := float64(way(o, from, to))
	if noise.Wander > 0 {
		d *= math.Exp(noise.Wander * o.rnd.NormFloat64())
	}
	if noise.Slow > 0 && o.rnd.Float64() < noise.Slow {
		d *= 3
	}
	if noise.Jitter > 0 {
		d *= 1 + noise.Jitter*o.rnd.Float64()
	}
	if noise.Queue > 0 {
		d += o.rnd.ExpFloat64() * float64(noise.Queue)
	}
	if noise.Spikes > 0 && o.rnd.Float64() < noise.Spikes {
		d += o.rnd.Float64() * float64(noise.Spike)
	}
	if b := o.hosts[to]; o.at < b.busy {
		d += o.rnd.Float64() * float64(b.late)
	}
	return time.Duration(d)
}

// way is how long a packet takes without noise.
func way(o *Overlay, from, to int) time.Duration {
	a, b := o.hosts[from], o.hosts[to]
	if o.cfg.Paths == nil || a.site == b.site {
		return o.RTT(from, to) / 2
	}
	var rnd *rand.Rand
	if o.cfg.Live {
		rnd = o.rnd
	}
	return (a.access+b.access)/2 + o.cfg.Paths.Way(rnd, a.site, b.site)
}

// Swap has two nodes change places, as if routes had changed: all round trips from each
// are those of the other from now on. Nobody is told.
func (o *Overlay) Swap(a, b int) {
	x, y := o.hosts[a], o.hosts[b]
	x.site, y.site = y.site, x.site
	x.access, y.access = y.access, x.access
}

// Busy makes a node slow for some time: each packet that it gets is handled
// late by a random time up to late.
func (o *Overlay) Busy(i int, d, late time.Duration) {
	o.hosts[i].busy, o.hosts[i].late = o.at+d, late
}

// SetNoise changes the network from now on.
func (o *Overlay) SetNoise(n Noise) { o.cfg.Noise = n }
