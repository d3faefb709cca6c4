package uplink_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/internal/uplink"
)

const chunk = 1 << 20

// send sends chunks to a node in as many requests at a time.
func send(t *testing.T, u *uplink.Uplink, wg *sync.WaitGroup, to string, requests, chunks int, slowest *time.Duration, mu *sync.Mutex) {
	data := make([]byte, chunk)
	left := make(chan struct{}, chunks)
	for range chunks {
		left <- struct{}{}
	}
	close(left)
	for range requests {
		wg.Go(func() {
			for range left {
				turn, err := u.Begin(t.Context(), to, chunk, nil)
				if err != nil {
					t.Error(err)
					return
				}
				began := time.Now()
				if n, err := turn.Write(t.Context(), io.Discard, data); n != chunk || err != nil {
					t.Errorf("%d bytes, %v", n, err)
				}
				turn.End()
				mu.Lock()
				*slowest = max(*slowest, time.Since(began))
				mu.Unlock()
			}
		})
	}
}

// However many fetch, all together get what the limit allows, and each of them fast enough.
func TestLimit(t *testing.T) {
	for _, c := range []struct{ limit, nodes int }{{uplink.Least, 1}, {uplink.Least, 12}, {1 << 20, 12}, {10 << 20, 12}, {10 << 20, 100}, {1 << 30, 12}} {
		t.Run(fmt.Sprint(c.limit>>10, " KiB/s to ", c.nodes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := uplink.New("self")
				u.Limit(int64(c.limit))
				began := time.Now()
				var wg sync.WaitGroup
				var mu sync.Mutex
				var slowest time.Duration
				const chunks = 8
				for i := range c.nodes {
					send(t, u, &wg, fmt.Sprint(i), 8, chunks, &slowest, &mu)
				}
				wg.Wait()
				total := float64(c.nodes * chunks * chunk)
				if rate := total / time.Since(began).Seconds(); rate < 0.98*float64(c.limit) || rate > 1.03*float64(c.limit) {
					t.Errorf("%.0f bytes/s, want %d", rate, c.limit)
				}
				if rate := chunk / slowest.Seconds(); rate < 13_000 {
					t.Errorf("a chunk came with %.0f bytes/s", rate)
				}
				if s := u.Stats(); s.Sent != int64(total) || s.Waiting != 0 || s.Limit != int64(c.limit) {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// Who asks for more at a time gets no more than others, and a stream no less.
func TestFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := uplink.New("self")
		u.Limit(1 << 20)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got := make([]int64, 3)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for node, requests := range []int{4, 32} {
			for range requests {
				wg.Go(func() {
					for ctx.Err() == nil {
						turn, err := u.Begin(ctx, fmt.Sprint(node), chunk, nil)
						if err != nil {
							return
						}
						n, _ := turn.Write(ctx, io.Discard, make([]byte, chunk))
						turn.End()
						mu.Lock()
						got[node] += int64(n)
						mu.Unlock()
					}
				})
			}
		}
		wg.Go(func() {
			w := u.Writer(ctx, "2", writerFunc(func(b []byte) (int, error) {
				got[2] += int64(len(b))
				return len(b), nil
			}))
			for ctx.Err() == nil {
				w.Write(make([]byte, 300<<10))
			}
		})
		time.Sleep(5 * time.Minute)
		cancel()
		wg.Wait()
		for node, n := range got[:2] {
			if math.Abs(float64(n)-120*chunk) > 5*chunk { // of five at a time one is a stream
				t.Errorf("node %d was sent %d MiB of 300", node, n/chunk)
			}
		}
		if got[2] < 50*chunk {
			t.Errorf("the stream was sent %d MiB of 300", got[2]/chunk)
		}
	})
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Who waits is told of, may go away, and owes nothing then.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := uplink.New("self")
		u.Limit(1) // as little as there is
		if s := u.Stats(); s.Limit != uplink.Least {
			t.Errorf("the limit is %d", s.Limit)
		}
		var turns []*uplink.Turn
		for range 4 {
			turn, err := u.Begin(t.Context(), "a", chunk, nil)
			if err != nil {
				t.Fatal(err)
			}
			turns = append(turns, turn)
		}
		still := 0
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
		defer cancel()
		if _, err := u.Begin(ctx, "b", chunk, func() { still++ }); !errors.Is(err, context.DeadlineExceeded) || still != 2 {
			t.Errorf("a fifth at a time: %v, told %d times", err, still)
		}
		if turn, err := u.Begin(t.Context(), "self", chunk, nil); err != nil {
			t.Error(err)
		} else {
			turn.End()
		}
		come := make(chan string)
		for _, to := range []string{"a", "a", "b"} { // b was sent nothing, a is being sent
			go func() {
				turn, err := u.Begin(t.Context(), to, chunk, nil)
				if err != nil {
					t.Error(err)
				}
				come <- to
				turn.End()
			}()
			synctest.Wait()
		}
		turns[0].Write(t.Context(), io.Discard, make([]byte, chunk))
		turns[0].End()
		if to := <-come; to != "b" {
			t.Errorf("%s was next", to)
		}
		u.Limit(0) // nobody waits any more
		<-come
		<-come
		for _, turn := range turns[1:] {
			turn.End()
		}
		if s := u.Stats(); s.Waiting != 0 || s.Limit != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A reader of a stream that does not read keeps nobody waiting.
func TestStreamThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := uplink.New("self")
		u.Limit(uplink.Least)
		gate := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				u.Writer(t.Context(), fmt.Sprint(i), writerFunc(func(b []byte) (int, error) { <-gate; return len(b), nil })).Write(make([]byte, 1000))
			})
		}
		synctest.Wait()
		var b bytes.Buffer
		if n, err := u.Writer(t.Context(), "x", &b).Write(make([]byte, 100_000)); n != 100_000 || err != nil || b.Len() != n {
			t.Errorf("%d bytes, %v", n, err)
		}
		close(gate)
		wg.Wait()
	})
}

// What takes nothing, and does not say why, is not written to for ever.
func TestShortWrite(t *testing.T) {
	u := uplink.New("self")
	none := writerFunc(func([]byte) (int, error) { return 0, nil })
	turn, err := u.Begin(t.Context(), "a", chunk, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer turn.End()
	if _, err := turn.Write(t.Context(), none, []byte("x")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a turn: %v", err)
	}
	if _, err := u.Writer(t.Context(), "a", none).Write([]byte("x")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a stream: %v", err)
	}
}

// Without an Uplink nothing is bounded.
func TestNone(t *testing.T) {
	var u *uplink.Uplink
	turn, err := u.Begin(t.Context(), "a", chunk, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer turn.End()
	if n, err := turn.Write(t.Context(), io.Discard, make([]byte, 3*chunk)); n != 3*chunk || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
