package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"zorilla/vicinity"
)

const (
	blobPath = "/v1/blobs/"
	// maxServed is how many blobs one Handler has in memory at a time.
	maxServed = 32
)

// Handler serves GET /v1/blobs/{hash}: the raw bytes, or 404 if the blob is
// not held. The caller has to see to it that only members ask. Requests
// beyond a few at a time wait; a client that reads too slowly is cut off.
func Handler(store Getter) http.Handler {
	s := &server{store: store, buffers: make(chan []byte, maxServed)}
	for range maxServed {
		s.buffers <- nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+blobPath+"{hash}", s.blob)
	return mux
}

type server struct {
	store   Getter
	buffers chan []byte // one for each request that may be served
}

func (s *server) blob(w http.ResponseWriter, r *http.Request) {
	h, err := ParseHash(r.PathValue("hash"))
	if err != nil || h.IsZero() {
		http.Error(w, "want "+blobPath+hashPrefix+"HEX", http.StatusBadRequest)
		return
	}
	var buf []byte
	select {
	case buf = <-s.buffers:
	case <-r.Context().Done():
		return
	}
	defer func() {
		if cap(buf) > ChunkSize { // a manifest's; they are rare
			buf = nil
		}
		s.buffers <- buf
	}()
	data, err := s.store.Get(h, buf)
	switch {
	case errors.Is(err, ErrNotFound):
		http.Error(w, "no such blob here", http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, "the blob cannot be read", http.StatusInternalServerError)
		return
	}
	buf = data
	// Not every ResponseWriter has deadlines; those of real servers have.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(10*time.Second + time.Duration(len(data))*time.Second/minRate))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the client notices what is missing
}

// HTTPSource returns a Source that asks the Handlers of other nodes. url
// returns the address of a node, such as "https://host:port", or "" if it is
// not known.
func HTTPSource(client *http.Client, url func(vicinity.ID) string) Source {
	return func(ctx context.Context, holder vicinity.ID, h Hash) (io.ReadCloser, error) {
		base := url(holder)
		if base == "" {
			return nil, errors.New("no address known")
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+blobPath+h.String(), nil)
		if err != nil {
			return nil, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		switch resp.StatusCode {
		case http.StatusOK:
			return resp.Body, nil
		case http.StatusNotFound:
			err = notFound(h)
		default:
			err = fmt.Errorf("answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
		}
		resp.Body.Close()
		return nil, err
	}
}
