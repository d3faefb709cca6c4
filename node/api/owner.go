package api

import (
	"context"
	"net/http"

	"zorilla/jobs"
	"zorilla/transfer"
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

// maxCacheBody bounds a request to look after the cache.
const maxCacheBody = 1024

// CacheOp is what is to be done with the cache.
type CacheOp struct {
	Verify bool `json:"verify,omitempty"` // read all, and remove what is damaged
	Prune  bool `json:"prune,omitempty"`  // remove what nobody needs
}

// Cache is what a node's store of chunks holds, and what was done with it.
type Cache struct {
	transfer.Contents
	Verified *transfer.Checked `json:"verified,omitempty"`
	Pruned   *transfer.Pruned  `json:"pruned,omitempty"`
}

func (h handler) cache(r *http.Request) (any, error) {
	var care CacheOp
	if r.Method == http.MethodPost {
		if err := readJSON(r, maxCacheBody, &care); err != nil {
			return nil, err
		}
	}
	return h.Cache(r.Context(), care)
}

// Cache implements OwnerService.
func (c *Client) Cache(ctx context.Context, care CacheOp) (told Cache, err error) {
	if care == (CacheOp{}) {
		return told, c.get(ctx, "/v1/cache", &told)
	}
	return told, c.post(ctx, "/v1/cache", care, &told)
}
