package exchange

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/portion"
	"zorilla/internal/uplink"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Paths of what other nodes are asked. Blobs are named by their hash.
const (
	BlobPath = "/v1/blobs/"
	TreePath = "/v1/trees/"
)

const (
	// maxServed is how many blobs a node has in memory at a time to serve them.
	maxServed = 16
	// pollWait is how long an answer to a question for a state may wait.
	pollWait = 8 * time.Second
	// maxAsk bounds a request: the set has at most 4 KiB.
	maxAsk = 16 << 10
	// stillEvery is how often who waits for its turn is told that it does.
	stillEvery = 5 * time.Second
	// chunkHeader has the index of the chunk that is sent.
	chunkHeader = "Zorilla-Chunk"
	// treeHeader is in each answer of who knows what trees are.
	treeHeader = "Zorilla-Tree"
)

// Handler serves blobs, and answers what other nodes ask about trees. The caller has to
// see to it that only members ask. Requests beyond a few at a time wait; a client that
// reads too slowly is cut off.
func (x *Exchange) Handler() http.Handler {
	s := &server{x: x, served: make(chan struct{}, maxServed), turns: newTurns()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+BlobPath+"{hash}", s.blob)
	mux.HandleFunc("POST "+TreePath+"{hash}/state", s.tree(s.state))
	mux.HandleFunc("POST "+TreePath+"{hash}/chunk", s.tree(s.chunk))
	return mux
}

type server struct {
	x      *Exchange
	served chan struct{} // has one for each request that is served
	turns  *turns
}

// still reports who asks that it waits. Who does not read it is cut off: long after the next time, or the answer.
func still(w http.ResponseWriter) {
	// Not every ResponseWriter has deadlines; those of real servers have.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(6 * stillEvery))
	w.WriteHeader(http.StatusProcessing)
}

// wait waits for one of some places, and reports who asks now and then that it does. It reports
// false if the request ends before.
func wait(w http.ResponseWriter, r *http.Request, places chan<- struct{}) bool {
	select {
	case places <- struct{}{}: // most often
		return true
	default:
	}
	tick := time.NewTicker(stillEvery)
	defer tick.Stop()
	for {
		select {
		case places <- struct{}{}:
			return true
		case <-tick.C:
			still(w)
		case <-r.Context().Done():
			return false
		}
	}
}

// lease calls f with a turn to send to a node and a buffer, and takes back what f returns,
// unless the request ends before. F returns also how many bytes it has sent, 0 if not all. Who
// waits long for its turn is told that it does.
func (s *server) lease(w http.ResponseWriter, r *http.Request, to vicinity.ID, f func(turn *uplink.Turn, buf []byte) (_ []byte, sent int)) {
	turn, err := s.x.cfg.Uplink.Begin(r.Context(), string(to), transfer.ChunkSize, func() { still(w) })
	if err != nil {
		return
	}
	defer turn.End()
	if !wait(w, r, s.served) {
		return
	}
	defer func() { <-s.served }()
	if !wait(w, r, s.turns.places) {
		return
	}
	end, sent := s.turns.begin(), 0
	defer func() { end(sent) }()
	b := s.x.buffers.Get().(*buffer)
	defer s.x.buffers.Put(b)
	buf, all := f(turn, b.bytes)
	if sent = all; cap(buf) <= maxKept { // else it was a manifest; they are rare
		b.bytes = buf
	}
}

func (s *server) blob(w http.ResponseWriter, r *http.Request) {
	h, err := transfer.ParseHash(r.PathValue("hash"))
	if err != nil || h.IsZero() {
		http.Error(w, "want "+BlobPath+"sha256:HEX", http.StatusBadRequest)
		return
	}
	if held, _ := s.x.cfg.Store.Holds(h); !held { // which needs no turn to be said
		refuse(w, transfer.ErrNotFound)
		return
	}
	var from vicinity.ID
	if s.x.cfg.PeerID != nil {
		from, _ = s.x.cfg.PeerID(r) // else all strangers share what one may have
	}
	s.lease(w, r, from, func(turn *uplink.Turn, buf []byte) ([]byte, int) {
		to := sending{w: w, r: r, turn: turn}
		buf, err := s.x.cfg.Store.Read(h, buf, to.part)
		if err != nil && to.size == 0 {
			refuse(w, err)
		}
		if err != nil {
			return buf, 0 // the client notices what is missing
		}
		return buf, to.size
	})
}

