package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"zorilla/internal/codec"
	"zorilla/internal/plain"
	"zorilla/jobs"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// The peer protocol: POST with a msgpack body to one of these paths, at the
// node that the URL's host names; the sender is known by its certificate.
const (
	PeerPrefix  = "/v1/peer/"
	pathGrant   = PeerPrefix + "grant"
	pathStart   = PeerPrefix + "start"
	pathRelease = PeerPrefix + "release"
	pathReport  = PeerPrefix + "report"
	pathStdin   = PeerPrefix + "stdin"
	pathMeasure = PeerPrefix + "measure"
	pathClock   = PeerPrefix + "clock"
)

// send posts a message to a node and reads its answer into resp, if not nil.
func (s *Service) send(ctx context.Context, to vicinity.ID, path string, msg, resp any) error {
	body, err := codec.Marshal(msg)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(to)+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r, err := s.cfg.Client.Do(req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, wire.MaxBody+1))
	switch {
	case err != nil:
		return err
	case len(b) > wire.MaxBody:
		return fmt.Errorf("answer of node %s: %w", to.Short(), codec.ErrMalformed)
	case r.StatusCode == http.StatusConflict:
		return fmt.Errorf("%w by node %s: %s", jobs.ErrRefused, to.Short(), plain.OneLine(strings.TrimSpace(string(b))))
	case r.StatusCode != http.StatusOK:
		return fmt.Errorf("node %s answered %s: %s", to.Short(), r.Status, plain.OneLine(strings.TrimSpace(string(b))))
	case resp == nil:
		return nil
	}
	return codec.Unmarshal(b, resp)
}

// PeerHandler serves the peer protocol below PeerPrefix.
func (s *Service) PeerHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+pathGrant, serve(s, func(from vicinity.ID, g *wire.Grant) (any, error) { return nil, s.granted(from, g) }))
	mux.Handle("POST "+pathStart, serve(s, s.startReceived))
	mux.Handle("POST "+pathRelease, serve(s, s.releaseReceived))
	mux.Handle("POST "+pathReport, serve(s, s.reportReceived))
	mux.Handle("POST "+pathMeasure, serve(s, s.measureReceived))
	mux.Handle("POST "+pathClock, serve(s, s.clockAsked))
	mux.HandleFunc("GET "+pathStdin, s.serveStdin)
	return mux
}

// message is what the handlers take: a pointer to a decodable, checkable type.
type message[T any] interface {
	*T
	Check() error
}

// serve reads a message, checks it and answers with what f returns.
func serve[T any, P message[T]](s *Service, f func(from vicinity.ID, msg P) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := s.cfg.PeerID(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		if err := s.waitReady(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, wire.MaxBody))
		msg := P(new(T))
		if err == nil {
			err = codec.Unmarshal(b, msg)
		}
		if err == nil {
			err = msg.Check()
		}
		if err != nil {
			s.mu.Lock()
			s.counts.Malformed++
			first := s.counts.Malformed == 1
			s.mu.Unlock()
			if first {
				s.log.Warn().Err(err).Str("from", from.Short()).Str("path", r.URL.Path).Msg("a peer message was dropped; further ones are only counted")
			}
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := f(from, msg)
		switch {
		case errors.Is(err, jobs.ErrRefused):
			s.mu.Lock()
			s.counts.Refused++
			s.mu.Unlock()
			http.Error(w, err.Error(), http.StatusConflict)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case answer != nil:
			w.Write(codec.MustMarshal(answer))
		}
	})
}

// granted takes a grant: the hold becomes a claim, and its workers are
// prepared.
func (s *Service) granted(from vicinity.ID, g *wire.Grant) (err error) {
	s.overlay.Learn(from, g.Addrs)
	if !s.call(func() { err = s.core.Granted(s.now(), from, g) }) {
		return fmt.Errorf("%w: the node is leaving", jobs.ErrRefused)
	}
	return err
}

func (s *Service) startReceived(from vicinity.ID, m *wire.Start) (any, error) {
	here := false
	if !s.call(func() { here = s.core.Started(s.now(), from, m) }) {
		return nil, jobs.ErrStopped
	}
	if !here {
		return nil, fmt.Errorf("%w: no worker of job %s is here", jobs.ErrRefused, m.Job.Short())
	}
	return nil, nil
}

func (s *Service) releaseReceived(from vicinity.ID, m *wire.Release) (any, error) {
	s.post(func() { s.core.Released(s.now(), from, m) })
	return nil, nil
}

