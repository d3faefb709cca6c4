package workerapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
)

// serveCheckpoint answers POST /v1/checkpoint?dir=DIR&epoch=EPOCH&wait=0.
func serveCheckpoint(w http.ResponseWriter, r *http.Request, make func(ctx context.Context, dir string, epoch int64, wait bool) (any, error)) {
	q := r.URL.Query()
	dir, epoch, wait := ".", int64(0), true
	var err error
	for name := range q {
		value := q.Get(name)
		switch name {
		case "dir":
			dir = path.Clean(value)
		case "epoch":
			if epoch, err = strconv.ParseInt(value, 10, 64); err != nil || epoch < 1 {
				http.Error(w, fmt.Sprintf("epoch=%.40q: want a number from 1", value), http.StatusBadRequest)
				return
			}
		case "wait":
			if value != "0" && value != "1" {
				http.Error(w, fmt.Sprintf("wait=%.40q: want 0 or 1", value), http.StatusBadRequest)
				return
			}
			wait = value == "1"
		default:
			http.Error(w, fmt.Sprintf("%.40q: want POST %s?dir=DIR&epoch=EPOCH&wait=0", name, pathCheckpoint), http.StatusBadRequest)
			return
		}
	}
	answer, err := make(r.Context(), dir, epoch, wait)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !wait {
		w.WriteHeader(http.StatusAccepted)
	}
	_ = json.NewEncoder(w).Encode(answer) // who asks is gone if this fails
}

// Checkpoint asks at the socket at a path for a checkpoint, as Handlers has it, and decodes the answer into v. The
// error is what the node says.
func Checkpoint(ctx context.Context, socket, dir string, epoch int64, wait bool, v any) error {
	q := url.Values{"dir": {dir}}
	if epoch > 0 {
		q.Set("epoch", strconv.FormatInt(epoch, 10))
	}
	if !wait {
		q.Set("wait", "0")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node"+pathCheckpoint+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	r, err := ask(clientOf(socket), req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
