package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// PeerHandler serves the peer protocol below peer.Prefix.
func (s *Service) PeerHandler() http.Handler {
	server := &peer.Server{ID: s.cfg.PeerID, Ready: s.loop.Ready, Counters: s.dropped, Log: s.log}
	mux := http.NewServeMux()
	mux.Handle("POST "+peer.PathGrant, peer.Handle(server, func(from vicinity.ID, g *wire.Grant) (any, error) { return nil, s.granted(from, g) }))
	mux.Handle("POST "+peer.PathStart, peer.Handle(server, s.startReceived))
	mux.Handle("POST "+peer.PathRelease, peer.Handle(server, s.releaseReceived))
	mux.Handle("POST "+peer.PathReport, peer.Handle(server, s.reportReceived))
	mux.Handle("POST "+peer.PathMeasure, peer.Handle(server, s.measureReceived))
	mux.Handle("POST "+peer.PathClock, peer.Handle(server, s.clockAsked))
	mux.Handle("POST "+peer.PathBook, peer.HandleWhile(server, s.bookings.asked))
	mux.Handle("POST "+peer.PathBeat, peer.HandleWhile(server, func(ctx context.Context, from vicinity.ID, b *wire.Beat) (any, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.loop.Leaving, cancel)()
		return s.exec.Gangs.Beat(ctx, from, b)
	}))
	mux.HandleFunc("GET "+peer.PathStdin, s.serveStdin)
	mux.HandleFunc("POST "+peer.PathOutput, server.ServeOutput(s.exec.Streams.Begin))
	mux.HandleFunc("POST "+peer.PathEnter, server.ServeEnter(s.asked))
	mux.HandleFunc("POST "+peer.PathResize, peer.ServeAsk(server, s.resizeAsked))
	mux.HandleFunc("POST "+peer.PathSnapshot, peer.ServeAsk(server, s.snapshotAsked))
	mux.HandleFunc("POST "+peer.PathKeep, peer.ServeAsk(server, s.checkpoints.keepAsked))
	return mux
}

// Streams reports whether a path is one at which a stream of output or of standard input is
// to be had.
func Streams(path string) bool { return path == peer.PathOutput || path == peer.PathStdin }

// Brings reports whether a request to a path brings a stream: what the origin has of output, or
// what the client of a session says.
func Brings(path string) bool { return path == peer.PathOutput || path == peer.PathEnter }

// MaxBody is the largest body of any other request, in bytes.
const MaxBody = wire.MaxBody

// Messages reports whether a path takes a message, and gives an answer that is no stream.
func Messages(path string) bool {
	switch path {
	case peer.PathGrant, peer.PathStart, peer.PathRelease, peer.PathReport, peer.PathMeasure, peer.PathClock, peer.PathBeat, peer.PathBook:
		return true
	}
	return false
}

// Early reports whether a request to a path may be sent ahead of its connection: it is about the
// start of workers.
func Early(path string) bool {
	switch path {
	case peer.PathGrant, peer.PathStart, peer.PathRelease, peer.PathReport:
		return true
	}
	return false
}

// granted takes a grant: the hold becomes a claim, and its workers are
// prepared.
func (s *Service) granted(from vicinity.ID, g *wire.Grant) error {
	s.overlay.Learn(from, g.Addrs)
	return overtaken(s.loop.Stopped, func() (err error) {
		if !s.loop.Call(func() { err = s.core.Granted(time.Now(), from, g) }) {
			return wire.Refusal(wire.ReasonLeaving)
		}
		return err
	})
}

// How long a grant waits until the workers of an earlier attempt are gone, and how often it
// looks. The offer that it takes stands for longer, see wire.HoldLease.
const (
	maxOvertaking   = time.Second
	overtakingPause = 5 * time.Millisecond
)

// overtaken takes a grant again for as long as the workers of an earlier attempt of its job are
// not gone: the word that they are to go may be some milliseconds behind the grant.
func overtaken(ctx context.Context, take func() error) error {
	for until := time.Now().Add(maxOvertaking); ; {
		err := take()
		if !errors.Is(err, wire.Refusal(wire.ReasonEarlier)) || !time.Now().Before(until) {
			return err
		}
		select {
		case <-time.After(overtakingPause):
		case <-ctx.Done():
			return err
		}
	}
}

func (s *Service) startReceived(from vicinity.ID, m *wire.Start) (any, error) {
	here := false
	if !s.loop.Call(func() { here = s.core.Started(time.Now(), from, m) }) {
		return nil, jobs.ErrStopped
	}
	if !here {
		return nil, fmt.Errorf("%w: no worker of job %s is here", jobs.ErrRefused, m.Job.Short())
	}
	return nil, nil
}

func (s *Service) releaseReceived(from vicinity.ID, m *wire.Release) (any, error) {
	s.loop.Post(func() { s.core.Released(time.Now(), from, m) })
	return nil, nil
}

// serveStdin streams what the client sends to rank 0, from an offset, until
// the client has closed it.
func (s *Service) serveStdin(w http.ResponseWriter, r *http.Request) {
	from, err := s.cfg.PeerID(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if err := s.loop.Ready(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	id := jobs.ID(r.URL.Query().Get("job"))
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil || offset < 0 || !id.Valid() {
		http.Error(w, "want job and offset", http.StatusBadRequest)
		return
	}
	stdin := s.own.Stdin(from, id)
	if stdin == nil {
		http.Error(w, "no such job", http.StatusNotFound)
		return
	}
	if offset < stdin.Base() { // which it has had
		s.cfg.Log.Error().Str("job", string(id)).Str("node", from.Short()).Int64("offset", offset).
			Msg("standard input is asked for again that is not here any more")
		http.Error(w, "this input is not here any more", http.StatusGone)
		return
	}
	stdin.Took(offset)
	src := stdin.Reader(r.Context(), true)
	src.Pos = offset
	defer src.Close()
	flusher := http.NewResponseController(w)
	buf := make([]byte, 32<<10)
	flusher.Flush()
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
			flusher.Flush()
			stdin.Took(src.Pos)
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the reader must not take this for the end
		}
	}
}

// reportReceived hands a report to its job, and adds addresses to the answer.
func (s *Service) reportReceived(from vicinity.ID, rep *wire.Report) (any, error) {
	ack, err := s.own.Report(from, rep)
	if err != nil {
		return nil, err
	}
	if ack.Start != nil {
		*ack.Start = ack.Start.WithAddrs(s.overlay.Member)
	}
	if ack.Table != nil {
		ack.Table.File = wire.HostFile(wire.WithAddrs(ack.Table.Hosts, s.overlay.Member))
	}
	return ack, nil
}