// reportReceived stores a report's output and hands the rest to the primary.
// It answers when all that follows from the report is durable.
func (s *Service) reportReceived(from vicinity.ID, rep *wire.Report) (any, error) {
	var j *job
	var owned map[jobs.RankAttempt]bool
	ok := s.call(func() {
		var here bool
		if owned, here = s.core.Serve(s.now(), from, rep); here { // also if the output cannot be stored now
			j = s.jobs[rep.Job]
		}
	})
	if !ok {
		return nil, jobs.ErrStopped
	}
	if j == nil {
		return wire.Ack{}, nil
	}
	defer s.post(func() { s.core.Served(s.now(), from, rep.Job) })
	s.overlay.Learn(from, rep.Addrs)
	if err := s.storeOutput(j, rep, owned); err != nil && !errors.Is(err, os.ErrClosed) { // closed: the job has just ended
		s.post(func() { s.hindered(j, err) })
		return nil, err
	}
	ras := make([]jobs.RankAttempt, len(rep.Workers))
	for i, w := range rep.Workers {
		ras[i] = w.RankAttempt
	}
	reply := make(chan wire.Ack, 1)
	s.post(func() {
		s.hindered(j, nil)
		if j.lacksInputs(from, rep) {
			s.mendInputs(j)
		}
		s.core.Reported(s.now(), from, rep, j.output.Received(ras), s.awaited(reply))
	})
	select {
	case ack := <-reply:
		j.output.Confirm(ack.Workers)
		if ack.Start != nil {
			*ack.Start = s.fillStart(*ack.Start)
		}
		if ack.Table != nil {
			ack.Table.File = wire.HostFile(s.fillHosts(ack.Table.Hosts))
		}
		return ack, nil
	case <-s.stopped:
		return nil, jobs.ErrStopped
	}
}

// storeOutput keeps the output of workers that still count, and makes it
// durable before the exit of one of them can be recorded.
func (s *Service) storeOutput(j *job, rep *wire.Report, owned map[jobs.RankAttempt]bool) error {
	var keep []jobs.Output
	for _, o := range rep.Output {
		if owned[jobs.RankAttempt{Rank: o.Rank, Attempt: o.Attempt}] && len(o.Data) > 0 {
			keep = append(keep, o)
		}
	}
	if len(keep) > 0 {
		if err := j.output.Append(keep); err != nil {
			return err
		}
	}
	for _, w := range rep.Workers {
		if (w.State == jobs.WorkerEnded || w.Tasks != nil && len(w.Tasks.Results) > 0) && owned[w.RankAttempt] {
			return j.output.Sync()
		}
	}
	switch loose := j.output.Loosely(); {
	case loose > maxLoose:
		return j.output.Sync()
	case loose > syncLoose && j.output.Behind.CompareAndSwap(false, true):
		s.children.Go(func() {
			defer j.output.Behind.Store(false)
			_ = j.output.Sync() // if it goes on to fail, a report will
		})
	}
	return nil
}

// A job's output is synced when so many bytes of it are not durable, in the
// background; reports wait for that only if there are many more. Participants
// keep these bytes for so long, for which they have process.DefaultSpool.
const (
	syncLoose = 8 << 20
	maxLoose  = 32 << 20
)

// serveStdin streams what the client sends to rank 0, from an offset, until
// the client has closed it.
func (s *Service) serveStdin(w http.ResponseWriter, r *http.Request) {
	from, err := s.cfg.PeerID(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if err := s.waitReady(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	id := jobs.ID(r.URL.Query().Get("job"))
	offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
	if err != nil || offset < 0 || !id.Valid() {
		http.Error(w, "want job and offset", http.StatusBadRequest)
		return
	}
	var stdin *output.Spool
	s.call(func() {
		if j := s.jobs[id]; j != nil && j.Core.Parts[from] != nil {
			stdin = j.stdin
		}
	})
	if stdin == nil {
		http.Error(w, "no such job", http.StatusNotFound)
		return
	}
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
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the reader must not take this for the end
		}
	}
}

// feedStdin brings the client's input to rank 0, beginning again where the
// connection to the origin broke or where an earlier life of this node stopped.
func (s *Service) feedStdin(ctx context.Context, job jobs.ID, in process.Input) {
	sent, err := in.Offset()
	if err != nil {
		return // the worker has ended, or is left
	}
	for ctx.Err() == nil {
		err := s.copyStdin(ctx, job, in, &sent)
		if err == nil || errors.Is(err, errInputClosed) {
			in.Close()
			return
		}
		s.pause(ctx)
	}
}

var errInputClosed = errors.New("the worker does not read its input any more")

func (s *Service) copyStdin(ctx context.Context, job jobs.ID, in process.Input, sent *int64) error {
	url := fmt.Sprintf("https://%s%s?job=%s&offset=%d", job.Origin(), pathStdin, job, *sent)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r, err := s.cfg.Client.Do(req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("node %s answered %s", job.Origin().Short(), r.Status)
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(buf)
		if n > 0 {
			if _, err := in.Write(buf[:n]); err != nil {
				return errInputClosed
			}
			*sent += int64(n)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
