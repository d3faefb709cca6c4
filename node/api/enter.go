package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/session"
	"zorilla/transfer"
)

// enter passes a session on, both ways at once. An error before the first frame is an
// ordinary one; later the answer is broken off.
func (h handler) enter(w http.ResponseWriter, r *http.Request) {
	job := r.PathValue("job")
	err := checkJob(job)
	asked := r.URL.Query().Get("rank") // FormValue would read the body, which is the session
	rank, bad := strconv.Atoi(or(asked, "0"))
	if err == nil && (bad != nil || rank < 0 || rank >= jobs.MaxRanks) {
		err = fmt.Errorf("%w: rank=%.40q: want 0 to %d", ErrInvalid, asked, jobs.MaxRanks-1)
	}
	if err == nil && r.ProtoMajor == 1 {
		if err = http.NewResponseController(w).EnableFullDuplex(); err != nil {
			err = fmt.Errorf("%w: the connection cannot carry a session: %v", ErrUnavailable, err)
		}
		w.Header().Set("Connection", "close")
	}
	if err != nil {
		writeError(w, err)
		return
	}
	in, out := session.BodyOf(r), &flushed{w: w}
	err = h.Enter(r.Context(), job, rank, in, out)
	switch {
	case err == nil:
		in.Linger(w)
	case out.begun:
		// A server waits for the rest of the body before it lets go of the connection, and
		// the client may wait for that.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
		panic(http.ErrAbortHandler) // the client must not take this for the end
	case r.ProtoMajor == 1:
		body, status := encodeError(err)
		text, _ := json.Marshal(body) // two texts
		in.Refuse(w, status, "application/json", text)
	default:
		writeError(w, err)
	}
}

// flushed sends each piece at once.
type flushed struct {
	w     http.ResponseWriter
	begun bool
}

// Write implements io.Writer.
func (f *flushed) Write(p []byte) (int, error) {
	if !f.begun {
		f.w.Header().Set("Content-Type", "application/octet-stream")
		f.begun = true
	}
	n, err := f.w.Write(p)
	if err == nil {
		err = http.NewResponseController(f.w).Flush()
	}
	return n, err
}

// Enter implements JobController. It returns as soon as the other side has ended or ctx ends, even
// while in waits for input: what a Read of it then returns is lost.
func (c *Client) Enter(ctx context.Context, job string, rank int, in io.Reader, out io.Writer) error {
	if err := checkJob(job); err != nil {
		return err
	}
	// As in Stdin.
	body, w := io.Pipe()
	defer body.Close()
	go func() {
		_, err := io.Copy(w, in)
		_ = w.CloseWithError(err) // never fails
	}()
	resp, err := c.send(ctx, http.MethodPost, fmt.Sprintf("%s/enter?rank=%d", jobPath(job), rank), body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(out, resp.Body); err != nil {
		return c.broken(ctx, err)
	}
	return nil
}

// snapshotBody is the body of a request for a snapshot.
type snapshotBody struct {
	Rank  int      `json:"rank"`
	Files []string `json:"files"` // patterns
}

// maxSnapshotBody is what nodes take from each other.
const maxSnapshotBody = 1 << 20

func (h handler) snapshot(r *http.Request, job string) (any, error) {
	var b snapshotBody
	if err := readJSON(r, maxSnapshotBody, &b); err != nil {
		return nil, err
	}
	if b.Rank < 0 || b.Rank >= jobs.MaxRanks || len(b.Files) == 0 || len(b.Files) > jobs.MaxGlobs {
		return nil, fmt.Errorf("%w: a snapshot is of a rank, and of 1 to %d patterns", ErrInvalid, jobs.MaxGlobs)
	}
	for _, glob := range b.Files {
		if err := transfer.CheckPattern(glob); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return h.Snapshot(r.Context(), job, b.Rank, b.Files)
}

// Snapshot implements JobReader.
func (c *Client) Snapshot(ctx context.Context, job string, rank int, globs []string) (out jobs.RankOutput, err error) {
	if err := checkJob(job); err != nil {
		return out, err
	}
	return out, c.post(ctx, jobPath(job)+"/snapshot", snapshotBody{rank, globs}, &out)
}

const maxResizeBody = 64 << 10

func (h handler) resize(r *http.Request, job string) (any, error) {
	var q jobs.Resize
	if err := readJSON(r, maxResizeBody, &q); err != nil {
		return nil, err
	}
	if err := q.Check(); err != nil {
		return nil, err
	}
	return h.Resize(r.Context(), job, q)
}

// Resize implements JobController.
func (c *Client) Resize(ctx context.Context, job string, q jobs.Resize) (size jobs.Size, err error) {
	if err := checkJob(job); err != nil {
		return size, err
	}
	return size, c.post(ctx, jobPath(job)+"/resize", q, &size)
}
