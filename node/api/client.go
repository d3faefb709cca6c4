package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// maxAnswer bounds a JSON answer: the status of a job of jobs.MaxRanks
// workers fits.
const maxAnswer = 128 << 20

// maxNode bounds what one node says of itself: it is asked of many at once.
const maxNode = 256 << 10

var _ Service = (*Client)(nil)

// Client is a Service that asks another one through its Handler. Errors of
// the other side keep their words and their identity; a connection that
// cannot be made or breaks is ErrUnavailable, and ErrNoNode where no node
// listens.
type Client struct {
	http *http.Client
	base string

	// watch ends what Changes waits for.
	watch context.Context
	stop  context.CancelFunc
}

// NewClient returns a Client that sends requests through rt to baseURL, such
// as "https://zeb2a". It does no I/O.
func NewClient(rt http.RoundTripper, baseURL string) *Client {
	c := &Client{base: baseURL, http: &http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	c.watch, c.stop = context.WithCancel(context.Background())
	return c
}

// Close ends what Changes waits for and drops idle connections.
func (c *Client) Close() {
	c.stop()
	c.http.CloseIdleConnections()
}

// Node implements Service.
func (c *Client) Node(ctx context.Context) (n NodeInfo, err error) {
	return n, c.call(ctx, http.MethodGet, "/v1/node", nil, maxNode, &n)
}

// Nodes implements Service.
func (c *Client) Nodes(ctx context.Context) ([]NodeInfo, error) {
	return getList[NodeInfo](ctx, c, "/v1/nodes")
}

// Submit implements Service.
func (c *Client) Submit(ctx context.Context, spec jobs.Spec) (jobs.ID, error) {
	var body idBody
	if err := c.post(ctx, "/v1/jobs", spec, &body); err != nil {
		return "", err
	}
	if !body.ID.Valid() {
		return "", fmt.Errorf("%w: the node answered with job ID %.80q", ErrUnavailable, body.ID)
	}
	return body.ID, nil
}

// Jobs implements Service.
func (c *Client) Jobs(ctx context.Context, all bool) ([]jobs.Status, error) {
	return getList[jobs.Status](ctx, c, "/v1/jobs?all="+strconv.FormatBool(all))
}

// Summaries implements Service.
func (c *Client) Summaries(ctx context.Context, all bool) ([]jobs.Summary, error) {
	return getList[jobs.Summary](ctx, c, "/v1/summaries?all="+strconv.FormatBool(all))
}

// Job implements Service.
func (c *Client) Job(ctx context.Context, job string) (s jobs.Status, err error) {
	return s, c.getJob(ctx, job, "", &s)
}

// Await implements Service.
func (c *Client) Await(ctx context.Context, job string, since uint64) (jobs.Status, uint64, error) {
	var body awaitBody
	err := c.getJob(ctx, job, "/await?since="+strconv.FormatUint(since, 10), &body)
	return body.Status, body.Version, err
}

// Explain implements Service.
func (c *Client) Explain(ctx context.Context, job string) (e jobs.Explanation, err error) {
	return e, c.getJob(ctx, job, "/explain", &e)
}

// Cancel implements Service.
func (c *Client) Cancel(ctx context.Context, job string, atOnce bool) error {
	if err := checkJob(job); err != nil {
		return err
	}
	path := jobPath(job) + "/cancel"
	if atOnce {
		path += "?at_once=1"
	}
	return c.call(ctx, http.MethodPost, path, nil, maxAnswer, &done{})
}

// Remove implements Service.
func (c *Client) Remove(ctx context.Context, job string) error {
	if err := checkJob(job); err != nil {
		return err
	}
	return c.call(ctx, http.MethodDelete, jobPath(job), nil, maxAnswer, &done{})
}

// Stdin implements Service. It returns as soon as the other side has answered
// or ctx ends, even while r waits for input: a Read of r may then still be
// under way, and what it returns is lost.
func (c *Client) Stdin(ctx context.Context, job string, r io.Reader) error {
	if err := checkJob(job); err != nil {
		return err
	}
	// The transports wait for the body's Read to return before they let go
	// of the request; that of a pipe ends when it is closed.
	body, w := io.Pipe()
	defer body.Close()
	go func() {
		_, err := io.Copy(w, r)
		_ = w.CloseWithError(err) // never fails
	}()
	return c.call(ctx, http.MethodPut, jobPath(job)+"/stdin", body, maxAnswer, &done{})
}

// Output implements Service.
func (c *Client) Output(ctx context.Context, job string, q OutputQuery, f func(jobs.Output) error) error {
	if err := checkJob(job); err != nil {
		return err
	}
	path := fmt.Sprintf("%s/output?rank=%d&follow=%t&files=%t", jobPath(job), q.Rank, q.Follow, q.Files)
	if q.Times {
		path += "&times=true"
	}
	if q.Since != 0 {
		path += fmt.Sprintf("&since=%d", q.Since)
	}
	if q.Attempt != 0 {
		path += fmt.Sprintf("&attempt=%d", q.Attempt)
	}
	resp, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	frames, at := &frameReader{r: resp.Body}, int64(0)
	defer frames.release()
	for {
		o, err := frames.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return c.broken(ctx, err)
		}
		if o.Stream == 0 {
			at = o.At
			continue
		}
		o.At = at
		if (o.Stream == work.Files) != q.Files {
			return fmt.Errorf("%w: the node sent %v", codec.ErrMalformed, o.Stream)
		}
		if err := f(o); err != nil {
			return err
		}
	}
}

