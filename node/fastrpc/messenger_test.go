package fastrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/internal/seeds"
	"zorilla/node/trust"
	"zorilla/vicinity"
)

const rtt = 100 * time.Millisecond

// pair is two nodes; far serves requests of near.
type pair struct {
	near, far     *Messenger
	nearID, farID vicinity.ID

	mu       sync.Mutex
	packets  [][]byte                               // that were sent, of both
	carry    func(to vicinity.ID, p []byte) []after // when each of its copies arrives; nil = once, after half a round trip
	open     time.Time                              // when near's connection to far is
	dials    int
	handled  map[string]int
	answer   func(body string) (int, string)
	slow     time.Duration // that far takes
	stranger bool          // near is no member for far
}

type after time.Duration

type senderKey struct{}

func identity(t testing.TB, n byte) *trust.Identity {
	id, err := trust.NewIdentity(bytes.NewReader(bytes.Repeat([]byte{n}, 64)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func newPair(t testing.TB) *pair {
	a, b := identity(t, 1), identity(t, 2)
	p := &pair{nearID: a.ID(), farID: b.ID(), handled: map[string]int{}, answer: func(body string) (int, string) { return http.StatusConflict, "heard " + body }}
	of := func(id *trust.Identity) *Messenger {
		return New(Config{
			Self: id.ID(), Sign: id.Sign, Verify: trust.Verify,
			Send:   func(to vicinity.ID, packet []byte) { p.send(id.ID(), to, packet) },
			Member: func(vicinity.ID) bool { p.mu.Lock(); defer p.mu.Unlock(); return !p.stranger },
			Early:  func(path string) bool { return path == "/early" },
			Over:   connection{p},
			Serve: func(w http.ResponseWriter, r *http.Request, from vicinity.ID) {
				p.serve(w, r.WithContext(context.WithValue(r.Context(), senderKey{}, from)))
			},
			PeerID: func(r *http.Request) (vicinity.ID, error) { return r.Context().Value(senderKey{}).(vicinity.ID), nil },
		})
	}
	p.near, p.far = of(a), of(b)
	return p
}

// send carries a packet.
func (p *pair) send(from, to vicinity.ID, packet []byte) {
	p.mu.Lock()
	packet = bytes.Clone(packet)
	p.packets = append(p.packets, packet)
	times := []after{after(rtt / 2)}
	if p.carry != nil {
		times = p.carry(to, packet)
	}
	p.mu.Unlock()
	for _, d := range times {
		time.AfterFunc(time.Duration(d), func() {
			if to == p.farID {
				p.far.Receive(from, packet)
			} else {
				p.near.Receive(from, packet)
			}
		})
	}
}

// serve is what far does with a request.
func (p *pair) serve(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	p.handled[string(b)]++
	slow := p.slow
	p.mu.Unlock()
	if from := r.Context().Value(senderKey{}); from != p.nearID || r.URL.Path != "/early" && r.URL.Path != "/other" {
		panic(fmt.Sprintf("%v asks for %s", from, r.URL.Path))
	}
	time.Sleep(slow)
	status, text := p.answer(string(b))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// connection is how near's requests go over connections, which take two round trips to be made.
type connection struct{ *pair }

func (c connection) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	dial := c.open.IsZero()
	if dial {
		c.open = time.Now().Add(2 * rtt)
		c.dials++
	}
	wait := max(0, time.Until(c.open))
	c.mu.Unlock()
	if wait > 0 {
		Dialing(r.Context())
	}
	select {
	case <-time.After(wait + rtt/2):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	var w Recorder
	c.far.Once(http.HandlerFunc(c.serve)).ServeHTTP(&w, r.WithContext(context.WithValue(r.Context(), senderKey{}, c.nearID)))
	time.Sleep(rtt / 2)
	return w.Response(r), nil
}

// ask has near ask far, and returns the answer and how long it took.
func (p *pair) ask(t testing.TB, path, body string) (string, time.Duration) {
	t.Helper()
	at := time.Now()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+string(p.farID)+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return "", 0
	}
	resp, err := p.near.RoundTrip(r)
	if err != nil {
		t.Error(err)
		return "", 0
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
		return "", 0
	}
	return fmt.Sprint(resp.StatusCode, " ", string(b)), time.Since(at)
}

// once checks that each request was done exactly once.
func (p *pair) once(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for body, n := range p.handled {
		if n != 1 {
			t.Errorf("%.40q was done %d times", body, n)
		}
	}
}

// A request is answered before there is a connection, which is made meanwhile.
func TestAnswerBeforeTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.near.Learn(p.farID, p.far.Key())
		if got, took := p.ask(t, "/early", "secret words"); got != "409 heard secret words" || took != rtt {
			t.Errorf("got %q after %v", got, took)
		}
		time.Sleep(2 * rtt)
		synctest.Wait()
		if p.dials != 1 || p.handled["secret words"] != 1 {
			t.Errorf("%d connections, done %d times", p.dials, p.handled["secret words"])
		}
		sent := len(p.packets)
		if got, took := p.ask(t, "/early", "more"); got != "409 heard more" || took != rtt || len(p.packets) != sent {
			t.Errorf("over the connection: got %q after %v, %d packets", got, took, len(p.packets)-sent)
		}
		p.once(t)
		for _, packet := range p.packets {
			if bytes.Contains(packet, []byte("secret")) || bytes.Contains(packet, []byte("early")) {
				t.Errorf("a packet can be read: %q", packet)
			}
		}
		time.Sleep(2 * lasts)
	})
}

