package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"zorilla/internal/atomicfile"
	"zorilla/jobs"
	"zorilla/jobs/internal/heartbeat"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/pmi"
	"zorilla/jobs/process"
	"zorilla/transfer"
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
	spec, err := x.processSpec(root, newBeginning(e, x.cfg.Self.ID, x.interfaces))
	if err != nil {
		return nil, err
	}
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

// processSpec says what the supervisor is to run in a root.
func (x *Executor) processSpec(root string, b *beginning) (process.Spec, error) {
	c, spec := &b.Claim, b.Claim.Spec.Of(b.Claim.Rank)
	p, err := x.cfg.confined(string(c.Job), process.Spec{
		Root: root, Args: spec.Args, Stdin: spec.Stdin && b.rank == 0, WorkerAPI: x.sockets.has(spec),
		Memory: spec.Memory, Disk: spec.Disk, MaxOutput: spec.MaxOutput, KeepFree: x.cfg.KeepFree, Shares: spec.Slots,
		Walltime: c.Walltime(),
	})
	if err != nil {
		return p, err
	}
	if p.Expose, p.Writable, err = x.cfg.shown(c.Job.Origin() == x.cfg.Self.ID, spec.Mounts); err != nil {
		return p, err
	}
	p.Alone, p.Among = spec.Net == jobs.NetNone, x.fences.around(c)
	if x.cfg.spaces() {
		p.At = process.Inside(root)
	}
	p.Expose = append(p.Expose, x.cfg.GPUs.Libraries()...)
	if len(c.GPUs) > 0 {
		p.Devices = x.cfg.GPUs.Devices(x.cfg.shownGPUs(b.DoRun, p.Writable))
	}
	p.Shared = x.sharing.config(participant.WorkerID{Job: c.Job, RankAttempt: c.RankAttempt})
	if a := spec.Array; a != nil {
		p.Tasks = &process.TaskSpec{IDs: a.Tasks, Outputs: spec.Globs()}
		if len(spec.Outputs) == 0 && x.cfg.takesLeft(c.Job.Origin()) {
			p.Tasks.Left = &process.LeftLimit{Files: jobs.MaxLeftFiles, Bytes: jobs.MaxLeftBytes, All: jobs.MaxTasksLeft}
		}
		if a.Lines {
			p.Tasks.Lines = jobs.ArrayLines
		}
	} else { // tasks do not know of each other
		p.Group = string(c.Job)
		var topology func() string
		if len(spec.Groups) > 0 {
			topology = func() string { return wire.TopologyFile(spec) }
		}
		if err := x.tables.give(root, c.Job, wire.HostFile(b.start.Hosts), b.start.Epoch, topology); err != nil {
			return p, err
		}
	}
	p.Rank.Lent = c.Allowed > 0
	if p.Rank.Signal, p.Rank.Notice = spec.Notice(); p.Rank.Lent { // of which the job knew nothing
		p.Rank.Notice = min(p.Rank.Notice, p.Walltime/2)
	}
	if spec.MPI {
		p.Rank.Grace, p.Rank.Cores = participant.GangGrace, c.Cores
		p.NodeLimit = heartbeat.Silence // without its node the gang is lost
		p.PMI = &pmi.Place{Rank: b.rank, Size: b.start.Size, Nodes: numbers(&b.start), Name: b.gangName()}
	}
	p.Env, err = x.environment(b, &p)
	return p, err
}

// shown returns what a worker is shown that asks for mounts, as the owner wants it now:
// perhaps no longer as when the job was offered its slots.
func (w *Workers) shown(own bool, mounts []string) (read, write []string, err error) {
	var l jobs.Limits
	if w.Limits != nil {
		l = w.Limits()
	}
	all, missing := l.Grant(own, mounts)
	if missing != "" {
		return nil, nil, fmt.Errorf("%s %s", wire.ReasonMount, missing)
	}
	read, write = all.Split()
	return read, write, nil
}

// confined adds what holds for all workers of this node, and the user of a job.
func (c *Config) confined(job string, p process.Spec) (process.Spec, error) {
	p.NodeLimit, p.OrphanLimit = max(c.NodeLimit, leastNodeLimit), c.OrphanLimit
	p.Hide, p.UID, p.GID = []string{c.State, c.Dir}, -1, -1
	if u := c.RunAs; u != nil {
		p.UID, p.GID = u.UID, u.GID
	}
	if c.Users == nil {
		return p, nil
	}
	n, err := c.Users.Number(job, p.Root)
	p.UID, p.GID, p.OwnUser = n, n, true
	return p, err
}

// leastNodeLimit is for workers that end with their node: it must have the
// time to connect to them.
const leastNodeLimit = 2 * time.Second

// owner returns whose the input files of a worker are; nil = this node's, or that is not known yet.
func (x *Executor) owner(id participant.WorkerID) *transfer.Owner {
	p, err := x.cfg.confined(string(id.Job), process.Spec{Root: x.root(id)})
	if err != nil || !p.RunsAs() {
		return nil
	}
	return &transfer.Owner{UID: p.UID, GID: p.GID}
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
