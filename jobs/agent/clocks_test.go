package agent

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// farAway is a network with one other node, whose clock goes ahead.
type farAway struct {
	Overlay
	ahead time.Duration
	down  bool
	asked atomic.Int64
}

func (*farAway) Learn(vicinity.ID, []string) {}

func (f *farAway) RoundTrip(r *http.Request) (*http.Response, error) {
	f.asked.Add(1)
	time.Sleep(100 * time.Millisecond)
	if f.down {
		return nil, errors.New("no answer")
	}
	b := codec.MustMarshal(wire.Clock{Now: time.Now().Add(f.ahead).UnixMilli()})
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(b)), Request: r}, nil
}

// An advertisement counts for a minute, by the clock of the node that signed it,
// however wrong that goes, and never in a life that began after it.
func TestOldAdvertisementsHoldNothing(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"clocks agree": 0, "an hour ahead": time.Hour, "a day behind": -24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			self, origin := jobtest.NewSigner(1), jobtest.NewSigner(2)
			far := &farAway{ahead: ahead}
			life := func() *Service {
				s := New(Config{Self: vicinity.Member{ID: self.ID, Slots: 1}, Overlay: far, Client: &http.Client{Transport: far}, Store: transfer.NewMemStore(0), Verify: jobtest.Verify, Rand: rand.New(rand.NewPCG(1, 2))})
				s.loop.Start(owner{s})
				return s
			}
			s := life()
			check := func(signed time.Time) error {
				ad := wiretest.Ad(origin.ID, "k7f3q", 1, 1)
				ad.Signed = signed.Add(ahead).UnixMilli()
				msg := codec.MustMarshal(ad)
				return s.CheckAdvertisement(origin.ID, append(origin.Sign(wire.SignatureDomain, msg), msg...))
			}
			is := func(what string, err, want error) {
				t.Helper()
				if !errors.Is(err, want) {
					t.Errorf("%s, %s: got %v, want %v", name, what, err, want)
				}
			}
			time.Sleep(time.Hour)
			if ahead != 0 {
				is("a clock that is not known yet", check(time.Now()), flood.ErrLate)
				time.Sleep(time.Second)
			}
			is("just now", check(time.Now()), nil)
			recorded := time.Now()
			time.Sleep(59 * time.Second)
			is("59 s ago", check(recorded), nil)
			time.Sleep(2 * time.Second)
			for range 1000 {
				is("a minute ago", check(recorded), flood.ErrLate)
				is("from the future", check(time.Now().Add(2*time.Minute)), flood.ErrLate)
			}
			time.Sleep(time.Second)
			if n := far.asked.Load(); n > 2 {
				t.Errorf("%s: the origin was asked for its clock %d times", name, n)
			}
			// It is started again.
			recorded = time.Now()
			time.Sleep(time.Second)
			s.loop.Stop()
			s = life()
			check(recorded)
			time.Sleep(time.Second)
			is("from before it was started", check(recorded), flood.ErrLate)
			is("from after it was started", check(time.Now()), nil)
			// The origin is gone.
			far.down = true
			time.Sleep(time.Hour)
			is("a recording, of a node that is gone", check(recorded), flood.ErrLate)
			time.Sleep(clockTimeout)
			s.loop.Stop()
		})
	}
}

// No more is remembered, and no more asked at a time, than there is room for.
func TestClocksAreBounded(t *testing.T) {
	c, now := newClocks(time.Now()), time.Now()
	for i := range maxClocks + 10 {
		id := vicinity.ID(rune(i + 1))
		if c.ask(now, id) != (i < wire.MaxClockAsked || i >= 100) {
			t.Fatalf("question %d", i)
		}
		if i == 99 {
			for range wire.MaxClockAsked {
				c.silent()
			}
		}
		if i >= 100 {
			c.answered(now, 0, id, now.UnixMilli())
		}
	}
	if len(c.known) > maxClocks {
		t.Errorf("%d clocks are known", len(c.known))
	}
}