// What is slow, or too long for a packet, or not known to be wanted as one, takes its connection.
func TestWhatTakesTheConnection(t *testing.T) {
	for name, c := range map[string]struct {
		path, body string
		change     func(*pair)
		after      time.Duration
		packets    int
		times      int
	}{
		"no key":              {path: "/early", body: "a", change: func(p *pair) { clear(p.near.theirs) }, after: 3 * rtt, times: 1},
		"an old key":          {path: "/early", body: "a", change: func(*pair) { time.Sleep(keyLasts) }, after: 3 * rtt, times: 1},
		"another path":        {path: "/other", body: "a", after: 3 * rtt, times: 1},
		"a long request":      {path: "/early", body: strings.Repeat("a", MaxBody+1), after: 3 * rtt, times: 1},
		"the longest request": {path: "/early", body: strings.Repeat("a", MaxBody), after: rtt, packets: 2, times: 1},
		"the longest answer":  {path: "/early", body: "a", change: answers(MaxAnswer), after: rtt, packets: 2, times: 1},
		"a long answer":       {path: "/early", body: "a", change: answers(MaxAnswer + 1), after: 3 * rtt, packets: 1, times: 2},
		"a slow answer":       {path: "/early", body: "a", change: func(p *pair) { p.slow = 5 * rtt }, after: 6 * rtt, packets: 2, times: 1},
		"no member":           {path: "/early", body: "a", change: func(p *pair) { p.stranger = true }, after: 3 * rtt, packets: 1, times: 1},
		"a lost request":      {path: "/early", body: "a", change: loses(1), after: 3 * rtt, packets: 1, times: 1},
		"a lost answer":       {path: "/early", body: "a", change: loses(2), after: 3 * rtt, packets: 2, times: 1},
		"a very late request": {path: "/early", body: "a", change: delays(1, 5*rtt), after: 3 * rtt, packets: 1, times: 1},
		"a request that comes as the connection is open": {path: "/early", body: "a", change: delays(1, 5*rtt/2-1), after: 3*rtt - 1, packets: 2, times: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				p.near.Learn(p.farID, p.far.Key())
				if c.change != nil {
					c.change(p)
				}
				if _, took := p.ask(t, c.path, c.body); took != c.after || len(p.packets) != c.packets {
					t.Errorf("took %v with %d packets, want %v with %d", took, len(p.packets), c.after, c.packets)
				}
				for i, packet := range p.packets {
					if len(packet) > 1300 { // see gossip.MaxPayload
						t.Errorf("packet %d has %d bytes", i, len(packet))
					}
				}
				time.Sleep(2 * lasts)
				if p.handled[c.body] != c.times {
					t.Errorf("done %d times, want %d", p.handled[c.body], c.times)
				}
			})
		})
	}
}

func answers(n int) func(*pair) {
	return func(p *pair) {
		p.answer = func(string) (int, string) { return http.StatusOK, strings.Repeat("x", n) }
	}
}

// loses has the packet of a number lost, from 1.
func loses(n int) func(*pair) { return nth(n) }

// delays has the packet of a number late, from 1.
func delays(n int, d time.Duration) func(*pair) { return nth(n, after(d)) }

