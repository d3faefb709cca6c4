package exchange_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/internal/seeds"
	"zorilla/internal/uplink"
	"zorilla/transfer"
	"zorilla/transfer/exchange"
	"zorilla/vicinity"
)

// world is some nodes that exchange a tree: real Exchanges with their HTTP, on links in
// virtual time.
type world struct {
	t     *testing.T
	nodes []*worldNode
	loss  float64 // of requests
	speed int     // bytes a second that a link carries
	calls sync.WaitGroup
	copy  time.Duration // what one takes

	mu  sync.Mutex // guards rnd
	rnd *rand.Rand
}

// worldNode has an uplink that all it sends share, as real ones do.
type worldNode struct {
	w       *world
	id      vicinity.ID
	store   *transfer.MemStore
	x       *exchange.Exchange
	handler http.Handler
	uplink  chan struct{} // taken by who sends
	sent    atomic.Int64  // bytes of chunks
	limit   *uplink.Uplink
	gone    atomic.Bool
	older   bool
	lies    bool
	breaks  bool // each chunk ends early, every other one without an error
}

// packet is what a link carries of one answer before it carries some of another.
const packet = 256

func newWorld(t *testing.T, nodes int, seed uint64) *world {
	w := &world{t: t, speed: 48 << 10, rnd: rand.New(rand.NewPCG(seed, 3))}
	for i := range nodes {
		n := &worldNode{w: w, id: vicinity.ID("z" + string(rune('a'+i)) + strings.Repeat("a", 25)), store: transfer.NewMemStore(0), uplink: make(chan struct{}, 1), limit: uplink.New("")}
		peers := &exchange.HTTP{Client: &http.Client{Transport: n}, URL: func(id vicinity.ID) string { return "http://" + string(id) }}
		n.x = exchange.New(exchange.Config{Self: n.id, Store: n.store, Source: peers.Blob, Trees: peers, Uplink: n.limit, Rand: rand.New(rand.NewPCG(seed, uint64(i))),
			PeerID: func(r *http.Request) (vicinity.ID, error) { return vicinity.ID(r.Header.Get("From-Node")), nil }})
		n.handler = n.x.Handler()
		w.nodes = append(w.nodes, n)
	}
	return w
}

func (w *world) chance() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rnd.Float64()
}

// tree puts one of so many chunks of 4 KiB into the store of the first node.
func (w *world) tree(chunks int) (transfer.Hash, transfer.Manifest) { return w.treeOf(chunks, 4096) }

func (w *world) treeOf(chunks, size int) (transfer.Hash, transfer.Manifest) {
	var entries []transfer.Entry
	for i := range chunks {
		data := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, size/2)
		h := transfer.HashOf(data)
		if err := w.nodes[0].store.Put(h, data); err != nil {
			w.t.Fatal(err)
		}
		entries = append(entries, transfer.Entry{Path: fmt.Sprintf("f%04d", i), Size: int64(len(data)), Chunks: transfer.HashList{h}})
	}
	m, err := transfer.NewManifest(entries)
	if err != nil {
		w.t.Fatal(err)
	}
	h, err := transfer.SaveManifest(w.nodes[0].store, m)
	if err != nil {
		w.t.Fatal(err)
	}
	return h, m
}

// RoundTrip implements http.RoundTripper: what the node asks others.
func (n *worldNode) RoundTrip(r *http.Request) (*http.Response, error) {
	var to *worldNode
	for _, o := range n.w.nodes {
		if string(o.id) == r.URL.Host {
			to = o
		}
	}
	time.Sleep(5 * time.Millisecond)
	if n.gone.Load() || to == nil || to.gone.Load() || n.w.chance() < n.w.loss {
		return nil, errors.New("connection refused")
	}
	r = r.Clone(r.Context())
	r.Header.Set("From-Node", string(n.id))
	if r.Body == nil {
		r.Body = http.NoBody
	}
	body, w := io.Pipe()
	a := &answer{from: to, header: http.Header{}, begun: make(chan int, 1), body: w, trace: httptrace.ContextClientTrace(r.Context())}
	n.w.calls.Go(func() {
		if to.older && strings.HasPrefix(r.URL.Path, exchange.TreePath) {
			http.NotFound(a, r)
		} else {
			to.handler.ServeHTTP(a, r)
		}
		a.WriteHeader(http.StatusOK)
		w.Close()
	})
	select {
	case status := <-a.begun:
		time.Sleep(5 * time.Millisecond)
		context.AfterFunc(r.Context(), func() { body.CloseWithError(r.Context().Err()) })
		return &http.Response{StatusCode: status, Header: a.header, Body: body, Request: r}, nil
	case <-r.Context().Done():
		body.CloseWithError(r.Context().Err())
		return nil, r.Context().Err()
	}
}

