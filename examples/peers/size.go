package peers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Size is how many workers the job has, and is to have, as the node answers.
type Size struct{ Wanted, Have, Min, Max int }

const askWithin = 10 * time.Second

// Resize asks for so many workers, 0 = as many as there are without some ranks; those go
// first if there are to be fewer. Without either it only asks how many there are.
func (p Place) Resize(workers int, release ...int) (size Size, err error) {
	if p.socket == "" {
		return size, errors.New("this node cannot be asked for workers")
	}
	method, q := http.MethodGet, url.Values{}
	if workers > 0 {
		q.Set("n", strconv.Itoa(workers))
	}
	for _, rank := range release {
		q.Add("release", strconv.Itoa(rank))
	}
	if len(q) > 0 {
		method = http.MethodPost
	}
	_, err = p.ask(method, "/v1/workers", q, askWithin, &size)
	return size, err
}

// ask asks the node, and returns the status with which it has answered, 0 = it has not.
func (p Place) ask(method, path string, q url.Values, within time.Duration, answer any) (status int, err error) {
	u := url.URL{Scheme: "http", Host: "node", Path: path, RawQuery: q.Encode()}
	req, err := http.NewRequest(method, u.String(), nil)
	if err != nil {
		return 0, err
	}
	client := &http.Client{Timeout: within, Transport: &http.Transport{DialContext: p.dial, DisableKeepAlives: true}}
	r, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, 65536))
	if err != nil {
		return 0, err
	}
	if r.StatusCode != http.StatusOK && r.StatusCode != http.StatusAccepted {
		return r.StatusCode, errors.New(strings.TrimSpace(string(b)))
	}
	return r.StatusCode, json.Unmarshal(b, answer)
}

// dial goes to the socket by a short way: its whole name may be too long for an address.
func (p Place) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	path := p.socket
	if wd, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(wd, path); err == nil && len(short) < len(path) {
			path = short
		}
	}
	return (&net.Dialer{}).DialContext(ctx, "unix", path)
}
