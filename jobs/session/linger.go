package session

import (
	"io"
	"net/http"
	"time"
)

// lingerFor is how long a client has to end its side of a session that has ended.
const lingerFor = 5 * time.Second

// Linger reads and drops what a client still sends after the exit of its command, until it ends
// its side as well, for at most 5 s. A server that closed the connection before would break what
// the client is writing, and with that its reading of the exit.
func Linger(w http.ResponseWriter, r *http.Request) {
	if http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingerFor)) == nil { // else nothing bounds it
		_, _ = io.Copy(io.Discard, r.Body) // however it ends
	}
}
