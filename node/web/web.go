package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strconv"

	"github.com/rs/zerolog"

	"zorilla/internal/lobby"
	"zorilla/jobs"
	"zorilla/node/api"
)

//go:embed content
var content embed.FS

// maxStreams bounds the open event streams of one node; a browser tab has at
// most two.
const maxStreams = 100

// Service is the part of api.Service that the page looks at.
type Service interface {
	Node(ctx context.Context) (api.NodeInfo, error)
	Nodes(ctx context.Context) ([]api.NodeInfo, error)
	Survey(ctx context.Context) ([]api.NodeInfo, error)
	Jobs(ctx context.Context, all bool) ([]jobs.Status, error)
	Job(ctx context.Context, job string) (jobs.Status, error)
	Queue(ctx context.Context) ([]jobs.Waiting, error)
	Await(ctx context.Context, job string, since uint64) (jobs.Status, uint64, error)
	Explain(ctx context.Context, job string) (jobs.Explanation, error)
	Tasks(ctx context.Context, job string, q jobs.TaskQuery) (jobs.TaskPage, error)
	Output(ctx context.Context, job string, q api.OutputQuery, f func(jobs.Output) error) error
	Changes() <-chan struct{}
}

// Config is what a page needs.
type Config struct {
	Service Service

	// Token lets a browser in; whoever knows it sees everything the page
	// shows. At least 16 characters, random.
	Token string

	// Hosts are further values of the Host header ("name:port") under which
	// the page may be reached. The loopback names and the address that a
	// connection arrived at are always accepted, with the listener's port.
	Hosts []string

	Log zerolog.Logger
}

// Handler serves the page. It is an http.Handler.
type Handler struct {
	cfg     Config
	build   string // names this version of the page's files
	pages   map[string]*template.Template
	streams chan struct{} // one place for each open stream
	guests  *lobby.Lobby  // connections without a cookie
	mux     *http.ServeMux
	atlas   atlas
	meter   meter
}

// New returns a handler that is ready to serve. It fails if the token is too
// short to keep anybody out.
func New(cfg Config) (*Handler, error) {
	if len(cfg.Token) < 16 {
		return nil, fmt.Errorf("token of the page has %d characters, want at least 16 random ones", len(cfg.Token))
	}
	h := &Handler{cfg: cfg, streams: make(chan struct{}, maxStreams), guests: lobby.New(maxGuests, maxGuests), pages: make(map[string]*template.Template)}
	var err error
	if h.build, err = fingerprint(content); err != nil {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	for _, name := range []string{"overview", "job", "message"} {
		t, err := template.ParseFS(content, "content/templates/layout.html", "content/templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("parse templates: %w", err)
		}
		h.pages[name] = t
	}
	h.mux = http.NewServeMux()
	h.mux.HandleFunc("/assets/{name}", h.serveAsset)
	h.mux.HandleFunc("/{$}", h.serveOverview)
	h.mux.HandleFunc("/events", h.streamOverview)
	h.mux.HandleFunc("/jobs/{id}", h.serveJob)
	h.mux.HandleFunc("/jobs/{id}/events", h.streamJob)
	h.mux.HandleFunc("/jobs/{id}/output", h.streamOutput)
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.message(w, http.StatusNotFound, "Nothing here", "This address names no page of this node.")
	})
	return h, nil
}

// fingerprint names the content of all files, so that an open page notices
// that the node came back with another version of it.
func fingerprint(files fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(files, path)
		sum.Write(b)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:6]), err
}

// page is what a template gets.
type page struct {
	Title  string
	Build  string
	Script string // module in /assets that keeps the page alive, or ""
	View   any
	Blank  any // the parts of View for the prototypes of rows
}

func (h *Handler) render(w http.ResponseWriter, code int, name string, p page) {
	p.Build = h.build
	var buf bytes.Buffer
	if err := h.pages[name].ExecuteTemplate(&buf, "layout", p); err != nil {
		h.cfg.Log.Error().Err(err).Str("page", name).Msg("page cannot be written")
		http.Error(w, "this page cannot be shown; the node's log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(code)
	w.Write(buf.Bytes()) // an error means that the browser is gone
}

// serveAsset names the content type itself: the machine's own table may call a
// script plain text, and then no browser runs it.
func (h *Handler) serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	types := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
	b, err := content.ReadFile("content/assets/" + name)
	if err != nil {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.Write(b) // an error means that the browser is gone
}

type message struct{ Title, Text, Command string }

func (h *Handler) message(w http.ResponseWriter, code int, title, text string) {
	h.render(w, code, "message", page{Title: title, View: message{Title: title, Text: text}})
}

// fail shows a page for an error of the service.
func (h *Handler) fail(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, api.ErrNotFound):
		h.message(w, http.StatusNotFound, "No such job", "This node knows no job of that name. It may have been forgotten, or it belongs to another node.")
	case errors.Is(err, api.ErrAmbiguous), errors.Is(err, api.ErrInvalid):
		h.message(w, http.StatusBadRequest, "Which job?", "The name fits more than one job, or is none. Write the whole job ID, as zorilla ps shows it.")
	default:
		h.cfg.Log.Debug().Err(err).Msg("page: service cannot answer")
		h.message(w, http.StatusServiceUnavailable, "Not now", "The node cannot answer at the moment. Reload the page in a few seconds.")
	}
}

func (h *Handler) serveOverview(w http.ResponseWriter, r *http.Request) {
	v, err := h.overview(r.Context())
	if err != nil {
		h.fail(w, err)
		return
	}
	h.render(w, http.StatusOK, "overview", page{Title: v.Self.Name, Script: "overview.js", View: v, Blank: blankOverview})
}

func (h *Handler) serveJob(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !plausible(id) {
		h.fail(w, api.ErrNotFound)
		return
	}
	st, err := h.cfg.Service.Job(r.Context(), id)
	if err != nil {
		h.fail(w, err)
		return
	}
	v := h.job(r.Context(), st, failedFrom(r))
	h.render(w, http.StatusOK, "job", page{Title: v.ID + " " + v.Title, Script: "job.js", View: v, Blank: blankJob})
}

// plausible keeps what cannot name a job away from the service.
func plausible(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		if c != '@' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
