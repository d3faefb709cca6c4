package exchange_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/transfer"
	"zorilla/transfer/exchange"
)

// line is one uplink that all answers share.
type line struct {
	taken chan struct{}
	rate  int // bytes a second

	mu        sync.Mutex // guards what follows
	now, most int        // answers that are sent
}

// lined is an answer over a line.
type lined struct {
	*httptest.ResponseRecorder
	line *line
}

func (l lined) Write(b []byte) (int, error) {
	l.line.count(1)
	defer l.line.count(-1)
	const packet = 16 << 10
	for left := len(b); left > 0; left -= packet {
		l.line.taken <- struct{}{}
		time.Sleep(time.Duration(min(packet, left)) * time.Second / time.Duration(l.line.rate))
		<-l.line.taken
	}
	return len(b), nil
}

// hung is an answer that nobody reads for long.
type hung struct{ *httptest.ResponseRecorder }

func (hung) Write(b []byte) (int, error) {
	time.Sleep(100 * time.Second)
	return len(b), nil
}

func (l *line) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now += n
	l.most = max(l.most, l.now)
}

// Few are sent side by side where each takes long, for some to be whole early; more fill a fast
// uplink, whoever their receivers are. That follows the uplink.
func TestTurnsFollowTheUplink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := transfer.NewMemStore(0)
		data := bytes.Repeat([]byte("z"), transfer.ChunkSize)
		h := transfer.HashOf(data)
		if err := store.Put(h, data); err != nil {
			t.Fatal(err)
		}
		handler := exchange.New(exchange.Config{Store: store}).Handler()
		l := &line{taken: make(chan struct{}, 1)}
		sent := func(answers, rate int) (most int) {
			l.rate, l.most = rate, 0
			var wg sync.WaitGroup
			for range answers {
				wg.Go(func() {
					handler.ServeHTTP(lined{httptest.NewRecorder(), l}, httptest.NewRequest(http.MethodGet, exchange.BlobPath+h.String(), nil))
				})
			}
			wg.Wait()
			return l.most
		}
		for _, c := range []struct{ mbit, most int }{{10, 4}, {100, 8}, {25, 8}, {10, 4}, {16, 4}, {100, 8}, {16, 8}} {
			sent(60, c.mbit*1e6/8) // until it is known
			if most := sent(30, c.mbit*1e6/8); most != c.most {
				t.Errorf("%d Mbit/s: %d are sent at a time, want %d", c.mbit, most, c.most)
			}
		}
		// Where all are late, what comes next waits for longer.
		for range 40 {
			sent(4, 2.5e6/8)
		}
		if most := sent(12, 2.5e6/8); most != 4 {
			t.Errorf("2.5 Mbit/s: %d are sent at a time, want 4", most)
		}
		// A receiver that takes nothing does not make the uplink slow.
		sent(60, 100e6/8)
		var wg sync.WaitGroup
		wg.Go(func() {
			handler.ServeHTTP(hung{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, exchange.BlobPath+h.String(), nil))
		})
		for range 5 {
			time.Sleep(10 * time.Second)
			sent(1, 100e6/8)
		}
		if most := sent(30, 100e6/8); most != 8 {
			t.Errorf("beside one that takes nothing %d are sent at a time, want 8", most)
		}
		wg.Wait()
		sent(4, 100e6/8) // who ends leaves room for fewer, if there are to be
		if most := sent(12, 100e6/8); most != 8 {
			t.Errorf("after it %d are sent at a time, want 8", most)
		}
	})
}
