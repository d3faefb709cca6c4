package node

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// maxMeasuring is for how many other nodes this one measures at the same time.
const maxMeasuring = 16

// forPeers answers other nodes: about this node, and about jobs of this
// origin, and only those, so that requests are never forwarded twice.
type forPeers struct{ s *service }

var _ api.Peer = forPeers{}

// askerKey marks which node asks, in the context of a request.
type askerKey struct{}

// identified lets only nodes of this network through to h, and tells it which.
func identified(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := peerID(r)
		if err != nil {
			http.Error(w, "no node certificate", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), askerKey{}, id)))
	})
}

// turns holds who is being served, each at most once.
type turns struct {
	mu   sync.Mutex // guards busy
	busy map[vicinity.ID]bool
}

func newTurns() *turns { return &turns{busy: map[vicinity.ID]bool{}} }

// take reports whether id may be served now; the caller calls done then.
func (t *turns) take(id vicinity.ID) (done func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[id] || len(t.busy) >= maxMeasuring {
		return nil, false
	}
	t.busy[id] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.busy, id)
	}, true
}

func (f forPeers) own(ref string) error {
	if id := jobs.ID(ref); !id.Valid() || !f.s.n.jobs.Owns(id) {
		return fmt.Errorf("job %.40q %w: it does not originate here, or is forgotten", strings.ToValidUTF8(ref, "?"), api.ErrNotFound)
	}
	return nil
}

// Node leaves out what is of use only on this machine.
func (f forPeers) Node(context.Context) (api.NodeInfo, error) { return f.s.self(), nil }

// Measure pings a member from here.
func (f forPeers) Measure(ctx context.Context, from, to string, pings int) (api.Measurement, error) {
	if err := api.CheckPings(pings); err != nil {
		return api.Measurement{}, err
	}
	if from != "self" {
		return api.Measurement{}, fmt.Errorf("%w: from %.40q: a node measures for others only from itself", api.ErrInvalid, from)
	}
	id := vicinity.ID(to)
	if !id.Valid() || id == f.s.n.creds.ID() {
		return api.Measurement{}, fmt.Errorf("%w: to %.40q: want the whole ID of another node", api.ErrInvalid, to)
	}
	if _, ok := f.s.n.overlay.Member(id); !ok {
		return api.Measurement{}, fmt.Errorf("node %s %w: it is no member here", id.Short(), api.ErrNotFound)
	}
	asker, _ := ctx.Value(askerKey{}).(vicinity.ID)
	done, ok := f.s.measuring.take(asker)
	if !ok {
		return api.Measurement{}, fmt.Errorf("%w: it measures already: try again when that is done", api.ErrUnavailable)
	}
	defer done()
	return f.s.ping(ctx, id, pings), nil
}

func (f forPeers) Jobs(context.Context, bool) ([]jobs.Status, error) {
	return f.s.n.jobs.List(jobs.ListEnded), nil
}

func (f forPeers) Job(ctx context.Context, ref string) (jobs.Status, error) {
	if err := f.own(ref); err != nil {
		return jobs.Status{}, err
	}
	return f.s.Job(ctx, ref)
}

func (f forPeers) Await(ctx context.Context, ref string, since uint64) (jobs.Status, uint64, error) {
	if err := f.own(ref); err != nil {
		return jobs.Status{}, 0, err
	}
	return f.s.n.jobs.Await(ctx, jobs.ID(ref), since) // nobody at this node reads it
}

func (f forPeers) Tasks(ctx context.Context, ref string, q jobs.TaskQuery) (jobs.TaskPage, error) {
	if err := f.own(ref); err != nil {
		return jobs.TaskPage{}, err
	}
	return f.s.Tasks(ctx, ref, q)
}

func (f forPeers) Explain(ctx context.Context, ref string) (jobs.Explanation, error) {
	if err := f.own(ref); err != nil {
		return jobs.Explanation{}, err
	}
	return f.s.Explain(ctx, ref)
}

func (f forPeers) Cancel(ctx context.Context, ref string) error {
	if err := f.own(ref); err != nil {
		return err
	}
	return f.s.Cancel(ctx, ref)
}

func (f forPeers) Output(ctx context.Context, ref string, q api.OutputQuery, g func(jobs.Output) error) error {
	if err := f.own(ref); err != nil {
		return err
	}
	return f.s.Output(ctx, ref, q, g)
}

func (f forPeers) Stdin(ctx context.Context, ref string, r io.Reader) error {
	if err := f.own(ref); err != nil {
		return err
	}
	return f.s.Stdin(ctx, ref, r)
}

func (f forPeers) Chunk(ctx context.Context, _ string, h transfer.Hash) ([]byte, error) {
	return f.s.Chunk(ctx, "", h)
}
