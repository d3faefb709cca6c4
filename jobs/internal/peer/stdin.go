package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/process"
)

var errInputClosed = errors.New("the worker does not read its input any more")

// FeedStdin brings the client's input to rank 0, beginning again where the
// connection to the origin broke or where an earlier life of this node stopped.
func (c *Client) FeedStdin(ctx context.Context, job jobs.ID, in process.Input) {
	sent, err := in.Offset()
	if err != nil {
		return // the worker has ended, or is left
	}
	for ctx.Err() == nil {
		err := c.copyStdin(ctx, job, in, &sent)
		if err == nil || errors.Is(err, errInputClosed) {
			in.Close()
			return
		}
		pause(ctx)
	}
}

func (c *Client) copyStdin(ctx context.Context, job jobs.ID, in process.Input, sent *int64) error {
	url := fmt.Sprintf("https://%s%s?job=%s&offset=%d", job.Origin(), PathStdin, job, *sent)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("node %s answered %s", job.Origin().Short(), r.Status)
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(buf)
		if n > 0 {
			if _, err := in.Write(buf[:n]); err != nil {
				return errInputClosed
			}
			*sent += int64(n)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// retryPause is waited before a broken stream is opened again.
const retryPause = 500 * time.Millisecond

// pause waits a little before something is tried again.
func pause(ctx context.Context) {
	select {
	case <-time.After(retryPause):
	case <-ctx.Done():
	}
}