func nth(n int, times ...after) func(*pair) {
	return func(p *pair) {
		p.carry = func(vicinity.ID, []byte) []after {
			if len(p.packets) == n {
				return times
			}
			return []after{after(rtt / 2)}
		}
	}
}

// Whatever becomes of packets, each of many requests at once is done once and has its own answer.
func TestRequestsAreDoneOnce(t *testing.T) {
	seeds.Random(t, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			rnd := rand.New(rand.NewPCG(seed, 1))
			p.carry = func(vicinity.ID, []byte) (times []after) {
				for rnd.IntN(4) > 0 {
					times = append(times, after(rnd.Int64N(int64(4*rtt))))
				}
				return times
			}
			p.near.Learn(p.farID, p.far.Key())
			var wg sync.WaitGroup
			for i := range maxServedEach {
				wg.Go(func() {
					body := fmt.Sprint("request ", i)
					if got, took := p.ask(t, "/early", body); got != "409 heard "+body || took > 3*rtt {
						t.Errorf("got %q after %v", got, took)
					}
				})
			}
			wg.Wait()
			time.Sleep(2 * lasts)
			p.once(t)
			if len(p.handled) != maxServedEach {
				t.Errorf("%d requests were done", len(p.handled))
			}
			if s := p.far.Stats(); s.Received == 0 || s.Left == 0 || p.near.Stats().Answered == 0 || s.Forged+s.Malformed > 0 {
				t.Errorf("counted %+v and %+v", p.near.Stats(), s)
			}
		})
	})
}

// Who gives up a request gets the reason, and leaves nothing behind.
func TestRequestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.slow = time.Hour
		p.near.Learn(p.farID, p.far.Key())
		ctx, cancel := context.WithTimeout(t.Context(), rtt)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(p.farID)+"/early", strings.NewReader("a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.near.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		time.Sleep(2 * time.Hour)
		if len(p.near.calls) > 0 {
			t.Error("the request is still known")
		}
	})
}

// Run ends what is under way, and waits for it.
func TestRunEndsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.slow = time.Hour
		p.far.cfg.Serve = func(w http.ResponseWriter, r *http.Request, _ vicinity.ID) { <-r.Context().Done() }
		p.near.Learn(p.farID, p.far.Key())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		for _, m := range []*Messenger{p.near, p.far} {
			go func() { ended <- m.Run(ctx) }()
		}
		go func() {
			r, _ := http.NewRequest(http.MethodPost, "https://"+string(p.farID)+"/early", strings.NewReader("a"))
			_, err := p.near.RoundTrip(r)
			ended <- err
		}()
		time.Sleep(rtt)
		at := time.Now()
		stop()
		for range 3 {
			<-ended
		}
		if took := time.Since(at); took > rtt {
			t.Errorf("ended after %v", took)
		}
		p.ask(t, "/early", "afterwards")
		time.Sleep(2 * time.Hour)
		if p.handled["afterwards"] != 1 || p.far.Stats().Received != 1 {
			t.Errorf("done %v, %+v", p.handled, p.far.Stats())
		}
	})
}

// A node that cannot be reached says so, though a packet to it may be on its way.
func TestNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		refused := errors.New("refused")
		p.near.cfg.Over = roundTripper(func(r *http.Request) (*http.Response, error) {
			Dialing(r.Context())
			return nil, refused
		})
		p.near.Learn(p.farID, p.far.Key())
		r, _ := http.NewRequest(http.MethodPost, "https://"+string(p.farID)+"/early", strings.NewReader("a"))
		if _, err := p.near.RoundTrip(r); !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}
		time.Sleep(2 * lasts)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func FuzzReceive(f *testing.F) {
	p := newPair(f)
	p.carry = func(vicinity.ID, []byte) []after { return nil }
	msg, _, err := seal(p.nearID, p.farID, p.far.Key(), number{1}, request{Path: "/early", Body: []byte("words"), Key: p.near.Key()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(append([]byte{kindRequest}, p.near.cfg.Sign(domain, msg)...), msg...))
	f.Add(append([]byte{kindAnswer}, make([]byte, 40)...))
	f.Fuzz(func(t *testing.T, packet []byte) {
		p := newPair(t)
		p.carry = func(vicinity.ID, []byte) []after { return nil }
		p.far.Receive(p.nearID, packet)
		if len(p.handled) > 0 {
			t.Fatal("a packet was taken whose key nobody has")
		}
	})
}
