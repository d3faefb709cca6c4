package web

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/rs/zerolog"

	"zorilla/internal/connlimit"
	"zorilla/node/api"
)

// Config is what a page needs.
type Config struct {
	Service Service
	// Owner makes changes; nil = the page only shows.
	Owner Owner

	// API serves command lines that have Token, below /v1/, and nobody else; nil = none.
	API http.Handler
	// Token lets a browser in; whoever knows it sees everything the page
	// shows, and may act as the owner. At least 16 characters, random. The one
	// that ReadOnly makes of it lets in who may only look.
	Token string

	// Hosts are further values of the Host header ("name:port") under which
	// the page may be reached. The loopback names are always accepted, and the
	// address that a connection arrived at, with the listener's port.
	Hosts []string

	Log zerolog.Logger
}

// Handler serves the page. It is an http.Handler.
type Handler struct {
	*guard
	connLimit *connlimit.Limiter // connections without a cookie
	pages     *pages
	views     *views
	streams   *streams
}

// New returns a handler that is ready to serve. It fails if the token is too
// short to keep anybody out.
func New(cfg Config) (*Handler, error) {
	if len(cfg.Token) < 16 {
		return nil, fmt.Errorf("token of the page has %d characters, want at least 16 random ones", len(cfg.Token))
	}
	p, err := newPages(cfg.Log)
	if err != nil {
		return nil, err
	}
	v := &views{service: cfg.Service, build: p.build}
	h := &Handler{connLimit: connlimit.New(maxUnproven, maxUnproven), pages: p, views: v}
	h.streams = &streams{service: cfg.Service, views: v, pages: p, open: make(chan struct{}, maxStreams)}
	mux := http.NewServeMux()
	mux.HandleFunc("/assets/{name}", serveAsset)
	mux.HandleFunc("/{$}", h.serveOverview)
	mux.HandleFunc("/events", h.streams.overview)
	mux.HandleFunc("/timeline", h.serveTimeline)
	mux.HandleFunc("/timeline/events", h.streams.timeline)
	mux.HandleFunc("/nodes/{id}", h.serveNode)
	mux.HandleFunc("/nodes/{id}/events", h.streams.node)
	mux.HandleFunc("/jobs/{id}", h.serveJob)
	mux.HandleFunc("/jobs/{id}/events", h.streams.job)
	mux.HandleFunc("/jobs/{id}/output", h.streams.output)
	files := &downloads{service: cfg.Service, pages: p, open: make(chan struct{}, maxDownloads), shelves: shelves{most: maxShelves}}
	mux.HandleFunc("/jobs/{id}/log", files.log)
	mux.HandleFunc("/jobs/{id}/files/{rank}/{path...}", files.serve)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p.message(w, http.StatusNotFound, "Nothing here", "This address names no page of this node.")
	})
	h.guard = &guard{token: cfg.Token, reader: ReadOnly(cfg.Token), hosts: cfg.Hosts, pages: p, guarded: mux, api: cfg.API}
	if cfg.Owner != nil {
		a := &actions{service: cfg.Service, owner: cfg.Owner}
		h.guard.acts = a.handler()
	}
	return h, nil
}

// Listen returns the listener whose connections the page is to be served on:
// those that have not shown the cookie are few. ConnContext has to be that of
// the server.
func (h *Handler) Listen(l net.Listener) net.Listener { return limitedListener{l, h.connLimit} }

// ConnContext notes which connection a request comes on. It is for http.Server.
func (h *Handler) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

func (h *Handler) serveOverview(w http.ResponseWriter, r *http.Request) {
	v, err := h.views.overview(r.Context(), readQuery(r))
	if err != nil {
		h.pages.fail(w, err)
		return
	}
	h.pages.render(w, http.StatusOK, "overview", page{May: mayAct(r), Title: v.Self.Name, Script: "overview.js", View: v, Blank: blankOverview})
}

func (h *Handler) serveJob(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !plausible(id) {
		h.pages.fail(w, api.ErrNotFound)
		return
	}
	st, err := h.views.service.Job(r.Context(), id)
	if err != nil {
		h.pages.fail(w, err)
		return
	}
	v := h.views.job(r.Context(), st, failedFrom(r))
	h.pages.render(w, http.StatusOK, "job", page{May: mayAct(r), Title: v.ID + " " + v.Title, Script: "job.js", View: v, Blank: blankJob})
}
