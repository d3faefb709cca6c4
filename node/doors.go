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

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/web"
	"zorilla/transfer"
)

// headerTimeout bounds how long a request's header may take.
const headerTimeout = 10 * time.Second

// apiPrefix is where other nodes find this node's service.
const apiPrefix = "/api"

// doorway hands requests to the handler that serves at this time.
type doorway struct{ now atomic.Pointer[http.ServeMux] }

// ServeHTTP implements http.Handler.
func (d *doorway) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.now.Load().ServeHTTP(w, r) }

// servePeers serves other nodes: at first they can only find out whether they
// are this one's twin.
func (n *Node) servePeers(g *group) {
	mux := http.NewServeMux()
	mux.Handle(pathTwin, identified(n.twins))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the node is being started", http.StatusServiceUnavailable)
	})
	n.doorway.now.Store(mux)
	n.serve(g, n.server(&n.doorway), n.overlay.PeerListener())
}

// openDoorway lets other nodes have the rest: the peer protocol, blobs, and
// what may be asked of a job's origin.
func (n *Node) openDoorway() {
	n.service = newService(n)
	mux := http.NewServeMux()
	mux.Handle(pathTwin, identified(n.twins))
	mux.Handle(jobs.PeerPrefix, n.jobs.PeerHandler())
	mux.Handle("/v1/blobs/", transfer.Handler(n.store))
	mux.Handle(apiPrefix+"/", identified(http.StripPrefix(apiPrefix, api.PeerHandler(forPeers{n.service}))))
	n.doorway.now.Store(mux)
}

// server makes an HTTP server.
func (n *Node) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ErrorLog: stdlog.New(serverLog{n.log}, "", 0), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: 64 << 10,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1000, SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
}

// serve runs an HTTP server on a listener until the group ends. Whoever closes
// the listener before has a reason, which is for it to tell.
func (n *Node) serve(g *group, srv *http.Server, l net.Listener) {
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

// serveClients opens the unix socket for the command line, and the page.
func (n *Node) serveClients(g *group, page net.Listener) error {
	if n.cfg.Seams.Offline {
		return nil
	}
	path := Socket(n.cfg.State)
	token, err := api.Token(path)
	if err != nil {
		return err
	}
	l, err := api.Listen(path)
	if err != nil {
		return err
	}
	n.serve(g, n.server(api.Guard(api.Handler(n.service), token)), l)
	if _, none := page.(noPage); none {
		return nil
	}
	return n.serveWeb(g, page)
}

// noPage is the listener of a node without a page.
type noPage struct{ net.Listener }

// Close implements net.Listener.
func (noPage) Close() error { return nil }

// bindPage opens the port of the page, if there is to be one. If the default
// port is taken it is the next free one; a port that the user chose must be
// free.
func (n *Node) bindPage() (net.Listener, error) {
	if n.cfg.Seams.Offline || n.cfg.Web == "none" {
		return noPage{}, nil
	}
	address, tries := n.cfg.Web, 1
	if address == "" {
		address, tries = DefaultWeb, 100
	}
	l, err := listenNear(address, tries)
	if err != nil {
		return nil, fmt.Errorf("page: %w: choose another with --web, or --web none", err)
	}
	return l, nil
}

// serveWeb serves the page.
func (n *Node) serveWeb(g *group, l net.Listener) error {
	token, err := n.webToken()
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	own := l.Addr().String()
	n.webURL = (&url.URL{Scheme: "http", Host: own, Path: "/", RawQuery: url.Values{"token": {token}}.Encode()}).String()
	page, err := web.New(web.Config{Service: n.service, Token: token, Log: n.log})
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	srv := n.server(page)
	srv.ConnContext = page.ConnContext
	n.serve(g, srv, page.Listen(l))
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
