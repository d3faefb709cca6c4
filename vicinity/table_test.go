package vicinity

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// lan connects tables by timers, as an overlay would.
type lan struct {
	ctx    context.Context
	wg     sync.WaitGroup
	tables map[ID]*Table
	stop   map[ID]context.CancelFunc
}

func newLAN(t *testing.T) *lan {
	l := &lan{ctx: t.Context(), tables: make(map[ID]*Table), stop: make(map[ID]context.CancelFunc)}
	return l
}

// start makes tables 0 to n-1 and runs them. All know all at once. Nodes of
// equal number modulo 3 are 1 ms apart, others 20 ms.
func (l *lan) start(n int) {
	for i := range n {
		self := testID(i)
		l.tables[self] = New(Config{
			Self: self, Rand: seeded(7, uint64(i)), Log: zerolog.New(io.Discard),
			Send: func(to ID, payload []byte) {
				delay := 10 * time.Millisecond
				if peer, ok := l.tables[to]; ok {
					if l.group(to, n) == i%3 {
						delay = time.Millisecond / 2
					}
					time.AfterFunc(delay, func() { peer.Receive(self, payload) })
				}
			},
		})
	}
	for i := range n {
		ctx, cancel := context.WithCancel(l.ctx)
		t := l.tables[testID(i)]
		l.stop[testID(i)] = cancel
		l.wg.Go(func() { _ = t.Run(ctx) })
		for j := range n {
			t.Join(Member{ID: testID(j), Name: "node"})
		}
	}
}

func (l *lan) group(id ID, n int) int {
	for i := range n {
		if testID(i) == id {
			return i % 3
		}
	}
	return -1
}

func (l *lan) end() {
	for _, stop := range l.stop {
		stop()
	}
	l.wg.Wait()
	time.Sleep(time.Minute) // packets under way
}

func TestThreeTablesAreLinkedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t)
		l.start(3)
		time.Sleep(100 * time.Millisecond)
		for id, x := range l.tables {
			list := x.Neighbours()
			if len(list) != 2 || list[0].Far || list[0].RTT != 20*time.Millisecond {
				t.Errorf("%s has neighbours %+v", id.Short(), list)
			}
			if len(x.Members()) != 3 {
				t.Errorf("%s has %d members", id.Short(), len(x.Members()))
			}
		}
		l.end()
	})
}

func TestTablesFindTheNearest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t)
		l.start(30)
		time.Sleep(15 * time.Second)
		for id, x := range l.tables {
			right := 0
			for _, n := range x.Neighbours() {
				if !n.Far && n.RTT == time.Millisecond {
					right++
				}
			}
			if right < 6 {
				t.Errorf("%s: %+v", id.Short(), x.Neighbours())
			}
		}
		a, far, near := l.tables[testID(0)], testID(1), testID(3)
		if rtt, ok := a.RTT(near); !ok || rtt != time.Millisecond {
			t.Errorf("RTT %v %v", rtt, ok)
		}
		if rtt, measured := a.Estimate(far); !measured || rtt != 20*time.Millisecond {
			t.Errorf("estimate %v %v", rtt, measured)
		}
		if d, ok := a.Distance(far, near); !ok || d < 10*time.Millisecond || d > 40*time.Millisecond {
			t.Errorf("distance %v %v, want about 20ms", d, ok)
		}
		if a.Position(testID(0)) == nil || a.Position(far) == nil || a.Position(testID(99)) != nil {
			t.Error("positions are missing, or invented")
		}
		if s := a.Stats(); s.Sent == 0 || s.Received == 0 || s.Links < 8 || s.Measured < 20 || s.Lost+s.Malformed+s.Strangers+s.Excess > 0 {
			t.Errorf("stats %+v", s)
		}
		l.end()
	})
}

func TestTableTellsOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t)
		l.start(3)
		time.Sleep(5 * time.Second)
		a := l.tables[testID(0)]
		changed := a.Changed()
		time.Sleep(time.Minute)
		select {
		case <-changed:
			t.Error("a change was told of while there was none")
		default:
		}
		start := time.Now()
		a.Join(Member{ID: testID(1), Name: "renamed"})
		if m, ok := a.Member(testID(1)); !ok || m.Name != "renamed" {
			t.Errorf("member %+v %v", m, ok)
		}
		a.Leave(testID(1))
		<-changed
		if d := time.Since(start); d != 0 {
			t.Errorf("told after %v", d)
		}
		if _, ok := a.Member(testID(1)); ok || len(a.Neighbours()) != 1 {
			t.Errorf("left: %v, neighbours %v", ok, a.Neighbours())
		}
		l.end()
	})
}

// The overlay may hold locks when it calls: nothing is sent from its calls.
func TestOnlyRunSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var overlay sync.Mutex
		sent := 0
		x := New(Config{Self: testID(0), Log: zerolog.Nop(), Send: func(ID, []byte) {
			overlay.Lock()
			defer overlay.Unlock()
			sent++
		}})
		overlay.Lock()
		x.Join(Member{ID: testID(1)})
		x.Receive(testID(1), message{Kind: kindPing, Nonce: 1}.encode())
		x.Receive(testID(1), []byte("junk"))
		x.Observe(testID(1), time.Millisecond)
		overlay.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- x.Run(ctx) }()
		synctest.Wait()
		if overlay.Lock(); sent != 2 {
			t.Errorf("%d packets, want a ping and a pong", sent)
		}
		overlay.Unlock()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// Without Run, what waits to be sent is bounded and counted.
func TestWaitingPacketsAreBounded(t *testing.T) {
	x := New(Config{Self: testID(0), Log: zerolog.Nop(), Send: func(ID, []byte) {}})
	for i := range 2000 {
		x.Join(Member{ID: testID(i + 1)})
		x.Receive(testID(i+1), message{Kind: kindPing, Nonce: 1}.encode())
	}
	if s := x.Stats(); len(x.waiting) != maxWaiting || s.Lost == 0 {
		t.Errorf("%d packets wait, %d lost", len(x.waiting), s.Lost)
	}
}
