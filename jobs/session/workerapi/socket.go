// Package workerapi is the API for processes inside a worker: they ask the worker's node for
// exec sessions with the job's other workers, and for more or fewer workers, by HTTP on a
// unix socket. Each worker has a socket of its own, which says who asks; no request goes
// further than the job.
package workerapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/session"
)

const (
	// Variable names the socket in the environment of a worker.
	Variable = "ZORILLA_SOCKET"
	// Dir is the directory in a worker's root that has the socket, and nothing else.
	Dir = "door"
	// Name is that of the socket there.
	Name = "socket"

	maxConns       = 256 // at a time; more wait
	maxHeader      = 16 << 10
	headerWithin   = 5 * time.Second
	maxHost        = 256
	maxErrorBytes  = 4 << 10
	pathEnter      = "/v1/enter"
	pathWorkers    = "/v1/workers"
	pathCheckpoint = "/v1/checkpoint"
)

// Ask says with whom a session is wanted.
type Ask struct {
	Host string // a node's name or address, as it stands in the job's host file; "" = see Rank
	Rank int
}

// Handlers carry out requests, each in a goroutine of its own.
type Handlers struct {
	// Enter carries out a session: in has the bytes of the client, out takes those for it. Nothing
	// is sent before the first Write, so that an error can be.
	Enter func(ctx context.Context, a Ask, in io.Reader, out io.Writer) error
	// Resize asks for so many workers, without some ranks if there are to be fewer; 0 and
	// none only asks how many there are. The answer is sent as JSON.
	Resize func(ctx context.Context, workers int, release []int) (any, error)
	// Checkpoint makes a checkpoint. The answer is sent as JSON.
	Checkpoint func(ctx context.Context, c Checkpoint) (any, error)
}

// Server serves the socket of one worker.
type Server struct {
	server   *http.Server
	listener net.Listener
}

// Open opens the socket of the worker in a root, in place of one that is there.
func Open(root string, v Handlers) (*Server, error) {
	dir := filepath.Join(root, Dir)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if err := os.Remove(filepath.Join(dir, Name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var l *net.UnixListener
	err := at(filepath.Join(dir, Name), func(addr *net.UnixAddr) (err error) {
		l, err = net.ListenUnix("unix", addr)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	// The directories around it are the node's: nobody else comes so far.
	if err := os.Chmod(filepath.Join(dir, Name), 0o666); err != nil {
		_ = l.Close()
		return nil, err
	}
	d := &Server{listener: &bounded{UnixListener: l, room: make(chan struct{}, maxConns)}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathEnter, func(w http.ResponseWriter, r *http.Request) { serve(w, r, v.Enter) })
	counter := &counter{resize: v.Resize, turn: make(chan struct{}, 1)}
	mux.HandleFunc("GET "+pathWorkers, counter.serve)
	mux.HandleFunc("POST "+pathWorkers, counter.serve)
	mux.HandleFunc("POST "+pathCheckpoint, func(w http.ResponseWriter, r *http.Request) { serveCheckpoint(w, r, v.Checkpoint) })
	d.server = &http.Server{Handler: mux, ReadHeaderTimeout: headerWithin, MaxHeaderBytes: maxHeader, ErrorLog: stdlog.New(io.Discard, "", 0)}
	d.server.SetKeepAlivesEnabled(false)
	go func() { _ = d.server.Serve(d.listener) }() // until Close
	return d, nil
}

// Close ends all sessions. A nil Server is closed.
func (d *Server) Close() {
	if d != nil {
		_ = d.server.Close()
	}
}

func serve(w http.ResponseWriter, r *http.Request, enter func(ctx context.Context, a Ask, in io.Reader, out io.Writer) error) {
	q := r.URL.Query() // FormValue would read the body, which is for the session
	a := Ask{Host: q.Get("host")}
	rank, err := strconv.Atoi(q.Get("rank"))
	if err != nil || rank < 0 || len(a.Host) > maxHost {
		http.Error(w, "want a host or a rank", http.StatusBadRequest)
		return
	}
	a.Rank = rank
	c := http.NewResponseController(w)
	if err := c.EnableFullDuplex(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	in, out := session.BodyOf(r), &flushed{w: w, c: c}
	err = enter(r.Context(), a, in, out)
	switch {
	case err == nil:
		in.Linger(w)
	case out.begun:
		_ = c.SetReadDeadline(time.Now()) // the rest of the body is not waited for
		panic(http.ErrAbortHandler)       // the client must not take this for the end
	default:
		in.Refuse(w, http.StatusConflict, "text/plain; charset=utf-8", []byte(err.Error()+"\n"))
	}
}

// flushed sends each piece at once.
type flushed struct {
	w     io.Writer
	c     *http.ResponseController
	begun bool
}

// Write implements io.Writer.
func (f *flushed) Write(p []byte) (int, error) {
	f.begun = true
	n, err := f.w.Write(p)
	if err == nil {
		err = f.c.Flush()
	}
	return n, err
}

// bounded accepts so many connections at a time.
type bounded struct {
	*net.UnixListener
	room chan struct{}
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	b.room <- struct{}{}
	conn, err := b.UnixListener.Accept()
	if err != nil {
		<-b.room
		return nil, err
	}
	return &counted{Conn: conn, done: func() { <-b.room }}, nil
}

type counted struct {
	net.Conn
	once sync.Once
	done func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(c.done)
	return c.Conn.Close()
}

// Enter asks at the socket at a path for a session, and follows it to its end: what it says is read
// from in, what it hears is written to out. The error is what the node says if there is none.
func Enter(ctx context.Context, path string, a Ask, in io.Reader, out io.Writer) error {
	client := clientOf(path)
	body, w := io.Pipe()
	defer body.Close()
	go func() {
		_, err := io.Copy(w, in)
		_ = w.CloseWithError(err) // never fails
	}()
	q := url.Values{"host": {a.Host}, "rank": {strconv.Itoa(a.Rank)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node"+pathEnter+"?"+q.Encode(), body)
	if err != nil {
		return err
	}
	r, err := ask(client, req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	_, err = io.Copy(out, r.Body)
	return err
}

// clientOf returns a client of the socket at a path.
func clientOf(path string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		err = at(path, func(addr *net.UnixAddr) error {
			var d net.Dialer
			conn, err = d.DialContext(ctx, "unix", addr.Name)
			return err
		})
		return conn, err
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableCompression: true, DisableKeepAlives: true}}
}

// ask returns the answer to a request, or why there is none, in the node's words.
func ask(client *http.Client, req *http.Request) (*http.Response, error) {
	r, err := client.Do(req)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err
		}
		return nil, fmt.Errorf("this worker's node cannot be asked: %w", err)
	}
	if r.StatusCode == http.StatusOK || r.StatusCode == http.StatusAccepted {
		return r, nil
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(r.Body, maxErrorBytes)) // what there is of it
	return nil, errors.New(strings.TrimSpace(string(b)))
}

// at calls f with a name of the socket that fits into an address.
func at(path string, f func(addr *net.UnixAddr) error) error {
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	defer unix.Close(fd)
	return f(&net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path)), Net: "unix"})
}
