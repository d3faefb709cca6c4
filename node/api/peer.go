package api

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"zorilla/jobs"
	"zorilla/transfer"
)

// Peer is what a node does for other nodes: the whole list, for members must
// not be able to ask what nobody meant them to. Its methods are those of
// Service, about the node that is asked itself and about jobs that originate
// there; a job is named by its whole ID, and nothing is passed on, so that no
// request goes in a circle.
type Peer interface {
	// Node leaves out what is of use only on the node's own machine.
	Node(ctx context.Context) (NodeInfo, error)
	// Measure is from "self" to the whole ID of a member.
	Measure(ctx context.Context, from, to string, pings int) (Measurement, error)
	// Jobs asks nobody else, whatever all says.
	Jobs(ctx context.Context, all bool) ([]jobs.Status, error)
	// Summaries asks nobody else either.
	Summaries(ctx context.Context, all bool) ([]jobs.Summary, error)
	Job(ctx context.Context, job string) (jobs.Status, error)
	Await(ctx context.Context, job string, since uint64) (jobs.Status, uint64, error)
	Tasks(ctx context.Context, job string, q jobs.TaskQuery) (jobs.TaskPage, error)
	Explain(ctx context.Context, job string) (jobs.Explanation, error)
	Cancel(ctx context.Context, job string, atOnce bool) error
	Output(ctx context.Context, job string, q OutputQuery, f func(jobs.Output) error) error
	Stdin(ctx context.Context, job string, r io.Reader) error
	// Chunk looks in the node's own store only.
	Chunk(ctx context.Context, job string, h transfer.Hash) ([]byte, error)
}

var _ Peer = Service(nil)

// PeerHandler serves p, and nothing else, to other nodes. As for Handler, the
// listener has to know who calls.
func PeerHandler(p Peer) http.Handler {
	mux := http.NewServeMux()
	servePeers(mux, p)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, fmt.Errorf("%w: %s %.80s is nothing that nodes ask each other", ErrRefused, r.Method, r.URL.Path))
	})
	return mux
}

// servePeers puts the routes of p on a mux: one for each method.
func servePeers(mux *http.ServeMux, p Peer) {
	h := peerHandler{p}
	mux.HandleFunc("GET /v1/node", answer(func(r *http.Request) (any, error) { return p.Node(r.Context()) }))
	mux.HandleFunc("GET /v1/rtt", answer(h.rtt))
	mux.HandleFunc("GET /v1/jobs", answerList(h.jobs))
	mux.HandleFunc("GET /v1/summaries", answerList(h.summaries))
	mux.HandleFunc("GET /v1/jobs/{job}", ofJob(func(r *http.Request, job string) (any, error) { return p.Job(r.Context(), job) }))
	mux.HandleFunc("GET /v1/jobs/{job}/await", ofJob(h.await))
	mux.HandleFunc("GET /v1/jobs/{job}/tasks", ofJob(h.tasks))
	mux.HandleFunc("GET /v1/jobs/{job}/explain", ofJob(func(r *http.Request, job string) (any, error) { return p.Explain(r.Context(), job) }))
	mux.HandleFunc("POST /v1/jobs/{job}/cancel", ofJob(func(r *http.Request, job string) (any, error) {
		return done{}, p.Cancel(r.Context(), job, r.URL.Query().Get("at_once") == "1")
	}))
	mux.HandleFunc("GET /v1/jobs/{job}/output", h.output)
	mux.HandleFunc("PUT /v1/jobs/{job}/stdin", h.stdin)
	mux.HandleFunc("GET /v1/blobs/{hash}", h.chunk)
}

// peerHandler reads requests for what a Peer does.
type peerHandler struct{ Peer }
