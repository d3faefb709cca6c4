package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"zorilla/jobs"
	"zorilla/transfer"
)

// Bounds of what a request may hold.
const (
	maxSpecBytes   = 8 << 20 // jobs.MaxArgBytes, each byte written as \u0001
	maxMissing     = 16384   // hashes in one question
	maxMissingBody = 100 * maxMissing
	maxReferBody   = 2 * transfer.MaxBlob
	maxJobName     = 64
	maxDrainBody   = 1024
)

// Handler serves s on the routes in the package comment. The caller's server
// must not have read or write timeouts: streams last as long as jobs do. It
// does not ask who calls: the listener has to know.
func Handler(s Service) http.Handler {
	h := handler{s}
	mux := http.NewServeMux()
	servePeers(mux, s)
	mux.HandleFunc("GET /v1/nodes", answerList(h.nodes))
	mux.HandleFunc("POST /v1/jobs", answer(h.submit))
	mux.HandleFunc("DELETE /v1/jobs/{job}", ofJob(func(r *http.Request, job string) (any, error) { return done{}, s.Remove(r.Context(), job) }))
	mux.HandleFunc("POST /v1/blobs/missing", answerList(h.missing))
	mux.HandleFunc("POST /v1/blobs/refer", answer(h.refer))
	mux.HandleFunc("PUT /v1/blobs/{hash}", answer(h.putChunk))
	mux.HandleFunc("GET /v1/files/{hash}", answer(h.locate))
	mux.HandleFunc("POST /v1/drain", answer(h.drain))
	mux.HandleFunc("GET /v1/owner", answer(func(r *http.Request) (any, error) { return s.Limits(r.Context()) }))
	mux.HandleFunc("POST /v1/owner", answer(h.setLimits))
	mux.HandleFunc("GET /v1/queue", answerList(func(r *http.Request) ([]jobs.Waiting, error) { return s.Queue(r.Context()) }))
	mux.HandleFunc("GET /v1/invite", answer(func(r *http.Request) (any, error) {
		token, err := s.Invite(r.Context())
		return tokenBody{token}, err
	}))
	web := func(readOnly bool) http.HandlerFunc {
		return answer(func(r *http.Request) (any, error) {
			url, err := s.Web(r.Context(), readOnly)
			return urlBody{url}, err
		})
	}
	mux.HandleFunc("GET /v1/web", web(false))
	mux.HandleFunc("GET /v1/web/read-only", web(true))
	mux.HandleFunc("GET /v1/changes", h.changes)
	mux.HandleFunc("POST /v1/jobs/{job}/enter", h.enter)
	mux.HandleFunc("POST /v1/jobs/{job}/resize", ofJob(h.resize))
	mux.HandleFunc("POST /v1/jobs/{job}/snapshot", ofJob(h.snapshot))
	mux.HandleFunc("GET /v1/cache", answer(h.cache))
	mux.HandleFunc("POST /v1/cache", answer(h.cache))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, fmt.Errorf("%w: no route %s %.80s in this version", ErrNotFound, r.Method, r.URL.Path))
	})
	return mux
}

// Bodies that are no type of another package.
type (
	idBody struct {
		ID jobs.ID `json:"id"`
	}
	tokenBody struct {
		Token string `json:"token"`
	}
	urlBody struct {
		URL string `json:"url"`
	}
	awaitBody struct {
		Status  jobs.Status `json:"status"`
		Version uint64      `json:"version"`
	}
	referBody struct {
		Found bool `json:"found"`
	}
	done struct{}
)

type handler struct{ Service }

// answer makes a handler of a function whose result is sent as JSON.
func answer(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r)
		if err != nil {
			writeError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the client is gone if this fails
	}
}

// ofJob is answer for the routes of one job.
func ofJob(f func(r *http.Request, job string) (any, error)) http.HandlerFunc {
	return answer(func(r *http.Request) (any, error) {
		job := r.PathValue("job")
		if err := checkJob(job); err != nil {
			return nil, err
		}
		return f(r, job)
	})
}

// checkJob refuses what cannot name a job: a prefix of an ID, or "last".
func checkJob(job string) error {
	if job == "" || len(job) > maxJobName || strings.Trim(job, "abcdefghijklmnopqrstuvwxyz0123456789@") != "" {
		return fmt.Errorf("%w: %.80q does not name a job: want an ID such as k7f3q@zeb2a, its first characters, "+
			"the name of a job that is known here, or last", ErrInvalid, job)
	}
	return nil
}

// readJSON decodes a request body of at most limit bytes.
func readJSON(r *http.Request, limit int64, v any) error {
	b, err := readBody(r, limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: request body: %v", ErrInvalid, err)
	}
	return nil
}

func readBody(r *http.Request, limit int64) ([]byte, error) {
	buf := roomFor(r.ContentLength)
	err := readInto(buf, r, limit)
	return buf.Bytes(), err
}

