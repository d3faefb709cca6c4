package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
)

const (
	pause      = 200 * time.Millisecond // between two updates of a stream
	arrayPause = time.Second            // of an array, which changes all the time
	refresh    = 5 * time.Second        // a look without a reason
	liveLook   = 2 * time.Second        // the same for a job that is not over
	tryAgain   = 2 * time.Second        // after the service could not answer
	askAgain   = 5 * time.Second        // the members for their load
)

// streams sends what changes to browsers.
type streams struct {
	service Service
	views   *views
	pages   *pages
	open    chan struct{} // one place for each open stream
}

// maxStreams bounds the open event streams of one node; a browser tab has at
// most two.
const maxStreams = 100

// stream writes server-sent events to one browser.
type stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	last []byte // data of the last view, without its time
}

// start answers with an event stream, or with an error if there are too
// many (nil). The caller calls done when the stream ends.
func (h *streams) start(w http.ResponseWriter, r *http.Request) (s *stream, done func()) {
	select {
	case h.open <- struct{}{}:
	default:
		http.Error(w, fmt.Sprintf("%d pages of this node are open already: close some", maxStreams), http.StatusServiceUnavailable)
		return nil, nil
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s = &stream{w: w, rc: http.NewResponseController(w)}
	if r.Method == http.MethodGet {
		s.write("retry: 1000\n\n")
	}
	return s, func() {
		_ = s.rc.SetWriteDeadline(time.Time{}) // the connection may have more to do
		<-h.open
	}
}

func (s *stream) write(text string) error {
	// What cannot have a deadline (a recorder in a test) cannot get stuck either.
	if err := s.rc.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.rc.Flush()
}

func (s *stream) beat() error { return s.write(": alive\n\n") }

func (s *stream) send(event string, v any) error {
	data, err := json.Marshal(v) // has no line break, so it is one data line
	if err != nil {
		return fmt.Errorf("encode event %s: %w", event, err)
	}
	return s.write("event: " + event + "\ndata: " + string(data) + "\n\n")
}

// view sends v unless it says what the last one said; then it sends a sign of
// life. timeless is v without what changes by itself.
func (s *stream) view(v, timeless any) error {
	data, err := json.Marshal(timeless)
	if err != nil {
		return fmt.Errorf("encode view: %w", err)
	}
	if bytes.Equal(data, s.last) {
		return s.beat()
	}
	s.last = data
	return s.send("view", v)
}

// sleep waits, or returns false when the browser is gone.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (h *streams) overview(w http.ResponseWriter, r *http.Request) {
	query := readQuery(r)
	h.live(w, r, pause, func(ctx context.Context) (v, timeless any, err error) {
		now, err := h.views.overview(ctx, query)
		then := now
		then.Now = ""
		return now, then, err
	})
}

// node keeps the page of one member as it is; of one that has left it tells that, with what
// was known last.
func (h *streams) node(w http.ResponseWriter, r *http.Request) {
	last, err := h.views.nodeOf(r)
	if err == nil && last == nil {
		h.pages.message(w, http.StatusNotFound, "No such node", "No member has this ID now. It may have left.")
		return
	}
	h.live(w, r, pause, func(ctx context.Context) (v, timeless any, err error) {
		now, err := h.views.nodeOf(r.WithContext(ctx))
		switch {
		case now != nil:
			last = now
		case last == nil || err != nil:
			return nil, nil, cmp.Or(err, api.ErrUnavailable)
		default:
			last.Gone = true
		}
		then := *last
		then.Now = ""
		return last, then, nil
	})
}

