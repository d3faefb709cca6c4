package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/trust"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Release is the version of the program.
const Release = "0.1.0"

// askTimeout bounds a question to another node whose answer is not needed.
const askTimeout = 2 * time.Second

// service is the node's door for clients.
type service struct{ n *Node }

var _ api.Service = (*service)(nil)

// Node describes the node.
func (s *service) Node(context.Context) (api.NodeInfo, error) {
	n := s.n
	info := api.NodeInfo{
		Member: n.overlay.Self(), Self: true, Position: n.vicinity.Position(n.creds.ID()),
		Started: n.started, Release: Release, Busy: n.jobs.Busy(), StateDir: n.cfg.State, Traffic: map[string]int64{},
	}
	n.traffic(info.Traffic)
	return info, nil
}

// traffic fills in the counters of all parts.
func (n *Node) traffic(m map[string]int64) {
	maps.Copy(m, n.overlay.Stats())
	m["packets of unknown kinds"] = n.unknown.Load()
	f := n.flooder.Stats()
	m["floods started"] = int64(f.Originated)
	m["flood copies received"] = int64(f.Received)
	m["flood copies forwarded"] = int64(f.Forwarded)
	m["flood duplicates"] = int64(f.Duplicates)
	m["floods delivered"] = int64(f.Delivered)
	m["floods malformed"] = int64(f.Malformed)
	m["floods refused"] = int64(f.Refused + f.Limited)
	v := n.vicinity.Stats()
	m["vicinity messages sent"] = v.Sent
	m["vicinity bytes sent"] = v.SentBytes
	m["vicinity malformed"] = v.Malformed
	c := n.jobs.Counts()
	m["job messages malformed"] = c.Malformed
	m["job messages refused"] = c.Refused
}

// Nodes lists the members.
func (s *service) Nodes(ctx context.Context) ([]api.NodeInfo, error) {
	self, err := s.Node(ctx)
	if err != nil {
		return nil, err
	}
	links := map[vicinity.ID]string{}
	for _, nb := range s.n.vicinity.Neighbours() {
		links[nb.ID] = "near"
		if nb.Far {
			links[nb.ID] = "far"
		}
	}
	list := []api.NodeInfo{}
	for _, m := range s.n.overlay.Members() {
		if m.ID == self.ID {
			continue
		}
		rtt, _ := s.n.vicinity.Estimate(m.ID)
		list = append(list, api.NodeInfo{Member: m, RTT: codec.Duration(rtt), Neighbour: links[m.ID], Position: s.n.vicinity.Position(m.ID)})
	}
	slices.SortFunc(list, func(a, b api.NodeInfo) int {
		if (a.RTT == 0) != (b.RTT == 0) {
			return cmp.Compare(b.RTT, a.RTT) // not measured comes last
		}
		return cmp.Or(cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.ID, b.ID))
	})
	return append([]api.NodeInfo{self}, list...), nil
}

// Submit accepts a job.
func (s *service) Submit(ctx context.Context, spec jobs.Spec) (jobs.ID, error) {
	return s.n.jobs.Submit(ctx, spec)
}

// Jobs lists jobs, with all those of every member. Other origins are asked how
// the jobs are that this node works for.
func (s *service) Jobs(ctx context.Context, all bool) ([]jobs.Status, error) {
	list := s.n.jobs.List()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if !all {
		inParallel(list, func(st *jobs.Status) {
			if !st.LastKnown {
				return
			}
			if now, err := s.Job(ctx, string(st.ID)); err == nil {
				*st = now
			}
		})
		return list, nil
	}
	var mu sync.Mutex
	inParallel(s.n.overlay.Members(), func(m *vicinity.Member) {
		more, err := s.at(m.ID).Jobs(ctx, false)
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		list = append(list, more...)
	})
	return merge(list), nil
}

// inParallel calls f for all of a list, for 32 at the same time.
func inParallel[T any](list []T, f func(*T)) {
	var wg sync.WaitGroup
	busy := make(chan struct{}, 32)
	for i := range list {
		busy <- struct{}{}
		wg.Go(func() {
			defer func() { <-busy }()
			f(&list[i])
		})
	}
	wg.Wait()
}

