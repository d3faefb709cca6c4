package process

import (
	"slices"
	"testing"
	"time"
)

// kinds lists what is told, in order.
func kinds(all []message) (list []string) {
	for _, m := range all {
		list = append(list, m.Kind)
	}
	return list
}

func TestOutboxIsEmptyAfterItWasTaken(t *testing.T) {
	var b outbox
	b.stopAfter(0, time.Second)
	b.heardAt(time.Unix(1, 0), time.Hour)
	b.signal = message{Kind: kindSignal, Signal: 10}
	b.add(message{Kind: kindTasks})
	if got := kinds(b.drain([2]int64{0, 11}, 10)); !slices.Equal(got, []string{kindStop, kindHeard, kindSignal, kindTasks, kindAck}) {
		t.Errorf("told %q", got)
	}
	if got := b.drain([2]int64{0, 11}, 10); len(got) != 0 {
		t.Errorf("told again: %+v", got)
	}
}

func TestTheShortestGraceCounts(t *testing.T) {
	var b outbox
	for _, grace := range []time.Duration{time.Minute, time.Second, time.Hour} {
		b.stopAfter(0, grace)
	}
	if got := b.drain([2]int64{}, 10); len(got) != 1 || got[0].Grace != time.Second {
		t.Errorf("told %+v", got)
	}
	b.stopAfter(time.Minute, time.Second)
	b.stopAfter(0, time.Minute)
	b.stopAfter(time.Hour, time.Minute)
	if got := b.drain([2]int64{}, 10); len(got) != 1 || got[0].Notice != 0 || got[0].Grace != time.Second {
		t.Errorf("told %+v", got)
	}
	b.stopAfter(1000*time.Hour, 1000*time.Hour)
	if got := b.drain([2]int64{}, 10); len(got) != 1 || got[0].Grace != maxGrace || got[0].Notice != maxGrace || got[0].check() != nil {
		t.Errorf("told %+v, which the supervisor refuses", got)
	}
}

// An origin is heard of at each report: the supervisor is told twenty times within
// its limit, and every half minute at least.
func TestTheOriginIsToldOfSparingly(t *testing.T) {
	for limit, want := range map[time.Duration]int{0: 0, 100 * time.Second: 200, time.Hour: 34} {
		var b outbox
		told := 0
		for s := range 1000 {
			if b.heardAt(time.Unix(int64(s), 0), limit) {
				told++
			}
		}
		if told != want {
			t.Errorf("limit %v: told %d times in 1000 s, want %d", limit, told, want)
		}
	}
}

// Small steps are saved up, but counted from what was told.
func TestAcknowledgementsAreSavedUp(t *testing.T) {
	var b outbox
	for _, c := range []struct {
		acked [2]int64
		tell  bool
	}{{[2]int64{10, 10}, false}, {[2]int64{11, 10}, true}, {[2]int64{21, 20}, false}, {[2]int64{21, 21}, true}} {
		got := b.drain(c.acked, 10)
		if (len(got) == 1) != c.tell || c.tell && (got[0].Stdout != c.acked[0] || got[0].Stderr != c.acked[1]) {
			t.Errorf("%v: told %+v", c.acked, got)
		}
	}
}

// A supervisor that does not read makes nobody's memory grow.
func TestTasksThatWaitAreFew(t *testing.T) {
	var b outbox
	for range 10 * maxAdds {
		b.add(message{Kind: kindTasks})
	}
	if got := len(b.drain([2]int64{}, 10)); got != maxAdds {
		t.Errorf("%d wait, want %d", got, maxAdds)
	}
}

// What one node says was delivered, or a supervisor says was written, never goes
// back, and nothing is delivered that was not written.
func TestCountsOfStreamsOnlyGrow(t *testing.T) {
	var s streams
	if !s.advance([2]int64{100, 0}, [2]int64{30, 0}) || s.advance([2]int64{90, 0}, [2]int64{20, 0}) {
		t.Error("what is news was not told from what is not")
	}
	s.ack(20, 0)
	if s.written != [2]int64{100, 0} || s.acked != [2]int64{30, 0} {
		t.Errorf("written %v, acknowledged %v", s.written, s.acked)
	}
	if s.ack(1000, 5); s.acked != [2]int64{100, 0} {
		t.Errorf("acknowledged %v of %v", s.acked, s.written)
	}
}
