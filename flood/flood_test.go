package flood

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"zorilla/vicinity"
)

// network joins flooders in one bubble; packets take 10 ms.
type network struct {
	flooders map[vicinity.ID]*Flooder
	mu       sync.Mutex
	heard    map[vicinity.ID][]Message
	logs     bytes.Buffer
	running  sync.WaitGroup
}

func newNetwork(t *testing.T, links map[int][]int) *network {
	w := &network{flooders: map[vicinity.ID]*Flooder{}, heard: map[vicinity.ID][]Message{}}
	for n, to := range links {
		self := node(n)
		var ids []vicinity.ID
		for _, k := range to {
			ids = append(ids, node(k))
		}
		w.flooders[self] = New(Config{
			Self:       self,
			Neighbours: func() []vicinity.ID { return ids },
			Send: func(to vicinity.ID, packet []byte) {
				time.AfterFunc(10*time.Millisecond, func() { w.flooders[to].Receive(self, packet) })
			},
			Check: func(_ vicinity.ID, p []byte) error {
				if string(p) == "bad" {
					return errors.New("bad signature")
				}
				return nil
			},
			Deliver: func(m Message) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.heard[self] = append(w.heard[self], m)
			},
			Rand: rand.New(rand.NewPCG(uint64(n), 1)),
			Log:  zerolog.New(zerolog.SyncWriter(&w.logs)),
		})
	}
	return w
}

func (w *network) run(ctx context.Context, t *testing.T) {
	for _, f := range w.flooders {
		w.running.Go(func() {
			if err := f.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestShell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(t, map[int][]int{0: {1}, 1: {0, 2}, 2: {1, 3}, 3: {2}})
		ctx, cancel := context.WithCancel(t.Context())
		w.run(ctx, t)
		fl, err := w.flooders[node(0)].Start(2, time.Minute, []byte("hi"))
		if err != nil || fl.Copies != 1 {
			t.Fatalf("got %d copies, %v", fl.Copies, err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for n, want := range []int{0, 1, 1, 0} {
			if got := len(w.heard[node(n)]); got != want {
				t.Errorf("node %d heard %d messages, want %d", n, got, want)
			}
		}
		if m := w.heard[node(2)][0]; m.Hops != 2 || m.Origin != node(0) || string(m.Payload) != "hi" {
			t.Errorf("node 2 heard %+v", m)
		}
		if s := w.flooders[node(1)].Stats(); s.Received != 1 || s.Delivered != 1 || s.Forwarded != 1 {
			t.Errorf("node 1 counts %+v", s)
		}
		cancel()
		w.running.Wait()
		if _, err := w.flooders[node(0)].Start(1, time.Minute, nil); !errors.Is(err, ErrStopped) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestBadMessagesAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(t, map[int][]int{0: {1}, 1: {0}})
		ctx, cancel := context.WithCancel(t.Context())
		w.run(ctx, t)
		for range 10 {
			w.flooders[node(1)].Receive(node(0), make([]byte, 1<<20))
			if _, err := w.flooders[node(0)].Start(1, time.Minute, []byte("bad")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if s := w.flooders[node(1)].Stats(); s.Malformed != 10 || s.Refused != 10 || s.Delivered != 0 {
			t.Errorf("counts %+v", s)
		}
		cancel()
		w.running.Wait()
		if n := strings.Count(w.logs.String(), "\n"); n != 2 {
			t.Errorf("%d lines in the log, want one for each kind:\n%s", n, w.logs.String())
		}
	})
}

func TestFullInboxDropsAndCounts(t *testing.T) {
	f := New(Config{Self: node(0)}) // not running: nobody empties the inbox
	for range inboxSize + 5 {
		f.Receive(node(1), []byte("x"))
	}
	if s := f.Stats(); s.Dropped != 5 {
		t.Fatalf("%d dropped, want 5", s.Dropped)
	}
}

func TestPacketIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(t, map[int][]int{0: {1}})
		b := encode(message(1, 1, 1, "x"))
		w.flooders[node(0)].Receive(node(1), b)
		clear(b)
		ctx, cancel := context.WithCancel(t.Context())
		w.run(ctx, t)
		synctest.Wait()
		cancel()
		w.running.Wait()
		if len(w.heard[node(0)]) != 1 {
			t.Fatal("the packet changed in the inbox")
		}
	})
}
