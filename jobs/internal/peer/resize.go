package peer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// maxResize bounds the body of a Resize, and the answer.
const maxResize = 64 << 10

// Resize asks a job's origin for another number of workers. Errors of the origin are what
// they are there.
func (c *Client) Resize(ctx context.Context, to vicinity.ID, m *wire.Resize) (size jobs.Size, err error) {
	body, err := codec.Marshal(m)
	if err != nil {
		return size, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(to)+PathResize, bytes.NewReader(body))
	if err != nil {
		return size, err
	}
	r, err := c.HTTP.Do(req)
	if err != nil {
		return size, fmt.Errorf("%w: node %s cannot be asked: %w", jobs.ErrStopped, to.Short(), err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return size, refusal(to, r, "gives no job another number of workers")
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxResize))
	if err != nil {
		return size, err
	}
	return size, codec.Unmarshal(b, &size)
}

// ServeResize answers Resize.
func (s *Server) ServeResize(resize func(ctx context.Context, from vicinity.ID, m *wire.Resize) (jobs.Size, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, ok := s.asker(w, r)
		if !ok {
			return
		}
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxResize))
		var m wire.Resize
		if err == nil {
			err = codec.Unmarshal(b, &m)
		}
		if err == nil {
			err = m.Check()
		}
		if err != nil {
			s.Counters.Malformed()
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		size, err := resize(r.Context(), from, &m)
		if err != nil {
			sayError(w, err)
			return
		}
		_, _ = w.Write(codec.MustMarshal(size)) // who asks is gone if this fails
	}
}
