package vicinity

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPingMeasuresNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t)
		l.start(6)
		time.Sleep(2 * time.Second)
		a := l.tables[testID(0)]
		for i, want := range map[int]time.Duration{3: time.Millisecond, 1: 20 * time.Millisecond} {
			if rtt, err := a.Ping(t.Context(), testID(i)); err != nil || rtt != want {
				t.Errorf("member %d: %v, %v, want %v", i, rtt, err, want)
			}
		}
		if len(a.asked) != 0 {
			t.Errorf("%d questions are kept", len(a.asked))
		}
		l.end()
	})
}

func TestPingsToOneMemberKeepADistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t)
		l.start(3)
		time.Sleep(20 * time.Second)
		a, start := l.tables[testID(0)], time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		answered, busy := 0, 0
		for range 70 {
			wg.Go(func() {
				_, err := a.Ping(t.Context(), testID(1))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					answered++
				case errors.Is(err, ErrBusy):
					busy++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if d := time.Since(start); answered != 51 || busy != 19 || d < 10*time.Second || d > 11*time.Second {
			t.Errorf("%d answers and %d refusals in %v", answered, busy, d)
		}
		if s := l.tables[testID(1)].Stats(); s.Excess != 0 {
			t.Errorf("the member dropped %d messages as too many", s.Excess)
		}
		time.Sleep(time.Minute)
		if _, err := a.Ping(t.Context(), testID(2)); err != nil || len(a.nextPing) != 1 {
			t.Errorf("%v, %d turns are kept", err, len(a.nextPing))
		}
		l.end()
	})
}

func TestPingErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t)
		l.start(2)
		a := l.tables[testID(0)]
		a.Join(Member{ID: testID(7)}) // nobody answers there
		for id, want := range map[ID]error{testID(0): ErrUnknown, testID(9): ErrUnknown, testID(7): ErrNoAnswer} {
			if _, err := a.Ping(t.Context(), id); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Ping(ctx, testID(7)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that of the context", err)
		}
		if len(a.asked) != 0 {
			t.Errorf("%d questions are kept", len(a.asked))
		}
		l.end()
	})
}

func TestProbeAsksOnceASecond(t *testing.T) {
	k := newTalk(t, 1, 1, 20)
	k.after(3 * time.Second)
	k.said(15, kindPing)
	k.now = k.now.Add(askAgain)
	for range 10 {
		k.took(k.core.Probe(k.now, testID(15)))
		k.now = k.now.Add(50 * ms)
	}
	if n := len(k.said(15, kindPing)); n != sureSamples {
		t.Fatalf("%d pings within a second, want %d", n, sureSamples)
	}
	k.now = k.now.Add(time.Second)
	k.took(k.core.Probe(k.now, testID(15)))
	if n := len(k.said(15, kindPing)); n != sureSamples {
		t.Fatalf("%d pings a second later, want %d", n, sureSamples)
	}
	if out := append(k.core.Probe(k.now, testID(0)), k.core.Probe(k.now, testID(99))...); len(out) != 0 {
		t.Errorf("probes of the node itself and of a stranger: %v", out)
	}
}

func TestNearerListsTheMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t)
		l.start(6)
		time.Sleep(10 * time.Second)
		a := l.tables[testID(0)]
		all := a.Nearer(time.Hour, 100)
		if len(all) < 2 {
			t.Fatalf("measured only %v", all)
		}
		for i, m := range all {
			if rtt, ok := a.RTT(m.ID); !ok || rtt != m.RTT || i > 0 && m.RTT < all[i-1].RTT {
				t.Errorf("%v: not the nearest first, or not as measured", all)
			}
		}
		last := all[len(all)-1].RTT
		for _, m := range a.Nearer(last, 100) {
			if m.RTT >= last {
				t.Errorf("%v is not nearer than %v", m.RTT, last)
			}
		}
		if got := a.Nearer(time.Hour, 2); len(got) != 2 || got[0] != all[0] || got[1] != all[1] {
			t.Errorf("the nearest two of %v are %v", all, got)
		}
		l.end()
	})
}
