package testnet

import (
	"math"
	"math/rand/v2"
	"time"
)

// Noise is what a network adds to its latencies and takes from what it carries.
// The zero value is none of it.
type Noise struct {
	// Loss is the share of packets that are lost, 0 to 1. Streams send again what
	// was lost, which takes 0.2 s and a round trip, and twice as long each
	// further time; requests for connections are repeated as if nobody had answered.
	Loss   float64
	Wander float64 // each delay is multiplied by a lognormal number of this deviation,
	Slow   float64 // and this share of them by three
}

// Heavy is the noise of a crowded network: delays vary by a third, and every
// fifth is three times as long.
func Heavy() Noise { return Noise{Wander: 0.3, Slow: 0.2} }

const (
	segmentBytes = 1400                   // that a stream loses together
	resendAfter  = 200 * time.Millisecond // and a round trip
	maxResends   = 8
)

// SetNoise changes the noise from now on.
func (n *Network) SetNoise(noise Noise) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.noise = noise
}

// delay is how long something takes from a to b now. It is lost if not ok.
func (n *Network) delay(a, b *Host) (d time.Duration, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.delayLocked(a, b)
}

func (n *Network) delayLocked(a, b *Host) (d time.Duration, ok bool) {
	d = n.cfg.Latency(a, b)
	if n.noise == (Noise{}) || a == b {
		return d, true
	}
	by := math.Exp(n.noise.Wander * n.rnd.NormFloat64())
	if n.rnd.Float64() < n.noise.Slow {
		by *= 3
	}
	return time.Duration(float64(d) * by), n.rnd.Float64() >= n.noise.Loss
}

// streamDelay is how long so many bytes of a stream take from a to b now, with
// what is lost sent again.
func (n *Network) streamDelay(a, b *Host, bytes int) (most time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	again := resendAfter + n.cfg.Latency(a, b) + n.cfg.Latency(b, a)
	for range 1 + max(bytes-1, 0)/segmentBytes {
		d, ok := n.delayLocked(a, b)
		late := time.Duration(0)
		for k := 0; !ok && k < maxResends; k++ {
			late += again << k
			d, ok = n.delayLocked(a, b)
		}
		most = max(most, late+d)
	}
	if b.downlink > 0 {
		now := time.Now()
		b.receives = later(b.receives, now.Add(most)).Add(time.Duration(bytes) * time.Second / time.Duration(b.downlink))
		most = b.receives.Sub(now)
	}
	return most
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// chance is where all chance in a network comes from.
func chance(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6e6f697365)) }
