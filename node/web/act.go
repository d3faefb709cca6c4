package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/web/form"
)

// Owner is what the page does for who opened it with the owner's token: parts of api.Service.
type Owner interface {
	Submit(ctx context.Context, spec jobs.Spec) (jobs.ID, error)
	Cancel(ctx context.Context, job string, atOnce bool) error
	Drain(ctx context.Context, d api.Drain) (jobs.Drained, error)
	SetLimits(ctx context.Context, changes []string) (jobs.Limits, error)
}

const (
	sessionLength = 30 * 24 * time.Hour
	keyHeader     = "Zorilla-Key" // of an action: the key of its session
	keyDelivery   = time.Minute   // how long the cookie lives that brings it
)

// ReadOnly returns the token that shows all that another one shows, and cannot act. The
// other one cannot be told from it.
func ReadOnly(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("zorilla page, only to look"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:24])
}

// newKey makes the key of a new session. It is for the page's own scripts: browsers keep it
// by origin, port and all, while they send cookies to every port of a host.
func newKey(token string, now time.Time) string {
	session := make([]byte, 24)
	rand.Read(session[:16])
	binary.BigEndian.PutUint64(session[16:], uint64(now.Add(sessionLength).Unix()))
	return base64.RawURLEncoding.EncodeToString(append(session, sealed(token, session)...))
}

func sealed(token string, session []byte) []byte {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("zorilla page, to act"))
	mac.Write(session)
	return mac.Sum(nil)
}

// opens reports whether a key is one of newKey that is not too old.
func opens(key, token string, now time.Time) bool {
	raw, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil || len(raw) != 24+sha256.Size {
		return false
	}
	until := time.Unix(int64(binary.BigEndian.Uint64(raw[16:24])), 0)
	return hmac.Equal(raw[24:], sealed(token, raw[:24])) && now.Before(until)
}

// actions are the requests that change something. They come with POST, from the page itself
// (see guard.act), and are answered with a line of text.
type actions struct {
	service Service
	owner   Owner
}

// outcome is the answer to an action.
type outcome struct {
	Text string `json:"text"`           // what was done, or why not
	Href string `json:"href,omitempty"` // what came of it
}

func (a *actions) handler() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs/{id}/cancel", a.ofJob(a.cancel))
	mux.HandleFunc("POST /jobs/{id}/rerun", a.ofJob(func(ctx context.Context, id string) (outcome, error) { return a.rerun(ctx, id, false) }))
	mux.HandleFunc("POST /jobs/{id}/rerun-failed", a.ofJob(func(ctx context.Context, id string) (outcome, error) { return a.rerun(ctx, id, true) }))
	mux.HandleFunc("POST /jobs", a.submit)
	mux.HandleFunc("POST /node/pause", a.limit("paused=yes", "This node takes no new workers now; what runs goes on."))
	mux.HandleFunc("POST /node/resume", a.limit("paused=no", "This node takes workers again."))
	mux.HandleFunc("POST /node/drain", a.drain(api.Drain{}, "This node takes no new workers now, and becomes empty."))
	mux.HandleFunc("POST /node/undrain", a.drain(api.Drain{Undo: true}, "This node takes workers again."))
	return mux
}

func (a *actions) ofJob(do func(ctx context.Context, id string) (outcome, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if !plausible(id) {
			a.answer(w, outcome{}, api.ErrNotFound)
			return
		}
		done, err := do(r.Context(), id)
		a.answer(w, done, err)
	}
}

func (a *actions) cancel(ctx context.Context, id string) (outcome, error) {
	st, err := a.service.Job(ctx, id) // so that a prefix of two jobs ends none
	if err != nil {
		return outcome{}, err
	}
	if err := a.owner.Cancel(ctx, string(st.ID), false); err != nil {
		return outcome{}, err
	}
	return outcome{Text: "Job " + label(st.ID.Short(), nameLimit) + " is being ended."}, nil
}

// submit submits what a form of the page describes.
func (a *actions) submit(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, form.MaxBytes)
	if err := r.ParseForm(); err != nil {
		a.answer(w, outcome{}, fmt.Errorf(
			"the form is malformed, or has more than %s: put a long script into a file, and submit that with 'zorilla submit'",
			units.Bytes(form.MaxBytes)))
		return
	}
	spec, err := form.Spec(r.PostForm)
	if err != nil {
		a.answer(w, outcome{}, err)
		return
	}
	done, err := a.submitted(r.Context(), spec)
	a.answer(w, done, err)
}

func (a *actions) submitted(ctx context.Context, spec jobs.Spec) (outcome, error) {
	id, err := a.owner.Submit(ctx, spec)
	if err != nil {
		return outcome{}, err
	}
	return outcome{Text: "Submitted as " + label(id.Short(), nameLimit) + ".", Href: "/jobs/" + string(id)}, nil
}

func (a *actions) rerun(ctx context.Context, id string, failed bool) (outcome, error) {
	spec, left, err := api.Again(ctx, a.service, id, api.Rerun{Failed: failed})
	if err != nil {
		return outcome{}, err
	}
	done, err := a.submitted(ctx, spec)
	if len(left) > 0 {
		done.Text += " The job was submitted at another node, so this was left out: " + label(strings.Join(left, ", "), textLimit)
	}
	return done, err
}

func (a *actions) limit(change, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := a.owner.SetLimits(r.Context(), []string{change})
		a.answer(w, outcome{Text: text}, err)
	}
}

func (a *actions) drain(d api.Drain, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		left, err := a.owner.Drain(r.Context(), d)
		if left.Draining && left.Workers > 0 {
			text := fmt.Sprintf("%s %s left.", text, plural(left.Workers, "worker is", "workers are"))
			a.answer(w, outcome{Text: text}, err)
			return
		}
		a.answer(w, outcome{Text: text}, err)
	}
}

// answer says what was done. Errors of the service are lines for people, made for their
// command line.
func (a *actions) answer(w http.ResponseWriter, done outcome, err error) {
	code := http.StatusOK
	switch {
	case err == nil:
	case errors.Is(err, api.ErrNotFound):
		code, done = http.StatusNotFound, outcome{Text: "This node knows no such job."}
	case errors.Is(err, api.ErrUnavailable):
		code, done = http.StatusServiceUnavailable, outcome{Text: "The node cannot do that at the moment: try again in a few seconds."}
	default:
		code, done = http.StatusConflict, outcome{Text: "Not done: " + label(err.Error(), textLimit)}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(done) // the browser is gone if this fails
}

// mayKey marks requests of who may act.
type mayKey struct{}

// mayAct reports whether a request comes from who opened the page with the owner's token.
func mayAct(r *http.Request) bool { return r.Context().Value(mayKey{}) != nil }
