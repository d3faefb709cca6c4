package fastrpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/vicinity"
)

// What many nodes have told, and what one sends, is bounded.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		key := p.far.Key()
		for i := range maxKeys + 10 {
			p.near.Learn(vicinity.ID(fmt.Sprint(i)), key)
		}
		p.near.Learn(p.farID, key[1:])
		if len(p.near.theirs) != maxKeys {
			t.Errorf("%d keys are known", len(p.near.theirs))
		}
		time.Sleep(keyLasts)
		p.near.Learn(p.farID, p.far.Key())
		if len(p.near.theirs) != 1 {
			t.Errorf("%d keys are known after a minute", len(p.near.theirs))
		}
		p.slow = time.Minute
		for i := range maxServedEach + 20 {
			go p.ask(t, "/early", fmt.Sprint(i))
		}
		time.Sleep(rtt)
		synctest.Wait()
		p.mu.Lock()
		if s := p.far.Stats(); s.Received != maxServedEach || s.Left != 20 || len(p.handled) != maxServedEach {
			t.Errorf("counted %+v, %d are being done", s, len(p.handled))
		}
		p.mu.Unlock()
		time.Sleep(time.Hour)
		p.once(t)
	})
}

// A request that was given up is no packet when a connection begins to be made for it afterwards.
func TestLateConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.near.cfg.Over = roundTripper(func(r *http.Request) (*http.Response, error) {
			time.Sleep(rtt)
			Dialing(r.Context())
			return nil, errors.New("refused")
		})
		p.near.Learn(p.farID, p.far.Key())
		ctx, cancel := context.WithTimeout(t.Context(), rtt/2)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(p.farID)+"/early", strings.NewReader("a"))
		if _, err := p.near.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		time.Sleep(lasts)
		if len(p.packets) > 0 || len(p.near.calls) > 0 {
			t.Errorf("%d packets were sent, %d requests are known", len(p.packets), len(p.near.calls))
		}
	})
}

// A fault of what does a request ends that request, not the node.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.far.cfg.Serve = func(http.ResponseWriter, *http.Request, vicinity.ID) { panic("a fault") }
		p.near.Learn(p.farID, p.far.Key())
		if got, took := p.ask(t, "/early", "a"); got != "500 " || took != rtt {
			t.Errorf("got %q after %v", got, took)
		}
		time.Sleep(2 * lasts)
	})
}

// Keys and requests are forgotten also where nothing happens any more.
func TestWhatIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.far.Run(ctx) }()
		p.near.Learn(p.farID, p.far.Key())
		p.ask(t, "/early", "a")
		time.Sleep(keyOpens + keyLasts/2)
		p.far.mu.Lock()
		if len(p.far.own) > 0 || p.far.seen.all != 1 {
			t.Errorf("%d keys, %d requests", len(p.far.own), p.far.seen.all)
		}
		p.far.mu.Unlock()
		time.Sleep(keyLasts)
		p.far.mu.Lock()
		if len(p.far.seen.senders) > 0 || p.far.seen.all > 0 {
			t.Errorf("%d requests of %d nodes", p.far.seen.all, len(p.far.seen.senders))
		}
		p.far.mu.Unlock()
		stop()
		<-ended
	})
}

// Of a node that sends too much only connections count, until all that it has sent is remembered
// again: no packet of it is done that may have come before. Others are not hindered.
func TestTooMuchToRemember(t *testing.T) {
	before := time.Now()
	now := before.Add(remembered / 2)
	s := seen{senders: map[vicinity.ID]*sender{}}
	for i := range maxSeen + 1 {
		at := before
		if i > 0 {
			at = now
		}
		if s.connection(at, "a", number{byte(i), byte(i >> 8)}) != nil {
			t.Fatal("came as a packet")
		}
	}
	last := number{byte(maxSeen & 0xff), byte(maxSeen >> 8)} // which is not remembered
	for _, at := range []time.Time{now, before.Add(remembered), now.Add(remembered - 1)} {
		if s.packet(at, "a", last) != nil {
			t.Error("a packet is done though it came over the connection, after", at.Sub(now))
		}
	}
	if s.packet(now, "b", number{1}) == nil {
		t.Error("another node is hindered")
	}
	later := now.Add(remembered)
	s.expire(later)
	if s.packet(later, "a", last) == nil || s.all != 1 {
		t.Errorf("later %d are remembered", s.all)
	}
	s.ended("a")
	for i := range 40 { // of many nodes
		for k := range maxSeen {
			s.connection(later, vicinity.ID(fmt.Sprint(i)), number{byte(k), byte(k >> 8)})
		}
	}
	if s.all != maxAll {
		t.Errorf("%d are remembered", s.all)
	}
}