// readInto appends a request body of at most limit bytes.
func readInto(buf *bytes.Buffer, r *http.Request, limit int64) error {
	_, err := buf.ReadFrom(http.MaxBytesReader(nil, r.Body, limit))
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		return fmt.Errorf("%w: request body of more than %d bytes", ErrInvalid, limit)
	}
	if err != nil {
		return fmt.Errorf("%w: request body: %v", ErrInvalid, err)
	}
	return nil
}

// roomFor is for what is usually as long as announced, and usually a chunk, which it need not grow
// for. An announcement alone costs no more room than that.
func roomFor(announced int64) *bytes.Buffer {
	return bytes.NewBuffer(make([]byte, 0, min(max(announced, 0), transfer.ChunkSize)+bytes.MinRead))
}

func (h peerHandler) jobs(r *http.Request) ([]jobs.Status, error) {
	all, err := boolean(r, "all")
	if err != nil {
		return nil, err
	}
	return h.Jobs(r.Context(), all)
}

func (h peerHandler) summaries(r *http.Request) ([]jobs.Summary, error) {
	all, err := boolean(r, "all")
	if err != nil {
		return nil, err
	}
	return h.Summaries(r.Context(), all)
}

func (h handler) submit(r *http.Request) (any, error) {
	var spec jobs.Spec
	if err := readJSON(r, maxSpecBytes, &spec); err != nil {
		return nil, err
	}
	id, err := h.Submit(r.Context(), spec)
	return idBody{id}, err
}

func (h handler) drain(r *http.Request) (any, error) {
	var d Drain
	if err := readJSON(r, maxDrainBody, &d); err != nil {
		return nil, err
	}
	return h.Drain(r.Context(), d)
}

func (h peerHandler) await(r *http.Request, job string) (any, error) {
	since, err := strconv.ParseUint(or(r.FormValue("since"), "0"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: since=%.40q: want a version", ErrInvalid, r.FormValue("since"))
	}
	status, version, err := h.Await(r.Context(), job, since)
	return awaitBody{status, version}, err
}

func (h handler) missing(r *http.Request) ([]transfer.Hash, error) {
	var ask []transfer.Hash
	if err := readJSON(r, maxMissingBody, &ask); err != nil {
		return nil, err
	}
	if len(ask) > maxMissing {
		return nil, fmt.Errorf("%w: %d hashes in one question, at most %d", ErrInvalid, len(ask), maxMissing)
	}
	return h.Missing(r.Context(), ask)
}

func (h handler) refer(r *http.Request) (any, error) {
	var f transfer.File
	if err := readJSON(r, maxReferBody, &f); err != nil {
		return nil, err
	}
	if err := f.Check(); err != nil {
		return nil, fmt.Errorf("%w: file: %w", ErrInvalid, err)
	}
	err := h.Refer(r.Context(), f)
	if errors.Is(err, transfer.ErrElsewhere) {
		return referBody{false}, nil
	}
	return referBody{err == nil}, err
}

func (h handler) locate(r *http.Request) (any, error) {
	hash, err := pathHash(r)
	if err != nil {
		return nil, err
	}
	return h.Locate(r.Context(), hash)
}

func (h handler) putChunk(r *http.Request) (any, error) {
	hash, err := pathHash(r)
	if err != nil {
		return nil, err
	}
	buf := chunkBuffers.Get().(*bytes.Buffer)
	defer func() {
		if isChunkRoom(buf) {
			buf.Reset()
			chunkBuffers.Put(buf)
		}
	}()
	if err := readInto(buf, r, transfer.MaxBlob); err != nil {
		return nil, err
	}
	return done{}, h.PutChunk(r.Context(), hash, buf.Bytes())
}

// isChunkRoom tells room for a chunk from that of a larger manifest, which is not kept.
func isChunkRoom(buf *bytes.Buffer) bool { return buf.Cap() <= transfer.ChunkSize+bytes.MinRead }

// chunkBuffers keeps room for chunks that clients send.
var chunkBuffers = sync.Pool{New: func() any { return roomFor(transfer.ChunkSize) }}

func (h peerHandler) chunk(w http.ResponseWriter, r *http.Request) {
	hash, err := pathHash(r)
	if err != nil {
		writeError(w, err)
		return
	}
	data, err := h.Chunk(r.Context(), r.URL.Query().Get("job"), hash)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the client is gone if this fails
}

func pathHash(r *http.Request) (transfer.Hash, error) {
	h, err := transfer.ParseHash(r.PathValue("hash"))
	if err != nil {
		return h, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	if h.IsZero() {
		return h, fmt.Errorf("%w: no hash", ErrInvalid)
	}
	return h, nil
}

func boolean(r *http.Request, name string) (bool, error) {
	b, err := strconv.ParseBool(or(r.FormValue(name), "false"))
	if err != nil {
		return false, fmt.Errorf("%w: %s=%.40q: want true or false", ErrInvalid, name, r.FormValue(name))
	}
	return b, nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
