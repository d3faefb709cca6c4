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
		if p.sample(at, x.sample); p.rtt != x.want {
			t.Fatalf("sample %d, %v: %v, want %v", p.count, x.sample, p.rtt, x.want)
		}
	}
}

// However often it is measured, a busy time of half a minute is not believed,
// and a longer way is after two.
func TestWindowIsMeasuredInTime(t *testing.T) {
	for _, every := range []time.Duration{ms, 100 * ms, time.Second, 10 * time.Second} {
		var p peer
		p.sample(0, ms)
		at, noticed := every, time.Duration(0)
		for ; noticed == 0 && at < oldest; at += every {
			if p.sample(at, 20*ms); p.rtt > ms {
				noticed = at
			}
		}
		if noticed < time.Minute || noticed > window*(slotTime+every) {
			t.Errorf("with a sample every %v a longer way is noticed after %v", every, noticed)
		}
	}
}
