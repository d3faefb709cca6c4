package vicinity

import (
	"testing"
	"time"
)

func TestSmallestSampleCounts(t *testing.T) {
	var p peer
	at := time.Second
	for _, x := range []struct {
		after        time.Duration
		sample, want time.Duration
	}{
		{0, 20 * ms, 20 * ms},
		{ms, ms, ms},
		{ms, 30 * ms, ms},         // a busy host
		{time.Minute, 9 * ms, ms}, // for a minute
		{slotTime, 9 * ms, ms},
		{oldest, 9 * ms, 9 * ms}, // for good
		{time.Hour, 5 * ms, 5 * ms},
		{ms, 7 * ms, 5 * ms},
	} {
		at += x.after
		if p.sample(at, x.sample, rowLength); p.rtt != x.want {
			t.Fatalf("sample %d, %v: %v, want %v", p.count, x.sample, p.rtt, x.want)
		}
	}
}

// noticed returns when the way to a peer, which was measured every 10 s to be 1 ms, is
// believed to be clearly longer if later samples, every so often, are what is said.
func noticed(every time.Duration, later func() time.Duration) time.Duration {
	p := peer{samples: unmeasured()}
	for i := range 5 {
		p.sample(time.Duration(i)*10*time.Second, ms, rowLength)
	}
	for after := every; after < oldest; after += every {
		if p.sample(40*time.Second+after, later(), rowLength); muchNearer(ms, p.rtt) {
			return after
		}
	}
	return oldest
}

// However often it is measured, half a minute of a busy host that answers late by chance is
// not believed.
func TestBusyHostIsNotFarther(t *testing.T) {
	for _, every := range []time.Duration{ms, 100 * ms, time.Second, 1500 * ms, 10 * time.Second} {
		rnd := seeded(1, uint64(every))
		got := noticed(every, func() time.Duration { return ms + time.Duration(rnd.Int64N(int64(40*ms))) })
		if got < 30*time.Second {
			t.Errorf("with a sample every %v a busy host is believed to be farther after %v", every, got)
		}
	}
}

// A way that is longer by a half is known as such when five samples agree, in no less than
// four seconds.
func TestLongerWayIsNoticed(t *testing.T) {
	for every, want := range map[time.Duration]time.Duration{
		ms: 4001 * ms, time.Second: 5 * time.Second, 1500 * ms: 7500 * ms, 10 * time.Second: 50 * time.Second,
	} {
		rnd := seeded(2, uint64(every))
		got := noticed(every, func() time.Duration {
			if rnd.IntN(10) == 0 {
				return 30 * ms // late on its way
			}
			return 1500*time.Microsecond + time.Duration(rnd.Int64N(int64(100*time.Microsecond)))
		})
		if got < want || got > 2*want {
			t.Errorf("with a sample every %v a longer way is noticed after %v, want about %v", every, got, want)
		}
	}
}

// The round trip by fresh samples is that of all where these do not say otherwise.
func TestFreshSamples(t *testing.T) {
	p := peer{samples: unmeasured()}
	look := func(at, want time.Duration) {
		t.Helper()
		if got, ok := p.fresh(at, 30*time.Second); got != want || ok != (want > 0) {
			t.Errorf("at %v: %v %v, want %v", at, got, ok, want)
		}
	}
	p.sample(0, 10*ms, rowLength)
	look(0, 0) // one is not enough
	p.sample(time.Second, 11*ms, rowLength)
	look(2*time.Second, 10*ms)
	look(time.Minute, 0) // too long ago
	p.sample(time.Minute, 11*ms, rowLength)
	p.sample(61*time.Second, 50*ms, rowLength)
	look(62*time.Second, 10*ms)
	p.sample(2*time.Minute, 50*ms, rowLength)
	p.sample(121*time.Second, 51*ms, rowLength)
	look(122*time.Second, 50*ms) // sooner than rtt believes it
	if p.rtt != 10*ms {
		t.Errorf("rtt is %v", p.rtt)
	}
}

// What was measured before a peer was found to be elsewhere does not count beside a sample
// from after that.
func TestRenewedSamples(t *testing.T) {
	p := peer{samples: unmeasured()}
	for i := range 4 {
		p.sample(time.Duration(i), ms, rowLength)
	}
	p.renew = true
	if p.sample(time.Second, 30*ms, rowLength); p.rtt != 30*ms || p.count != 1 || p.renew {
		t.Errorf("%v by %d samples, renew %v", p.rtt, p.count, p.renew)
	}
}