// answer is an http.ResponseWriter whose bytes take their time on the link of a node.
type answer struct {
	from   *worldNode
	header http.Header
	once   sync.Once
	begun  chan int
	body   *io.PipeWriter
	trace  *httptrace.ClientTrace
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if status < 200 {
		if err := a.trace.Got1xxResponse(status, nil); err != nil {
			panic(err)
		}
		return
	}
	a.once.Do(func() { a.begun <- status })
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	for left := len(b); left > 0 && len(b) == 4096; left -= packet { // all but chunks is next to nothing beside real ones
		a.from.uplink <- struct{}{} // in turn with all else that is sent
		time.Sleep(time.Duration(min(left, packet)) * time.Second / time.Duration(a.from.w.speed))
		<-a.from.uplink
	}
	if a.from.gone.Load() {
		return 0, a.body.CloseWithError(io.ErrUnexpectedEOF)
	}
	var sent int64
	if len(b) == 4096 {
		sent = a.from.sent.Add(int64(len(b)))
	}
	if a.from.breaks && len(b) == 4096 {
		n, err := a.body.Write(b[:len(b)/2])
		if err == nil && sent/int64(len(b))%2 == 0 {
			err = a.body.CloseWithError(io.ErrUnexpectedEOF)
		}
		return n, errors.Join(err, io.ErrShortWrite)
	}
	if a.from.lies && len(b) > 1000 {
		b = bytes.Clone(b)
		b[0]++
	}
	return a.body.Write(b)
}

// fetch has all nodes but the first fetch the tree at about the same time. It returns how
// long that took.
func (w *world) fetch(tree transfer.Hash, m transfer.Manifest) time.Duration {
	began := time.Now()
	var wg sync.WaitGroup
	for _, n := range w.nodes[1:] {
		wait := time.Duration(w.chance() * float64(20*time.Millisecond))
		wg.Go(func() {
			time.Sleep(wait)
			ctx, cancel := context.WithCancel(w.t.Context())
			defer cancel()
			_, _, err := n.x.Fetch(ctx, "job", tree, []vicinity.ID{w.nodes[0].id}, nil)
			if n.gone.Load() {
				return
			}
			if err != nil {
				w.t.Errorf("%s: %v", n.id.Short(), err)
				return
			}
			for i, h := range m.Chunks() {
				if data, err := n.store.Get(h, nil); err != nil || transfer.HashOf(data) != h {
					w.t.Errorf("%s: chunk %d: %v", n.id.Short(), i, err)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	w.calls.Wait()
	return took
}

// Many nodes that fetch one tree have it after little more than one copy takes, of which
// its origin sends little more than one.
func TestManyFetchOneTree(t *testing.T) {
	seed := seeds.One(t)
	for _, c := range []struct {
		nodes, chunks, slower int
		took, copies          float64
	}{
		{1, 240, 1, 1.05, 1.02}, {3, 240, 1, 1.1, 1.05}, {12, 240, 1, 1.25, 1.1}, {24, 240, 1, 1.5, 1.1},
		{3, 64, 10, 1.25, 1.15}, {12, 64, 10, 1.6, 1.15}, // as 64 MiB over 10 Mbit/s
	} {
		if c.nodes > seeds.Fewer(24, 3) {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, c.nodes+1, seed)
			w.speed /= c.slower
			tree, m := w.tree(c.chunks)
			took := w.fetch(tree, m).Seconds() * float64(w.speed) / float64(m.Size())
			copies := float64(w.nodes[0].sent.Load()) / float64(m.Size())
			text := fmt.Sprintf("seed %d: %d chunks to %d nodes: %.2f times one copy, of which the origin sent %.2f", seed, c.chunks, c.nodes, took, copies)
			t.Log(text)
			if took > c.took || copies > c.copies {
				t.Errorf("%s; want at most %.2f and %.2f", text, c.took, c.copies)
			}
		})
	}
}

// All who stay have the tree in the end, whatever becomes of others.
func TestManyFetchOneTreeInTrouble(t *testing.T) {
	for name, trouble := range map[string]func(w *world){
		"requests are lost": func(w *world) { w.loss = 0.1 },
		"nodes vanish": func(w *world) {
			for i, n := range w.nodes[5:8] {
				time.AfterFunc(w.copy*time.Duration(i+2)/7, func() { n.gone.Store(true) })
			}
		},
		"a node lies":      func(w *world) { w.nodes[3].lies = true },
		"a node cuts off":  func(w *world) { w.nodes[3].breaks = true },
		"some are older":   func(w *world) { w.nodes[2].older, w.nodes[3].older = true, true },
		"the origin is":    func(w *world) { w.nodes[0].older = true },
		"the origin stops": func(w *world) { time.AfterFunc(w.copy*7/4, func() { w.nodes[0].gone.Store(true) }) },
	} {
		t.Run(name, func(t *testing.T) {
			seed := seeds.One(t)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 9, seed)
				tree, m := w.tree(seeds.Fewer(240, 60))
				w.copy = time.Duration(m.Size()) * time.Second / time.Duration(w.speed)
				trouble(w)
				took := w.fetch(tree, m).Seconds() * float64(w.speed) / float64(m.Size())
				t.Logf("seed %d: %.2f times one copy, of which the origin sent %.2f", seed, took, float64(w.nodes[0].sent.Load())/float64(m.Size()))
			})
		})
	}
}
