package portion

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// server answers requests of whoever they name in a header, and counts what is asked of it.
func server(t *testing.T, l Limits, h http.HandlerFunc) (*Portions, *httptest.Server) {
	p := New(l)
	srv := httptest.NewUnstartedServer(p.Serve(h, func(r *http.Request) (string, error) {
		if name := r.Header.Get("From"); name != "" {
			return name, nil
		}
		return "", errors.New("nobody")
	}, func(r *http.Request) bool { return r.URL.Path == "/stream" }))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return p, srv
}

// ask posts a body and returns the status of the answer.
func ask(ctx context.Context, srv *httptest.Server, from, path string, body io.Reader, size int64) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+path, body)
	if err != nil {
		return 0
	}
	r.Header.Set("From", from)
	r.ContentLength = size
	resp, err := srv.Client().Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// stuck is a body of which nothing comes.
func stuck() io.Reader {
	r, _ := io.Pipe()
	return r
}

// Who says nothing after the length of its bodies has no more than its portion, and holds nobody
// else up; when it goes, those of its own that wait have room.
func TestBodiesOfOneSender(t *testing.T) {
	begun, read := make(chan string, 100), make(chan error, 100)
	p, srv := server(t, Limits{Requests: 8, Each: 100, All: 1000, Waiting: 80, Ahead: 40, Body: 60, Within: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
		begun <- r.Header.Get("From")
		_, err := Read(w, r, 60)
		read <- err
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 { // one has room, and one waits
		wg.Go(func() { ask(ctx, srv, "evil", "/", stuck(), 60) })
	}
	if who := <-begun; who != "evil" {
		t.Fatal(who)
	}
	for p.waiting("evil") != 40 {
		runtime.Gosched()
	}
	for range 50 {
		if got := ask(t.Context(), srv, "good", "/", strings.NewReader(strings.Repeat("x", 60)), 60); got != http.StatusOK {
			t.Fatalf("another sender was answered %d", got)
		}
		<-begun
		if err := <-read; err != nil {
			t.Fatal(err)
		}
	}
	own := make(chan int)
	go func() { own <- ask(t.Context(), srv, "evil", "/", strings.NewReader("short"), 5) }()
	for p.waiting("evil") != 45 {
		runtime.Gosched()
	}
	if len(begun) > 0 {
		t.Fatal("a sender has more than its portion")
	}
	for body, want := range map[int64]int{60: http.StatusServiceUnavailable, 61: http.StatusRequestEntityTooLarge, -1: http.StatusLengthRequired} {
		if got := ask(t.Context(), srv, "evil", "/", strings.NewReader(strings.Repeat("x", int(max(body, 1)))), body); got != want {
			t.Errorf("a body of %d bytes was answered %d, want %d", body, got, want)
		}
	}
	cancel()
	wg.Wait()
	if got := <-own; got != http.StatusOK {
		t.Errorf("the sender's next request was answered %d", got)
	}
	if p.Counts().Refused < 2 {
		t.Errorf("counted %+v", p.Counts())
	}
	for !p.empty() { // handlers may end after their connection
		runtime.Gosched()
	}
}

func (p *Portions) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all == 0 && len(p.senders) == 0 && len(p.queue) == 0
}

func (p *Portions) waiting(name string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.senders[name]; s != nil {
		return s.waiting
	}
	return 0
}

// A body that does not come in time ends, and so does waiting for room; streams take as long as
// they like, and requests of nobody are for the handler to refuse.
func TestBodiesThatDoNotCome(t *testing.T) {
	p, srv := server(t, Limits{Requests: 2, Each: 100, All: 1000, Waiting: 200, Ahead: 40, Body: 60, Within: 300 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		if _, err := Read(w, r, 60); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	late, w := io.Pipe()
	streamed := make(chan int)
	go func() { streamed <- ask(t.Context(), srv, "streams", "/stream", late, -1) }()
	if _, err := w.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := ask(t.Context(), srv, "slow", "/", stuck(), 60); got != http.StatusBadRequest {
			t.Errorf("a body that does not come was answered %d", got)
		}
	}
	if c := p.Counts(); c.Late != 2 {
		t.Errorf("counted %+v", c)
	}
	w.Close()
	if got := <-streamed; got != http.StatusOK {
		t.Errorf("a slow stream was answered %d", got)
	}
	if got := ask(t.Context(), srv, "", "/", strings.NewReader("x"), -1); got != http.StatusOK {
		t.Errorf("nobody was answered %d", got)
	}
}

// Requests are counted, too: those that wait for their answers take memory without a body.
func TestRequestsOfOneSender(t *testing.T) {
	over, begun := make(chan struct{}), make(chan struct{}, 10)
	_, srv := server(t, Limits{Requests: 3, Each: 100, All: 1000, Waiting: 200, Ahead: 40, Body: 60, Within: time.Minute}, func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-over
	})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { ask(t.Context(), srv, "a", "/", nil, 0) })
		<-begun
	}
	if got := ask(t.Context(), srv, "a", "/", nil, 0); got != http.StatusServiceUnavailable {
		t.Errorf("one request too many was answered %d", got)
	}
	wg.Go(func() { ask(t.Context(), srv, "b", "/", nil, 0) })
	<-begun
	close(over)
	wg.Wait()
	if got := ask(t.Context(), srv, "a", "/", nil, 0); got != http.StatusOK {
		t.Errorf("the next request was answered %d", got)
	}
}

// Who waits for its own portion is passed by others, in order, and who waits for what all have
// is not passed: a large body would wait for ever.
func TestOrderOfThoseThatWait(t *testing.T) {
	p := New(Limits{Requests: 10, Each: 100, All: 150, Waiting: 1000, Ahead: 100})
	a, b, c := p.enter("a"), p.enter("b"), p.enter("c")
	var got []string
	add := func(name string, s *sender, n int64) *waiter {
		w := &waiter{s, n, make(chan struct{})}
		if !p.queued(w) {
			t.Fatalf("no room to wait for %s", name)
		}
		return w
	}
	has := func(w *waiter) bool {
		select {
		case <-w.ready:
			return true
		default:
			return false
		}
	}
	a1, a2, a3, b1, c1, c2 := add("a1", a, 90), add("a2", a, 20), add("a3", a, 5), add("b1", b, 60), add("c1", c, 10), add("c2", c, 5)
	if !has(a1) || has(a2) || has(a3) || !has(b1) || has(c1) || has(c2) {
		t.Fatal("not the first of each has room", got)
	}
	p.giveBack(b, 60)
	if has(a2) || has(a3) || !has(c1) || !has(c2) {
		t.Error("what all have is not given to those behind")
	}
	p.giveBack(a, 90)
	if !has(a2) || !has(a3) {
		t.Error("who waited for its own portion does not have it")
	}
}
