package session

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// lingerFor is how long a client has to end its side of a session that has ended.
const lingerFor = 5 * time.Second

// Body is what a client says in the body of a request. Its methods may be called from any
// goroutine, also while another one reads.
type Body struct {
	mu sync.Mutex // held during a Read: not all bodies are for several readers
	r  io.Reader
}

// BodyOf returns that of a request, which nobody else may read.
func BodyOf(r *http.Request) *Body { return &Body{r: r.Body} }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.r.Read(p)
}

// Linger drops what a client still sends after the exit of its command, until it ends its side
// as well, for at most 5 s. A server that closed the connection before would break what the
// client is writing, and with that its reading of the exit.
func (b *Body) Linger(w http.ResponseWriter) {
	if http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingerFor)) == nil { // else nothing bounds it
		_, _ = io.Copy(io.Discard, b) // however it ends
	}
}

// Refuse answers a request of HTTP/1 with an error in place of a session, and lingers: the answer
// has a length, so that the client need not wait for its end, which comes after that.
func (b *Body) Refuse(w http.ResponseWriter, status int, kind string, text []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	if _, err := w.Write(text); err == nil && http.NewResponseController(w).Flush() == nil {
		b.Linger(w)
	}
}
