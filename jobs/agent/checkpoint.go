package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/executor"
	"zorilla/jobs/internal/keep"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// checkpoints are those of this node's workers, and those of others that it keeps.
type checkpoints struct {
	self   vicinity.Member
	loop   *loop.Loop
	around interface {
		Nearer(than time.Duration, limit int) []vicinity.Measured
		Member(id vicinity.ID) (m vicinity.Member, ok bool)
	}
	clusters func() []vicinity.Cluster // of the network, this node's own first; nil = none are known
	peers    *peer.Client
	part     *participant.Participant // owned by the loop
	visits   executor.Visits
	log      zerolog.Logger

	keeper *keep.Keeper
	saver  *keep.Saver
}

const (
	keptDir     = "kept"
	expireEvery = time.Minute
	// nearest is among how many of the nearest nodes a checkpoint's keepers are chosen first.
	nearest = 8
	// neededWithin is how long a node is waited for that is to hear which checkpoints are needed.
	neededWithin = 10 * time.Second
)

// open goes on with what an earlier life of the node kept.
func (c *checkpoints) open(cfg keep.Config) (err error) {
	if c.keeper, err = keep.Open(cfg); err != nil {
		return err
	}
	c.saver = keep.NewSaver(keep.Around{
		Self: c.self.ID, Go: c.loop.Go, Nearby: c.nearby, Label: c.label, Begun: c.begun, Read: c.read, Ask: c.peers.Keep,
		Number: func(id keep.Worker, number int) (before int, err error) {
			return keep.Number(c.visits.Root(participant.WorkerID(id)), number)
		},
		Made: func(id keep.Worker, made jobs.Checkpoint) (here bool) {
			c.loop.Call(func() { here = c.part.Checkpointed(time.Now(), participant.WorkerID(id), made) })
			return here
		},
	}, c.keeper)
	return nil
}

// expire lets go, now and then, of what nobody asks for any more.
func (c *checkpoints) expire() {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			c.keeper.Expire(now)
		case <-c.loop.Leaving.Done():
			return
		}
	}
}

// requests are those of workers about checkpoints.
func (c *checkpoints) requests(r executor.WorkerRequests) *executor.WorkerRequests {
	r.Checkpoint = func(ctx context.Context, id participant.WorkerID, q jobs.CheckpointAsk) (jobs.CheckpointAnswer, error) {
		if err := q.Check(); err != nil {
			return jobs.CheckpointAnswer{}, err
		}
		return c.saver.Checkpoint(c.loop.Leaving, ctx, keep.Worker(id), q)
	}
	r.Acknowledged = func(id participant.WorkerID, a wire.CheckpointAck) { c.saver.Acknowledged(keep.Worker(id), a) }
	r.Forget = func(id participant.WorkerID) { c.saver.Forget(keep.Worker(id)) }
	return &r
}

func (c *checkpoints) label(id vicinity.ID) string {
	m, _ := c.around.Member(id)
	return jobs.Label(m.Name, id)
}

func (c *checkpoints) begun(id keep.Worker) (last int) {
	c.loop.Call(func() { last = c.part.Numbered(participant.WorkerID(id)) })
	return last
}

func (c *checkpoints) read(ctx context.Context, id keep.Worker, dir string) (out jobs.RankOutput, leftOut string, done func(), err error) {
	inputs := (*transfer.Manifest)(nil)
	if !c.loop.Call(func() { inputs = c.visits.Inputs(id.Job) }) {
		return out, "", nil, jobs.ErrStopped
	}
	return c.visits.ReadCheckpoint(ctx, participant.WorkerID(id), dir, inputs)
}

// nearby lists nodes that may keep a checkpoint of a worker here.
func (c *checkpoints) nearby(id keep.Worker) keep.Candidates {
	far := false
	c.loop.Call(func() {
		w := c.part.Works[id.Job]
		far = w != nil && w.Spec.CheckpointFar
	})
	return c.candidates(id, far)
}

// candidates lists those of the nearest nodes first that the worker's rank and job happen to have first, so that not
// all choose the same, and nodes of this host last. If one is to be far away, the nearest are those that are in no
// other cluster, and then come the others.
func (c *checkpoints) candidates(id keep.Worker, far bool) (k keep.Candidates) {
	var near, here []vicinity.ID
	if k.Far = far; far {
		k.Apart = c.apart(id)
	}
	for _, m := range c.around.Nearer(time.Hour, 4*nearest) {
		switch able, host := c.able(m.ID); {
		case !able || slices.Contains(k.Apart, m.ID):
		case host:
			here = append(here, m.ID)
		default:
			near = append(near, m.ID)
		}
	}
	spread(near[:min(len(near), nearest)], id)
	near = append(near, k.Apart...)
	if len(near) < jobs.Keepers && len(here) > 0 {
		k.Short = fmt.Sprintf("only %d of %d nodes that should keep it are on other hosts", len(near), jobs.Keepers)
	}
	k.List = append(near, here...)
	return k
}

// able reports whether a node can keep checkpoints, and whether it is on this host.
func (c *checkpoints) able(id vicinity.ID) (able, here bool) {
	member, ok := c.around.Member(id)
	return ok && member.Version >= jobs.CheckpointVersion, sameHost(member.Addrs, c.self.Addrs)
}

// apart lists nodes of other clusters than this node's that may keep a checkpoint of a worker here, those of the
// nearest cluster first, and of each in an order of the worker's own.
func (c *checkpoints) apart(id keep.Worker) (list []vicinity.ID) {
	if c.clusters == nil {
		return nil
	}
	for i, cluster := range c.clusters() {
		if i == 0 {
			continue
		}
		members := slices.DeleteFunc(slices.Clone(cluster.Members), func(node vicinity.ID) bool {
			able, here := c.able(node)
			return !able || here
		})
		spread(members, id)
		list = append(list, members...)
	}
	return list
}

// spread orders nodes as chance has it, for each worker another one.
func spread(list []vicinity.ID, id keep.Worker) {
	order := func(node vicinity.ID) uint64 {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s/%d/%s", id.Job, id.Rank, node) // never fails
		return h.Sum64()
	}
	slices.SortFunc(list, func(a, b vicinity.ID) int { return cmp.Compare(order(a), order(b)) })
}

// sameHost reports whether two nodes have an IP address in common.
func sameHost(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool {
		host, _, err := net.SplitHostPort(x)
		return err == nil && slices.ContainsFunc(b, func(y string) bool {
			other, _, err := net.SplitHostPort(y)
			return err == nil && host == other
		})
	})
}

// keepAsked answers other nodes that want a checkpoint kept, or say which are needed.
func (c *checkpoints) keepAsked(ctx context.Context, from vicinity.ID, m *wire.Keep) (struct{}, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.loop.Leaving, cancel)()
	err := c.keeper.Keep(ctx, time.Now(), from, m)
	if err != nil && !errors.Is(err, jobs.ErrRefused) {
		err = fmt.Errorf("%w: %w", jobs.ErrRefused, err)
	}
	return struct{}{}, err
}

// needed has a node hear which checkpoints of a job of this node are needed.
func (c *checkpoints) needed(to vicinity.ID, m *wire.Keep) {
	ctx, cancel := context.WithTimeout(c.loop.Stopped, neededWithin)
	defer cancel()
	var err error
	if to == c.self.ID {
		err = c.keeper.Keep(ctx, time.Now(), to, m)
	} else {
		err = c.peers.Keep(ctx, to, m)
	}
	if err != nil {
		c.log.Debug().Err(err).Str("job", string(m.Job)).Str("node", to.Short()).Msg("which checkpoints are needed")
	}
}
