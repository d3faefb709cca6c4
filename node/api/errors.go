package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"zorilla/jobs"
)

// ErrNoNode is wrapped by every error of a Client whose node does not run.
var ErrNoNode = errors.New("no node is running")

// ErrBroken is wrapped by the error of a Client whose connection ended before the
// answer had come: what it asked for may have been done.
var ErrBroken = errors.New("the connection to the node broke")

const (
	codeInternal  = "internal"
	maxErrorBytes = 64 << 10
)

// kinds is the table of errors that keep their identity across the wire. The
// first row whose error matches names the code.
var kinds = []struct {
	code   string
	status int
	err    error
}{
	{"invalid_job", http.StatusBadRequest, jobs.ErrInvalid},
	{"out_of_range", http.StatusBadRequest, jobs.ErrRange},
	{"invalid", http.StatusBadRequest, ErrInvalid},
	{"not_found", http.StatusNotFound, ErrNotFound},
	{"ambiguous", http.StatusConflict, ErrAmbiguous},
	{"damaged", http.StatusInternalServerError, jobs.ErrDamaged},
	{"forgotten", http.StatusGone, jobs.ErrForgotten},
	{"refused", http.StatusForbidden, ErrRefused},
	{"not_running", http.StatusConflict, jobs.ErrNotRunning},
	{"unavailable", http.StatusServiceUnavailable, ErrUnavailable},
	{"unavailable", http.StatusServiceUnavailable, jobs.ErrStopped}, // means the same to who asked
	{"deadline", http.StatusGatewayTimeout, context.DeadlineExceeded},
	{"cancelled", http.StatusServiceUnavailable, context.Canceled},
}

// errorBody is an error on the wire.
type errorBody struct {
	Error string `json:"error"`
	Code  string `json:"code"`
}

func encodeError(err error) (errorBody, int) {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return errorBody{err.Error(), k.code}, k.status
		}
	}
	return errorBody{err.Error(), codeInternal}, http.StatusInternalServerError
}

func (b errorBody) decode() error {
	for _, k := range kinds {
		if b.Code == k.code {
			return &remoteError{b.Error, k.err}
		}
	}
	return &remoteError{b.Error, nil}
}

// remoteError is an error of the other side: its words, and the sentinel that
// its code stands for.
type remoteError struct {
	text string
	kind error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }

func writeError(w http.ResponseWriter, err error) {
	body, status := encodeError(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone if this fails
}

// readError makes an error of an answer that is not a success.
func readError(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes))
	var body errorBody
	if err != nil || json.Unmarshal(b, &body) != nil || body.Code == "" {
		return fmt.Errorf("%w: what answers there is not a node (it says %q): --node wants the path of a node's socket, "+
			"STATE/zorilla.sock; a page is for browsers", ErrUnavailable, resp.Status)
	}
	return body.decode()
}

// maxHeader is how much is read of the header of a request that is turned away.
const maxHeader = 64 << 10

// TurnAway answers the first request of a client that the node cannot serve, since too many files
// are open. It closes the connection when the client has read the answer, or at the deadline.
func TurnAway(conn net.Conn, deadline time.Time) {
	defer conn.Close()
	_ = conn.SetDeadline(deadline) // it is open
	r, err := http.ReadRequest(bufio.NewReader(io.LimitReader(conn, maxHeader)))
	if err != nil {
		return
	}
	body, status := encodeError(fmt.Errorf("%w: the node has too many clients now: "+
		"try again later, or start it with a higher limit of open files (ulimit -n)", ErrUnavailable))
	text, err := json.Marshal(body)
	if err != nil {
		return
	}
	answer := http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Request: r, Close: true,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(text)), Body: io.NopCloser(bytes.NewReader(text)),
	}
	if answer.Write(conn) != nil {
		return
	}
	if c, ok := conn.(interface{ CloseWrite() error }); ok && c.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, conn) // what it still sends would break the connection before it has read
	}
}