// Missing implements Service, in as many questions as it takes.
func (c *Client) Missing(ctx context.Context, chunks []transfer.Hash) ([]transfer.Hash, error) {
	var missing []transfer.Hash
	for len(chunks) > 0 {
		n := min(len(chunks), maxMissing)
		var part []transfer.Hash
		if err := c.post(ctx, "/v1/blobs/missing", chunks[:n], &part); err != nil {
			return nil, err
		}
		missing = append(missing, part...)
		chunks = chunks[n:]
	}
	return missing, nil
}

// Refer implements transfer.LocalRemote. Nodes of earlier versions cannot do it, and get
// copies.
func (c *Client) Refer(ctx context.Context, f transfer.File) error {
	var body referBody
	err := c.post(ctx, "/v1/blobs/refer", f, &body)
	if errors.Is(err, ErrUnavailable) || err == nil && !body.Found {
		return transfer.ErrElsewhere
	}
	return err
}

// Locate implements transfer.Locator. What a node of somebody else's says of a file is to be
// compared: it could name one that only this process may read.
func (c *Client) Locate(ctx context.Context, content transfer.Hash) (f transfer.File, err error) {
	err = c.get(ctx, "/v1/files/"+content.String(), &f)
	if t, ok := c.http.Transport.(interface{ believed() bool }); !ok || !t.believed() {
		f.Stamp = transfer.Stamp{}
	}
	return f, err
}

// PutChunk implements Service.
func (c *Client) PutChunk(ctx context.Context, h transfer.Hash, data []byte) error {
	return c.call(ctx, http.MethodPut, "/v1/blobs/"+h.String(), bytes.NewReader(data), maxAnswer, &done{})
}

// Chunk implements Service. What it returns has the hash.
func (c *Client) Chunk(ctx context.Context, job string, h transfer.Hash) ([]byte, error) {
	path := "/v1/blobs/" + h.String()
	if job != "" {
		path += "?job=" + url.QueryEscape(job)
	}
	resp, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	buf := roomFor(resp.ContentLength)
	if _, err := buf.ReadFrom(io.LimitReader(resp.Body, transfer.MaxBlob+1)); err != nil {
		return nil, c.broken(ctx, err)
	}
	data := buf.Bytes()
	if transfer.HashOf(data) != h {
		return nil, fmt.Errorf("%w: the node answered with other bytes than %v", ErrUnavailable, h)
	}
	return data, nil
}

// Drain implements Service.
func (c *Client) Drain(ctx context.Context, d Drain) (jobs.Drained, error) {
	var body jobs.Drained
	err := c.post(ctx, "/v1/drain", d, &body)
	return body, err
}

// Invite implements Service.
func (c *Client) Invite(ctx context.Context) (string, error) {
	var body tokenBody
	err := c.get(ctx, "/v1/invite", &body)
	return body.Token, err
}

// Web implements Service.
func (c *Client) Web(ctx context.Context, readOnly bool) (string, error) {
	var body urlBody
	path := "/v1/web"
	if readOnly { // a path of its own: who does not know it must not give the other address
		path = "/v1/web/read-only"
	}
	err := c.get(ctx, path, &body)
	return body.URL, err
}

// Changes implements Service. It returns when the other side watches. The
// channel is also closed when the connection breaks or the Client is closed:
// the next question will tell.
func (c *Client) Changes() <-chan struct{} {
	changed := make(chan struct{})
	resp, err := c.send(c.watch, http.MethodGet, "/v1/changes", nil)
	if err != nil {
		close(changed)
		return changed
	}
	go func() {
		defer close(changed)
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body) // its end is the message, whatever ended it
	}()
	return changed
}

func jobPath(job string) string { return "/v1/jobs/" + url.PathEscape(job) }

func (c *Client) getJob(ctx context.Context, job, rest string, v any) error {
	if err := checkJob(job); err != nil {
		return err
	}
	return c.get(ctx, jobPath(job)+rest, v)
}

func (c *Client) get(ctx context.Context, path string, v any) error {
	return c.call(ctx, http.MethodGet, path, nil, maxAnswer, v)
}

func (c *Client) post(ctx context.Context, path string, body, v any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	return c.call(ctx, http.MethodPost, path, bytes.NewReader(b), maxAnswer, v)
}

// call sends one request and decodes its JSON answer, of at most limit bytes,
// into v.
func (c *Client) call(ctx context.Context, method, path string, body io.Reader, limit int64, v any) error {
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil {
		return c.broken(ctx, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return unreadable(err)
	}
	return nil
}

// send returns the answer to a request if it is a success, and the error in
// it otherwise.
func (c *Client) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	reqCtx := ctx
	if pipe, ok := body.(*io.PipeReader); ok {
		var stop func()
		reqCtx, stop = ending(ctx, pipe)
		defer stop()
	}
	req, err := http.NewRequestWithContext(reqCtx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.broken(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, readError(resp)
	}
	return resp, nil
}

// broken says what an error of the connection means to the caller. Errors of
// the other side pass through.
func (c *Client) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if remote := (*remoteError)(nil); errors.As(err, &remote) || errors.Is(err, ErrNoNode) || errors.Is(err, ErrRefused) {
		return unwrapURL(err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", ErrUnavailable, ErrBroken)
	}
	return fmt.Errorf("%w: %w: %v", ErrUnavailable, ErrBroken, unwrapURL(err))
}

// unwrapURL strips the method and the made-up host name, which mean nothing
// to people.
func unwrapURL(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}
