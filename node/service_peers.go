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

// forwarded is what other nodes may ask: about this node, and about jobs of
// this origin, and only those, so that requests are never forwarded twice.
type forwarded struct{ *service }

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

var errNotForPeers = fmt.Errorf("%w: only for clients of this node", api.ErrRefused)

func (f forwarded) own(ref string) error {
	if id := jobs.ID(ref); !id.Valid() || !f.n.jobs.Owns(id) {
		return fmt.Errorf("job %.40q %w: it does not originate here, or is forgotten", strings.ToValidUTF8(ref, "?"), api.ErrNotFound)
	}
	return nil
}

// Node leaves out what is of use only on this machine.
func (f forwarded) Node(context.Context) (api.NodeInfo, error) { return f.self(), nil }

func (f forwarded) Nodes(context.Context) ([]api.NodeInfo, error) { return nil, errNotForPeers }

func (f forwarded) Survey(context.Context) ([]api.NodeInfo, error) { return nil, errNotForPeers }

// Measure pings a member from here.
func (f forwarded) Measure(ctx context.Context, from, to string, pings int) (api.Measurement, error) {
	if err := api.CheckPings(pings); err != nil {
		return api.Measurement{}, err
	}
	if from != "self" {
		return api.Measurement{}, fmt.Errorf("%w: from %.40q: a node measures for others only from itself", api.ErrInvalid, from)
	}
	id := vicinity.ID(to)
	if !id.Valid() || id == f.n.creds.ID() {
		return api.Measurement{}, fmt.Errorf("%w: to %.40q: want the whole ID of another node", api.ErrInvalid, to)
	}
	if _, ok := f.n.overlay.Member(id); !ok {
		return api.Measurement{}, fmt.Errorf("node %s %w: it is no member here", id.Short(), api.ErrNotFound)
	}
	asker, _ := ctx.Value(askerKey{}).(vicinity.ID)
	done, ok := f.measuring.take(asker)
	if !ok {
		return api.Measurement{}, fmt.Errorf("%w: it measures already: try again when that is done", api.ErrUnavailable)
	}
	defer done()
	return f.ping(ctx, id, pings), nil
}

func (f forwarded) Submit(context.Context, jobs.Spec) (jobs.ID, error) { return "", errNotForPeers }

func (f forwarded) Jobs(context.Context, bool) ([]jobs.Status, error) {
	return f.n.jobs.List(), nil
}

func (f forwarded) Job(ctx context.Context, ref string) (jobs.Status, error) {
	if err := f.own(ref); err != nil {
		return jobs.Status{}, err
	}
	return f.service.Job(ctx, ref)
}

func (f forwarded) Await(ctx context.Context, ref string, since uint64) (jobs.Status, uint64, error) {
	if err := f.own(ref); err != nil {
		return jobs.Status{}, 0, err
	}
	return f.service.Await(ctx, ref, since)
}

func (f forwarded) Tasks(ctx context.Context, ref string, q jobs.TaskQuery) (jobs.TaskPage, error) {
	if err := f.own(ref); err != nil {
		return jobs.TaskPage{}, err
	}
	return f.service.Tasks(ctx, ref, q)
}

func (f forwarded) Explain(ctx context.Context, ref string) (jobs.Explanation, error) {
	if err := f.own(ref); err != nil {
		return jobs.Explanation{}, err
	}
	return f.service.Explain(ctx, ref)
}

func (f forwarded) Cancel(ctx context.Context, ref string) error {
	if err := f.own(ref); err != nil {
		return err
	}
	return f.service.Cancel(ctx, ref)
}

func (f forwarded) Output(ctx context.Context, ref string, q api.OutputQuery, g func(jobs.Output) error) error {
	if err := f.own(ref); err != nil {
		return err
	}
	return f.service.Output(ctx, ref, q, g)
}

func (f forwarded) Stdin(ctx context.Context, ref string, r io.Reader) error {
	if err := f.own(ref); err != nil {
		return err
	}
	return f.service.Stdin(ctx, ref, r)
}

func (f forwarded) Chunk(ctx context.Context, _ string, h transfer.Hash) ([]byte, error) {
	return f.service.Chunk(ctx, "", h)
}

func (f forwarded) PutChunk(context.Context, transfer.Hash, []byte) error { return errNotForPeers }

func (f forwarded) Limits(context.Context) (jobs.Limits, error) {
	return jobs.Limits{}, errNotForPeers
}

func (f forwarded) SetLimits(context.Context, []string) (jobs.Limits, error) {
	return jobs.Limits{}, errNotForPeers
}

func (f forwarded) Queue(context.Context) ([]jobs.Waiting, error) { return nil, errNotForPeers }

func (f forwarded) Invite(context.Context) (string, error) { return "", errNotForPeers }

func (f forwarded) Web(context.Context) (string, error) { return "", errNotForPeers }
