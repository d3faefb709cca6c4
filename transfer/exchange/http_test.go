package exchange_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/transfer"
	"zorilla/transfer/exchange"
	"zorilla/transfer/swarm"
	"zorilla/vicinity"
)

func serve(t *testing.T, store transfer.PinStore) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(exchange.New(exchange.Config{Store: store}).Handler())
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// reads is a store that is read in another way.
type reads struct {
	transfer.PinStore
	get transfer.GetterFunc
}

func (r reads) Get(h transfer.Hash, buf []byte) ([]byte, error) { return r.get(h, buf) }

func (r reads) Read(h transfer.Hash, buf []byte, f func(p []byte, size int) error) ([]byte, error) {
	data, err := r.get(h, buf)
	if err != nil {
		return buf, err
	}
	return data, f(data, len(data))
}

func TestHandler(t *testing.T) {
	store := transfer.NewMemStore(0)
	data := bytes.Repeat([]byte("z"), transfer.ChunkSize)
	h := transfer.HashOf(data)
	if err := store.Put(h, data); err != nil {
		t.Fatal(err)
	}
	broken := reads{store, func(transfer.Hash, []byte) ([]byte, error) { return nil, errors.New("input/output error on /dev/sda") }}
	for _, c := range []struct {
		store        transfer.PinStore
		method, path string
		status       int
	}{
		{store, "GET", "/v1/blobs/" + h.String(), 200},
		{store, "HEAD", "/v1/blobs/" + h.String(), 200},
		{store, "GET", "/v1/blobs/" + hashA.String(), 404},
		{store, "GET", "/v1/blobs/", 404},
		{store, "GET", "/v1/blobs/sha256:", 400},
		{store, "GET", "/v1/blobs/sha256:" + strings.Repeat("0", 64), 400},
		{store, "GET", "/v1/blobs/" + strings.Repeat("ab", 32), 400},
		{store, "GET", "/v1/blobs/sha256:..%2f..%2fetc%2fpasswd", 400},
		{store, "GET", "/v1/blobs/" + h.String() + "/x", 404},
		{store, "PUT", "/v1/blobs/" + h.String(), 405},
		{store, "DELETE", "/v1/blobs/" + h.String(), 405},
		{broken, "GET", "/v1/blobs/" + h.String(), 500},
	} {
		srv := serve(t, c.store)
		req, err := http.NewRequestWithContext(t.Context(), c.method, srv.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || resp.ProtoMajor != 2 {
			t.Errorf("%s %s: got %s %s, %v, want %d", c.method, c.path, resp.Proto, resp.Status, err, c.status)
		}
		if c.status == 200 && (resp.ContentLength != int64(len(data)) || c.method == "GET" && !bytes.Equal(body, data)) {
			t.Errorf("%s %s: got %d bytes, announced %d", c.method, c.path, len(body), resp.ContentLength)
		}
		if strings.Contains(string(body), "sda") {
			t.Errorf("the answer tells too much: %s", body)
		}
	}
}

func TestFetchOverHTTP(t *testing.T) {
	origin := transfer.NewMemStore(0)
	dir := t.TempDir()
	data := []byte(strings.Repeat("0123456789", transfer.ChunkSize/2))
	if err := os.WriteFile(filepath.Join(dir, "big"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := transfer.Ingest(t.Context(), origin, []transfer.Input{{Path: dir, Name: "."}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := transfer.SaveManifest(origin, m)
	if err != nil {
		t.Fatal(err)
	}
	first, empty := serve(t, origin), serve(t, transfer.NewMemStore(0))
	gone := httptest.NewServer(nil)
	gone.Close()
	peers := &exchange.HTTP{Client: first.Client(), URL: func(id vicinity.ID) string {
		return map[vicinity.ID]string{"zorigin": first.URL, "zempty": empty.URL, "zgone": gone.URL}[id]
	}}
	store := transfer.NewDirStore(t.TempDir(), 0)
	if err := store.Open(); err != nil {
		t.Fatal(err)
	}
	f := exchange.New(exchange.Config{Store: store, Source: peers.Blob, Rand: rand.New(rand.NewPCG(1, 1))})
	got, stats, err := f.Fetch(t.Context(), "job", h, []vicinity.ID{"zgone", "zempty", "zunknown", "zorigin"}, nil)
	if err != nil || stats.Fetched == 0 {
		t.Fatalf("%+v, %v", stats, err)
	}
	to := t.TempDir()
	if err := got.Write(t.Context(), store, to); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "big")); err != nil || !bytes.Equal(b, data) {
		t.Errorf("%d bytes came, %v", len(b), err)
	}
	if _, err := peers.Blob(t.Context(), "zempty", h); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if _, err := peers.Blob(t.Context(), "zunknown", h); err == nil {
		t.Error("a node without an address answered")
	}
}

// counting is a transport that counts what is asked over it.
type counting struct {
	http.RoundTripper
	mu    sync.Mutex
	asked map[string]int // by what the last element of the path is, "" = a hash
}

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	last := path.Base(r.URL.Path)
	if strings.HasPrefix(last, "sha256:") {
		last = ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked = map[string]int{}
	}
	c.asked[last]++
	return c.RoundTripper.RoundTrip(r)
}

// The chunks of large trees take other connections than all else does.
func TestLargeTreesHaveConnections(t *testing.T) {
	for _, c := range []struct {
		chunks     int
		few, files map[string]int
	}{
		{7, map[string]int{"": 8}, nil},
		{8, map[string]int{"": 1, "state": 0}, map[string]int{"chunk": 8}},
		{9, map[string]int{"": 1}, map[string]int{"": 9}}, // of one who answers nothing else
	} {
		data := make([]byte, c.chunks*transfer.ChunkSize)
		_, _ = rand.NewChaCha8([32]byte{byte(c.chunks)}).Read(data) // never fails
		from, dir := transfer.NewMemStore(0), t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "big"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := transfer.Ingest(t.Context(), from, []transfer.Input{{Path: dir, Name: "."}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := transfer.SaveManifest(from, m)
		if err != nil {
			t.Fatal(err)
		}
		handler := exchange.New(exchange.Config{Store: from, Self: "zorigin", PeerID: func(*http.Request) (vicinity.ID, error) { return "zself", nil }}).Handler()
		if c.chunks == 9 {
			all := handler
			handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet {
					http.NotFound(w, r)
					return
				}
				all.ServeHTTP(w, r)
			})
		}
		srv := httptest.NewServer(handler)
		few, files := &counting{RoundTripper: http.DefaultTransport}, &counting{RoundTripper: http.DefaultTransport}
		peers := &exchange.HTTP{Client: &http.Client{Transport: few}, Files: &http.Client{Transport: files}, URL: func(vicinity.ID) string { return srv.URL }}
		x := exchange.New(exchange.Config{Self: "zself", Store: transfer.NewMemStore(0), Source: peers.Blob, Bulk: peers.Bulk, Trees: peers, Patience: time.Second})
		if _, stats, err := x.Fetch(t.Context(), "job", h, []vicinity.ID{"zorigin"}, nil); err != nil || stats.Fetched != int64(len(data)) {
			t.Errorf("%d chunks: %d of %d bytes came: %v", c.chunks, stats.Fetched, len(data), err)
		}
		delete(few.asked, "state") // as often as there is time
		delete(c.few, "state")
		if !maps.Equal(few.asked, c.few) || !maps.Equal(files.asked, c.files) {
			t.Errorf("%d chunks: asked %v, and %v where large files go", c.chunks, few.asked, files.asked)
		}
		srv.Close()
	}
}

// TestHandlerIsBounded asks for more at a time than the handler has buffers.
func TestHandlerIsBounded(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	gate := make(chan struct{})
	held := transfer.NewMemStore(0)
	if err := held.Put(hashA, []byte("a")); err != nil {
		t.Fatal(err)
	}
	store := reads{held, func(transfer.Hash, []byte) ([]byte, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		<-gate
		mu.Lock()
		now--
		mu.Unlock()
		return []byte("a"), nil
	}}
	handler := exchange.New(exchange.Config{Store: store}).Handler()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest("GET", "/v1/blobs/"+hashA.String(), nil))
			if w.Code != 200 {
				t.Errorf("got %d", w.Code)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wg.Go(func() { // one that went away waits for nothing
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/v1/blobs/"+hashA.String(), nil))
	})
	close(gate)
	wg.Wait()
	if most > 32 {
		t.Errorf("%d at a time", most)
	}
}

// A node that lends what a worker made to itself, as its job's origin, keeps it.
func TestFetchKeepsWhatIsLentHere(t *testing.T) {
	work, store := t.TempDir(), transfer.NewDirStore(t.TempDir(), 0)
	if err := errors.Join(store.Open(), os.WriteFile(filepath.Join(work, "big"), make([]byte, 2*transfer.ChunkSize+1), 0o644)); err != nil {
		t.Fatal(err)
	}
	m, _, err := transfer.Collect(t.Context(), transfer.PinTo(store, "worker"), work, []string{"big"}, nil)
	if err != nil || store.Has(m.Chunks()[0]) {
		t.Fatalf("it is not lent: %v", err)
	}
	h, err := transfer.SaveManifest(store, m)
	if err != nil {
		t.Fatal(err)
	}
	x := exchange.New(exchange.Config{Store: store, Self: "zself", Patience: time.Millisecond})
	if _, _, err := x.Fetch(t.Context(), "job", h, []vicinity.ID{"zself"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, own := store.Holds(m.Chunks()[0]); !own {
		t.Error("it is not kept")
	}
}

// What a node lends is fetched from there, however much it is.
func TestFetchFromWhereItIsLent(t *testing.T) {
	for _, chunks := range []int{1, 7, 8, 40} {
		data := make([]byte, chunks*transfer.ChunkSize-1)
		_, _ = rand.NewChaCha8([32]byte{byte(chunks)}).Read(data) // never fails
		work, store := t.TempDir(), transfer.NewDirStore(t.TempDir(), 0)
		if err := errors.Join(store.Open(), os.WriteFile(filepath.Join(work, "big"), data, 0o644)); err != nil {
			t.Fatal(err)
		}
		m, _, err := transfer.Collect(t.Context(), transfer.PinTo(store, "worker"), work, []string{"big"}, nil)
		if err != nil || len(m.Chunks()) != chunks {
			t.Fatalf("%d chunks: %v", len(m.Chunks()), err)
		}
		h, err := transfer.SaveManifest(transfer.PinTo(store, "worker"), m)
		if err != nil {
			t.Fatal(err)
		}
		lender := httptest.NewServer(exchange.New(exchange.Config{Store: store, Self: "zlender", PeerID: func(*http.Request) (vicinity.ID, error) { return "zorigin", nil }}).Handler())
		defer lender.Close()
		peers := &exchange.HTTP{Client: lender.Client(), URL: func(vicinity.ID) string { return lender.URL }}
		x := exchange.New(exchange.Config{Self: "zorigin", Store: transfer.NewMemStore(0), Source: peers.Blob, Trees: peers, Patience: time.Second})
		if _, stats, err := x.Fetch(t.Context(), "job", h, []vicinity.ID{"zlender"}, nil); err != nil || stats.Fetched != int64(len(data)) {
			t.Errorf("%d chunks: %d of %d bytes came: %v", chunks, stats.Fetched, len(data), err)
		}
	}
}

// meddler is a receiver; something happens when it gets a second part.
type meddler struct {
	*httptest.ResponseRecorder
	parts int
	do    func() error
}

func (m *meddler) Write(b []byte) (int, error) {
	if m.parts++; m.parts == 2 {
		if err := m.do(); err != nil {
			return 0, err
		}
	}
	return m.ResponseRecorder.Write(b)
}

// What is sent of a file that changes meanwhile ends before its end, and then it is not to be had;
// where the receiver breaks off it is.
func TestFileChangesWhileItIsSent(t *testing.T) {
	for _, name := range []string{"chunk", "blob"} {
		data := make([]byte, 2*transfer.ChunkSize)
		_, _ = rand.NewChaCha8([32]byte{7}).Read(data) // never fails
		work, store := t.TempDir(), transfer.NewDirStore(t.TempDir(), 0)
		big := filepath.Join(work, "big")
		if err := errors.Join(store.Open(), os.WriteFile(big, data, 0o644)); err != nil {
			t.Fatal(err)
		}
		m, _, err := transfer.Collect(t.Context(), transfer.PinTo(store, "worker"), work, []string{"big"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := transfer.SaveManifest(transfer.PinTo(store, "worker"), m)
		if err != nil {
			t.Fatal(err)
		}
		handler := exchange.New(exchange.Config{Store: store, Self: "zlender", PeerID: func(*http.Request) (vicinity.ID, error) { return "zorigin", nil }}).Handler()
		post := func(what string, question map[string]any) *http.Request {
			return httptest.NewRequest("POST", exchange.TreePath+h.String()+what, bytes.NewReader(codec.MustMarshal(question)))
		}
		change := func() error { return os.WriteFile(big, data[1:], 0o644) }
		ask := func(meanwhile func() error) *http.Response {
			r := httptest.NewRequest("GET", exchange.BlobPath+m.Chunks()[0].String(), nil)
			if name == "chunk" {
				want := swarm.NewSet(2)
				want.Add(0)
				words, _ := want.MarshalBinary() // never fails
				r = post("/chunk", map[string]any{"want": words, "from": 0})
			}
			w := &meddler{httptest.NewRecorder(), 0, meanwhile}
			handler.ServeHTTP(w, r)
			return w.Result()
		}
		for _, meanwhile := range []func() error{func() error { return io.ErrClosedPipe }, change} {
			resp := ask(meanwhile)
			if got, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 || resp.ContentLength != transfer.ChunkSize || len(got) == 0 || len(got) >= transfer.ChunkSize {
				t.Errorf("%s: %s, %d bytes of %d", name, resp.Status, len(got), resp.ContentLength)
			}
		}
		if name == "chunk" {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, post("/state", map[string]any{"since": 0}))
			var state struct {
				Has []byte `json:"has"`
			}
			var has swarm.Set
			if err := errors.Join(codec.Unmarshal(w.Body.Bytes(), &state), has.UnmarshalBinary(state.Has)); err != nil || has.Has(0) {
				t.Errorf("it says that it has the chunk: %v (%v)", has, err)
			}
		}
		if then := ask(change); then.StatusCode == 200 {
			t.Errorf("%s: then %s", name, then.Status)
		}
	}
}
