package workerapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
)

// Checkpoint is what a program asks for that has written its state.
type Checkpoint struct {
	Dir   string // below the work directory
	Epoch int64  // 0 = none
	All   bool   // it is the state of all ranks that start again together
	Wait  bool   // the answer comes when it is kept; else as soon as the directory was read
}

// serveCheckpoint answers POST /v1/checkpoint?dir=DIR&epoch=EPOCH&all=1&wait=0.
func serveCheckpoint(w http.ResponseWriter, r *http.Request, make func(ctx context.Context, c Checkpoint) (any, error)) {
	q := r.URL.Query()
	c := Checkpoint{Dir: ".", Wait: true}
	var err error
	for name := range q {
		value := q.Get(name)
		switch name {
		case "dir":
			c.Dir = path.Clean(value)
		case "epoch":
			if c.Epoch, err = strconv.ParseInt(value, 10, 64); err != nil || c.Epoch < 1 {
				http.Error(w, fmt.Sprintf("epoch=%.40q: want a number from 1", value), http.StatusBadRequest)
				return
			}
		case "wait", "all":
			if value != "0" && value != "1" {
				http.Error(w, fmt.Sprintf("%s=%.40q: want 0 or 1", name, value), http.StatusBadRequest)
				return
			}
			if name == "all" {
				c.All = value == "1"
			} else {
				c.Wait = value == "1"
			}
		default:
			http.Error(w, fmt.Sprintf("%.40q: want POST %s?dir=DIR&epoch=EPOCH&all=1&wait=0", name, pathCheckpoint), http.StatusBadRequest)
			return
		}
	}
	answer, err := make(r.Context(), c)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !c.Wait {
		w.WriteHeader(http.StatusAccepted)
	}
	_ = json.NewEncoder(w).Encode(answer) // who asks is gone if this fails
}

// Make asks at the socket at a path for a checkpoint, and decodes the answer into v. The error is what the node says.
func (c Checkpoint) Make(ctx context.Context, socket string, v any) error {
	q := url.Values{"dir": {c.Dir}}
	if c.Epoch > 0 {
		q.Set("epoch", strconv.FormatInt(c.Epoch, 10))
	}
	if c.All {
		q.Set("all", "1")
	}
	if !c.Wait {
		q.Set("wait", "0")
	}
	return decode(ctx, socket, http.MethodPost, pathCheckpoint, q, v)
}
