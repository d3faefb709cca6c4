// Package peer is how nodes send each other the messages of package wire: HTTP/2 requests
// whose two ends are known by their certificates.
package peer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"zorilla/internal/codec"
	"zorilla/internal/sanitize"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// The peer protocol: POST with a msgpack body to one of these paths, at the
// node that the URL's host names; the sender is known by its certificate.
const (
	Prefix      = "/v1/peer/"
	PathGrant   = Prefix + "grant"
	PathStart   = Prefix + "start"
	PathRelease = Prefix + "release"
	PathReport  = Prefix + "report"
	PathStdin   = Prefix + "stdin"
	PathOutput  = Prefix + "output"
	PathMeasure = Prefix + "measure"
	PathClock   = Prefix + "clock"
	PathEnter   = Prefix + "enter"
	PathBeat    = Prefix + "beat"
	PathResize  = Prefix + "resize"

	PathSnapshot = Prefix + "snapshot"
	PathKeep     = Prefix + "keep"
	PathBook     = Prefix + "book"
)

// Client asks other nodes. Its methods may be called from any goroutine.
type Client struct {
	HTTP     *http.Client // reaches node N as https://N/
	Sessions *http.Client // the same for Enter, whose streams may be held up
}

// Send posts a message to a node and reads its answer into resp, if not nil.
func (c *Client) Send(ctx context.Context, to vicinity.ID, path string, msg, resp any) error {
	body, err := codec.Marshal(msg)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(to)+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, wire.MaxBody+1))
	switch {
	case err != nil:
		return err
	case len(b) > wire.MaxBody:
		return fmt.Errorf("answer of node %s: %w", to.Short(), codec.ErrMalformed)
	case r.StatusCode == http.StatusConflict:
		return fmt.Errorf("node %s: %w", to.Short(), wire.Refused(string(b)))
	case r.StatusCode != http.StatusOK:
		return fmt.Errorf("node %s answered %s: %s", to.Short(), r.Status, sanitize.OneLine(strings.TrimSpace(string(b))))
	case resp == nil:
		return nil
	}
	return codec.Unmarshal(b, resp)
}