// live sends what look sees whenever something has changed, with pauses.
func (h *streams) live(w http.ResponseWriter, r *http.Request, pause time.Duration, look func(context.Context) (v, timeless any, err error)) {
	s, done := h.start(w, r)
	if s == nil {
		return
	}
	defer done()
	if r.Method != http.MethodGet {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	asked := make(chan struct{}, 1)
	var survey sync.WaitGroup
	survey.Go(func() { h.survey(ctx, asked) })
	defer survey.Wait()
	defer cancel()
	for {
		changed := h.service.Changes() // before the look, so that no change is missed
		v, timeless, err := look(ctx)
		if err == nil {
			err = s.view(v, timeless)
		} else {
			err = s.beat()
		}
		if err != nil || !sleep(ctx, pause) {
			return
		}
		t := time.NewTimer(refresh)
		select {
		case <-changed:
		case <-asked:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// survey has the members asked for their load and links while somebody looks,
// and reports when there may be news. It is not done by the stream itself, since
// a member that does not answer would hold up all else.
func (h *streams) survey(ctx context.Context, news chan<- struct{}) {
	for {
		if _, err := h.service.Survey(ctx); err == nil {
			select {
			case news <- struct{}{}:
			default:
			}
		}
		if !sleep(ctx, askAgain) {
			return
		}
	}
}

func (h *streams) job(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !plausible(id) {
		h.pages.fail(w, api.ErrNotFound)
		return
	}
	s, done := h.start(w, r)
	if s == nil {
		return
	}
	defer done()
	if r.Method != http.MethodGet {
		return
	}
	ctx := r.Context()
	var version uint64
	var last jobs.Status
	for {
		st, next, err := h.await(ctx, id, version, last)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, api.ErrNotFound):
			s.send("end", "gone")
			return
		case err != nil:
			if s.beat() != nil || !sleep(ctx, tryAgain) {
				return
			}
			continue
		}
		version, last = next, st
		v := h.views.job(ctx, st, failedFrom(r))
		timeless := v
		timeless.Now = ""
		if s.view(v, timeless) != nil {
			return
		}
		if st.State.Final() && !st.LastKnown {
			s.send("end", "final")
			return
		}
		wait := pause
		if st.Array != nil {
			wait = arrayPause
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// await returns the job's next status, or the last one again after a while, so
// that what only Explain knows is looked at too.
func (h *streams) await(ctx context.Context, id string, version uint64, last jobs.Status) (jobs.Status, uint64, error) {
	look, cancel := context.WithTimeout(ctx, liveLook)
	defer cancel()
	st, next, err := h.service.Await(look, id, version)
	if err != nil && look.Err() != nil && version != 0 {
		return last, version, nil
	}
	return st, next, err
}

// batch is the data of an output event.
type batch struct {
	Skipped int64   `json:"skipped"` // bytes left out before the pieces
	Pieces  []piece `json:"pieces"`
}

func (h *streams) output(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	want, err := readOutputQuery(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !plausible(id) {
		h.pages.fail(w, api.ErrNotFound)
		return
	}
	s, done := h.start(w, r)
	if s == nil {
		return
	}
	defer done()
	if r.Method != http.MethodGet || s.send("start", want.rank) != nil {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	t := newTail(maxTail)
	var reader sync.WaitGroup
	reader.Go(func() {
		c := newCleaner()
		t.end(h.service.Output(ctx, id, api.OutputQuery{Rank: want.rank, Follow: true}, func(o jobs.Output) error {
			if want.has(o.Stream) {
				t.add(c.clean(o))
			}
			return ctx.Err()
		}))
	})
	defer reader.Wait()
	defer cancel()
	copyTail(ctx, s, t)
}

// copyTail sends what comes into t until it ends.
func copyTail(ctx context.Context, s *stream, t *tail) {
	for {
		alive := time.NewTimer(refresh)
		select {
		case <-t.ready():
		case <-alive.C:
		case <-ctx.Done():
		}
		alive.Stop()
		if ctx.Err() != nil {
			return
		}
		b, ended, err := t.take()
		switch {
		case len(b.Pieces) > 0:
			if s.send("output", b) != nil {
				return
			}
		case !ended:
			if s.beat() != nil {
				return
			}
		}
		if ended {
			// An output that broke off is asked for again by the browser, which
			// reconnects unless it was told that this is the end.
			if err == nil {
				s.send("end", "complete")
			} else if errors.Is(err, api.ErrNotFound) {
				s.send("end", "gone")
			}
			return
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}
