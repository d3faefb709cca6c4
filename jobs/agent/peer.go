package agent

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"

	"zorilla/jobs"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// PeerHandler serves the peer protocol below peer.Prefix.
func (s *Service) PeerHandler() http.Handler {
	server := &peer.Server{ID: s.cfg.PeerID, Ready: s.waitReady, Counters: s.dropped, Log: s.log}
	mux := http.NewServeMux()
	mux.Handle("POST "+peer.PathGrant, peer.Handle(server, func(from vicinity.ID, g *wire.Grant) (any, error) { return nil, s.granted(from, g) }))
	mux.Handle("POST "+peer.PathStart, peer.Handle(server, s.startReceived))
	mux.Handle("POST "+peer.PathRelease, peer.Handle(server, s.releaseReceived))
	mux.Handle("POST "+peer.PathReport, peer.Handle(server, s.reportReceived))
	mux.Handle("POST "+peer.PathMeasure, peer.Handle(server, s.measureReceived))
	mux.Handle("POST "+peer.PathClock, peer.Handle(server, s.clockAsked))
	mux.HandleFunc("GET "+peer.PathStdin, s.serveStdin)
	return mux
}

// granted takes a grant: the hold becomes a claim, and its workers are
// prepared.
func (s *Service) granted(from vicinity.ID, g *wire.Grant) (err error) {
	s.overlay.Learn(from, g.Addrs)
	if !s.loop.Call(func() { err = s.core.Granted(s.loop.Now(), from, g) }) {
		return fmt.Errorf("%w: the node is leaving", jobs.ErrRefused)
	}
	return err
}

func (s *Service) startReceived(from vicinity.ID, m *wire.Start) (any, error) {
	here := false
	if !s.loop.Call(func() { here = s.core.Started(s.loop.Now(), from, m) }) {
		return nil, jobs.ErrStopped
	}
	if !here {
		return nil, fmt.Errorf("%w: no worker of job %s is here", jobs.ErrRefused, m.Job.Short())
	}
	return nil, nil
}

func (s *Service) releaseReceived(from vicinity.ID, m *wire.Release) (any, error) {
	s.loop.Post(func() { s.core.Released(s.loop.Now(), from, m) })
	return nil, nil
}

// reportReceived stores a report's output and hands the rest to the primary.
// It answers when all that follows from the report is durable.
func (s *Service) reportReceived(from vicinity.ID, rep *wire.Report) (any, error) {
	var j *job
	var owned map[jobs.RankAttempt]bool
	ok := s.loop.Call(func() {
		var here bool
		if owned, here = s.core.Serve(s.loop.Now(), from, rep); here { // also if the output cannot be stored now
			j = s.jobs[rep.Job]
		}
	})
	if !ok {
		return nil, jobs.ErrStopped
	}
	if j == nil {
		return wire.Ack{}, nil
	}
	defer s.loop.Post(func() { s.core.Served(s.loop.Now(), from, rep.Job) })
	s.overlay.Learn(from, rep.Addrs)
	if err := s.storeOutput(j, rep, owned); err != nil && !errors.Is(err, os.ErrClosed) { // closed: the job has just ended
		s.loop.Post(func() { s.hindered(j, err) })
		return nil, err
	}
	ras := make([]jobs.RankAttempt, len(rep.Workers))
	for i, w := range rep.Workers {
		ras[i] = w.RankAttempt
	}
	reply := make(chan wire.Ack, 1)
	s.loop.Post(func() {
		s.hindered(j, nil)
		if j.lacksInputs(from, rep) {
			s.mendInputs(j)
		}
		s.core.Reported(s.loop.Now(), from, rep, j.output.Received(ras), s.awaited(reply))
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
	case <-s.loop.Stopped.Done():
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
		s.loop.Go(func() {
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
	s.loop.Call(func() {
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
