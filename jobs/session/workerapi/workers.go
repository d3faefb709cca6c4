package workerapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// resizeEvery bounds how often a worker is answered about the number of workers: the
	// job's origin is asked each time. Who asks sooner waits.
	resizeEvery = 100 * time.Millisecond
	maxRelease  = 4096 // ranks
	maxAnswer   = 64 << 10
)

// counter serves what is asked about the number of workers, one at a time.
type counter struct {
	resize func(ctx context.Context, workers int, release []int) (any, error)
	turn   chan struct{}
}

func (c *counter) serve(w http.ResponseWriter, r *http.Request) {
	workers, release, err := parseResize(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case c.turn <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	begun := time.Now()
	defer func() { time.AfterFunc(resizeEvery-time.Since(begun), func() { <-c.turn }) }()
	answer, err := c.resize(r.Context(), workers, release)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // who asks is gone if this fails
}

// parseResize reads ?n=N&release=RANK&release=RANK of a POST; a GET only asks.
func parseResize(r *http.Request) (workers int, release []int, err error) {
	q := r.URL.Query()
	if r.Method == http.MethodGet {
		if len(q) > 0 {
			return 0, nil, fmt.Errorf("a GET changes nothing: want POST %s?n=N", pathWorkers)
		}
		return 0, nil, nil
	}
	if q.Has("n") {
		if workers, err = strconv.Atoi(q.Get("n")); err != nil || workers < 1 {
			return 0, nil, fmt.Errorf("n=%.40q: want a number of workers", q.Get("n"))
		}
	}
	if len(q["release"]) > maxRelease {
		return 0, nil, fmt.Errorf("%d ranks: want at most %d", len(q["release"]), maxRelease)
	}
	for _, text := range q["release"] {
		rank, err := strconv.Atoi(text)
		if err != nil || rank < 0 {
			return 0, nil, fmt.Errorf("release=%.40q: want a rank", text)
		}
		release = append(release, rank)
	}
	if workers == 0 && len(release) == 0 {
		return 0, nil, fmt.Errorf("want POST %s?n=N, ?release=RANK, or both", pathWorkers)
	}
	return workers, release, nil
}

// Resize asks at the socket at a path for so many workers, as Handlers has it, and decodes the
// answer into v. The error is what the node says.
func Resize(ctx context.Context, path string, workers int, release []int, v any) error {
	method, q := http.MethodGet, url.Values{}
	if workers != 0 {
		q.Set("n", strconv.Itoa(workers))
	}
	for _, rank := range release {
		q.Add("release", strconv.Itoa(rank))
	}
	if len(q) > 0 {
		method = http.MethodPost
	}
	return decode(ctx, path, method, pathWorkers, q, v)
}

// decode asks at the socket at a path, and decodes the answer into v.
func decode(ctx context.Context, socket, method, path string, q url.Values, v any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://node"+path+"?"+q.Encode(), nil)
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
