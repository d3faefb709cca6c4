package exchange_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"zorilla/transfer"
	"zorilla/transfer/exchange"
	"zorilla/vicinity"
)

// made is a store of chunks that are made when they are read, so that they take no memory.
type made struct {
	transfer.PinStore // the manifest
	number            map[transfer.Hash]int
	all               bool
	stored            func()

	mu  sync.Mutex // guards what follows
	has map[transfer.Hash]bool
}

func chunkNumber(i int, buf []byte) []byte {
	if cap(buf) < transfer.ChunkSize {
		buf = make([]byte, transfer.ChunkSize)
	}
	buf = buf[:transfer.ChunkSize]
	clear(buf)
	binary.BigEndian.PutUint64(buf, uint64(i))
	return buf
}

func (m *made) Has(h transfer.Hash) bool {
	if _, chunk := m.number[h]; !chunk {
		return m.PinStore.Has(h)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all || m.has[h]
}

func (m *made) Get(h transfer.Hash, buf []byte) ([]byte, error) {
	i, chunk := m.number[h]
	if !chunk {
		return m.PinStore.Get(h, buf)
	}
	if !m.Has(h) {
		return nil, transfer.ErrNotFound
	}
	return chunkNumber(i, buf), nil
}

func (m *made) Put(h transfer.Hash, data []byte) error {
	if _, chunk := m.number[h]; !chunk {
		return m.PinStore.Put(h, data)
	}
	m.mu.Lock()
	m.has[h] = true
	m.mu.Unlock()
	m.stored()
	return nil
}

func (m *made) PutVerified(h transfer.Hash, data []byte) error { return m.Put(h, data) }

func (m *made) Holds(h transfer.Hash) (held, own bool) { return m.Has(h), m.Has(h) }

func (m *made) Keep(h transfer.Hash, _ bool) bool { return m.Has(h) }

func (m *made) Read(h transfer.Hash, buf []byte, f func(p []byte, size int) error) ([]byte, error) {
	data, err := m.Get(h, buf)
	if err != nil {
		return buf, err
	}
	return data, f(data, len(data))
}

// Nodes that serve a file and fetch it take no more memory than for the chunks that each of
// them may have under way, however large it is: here it is more than three times as large,
// over real connections with TLS.
func TestMemoryDoesNotGrowWithAFile(t *testing.T) {
	const nodes, each, chunks = 3, 40 << 20, 160
	peak := peakOfExchange(t, nodes, chunks)
	t.Logf("%d MiB to %d nodes take %d MiB at all of them", chunks, nodes-1, peak>>20)
	if peak > nodes*each {
		t.Errorf("%d MiB to %d nodes take %d MiB at all of them, want at most %d", chunks, nodes-1, peak>>20, nodes*each>>20)
	}
}

// peakOfExchange has nodes fetch a file of so many chunks from the first of them, and returns
// how many bytes all of them had in memory at most.
func peakOfExchange(t *testing.T, nodes, chunks int) uint64 {
	number := map[transfer.Hash]int{}
	e := transfer.Entry{Path: "file", Size: int64(chunks) * transfer.ChunkSize}
	var buf []byte
	for i := range chunks {
		buf = chunkNumber(i, buf)
		h := transfer.HashOf(buf)
		number[h] = i
		e.Chunks = append(e.Chunks, h)
	}
	m, err := transfer.NewManifest([]transfer.Entry{e})
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var mu sync.Mutex
	var most uint64
	count := 0
	look := func() {
		mu.Lock()
		defer mu.Unlock()
		if count++; count%8 == 0 {
			var s runtime.MemStats
			runtime.GC() // how much garbage there is depends on what else the machine has to do
			runtime.ReadMemStats(&s)
			most = max(most, s.HeapAlloc)
		}
	}
	urls := map[vicinity.ID]string{}
	var servers []*httptest.Server
	var all []*exchange.Exchange
	var ids []vicinity.ID
	for i := range nodes {
		id := vicinity.ID("z" + string(rune('a'+i)) + strings.Repeat("a", 25))
		store := &made{PinStore: transfer.NewMemStore(0), number: number, all: i == 0, stored: look, has: map[transfer.Hash]bool{}}
		client := &http.Client{Transport: &names{string(id), nil}}
		peers := &exchange.HTTP{Client: client, URL: func(to vicinity.ID) string { return urls[to] }}
		x := exchange.New(exchange.Config{Self: id, Store: store, Source: peers.Blob, Trees: peers, Rand: rand.New(rand.NewPCG(uint64(i), 7)),
			PeerID: func(r *http.Request) (vicinity.ID, error) { return vicinity.ID(r.Header.Get("From-Node")), nil }})
		srv := httptest.NewUnstartedServer(x.Handler())
		srv.EnableHTTP2 = true
		srv.StartTLS()
		client.Transport.(*names).to = srv.Client().Transport // all have the same certificate
		urls[id], servers, all, ids = srv.URL, append(servers, srv), append(all, x), append(ids, id)
		if i == 0 {
			if _, err := transfer.SaveManifest(store, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	blob, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, x := range all[1:] {
		wg.Go(func() {
			if _, stats, err := x.Fetch(t.Context(), "job", transfer.HashOf(blob), ids[:1], nil); err != nil || stats.Fetched != m.Size() {
				t.Errorf("%+v, %v", stats, err)
			}
		})
	}
	wg.Wait()
	for _, srv := range servers {
		srv.CloseClientConnections()
		srv.Close()
	}
	return most
}

// names is a client that says who it is.
type names struct {
	who string
	to  http.RoundTripper
}

func (n *names) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("From-Node", n.who)
	return n.to.RoundTrip(r)
}
