package api

import (
	"context"
	"net/http"

	"zorilla/jobs"
)

// maxOwnerBody bounds a request for changes: long lists fit.
const maxOwnerBody = 64 << 10

type changesBody struct {
	Changes []string `json:"changes"`
}

func (h handler) setLimits(r *http.Request) (any, error) {
	var body changesBody
	if err := readJSON(r, maxOwnerBody, &body); err != nil {
		return nil, err
	}
	return h.SetLimits(r.Context(), body.Changes)
}

// Limits implements Service.
func (c *Client) Limits(ctx context.Context) (l jobs.Limits, err error) {
	return l, c.get(ctx, "/v1/owner", &l)
}

// SetLimits implements Service.
func (c *Client) SetLimits(ctx context.Context, changes []string) (l jobs.Limits, err error) {
	return l, c.post(ctx, "/v1/owner", changesBody{changes}, &l)
}

// Queue implements Service.
func (c *Client) Queue(ctx context.Context) ([]jobs.Waiting, error) {
	return getList[jobs.Waiting](ctx, c, "/v1/queue")
}
