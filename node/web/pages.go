package web

import (
	"bytes"
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
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
)

//go:embed content
var content embed.FS

// pages writes the templates.
type pages struct {
	build     string // names this version of the page's files
	templates map[string]*template.Template
	log       zerolog.Logger
}

func newPages(log zerolog.Logger) (*pages, error) {
	p := &pages{templates: make(map[string]*template.Template), log: log}
	var err error
	if p.build, err = fingerprint(content); err != nil {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	for _, name := range []string{"overview", "job", "node", "timeline", "message"} {
		t, err := template.New(name).Funcs(helpers).ParseFS(content, "content/templates/layout.html", "content/templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("parse templates: %w", err)
		}
		p.templates[name] = t
	}
	return p, nil
}

// helpers are what templates call: they make the argument of another template.
var helpers = template.FuncMap{
	"pager": func(path, label string, p pager) any {
		return struct {
			pager
			Path, Label string
		}{p, path, label}
	},
	"chart": func(path string, c chartView) any {
		return struct {
			chartView
			Path string
		}{c, path}
	},
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
	May    bool   // act
	View   any
	Blank  any // the parts of View for the prototypes of rows
}

func (s *pages) render(w http.ResponseWriter, code int, name string, p page) {
	p.Build = s.build
	var buf bytes.Buffer
	if err := s.templates[name].ExecuteTemplate(&buf, "layout", p); err != nil {
		s.log.Error().Err(err).Str("page", name).Msg("page cannot be written")
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
func serveAsset(w http.ResponseWriter, r *http.Request) {
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

// writeLimit: a browser that takes nothing for so long is gone.
const writeLimit = 20 * time.Second

type message struct{ Title, Text, Command string }

func (s *pages) message(w http.ResponseWriter, code int, title, text string) {
	s.render(w, code, "message", page{Title: title, View: message{Title: title, Text: text}})
}

// fail shows a page for an error of the service.
func (s *pages) fail(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, jobs.ErrForgotten):
		s.message(w, http.StatusNotFound, "Not kept any more", "The results of this job were forgotten: how it ended is on its page.")
	case errors.Is(err, api.ErrNotFound):
		s.message(w, http.StatusNotFound, "No such job", "This node knows no job of that name. It may have been forgotten, or it belongs to another node.")
	case errors.Is(err, api.ErrAmbiguous), errors.Is(err, api.ErrInvalid):
		s.message(w, http.StatusBadRequest, "Which job?", "The name fits more than one job, or is none. Write the whole job ID, as zorilla ps shows it.")
	default:
		s.log.Debug().Err(err).Msg("page: service cannot answer")
		s.message(w, http.StatusServiceUnavailable, "Not now", "The node cannot answer at the moment. Reload the page in a few seconds.")
	}
}

// outputQuery is which output of a job somebody wants.
type outputQuery struct {
	rank   int         // -1 = all
	stream work.Stream // if one
	both   bool
}

func readOutputQuery(r *http.Request) (q outputQuery, err error) {
	form := r.URL.Query()
	q.rank = -1
	if rank := form.Get("rank"); rank != "" {
		n, err := strconv.Atoi(rank)
		if err != nil || n < 0 || n > jobs.MaxTaskID {
			return q, errors.New("rank: want a number from 0")
		}
		q.rank = n
	}
	switch form.Get("stream") {
	case "":
		q.both = true
	case "stdout":
		q.stream = work.Stdout
	case "stderr":
		q.stream = work.Stderr
	default:
		return q, errors.New("stream: want stdout or stderr")
	}
	return q, nil
}

func (q *outputQuery) has(s work.Stream) bool { return q.both || s == q.stream }

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
