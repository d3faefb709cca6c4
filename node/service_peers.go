package node

import (
	"context"
	"fmt"
	"io"
	"strings"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
)

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
