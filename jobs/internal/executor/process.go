package executor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"zorilla/internal/atomicfile"
	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/process"
)

// handle is a worker's process.
type handle struct {
	process.Worker
	job   jobs.ID
	steer chan struct{} // closed when it is told to end
	once  sync.Once
	full  atomic.Bool // it waits for room on the disk
	fresh atomic.Bool // that it has written something is on its way to the loop
}

// halted says that a process is told to end. It may be called again.
func (r *handle) halted() { r.once.Do(func() { close(r.steer) }) }

// run starts a process, once it is durable that it may run.
func (x *Executor) run(e participant.DoRun, since time.Time) func(time.Time) {
	root := x.root(e.Worker)
	proc, err := x.start(root, &e, since)
	if err != nil {
		x.sockets.close(e.Worker)
		return func(now time.Time) { x.part.NotBegun(now, e.Worker, err.Error(), since) }
	}
	return x.follow(&e.Claim, root, proc, e.Claim.Start.Epoch, since, false)
}

// soonStarted is within what a worker is started that nobody can have given back meanwhile.
const soonStarted = time.Second

var errGivenBack = errors.New("it was given back before it began")

func (x *Executor) start(root string, e *participant.DoRun, since time.Time) (process.Worker, error) {
	if err := e.Claim.Write(root); err != nil {
		return nil, err
	}
	spec, err := x.processSpec(root, e)
	if err != nil {
		return nil, err
	}
	spec.WorkerAPI = x.sockets.has(&e.Claim.Spec)
	if err := x.sockets.open(root, e.Worker, &e.Claim.Spec); err != nil {
		return nil, err
	}
	if time.Since(since) > soonStarted {
		given := false
		if x.loop.Call(func() { given = x.part.GivenBack(e.Worker) }); given {
			return nil, errGivenBack
		}
	}
	return x.cfg.Runner.Start(context.Background(), spec)
}

// adopt goes on with a process that an earlier life of this node has started.
func (x *Executor) adopt(e participant.DoAdopt, since time.Time) func(time.Time) {
	root := x.root(e.Worker)
	proc, err := x.cfg.Runner.Adopt(x.loop.Stopped, root)
	switch {
	case err == nil:
		if listens(e.Worker, &e.Claim.Spec) {
			start := e.Claim.Start.OfReplica(&e.Claim.Spec, e.Worker.Rank)
			x.cfg.Ports.Keep(root, start.MasterPort())
		}
		x.fences.readopt(root, &e.Claim)
		if err := x.sockets.open(root, e.Worker, &e.Claim.Spec); err != nil {
			x.cfg.Log.Warn().Err(err).Msg("open the API socket of a worker")
		}
		return x.follow(&e.Claim, root, proc, writtenEpoch(root, e.Claim.Start), since, true)
	case errors.Is(err, process.ErrNotStarted):
		return func(now time.Time) { x.part.NeverBegun(now, e.Worker) }
	case x.loop.Stopped.Err() != nil:
		return nil
	}
	return func(now time.Time) {
		x.part.Gone(now, e.Worker, strings.TrimPrefix(err.Error(), process.ErrLost.Error()+": "))
	}
}

// follow goes with a process to its end, or that of the node's life.
func (x *Executor) follow(c *participant.ClaimRecord, root string, proc process.Worker, epoch int64, since time.Time, again bool) func(time.Time) {
	id := participant.WorkerID{Job: c.Job, RankAttempt: c.RankAttempt}
	defer x.sockets.close(id)
	x.running.Add(1)
	select {
	case x.Began <- struct{}{}:
	default:
	}
	defer x.running.Add(-1)
	r := &handle{Worker: proc, job: id.Job, steer: make(chan struct{})}
	changed := proc.Changed() // before the first report is made
	if !x.loop.Call(func() {
		x.procs[id] = r
		x.part.Begun(time.Now(), id, epoch)
	}) {
		proc.Leave()
		return nil
	}
	x.parallel.meet(proc, c, again)
	if in := proc.Stdin(); in != nil {
		feed, cancel := context.WithCancel(x.loop.Stopped)
		defer cancel()
		x.loop.Go(func() { x.cfg.Peers.FeedStdin(feed, id.Job, in) })
	}
	for ended := false; !ended; {
		select {
		case <-proc.Done():
			ended = true
		case <-changed:
			x.collect(r)
			changed = proc.Changed() // before the next
			x.grown(r)
			if now := proc.WaitsForRoom(); r.full.CompareAndSwap(!now, now) {
				x.gatherer.waits(id, map[bool]string{true: diskFull}[now])
			}
		case <-x.loop.Stopped.Done():
			return nil
		}
	}
	exit, noted := proc.Exit(), wasStopped(root)
	return func(now time.Time) { x.part.Exited(now, id, exit, noted, since) }
}

// grown has the origin told that a process has written something, unless that is on
// its way.
func (x *Executor) grown(r *handle) {
	if r.fresh.CompareAndSwap(false, true) {
		x.loop.Post(func() {
			r.fresh.Store(false)
			if s := x.Streams.of[r.job]; s != nil {
				s.wake()
				return
			}
			x.part.Grown(time.Now(), r.job)
		})
	}
}

// stopFile, in a worker's own directory, tells the next life of this node that the
// worker's origin wanted its process to end.
const stopFile = "stop"

// note writes down that a worker's origin wants its process to end.
func (x *Executor) note(id participant.WorkerID) {
	defer x.bin.Enter(x.root(id))()
	if isMissing(x.root(id)) {
		return
	}
	if err := (atomicfile.How{Loose: true}).Write(filepath.Join(x.root(id), stopFile), nil); err != nil {
		x.cfg.Log.Warn().Err(err).Str("job", string(id.Job)).Msg("write down that a worker is to end")
	}
}

func wasStopped(root string) bool {
	_, err := os.Stat(filepath.Join(root, stopFile))
	return err == nil
}
