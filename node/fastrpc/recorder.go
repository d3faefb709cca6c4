package fastrpc

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
)

// Recorder is an http.ResponseWriter that keeps the answer to a request which does not come over
// a connection.
type Recorder struct {
	header http.Header
	answer
}

// Header implements http.ResponseWriter. What is in it is not kept.
func (w *Recorder) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter.
func (w *Recorder) WriteHeader(code int) { w.Status = cmp.Or(w.Status, code) }

// Write implements http.ResponseWriter.
func (w *Recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.Body = append(w.Body, b...)
	return len(b), nil
}

// Response returns the answer as it would have come over a connection.
func (w *Recorder) Response(r *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	return w.response(r)
}

// response is an answer as it would have come over a connection.
func (a answer) response(r *http.Request) *http.Response {
	return &http.Response{
		Status: fmt.Sprint(a.Status, " ", http.StatusText(a.Status)), StatusCode: a.Status, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a.Body)), ContentLength: int64(len(a.Body)), Request: r,
	}
}
