package node

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/portion"
	"zorilla/jobs/agent"
	"zorilla/node/api"
	"zorilla/node/web"
	"zorilla/transfer/exchange"
)

// headerTimeout bounds how long a request's header may take.
const headerTimeout = 10 * time.Second

// idleTimeout is when a connection without requests is closed: after clients do that.
const idleTimeout = 3 * time.Minute

const (
	// maxFrame is how much of a stream is sent in one piece: four whole records of TLS with
	// the nine bytes in front. A smaller one costs more of the processor, a larger one
	// keeps what is urgent waiting on a slow line.
	maxFrame = 4*16<<10 - 9
	// maxUnread is how much of a stream waits for who reads it, and maxUnreadAll how much of
	// a connection: many streams that nobody reads must not hold up the others.
	maxUnread    = 256 << 10
	maxUnreadAll = 64 << 20 // all that one job may have at a node
)

// perMember is what the requests of one member may take, and those of all.
var perMember = portion.Limits{
	Requests: 2048, Each: 32 << 20, All: 128 << 20, Waiting: 16 << 20, Ahead: maxUnread, Body: agent.MaxBody, Within: 30 * time.Second,
}

// peerHandler serves other nodes. At first they can only find out whether they
// are this one's twin.
type peerHandler struct {
	bounded http.Handler // now, within the portions of senders
	twins   http.Handler
	now     atomic.Pointer[http.ServeMux]
}

func newPeerHandler(portions *portion.Portions, twins http.Handler) *peerHandler {
	h := &peerHandler{twins: identified(twins)}
	h.bounded = portions.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.now.Load().ServeHTTP(w, r) }),
		func(r *http.Request) (string, error) {
			id, err := peerID(r)
			return string(id), err
		}, lasting)
	h.set(func(mux *http.ServeMux) {
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the node is being started", http.StatusServiceUnavailable)
		})
	})
	return h
}

// open lets other nodes have the rest: the peer protocol of jobs, blobs, and
// what p does for them.
func (h *peerHandler) open(n *network, x *exchange.Exchange, p api.Peer) {
	f := n.flow
	h.set(func(mux *http.ServeMux) {
		mux.Handle(agent.PeerPrefix, f.Serve(n.early.Once(n.jobs.PeerHandler()), false))
		files := f.Serve(x.Handler(), true)
		mux.Handle(exchange.BlobPath, files)
		mux.Handle(exchange.TreePath, files)
		mux.Handle(apiPrefix+"/", f.Serve(identified(http.StripPrefix(apiPrefix, api.PeerHandler(p))), false))
	})
}

// isFile reports whether a request of another node is for files, isStream for another stream
// of bytes.
func isFile(path string) bool {
	return strings.HasPrefix(path, exchange.BlobPath) || strings.HasPrefix(path, exchange.TreePath) && strings.HasSuffix(path, "/chunk") ||
		strings.HasPrefix(path, apiPrefix+"/v1/blobs/")
}

func isStream(r *http.Request) bool {
	return agent.Streams(r.URL.Path) ||
		r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, apiPrefix+"/v1/jobs/") && strings.HasSuffix(r.URL.Path, "/output")
}

func (h *peerHandler) set(routes func(*http.ServeMux)) {
	mux := http.NewServeMux()
	mux.Handle(pathTwin, h.twins)
	routes(mux)
	h.now.Store(mux)
}

// ServeHTTP implements http.Handler.
func (h *peerHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.bounded.ServeHTTP(w, r) }

// lasting reports whether the body of a request is a stream, which is never held as a whole.
func lasting(r *http.Request) bool {
	return agent.Brings(r.URL.Path) ||
		r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, apiPrefix+"/v1/jobs/") && strings.HasSuffix(r.URL.Path, "/stdin")
}

// A peer that is silent for pingAfter is pinged, and cut off pingWait later if it does not answer: its
// requests, such as a session with a rank, end then. Between nodes the client pings first, after 5 s
// (peers.transport), so that only one of the two does.
const (
	pingAfter = 6 * time.Second
	pingWait  = 4 * time.Second
)

// server makes an HTTP server.
func server(h http.Handler, log zerolog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ErrorLog: stdlog.New(serverLog{log}, "", 0), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 64 << 10,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1000, SendPingTimeout: pingAfter, PingTimeout: pingWait,
			MaxReadFrameSize: maxFrame, MaxReceiveBufferPerStream: maxUnread, MaxReceiveBufferPerConnection: maxUnreadAll},
	}
}

// serve runs an HTTP server on a listener until the group ends. Whoever closes
// the listener before has a reason, which is for it to tell.
func serve(g *group, srv *http.Server, l net.Listener) {
	g.run(func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { srv.Close() })
		defer stop()
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) && ctx.Err() == nil {
			return err
		}
		return nil
	})
}

// serverLog takes the lines of an HTTP server: mostly about peers that went
// away or sent nonsense, but also about handlers that panicked.
type serverLog struct{ log zerolog.Logger }

// Write takes one line.
func (l serverLog) Write(line []byte) (int, error) {
	text := strings.ToValidUTF8(strings.TrimSpace(string(line)), "?")
	level := zerolog.DebugLevel
	if strings.Contains(text, ": panic serving ") {
		level = zerolog.ErrorLevel
	}
	l.log.WithLevel(level).Msg(text)
	return len(line), nil
}

// serveSocket opens the unix socket for the command line.
func serveSocket(g *group, lock *stateLock, svc api.Service, log zerolog.Logger) error {
	path := Socket(string(lock.dir))
	token, err := api.Token(path)
	if err != nil {
		return err
	}
	l, err := api.Listen(path)
	if err != nil {
		return err
	}
	srv := server(api.Guard(api.Handler(svc), token), log)
	srv.ConnContext = api.ConnContext
	client := &clientSocket{lock: lock, token: token, log: log, l: l, open: func(l net.Listener) { serve(g, srv, spare(l)) }}
	client.open(l)
	g.run(client.watch)
	return nil
}

