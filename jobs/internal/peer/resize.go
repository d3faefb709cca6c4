package peer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"zorilla/internal/codec"
	"zorilla/internal/portion"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// maxAsk bounds the body of what somebody asks on behalf of a user, and the answer: that of a
// Resize, or a Snapshot.
const maxAsk = 1 << 20

// Resize asks a job's origin for another number of workers. Errors of the origin are what
// they are there.
func (c *Client) Resize(ctx context.Context, to vicinity.ID, m *wire.Resize) (jobs.Size, error) {
	return ask[jobs.Size](ctx, c, to, PathResize, m, "gives no job another number of workers")
}

// Snapshot asks a job's origin, or the node where a worker runs, what files that has made
// until now. Errors are what they are there.
func (c *Client) Snapshot(ctx context.Context, to vicinity.ID, m *wire.Snapshot) (jobs.RankOutput, error) {
	return ask[jobs.RankOutput](ctx, c, to, PathSnapshot, m, "does not tell of files before their worker has ended")
}

// Keep has a node keep a checkpoint, or says which are needed; it waits until the node has it. Errors are what
// they are there.
func (c *Client) Keep(ctx context.Context, to vicinity.ID, m *wire.Keep) error {
	_, err := ask[struct{}](ctx, c, to, PathKeep, m, "keeps no checkpoints")
	return err
}

// ask posts a message and reads the answer. Nodes of earlier versions cannot do it.
func ask[A any](ctx context.Context, c *Client, to vicinity.ID, path string, m any, cannot string) (answer A, err error) {
	body, err := codec.Marshal(m)
	if err != nil {
		return answer, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(to)+path, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	r, err := c.HTTP.Do(req)
	if err != nil {
		return answer, fmt.Errorf("%w: node %s cannot be asked: %w", jobs.ErrStopped, to.Short(), err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return answer, refusal(to, r, cannot)
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxAsk))
	if err != nil {
		return answer, err
	}
	return answer, codec.Unmarshal(b, &answer)
}

// ServeAsk answers ask. Errors that f returns are what they are at the other node.
func ServeAsk[A, T any, P message[T]](s *Server, f func(ctx context.Context, from vicinity.ID, m P) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, ok := s.asker(w, r)
		if !ok {
			return
		}
		b, err := portion.Read(w, r, maxAsk)
		m := P(new(T))
		if err == nil {
			err = codec.Unmarshal(b, m)
		}
		if err == nil {
			err = m.Check()
		}
		if err != nil {
			s.Counters.Malformed()
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := f(r.Context(), from, m)
		if err != nil {
			sayError(w, err)
			return
		}
		_, _ = w.Write(codec.MustMarshal(answer)) // who asks is gone if this fails
	}
}
