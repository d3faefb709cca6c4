package sim

import "time"

// Noise is what the network adds to the truth.
type Noise struct {
	Jitter  float64       // each delay is longer by up to this share
	Queue   time.Duration // mean of an exponential addition to each delay
	Spikes  float64       // share of packets that are late
	Spike   time.Duration // by up to this
	Loss    float64       // share of packets that are lost
	Doubled float64       // share of packets that come twice
}

// Usual is the noise of a healthy network: 3 % jitter, 25 µs of queues, one
// packet of 200 late by up to 20 ms and one of 1000 lost.
func Usual() Noise {
	return Noise{
		Jitter: 0.03, Queue: 25 * time.Microsecond, Loss: 0.001,
		Spikes: 0.005, Spike: 20 * time.Millisecond,
	}
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
	d := float64(o.RTT(from, to)) / 2
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

// Busy makes a node slow for some time: each packet that it gets is handled
// late by a random time up to late.
func (o *Overlay) Busy(i int, d, late time.Duration) {
	o.hosts[i].busy, o.hosts[i].late = o.at+d, late
}

// SetNoise changes the network from now on.
func (o *Overlay) SetNoise(n Noise) { o.cfg.Noise = n }