// refuse says that a blob is not to be had.
func refuse(w http.ResponseWriter, err error) {
	if errors.Is(err, transfer.ErrNotFound) {
		http.Error(w, "no such blob here", http.StatusNotFound)
		return
	}
	http.Error(w, "the blob cannot be read", http.StatusInternalServerError)
}

// sending answers with a blob.
type sending struct {
	w    http.ResponseWriter
	r    *http.Request
	turn *uplink.Turn
	size int // of the blob; 0 = the answer has not begun
}

// part is for transfer.Read.
func (s *sending) part(p []byte, size int) error {
	if s.size == 0 {
		s.size = size
		// Not every ResponseWriter has deadlines; those of real servers have.
		_ = http.NewResponseController(s.w).SetWriteDeadline(time.Now().Add(10*time.Second + time.Duration(size)*time.Second/minRate))
		s.w.Header().Set("Content-Type", "application/octet-stream")
		s.w.Header().Set("Content-Length", strconv.Itoa(size))
	}
	_, err := s.turn.Write(s.r.Context(), s.w, p)
	return err
}

// tree finds the tree that is asked about, and notes by whom.
func (s *server) tree(answer func(w http.ResponseWriter, r *http.Request, t *tree, from vicinity.ID, body []byte)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(treeHeader, "1")
		from, err := s.x.cfg.PeerID(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		h, err := transfer.ParseHash(r.PathValue("hash"))
		body, rerr := portion.Read(w, r, maxAsk)
		if err != nil || h.IsZero() || rerr != nil {
			http.Error(w, "want "+TreePath+"sha256:HEX/...", http.StatusBadRequest)
			return
		}
		t, err := s.x.trees.find(r.Context(), s.x, h)
		if err != nil {
			refuse(w, transfer.ErrNotFound)
			return
		}
		t.asked(from)
		answer(w, r, t, from, body)
	}
}

// stateQuestion asks what a node has of a tree.
type stateQuestion struct {
	Since uint64 `json:"since"` // the version that is known
}

// stateAnswer is what it has.
type stateAnswer struct {
	Version uint64   `json:"version"`
	Has     []byte   `json:"has"`            // set of chunks
	Seed    bool     `json:"seed,omitempty"` // it had all before anybody asked
	Peers   []string `json:"peers,omitempty"`
}

// chunkQuestion asks for any of some chunks.
type chunkQuestion struct {
	Want   []byte `json:"want"` // words of the set of chunks
	From   int    `json:"from"` // the number of the first
	Insist bool   `json:"insist,omitempty"`
}

// givenAnswer reports who was given what is wanted.
type givenAnswer struct {
	To []string `json:"to"`
}

func (s *server) state(w http.ResponseWriter, r *http.Request, t *tree, from vicinity.ID, body []byte) {
	var q stateQuestion
	if err := codec.Unmarshal(body, &q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	so := t.state(r.Context(), q.Since, from)
	has, _ := so.Has.MarshalBinary() // never fails
	_, _ = w.Write(codec.MustMarshal(stateAnswer{so.Version, has, so.Seed, so.Peers}))
}

func (s *server) chunk(w http.ResponseWriter, r *http.Request, t *tree, from vicinity.ID, body []byte) {
	var q chunkQuestion
	want := Want{}
	err := codec.Unmarshal(body, &q)
	if err == nil {
		err = want.Chunks.UnmarshalBinary(q.Want)
	}
	if err != nil || q.From < 0 || q.From > len(t.have) {
		http.Error(w, "a set of chunks is malformed", http.StatusBadRequest)
		return
	}
	want.From, want.Insist = q.From, q.Insist
	s.lease(w, r, from, func(turn *uplink.Turn, buf []byte) (_ []byte, sent int) {
		i, given := t.pick(from, want)
		if i < 0 {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write(codec.MustMarshal(givenAnswer{given}))
			return buf, 0
		}
		w.Header().Set(chunkHeader, strconv.Itoa(i))
		to := sending{w: w, r: r, turn: turn}
		buf, err := s.x.cfg.Store.Read(t.chunks[i].Hash, buf, to.part)
		if err == nil {
			t.sent(i)
			return buf, to.size
		}
		t.undo(from, i)
		if to.size == 0 || errors.Is(err, transfer.ErrNotFound) {
			t.lost(i)
		}
		if to.size == 0 {
			refuse(w, err)
		}
		return buf, 0
	})
}
