package node

import (
	"context"
	"errors"
	"fmt"
	"time"

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
type service struct {
	n         *Node
	survey    *survey
	clusters  clusters
	measuring *turns
	recent    recent
	uploads   uploads
}

func newService(n *Node) *service {
	return &service{n: n, survey: newSurvey(), measuring: newTurns(), uploads: uploads{store: n.store}}
}

var _ api.Service = (*service)(nil)

// at is what another node does for this one.
func (s *service) at(id vicinity.ID) api.Peer {
	return api.NewClient(s.n.client.Transport, peerURL(id)+apiPrefix)
}

// Missing returns the chunks that the node does not hold. The others are kept for
// who asks, as those that come.
func (s *service) Missing(_ context.Context, chunks []transfer.Hash) ([]transfer.Hash, error) {
	s.uploads.hold(chunks...)
	missing := []transfer.Hash{}
	for _, h := range chunks {
		if !s.n.store.Has(h) {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

// PutChunk stores one chunk, and keeps it for the submission that needs it.
func (s *service) PutChunk(_ context.Context, h transfer.Hash, data []byte) error {
	s.uploads.hold(h)
	err := s.n.store.Put(h, data)
	s.uploads.stored(err)
	return err
}

// Chunk returns one chunk.
func (s *service) Chunk(ctx context.Context, job string, h transfer.Hash) ([]byte, error) {
	b, err := s.n.store.Get(h, nil)
	if !errors.Is(err, transfer.ErrNotFound) {
		if id := jobs.ID(job); id.Valid() {
			s.n.jobs.Read(id)
		}
		return b, err
	}
	if job != "" {
		_, remote, err := s.locate(ctx, job)
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