// merge keeps one status of each job, its origin's where there is one, newest
// first.
func merge(list []jobs.Status) []jobs.Status {
	best := map[jobs.ID]jobs.Status{}
	for _, st := range list {
		if old, ok := best[st.ID]; !ok || old.LastKnown && !st.LastKnown {
			best[st.ID] = st
		}
	}
	out := make([]jobs.Status, 0, len(best))
	for _, st := range best {
		out = append(out, st)
	}
	slices.SortFunc(out, func(a, b jobs.Status) int {
		return cmp.Or(b.Submitted.Compare(a.Submitted), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// at is the service of another node.
func (s *service) at(id vicinity.ID) *api.Client {
	return api.NewClient(s.n.client.Transport, peerURL(id)+apiPrefix)
}

// locate finds a job: remote is nil if this node is its origin, else it is the
// origin's service.
func (s *service) locate(ref string) (id jobs.ID, remote *api.Client, err error) {
	id, err = s.n.jobs.Find(ref)
	switch {
	case err == nil && s.n.jobs.Owns(id):
		return id, nil, nil
	case err != nil && (errors.Is(err, jobs.ErrAmbiguous) || !jobs.ID(ref).Valid()):
		return "", nil, err
	case err != nil:
		id = jobs.ID(ref)
	}
	if id.OriginShort() == s.n.creds.ID().Short() { // forgotten, though a worker may be here still
		return "", nil, cmp.Or(err, fmt.Errorf("job %s %w", id, jobs.ErrNotFound))
	}
	for _, m := range s.n.overlay.Members() {
		if m.ID.Short() == id.OriginShort() {
			return id, s.at(m.ID), nil
		}
	}
	return id, nil, fmt.Errorf("%w: the origin of job %s is not reachable", api.ErrUnavailable, id)
}

// Job returns one job.
func (s *service) Job(ctx context.Context, ref string) (jobs.Status, error) {
	id, remote, err := s.locate(ref)
	if err == nil && remote != nil {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		st, rerr := remote.Job(ctx, string(id))
		if rerr == nil || errors.Is(rerr, api.ErrNotFound) {
			return st, rerr
		}
		err = fmt.Errorf("%w: the origin of job %s does not answer: %w", api.ErrUnavailable, id, rerr)
	}
	if err != nil && !errors.Is(err, api.ErrUnavailable) {
		return jobs.Status{}, err
	}
	st, _, known := s.n.jobs.Status(id)
	if known != nil {
		return st, cmp.Or(err, known)
	}
	return st, nil
}

// Await returns a job's status when it has changed.
func (s *service) Await(ctx context.Context, ref string, since uint64) (jobs.Status, uint64, error) {
	id, remote, err := s.locate(ref)
	if err != nil {
		return jobs.Status{}, 0, err
	}
	if remote != nil {
		return remote.Await(ctx, string(id), since)
	}
	return s.n.jobs.Await(ctx, id, since)
}

// Explain tells why a job waits.
func (s *service) Explain(ctx context.Context, ref string) (jobs.Explanation, error) {
	id, remote, err := s.locate(ref)
	if err != nil {
		return jobs.Explanation{}, err
	}
	if remote != nil {
		return remote.Explain(ctx, string(id))
	}
	return s.n.jobs.Explain(id)
}

// Cancel ends a job.
func (s *service) Cancel(ctx context.Context, ref string) error {
	id, remote, err := s.locate(ref)
	if err != nil {
		return err
	}
	if remote != nil {
		return remote.Cancel(ctx, string(id))
	}
	return s.n.jobs.Cancel(id, "cancelled by a user")
}

// Output tells what a job's workers wrote.
func (s *service) Output(ctx context.Context, ref string, q api.OutputQuery, f func(jobs.Output) error) error {
	id, remote, err := s.locate(ref)
	if err != nil {
		return err
	}
	if remote != nil {
		return remote.Output(ctx, string(id), q, f)
	}
	return s.n.jobs.Output(ctx, id, q.Rank, q.Follow, f)
}

// Stdin feeds rank 0.
func (s *service) Stdin(ctx context.Context, ref string, r io.Reader) error {
	id, remote, err := s.locate(ref)
	if err != nil {
		return err
	}
	if remote != nil {
		return remote.Stdin(ctx, string(id), r)
	}
	err = s.n.jobs.Stdin(ctx, id, r)
	if errors.Is(err, jobs.ErrEnded) {
		err = fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	return err
}

// Missing returns the chunks that the node does not hold.
func (s *service) Missing(_ context.Context, chunks []transfer.Hash) ([]transfer.Hash, error) {
	missing := []transfer.Hash{}
	for _, h := range chunks {
		if !s.n.store.Has(h) {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

// PutChunk stores one chunk.
func (s *service) PutChunk(_ context.Context, h transfer.Hash, data []byte) error {
	return s.n.store.Put(h, data)
}

// Chunk returns one chunk.
func (s *service) Chunk(ctx context.Context, job string, h transfer.Hash) ([]byte, error) {
	b, err := s.n.store.Get(h, nil)
	if !errors.Is(err, transfer.ErrNotFound) {
		return b, err
	}
	if job != "" {
		_, remote, err := s.locate(job)
		if err != nil {
			return nil, err
		}
		if remote != nil {
			return remote.Chunk(ctx, "", h)
		}
	}
	return nil, fmt.Errorf("%w: %w", api.ErrNotFound, err)
}

// Invite returns the token that lets another machine join.
func (s *service) Invite(context.Context) (string, error) {
	return trust.Invite{Secret: s.n.invite, Addrs: s.n.overlay.Self().Addrs}.Token(), nil
}

// Web returns the page's address.
func (s *service) Web(context.Context) (string, error) {
	if s.n.webURL == "" {
		return "", fmt.Errorf("%w: this node has no page: start it without --web none", api.ErrUnavailable)
	}
	return s.n.webURL, nil
}

// Changes tells of changes.
func (s *service) Changes() <-chan struct{} { return s.n.jobs.Changes() }

// forwarded is what other nodes may ask: about jobs of this origin, and only
// those, so that requests are never forwarded twice.
type forwarded struct{ *service }

var errNotForPeers = fmt.Errorf("%w: only for clients of this node", api.ErrRefused)

func (f forwarded) own(ref string) error {
	if id := jobs.ID(ref); !id.Valid() || !f.n.jobs.Owns(id) {
		return fmt.Errorf("job %.40q %w: it does not originate here, or is forgotten", strings.ToValidUTF8(ref, "?"), api.ErrNotFound)
	}
	return nil
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

func (f forwarded) Invite(context.Context) (string, error) { return "", errNotForPeers }

func (f forwarded) Web(context.Context) (string, error) { return "", errNotForPeers }