// clientSocket is what clients need to reach the node, a socket and a token, and what keeps other nodes from
// its state directory, a lock. It makes them again when somebody removes them, as programs do that
// clean up old files.
type clientSocket struct {
	lock   *stateLock
	token  string
	log    zerolog.Logger
	l      net.Listener // the latest
	open   func(net.Listener)
	logged string // the latest error
}

// lookEvery is how often a node checks whether clients can find it.
const lookEvery = 5 * time.Second

func (d *clientSocket) watch(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.look()
		case <-ctx.Done():
			return nil
		}
	}
}

// look makes again what is missing, and logs once why it cannot.
func (d *clientSocket) look() {
	text := ""
	if err := d.mend(); err != nil {
		text = err.Error()
	}
	if text != "" && text != d.logged {
		d.log.Error().Msgf("clients may not find this node: its files were removed, and cannot be made again: %s", text)
	}
	d.logged = text
}

func (d *clientSocket) mend() error {
	again, err := d.lock.renew()
	if err != nil {
		return err
	}
	if again {
		d.log.Warn().Msg("the lock of the state directory was removed: it is locked again")
	}
	path := Socket(string(d.lock.dir))
	if again, err = api.KeepToken(path, d.token); err != nil {
		return err
	}
	if again {
		d.log.Warn().Msg("the token for clients was removed: it is written again")
	}
	if api.IsThere(d.l) {
		return nil
	}
	l, err := api.Listen(path)
	if err != nil {
		return err
	}
	d.log.Warn().Msgf("the socket for clients was removed: the node listens at %s again", path)
	_ = d.l.Close() // no client can connect to it any more
	d.l = l
	d.open(l)
	return nil
}

// spareFiles is how many descriptors clients leave to the node, which needs them for other
// nodes, workers and its disk; of few it is a quarter.
const spareFiles = 64

// Clients that are turned away are told why.
const (
	maxTurned  = 8           // at a time; the others wait until they are accepted
	turnWithin = time.Second // for the request of each, and the answer
)

// sparing is a listener for clients that keeps the last descriptors for the node: it turns away
// clients that would get one.
type sparing struct {
	net.Listener
	most   int           // a descriptor's number is below that; numbers are given from 0 on
	turned chan struct{} // has one for each client that is being turned away
}

// spare wraps a listener for clients.
func spare(l net.Listener) net.Listener {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return l
	}
	n := int(min(limit.Cur, 1<<30))
	return sparing{l, n - min(spareFiles, n/4), make(chan struct{}, maxTurned)}
}

// Accept implements net.Listener.
func (l sparing) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.mayTake(conn) {
			return conn, err
		}
		l.turned <- struct{}{}
		go func() {
			defer func() { <-l.turned }()
			api.TurnAway(conn, time.Now().Add(turnWithin))
		}()
	}
}

func (l sparing) mayTake(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok { // it has no descriptor
		return true
	}
	raw, err := c.SyscallConn()
	few := false
	if err == nil {
		err = raw.Control(func(fd uintptr) { few = int(fd) >= l.most })
	}
	return err == nil && !few
}

// noPage is the listener of a node without a page.
type noPage struct{ net.Listener }

// Close implements net.Listener.
func (noPage) Close() error { return nil }

// bindPage opens the port of the page at an address as that of Config.Web, of
// others' machines only if it may be insecure. If
// the default port is taken it is the next free one; a port that the user chose
// must be free.
func bindPage(address string, insecure bool) (net.Listener, error) {
	if address == "none" {
		return noPage{}, nil
	}
	tries := 1
	if address == "" {
		address, tries = DefaultWeb, 100
	}
	l, err := listenNear(address, tries)
	if err != nil {
		return nil, fmt.Errorf("page: %w: choose another with --web, or --web none", err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() && !insecure {
		l.Close()
		return nil, fmt.Errorf(
			"page: --web %s is no loopback address, and the page has no TLS: "+
				"others could read its token and act as the owner: leave it on loopback and tunnel it (ssh -L 8080:127.0.0.1:PORT), or say --web-insecure",
			address)
	}
	return l, nil
}

// pageURL returns where the page is, with its token. One at all addresses is at
// loopback, too.
func pageURL(l net.Listener, token string) string {
	host := l.Addr().String()
	if at, ok := l.Addr().(*net.TCPAddr); ok && at.IP.IsUnspecified() {
		host = net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port))
	}
	return (&url.URL{Scheme: "http", Host: host, Path: "/", RawQuery: url.Values{"token": {token}}.Encode()}).String()
}

// servePage serves the page to who has the token.
func servePage(g *group, l net.Listener, token string, cfg web.Config, log zerolog.Logger) error {
	cfg.Token, cfg.Log = token, log
	page, err := web.New(cfg)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	srv := server(page, log)
	srv.ConnContext = page.ConnContext
	serve(g, srv, page.Listen(spare(l)))
	return nil
}

// listenNear listens on the address or one of the next ports.
func listenNear(address string, tries int) (net.Listener, error) {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("address %q: want HOST:PORT", address)
	}
	port, err := strconv.Atoi(p)
	if err != nil || port < 0 || port > 65535 {
		return nil, fmt.Errorf("address %q: want a port from 0 to 65535", address)
	}
	for {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		tries--
		if err == nil || tries <= 0 || !errors.Is(err, syscall.EADDRINUSE) || port == 65535 {
			if errors.Is(err, syscall.EADDRINUSE) {
				err = fmt.Errorf("port %d of %s is taken", port, host)
			}
			return l, err
		}
		port++
	}
}
