package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"zorilla/internal/sanitize"
	"zorilla/jobs"
	"zorilla/vicinity"
)

// Entry names a worker in whose world a command is to run.
type Entry struct {
	Job     jobs.ID
	Rank    int // for the job's origin: the rank; for the node of a worker: its number
	Attempt int // 0 = for the job's origin to say
	// Host, of the job's origin asked by the node of a rank: the name or an address of the node
	// of the rank that is meant.
	Host string
}

// Enter has a node pass a session on to a worker, or to the node of that: in is what the
// client says, out what it is to hear. It returns when the session has ended, or cannot begin.
func (c *Client) Enter(ctx context.Context, to vicinity.ID, e Entry, in io.Reader, out io.Writer) error {
	q := url.Values{"job": {string(e.Job)}, "rank": {strconv.Itoa(e.Rank)}, "attempt": {strconv.Itoa(e.Attempt)}}
	if e.Host != "" {
		q.Set("host", e.Host)
	}
	// The transport waits for a Read of the body; that of a pipe ends when it is closed.
	body, w := io.Pipe()
	defer body.Close()
	go func() {
		_, err := io.Copy(w, in)
		_ = w.CloseWithError(err) // never fails
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(to)+PathEnter+"?"+q.Encode(), body)
	if err != nil {
		return err
	}
	r, err := c.Sessions.Do(req)
	if err != nil {
		return fmt.Errorf("node %s cannot be asked: %w", to.Short(), err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return refusal(to, r, "runs no more commands in its workers")
	}
	_, err = io.Copy(out, r.Body)
	return err
}

// refusal is the error that a node has answered; cannot is what earlier versions do not do.
func refusal(to vicinity.ID, r *http.Response, cannot string) error {
	b, _ := io.ReadAll(io.LimitReader(r.Body, 4<<10)) // what there is of it
	text := sanitize.OneLine(strings.TrimSpace(string(b)))
	if r.StatusCode == http.StatusNotFound && text == unknownPath {
		return said{"node " + to.Short() + " is of an earlier version, which " + cannot, jobs.ErrNotRunning}
	}
	for _, kind := range saidErrors {
		if kind.status == r.StatusCode {
			return said{text, kind.err}
		}
	}
	return fmt.Errorf("node %s answered %s: %s", to.Short(), r.Status, text)
}

// unknownPath is what a node says of a path that it does not know.
const unknownPath = "404 page not found"

// saidErrors are the errors that keep what they are from node to node.
var saidErrors = []struct {
	status int
	err    error
}{
	{http.StatusUnprocessableEntity, jobs.ErrRange},
	{http.StatusNotFound, jobs.ErrNotFound},
	{http.StatusConflict, jobs.ErrNotRunning},
	{http.StatusForbidden, jobs.ErrRefused},
	{http.StatusServiceUnavailable, jobs.ErrStopped},
}

// said is an error in another node's words.
type said struct {
	text string
	kind error
}

// Error implements error.
func (e said) Error() string { return e.text }
func (e said) Unwrap() error { return e.kind }

// ServeEnter answers Enter. Nothing is said before enter writes; an error before that is the
// answer.
func (s *Server) ServeEnter(enter func(ctx context.Context, from vicinity.ID, e Entry, in io.Reader, out io.Writer) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, ok := s.asker(w, r)
		if !ok {
			return
		}
		e, err := parseEntry(r.URL.Query())
		if err != nil {
			s.Counters.Malformed()
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := &Flushed{W: w}
		if err := enter(r.Context(), from, e, r.Body, out); err == nil {
			return
		} else if out.Begun {
			panic(http.ErrAbortHandler) // the reader must not take this for the end
		} else {
			sayError(w, err)
		}
	}
}

// sayError answers with an error, for refusal.
func sayError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	for _, kind := range saidErrors {
		if errors.Is(err, kind.err) {
			status = kind.status
		}
	}
	http.Error(w, err.Error(), status)
}

const maxHost = 256

func parseEntry(q url.Values) (e Entry, err error) {
	e.Job, e.Host = jobs.ID(q.Get("job")), q.Get("host")
	rank, err1 := strconv.Atoi(q.Get("rank"))
	attempt, err2 := strconv.Atoi(q.Get("attempt"))
	if e.Rank, e.Attempt = rank, attempt; err1 != nil || err2 != nil ||
		rank < 0 || rank >= jobs.MaxRanks || attempt < 0 || !e.Job.Valid() || len(e.Host) > maxHost {
		return e, errors.New("want job, rank and attempt")
	}
	return e, nil
}

// Flushed sends each piece at once.
type Flushed struct {
	W     http.ResponseWriter
	Begun bool // something was sent
}

// Write implements io.Writer.
func (f *Flushed) Write(p []byte) (int, error) {
	f.Begun = true
	n, err := f.W.Write(p)
	if err == nil {
		err = http.NewResponseController(f.W).Flush()
	}
	return n, err
}
