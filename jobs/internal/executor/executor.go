package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/heartbeat"
	"zorilla/jobs/internal/keep"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/jobs/remover"
	"zorilla/transfer"
)

// Executor does what a participant decides: it has the processes and directories of
// workers, and tells the participant what becomes of them. What takes time is done in a
// goroutine, one at a time for each worker. Execute, Written and Ended run in the loop;
// what they spawn touches neither inputs nor procs.
type Executor struct {
	cfg     Config
	user    string // name
	loop    *loop.Loop
	part    *participant.Participant
	inputs  map[jobs.ID]*inputs
	procs   map[participant.WorkerID]*handle
	bin     *remover.Background // where roots are removed, by their paths
	trials  chan trial          // capacity 1: the latest, while none runs
	spread  sync.Once           // over the disk of what is in Dir
	tables  tables
	fences  *fences
	sockets *workerSockets

	Streams *Streams // of output, beside reports

	parallel *parallel
	Gangs    *heartbeat.Keeper // of the ranks of MPI programs here

	sharing  *sharing // of work directories
	gatherer gatherer

	interfaces *interfaces // of a real machine; else nil

	snapshots chan struct{} // a place for each that is being made
	recent    *Recent

	running atomic.Int32  // workers
	Began   chan struct{} // capacity 1: one of them has begun
}

// maxSnapshots is how many are made at a time: each reads all of the files.
const maxSnapshots = 2

// New makes an executor without workers. What happens to them is told to part, in l.
func New(cfg Config, l *loop.Loop, part *participant.Participant) *Executor {
	x := &Executor{
		cfg:       cfg,
		user:      userName(&cfg.Workers),
		loop:      l,
		part:      part,
		fences:    &fences{member: cfg.Member, log: cfg.Log},
		inputs:    map[jobs.ID]*inputs{},
		procs:     map[participant.WorkerID]*handle{},
		bin:       remover.NewBackground(),
		trials:    make(chan trial, 1),
		tables:    tables{made: map[jobs.ID]madeTable{}},
		sockets:   newWorkerSockets(cfg.WorkerRequests, func() []string { return cfg.Runner.Enforces() }),
		Began:     make(chan struct{}, 1),
		snapshots: make(chan struct{}, maxSnapshots),
		recent:    NewRecent(cfg.Store),
	}
	x.Streams = &Streams{x, map[jobs.ID]*stream{}}
	x.sharing = newSharing(cfg.Dir, func(root string) error { return makeShared(&x.cfg, &x.spread, x.bin, root) },
		func(root string) { x.dispose(root, x.bin.Enter(root), nil) })
	x.gatherer = gatherer{&x.cfg, l.Leaving, x.sharing, x.root, func(id participant.WorkerID, why string) bool { return waits(l, part, id, why) }}
	x.parallel = &parallel{Executor: x, of: map[jobs.ID]*program{}}
	x.Gangs = x.parallel.gangs()
	x.trials <- trial{}
	if cfg.Ports != nil {
		x.interfaces = &interfaces{}
	}
	return x
}

func (x *Executor) root(id participant.WorkerID) string {
	return filepath.Join(x.cfg.Dir, participant.RootName(id.Job, id.RankAttempt))
}

// spawn does something that takes time, and has the participant told by what it returns;
// nil = nothing is to be told.
func (x *Executor) spawn(f func() (tell func(now time.Time))) {
	x.loop.Go(func() {
		if tell := f(); tell != nil {
			x.loop.Post(func() { tell(time.Now()) })
		}
	})
}

// Execute does one effect.
func (x *Executor) Execute(e participant.Effect) {
	switch e := e.(type) {
	case participant.DoFetch:
		x.fetch(e)
	case participant.DoEnd:
		if proc := x.procs[e.Worker]; proc != nil {
			proc.halted()
			x.loop.Go(func() {
				if e.Note {
					x.note(e.Worker)
				}
				proc.Stop(e.Notice, e.Grace)
			})
		}
	case participant.DoPart:
		x.parallel.parted(e)
	case participant.DoTry:
		x.spawn(func() func(time.Time) {
			trouble := x.try(e.Since)
			return func(now time.Time) { x.judge(now, e.Worker, trouble) }
		})
	case participant.DoReport:
		x.report(e)
	case participant.DoAck:
		if proc := x.procs[e.Worker]; proc != nil {
			proc.acknowledged(e)
		}
		if e.Checkpoint != nil && x.cfg.WorkerRequests != nil {
			x.cfg.WorkerRequests.Acknowledged(e.Worker, *e.Checkpoint)
		}
	case participant.DoTable:
		x.table(e)
	case participant.DoCancelWork:
		if in := x.inputs[e.Job]; in != nil {
			in.cancel()
		}
	case participant.DoForgetWork:
		if in := x.inputs[e.Job]; in != nil {
			in.cancel()
			delete(x.inputs, e.Job)
		}
		x.tables.forget(e.Job)
		x.fences.forget(e.Job)
		x.parallel.forget(e.Job)
		x.cfg.Store.Unpin(inputsPin(e.Job))
	default:
		x.step(e)
	}
}

// step does what takes a worker one step on.
func (x *Executor) step(e participant.Effect) {
	since := time.Now()
	switch e := e.(type) {
	case participant.DoClaim:
		x.close(e.Worker)
		x.spawn(func() func(time.Time) {
			err := x.claim(e)
			return func(now time.Time) { x.part.Claimed(now, e.Worker, err, since) }
		})
	case participant.DoLay:
		in := x.inputs[e.Worker.Job]
		if in == nil {
			in = noInputs(x.loop.Leaving)
			x.inputs[e.Worker.Job] = in
		}
		how := transfer.How{Give: !x.sharing.awaited(x.part.Works[e.Worker.Job], e.Worker), Steps: in.steps(e.Worker.RankAttempt)}
		w := x.part.Works[e.Worker.Job]
		own := w != nil && w.Spec.Array == nil // tasks do not write to their inputs
		x.spawn(func() func(time.Time) {
			if own {
				how.Owner = x.owner(e.Worker)
			}
			err := x.sharing.lay(e.Worker, x.root(e.Worker), func(root string) error {
				return in.lay(x.cfg.Store, filepath.Join(root, workDir), how)
			})
			if err == nil && e.Resume != nil {
				how.Give, how.Fresh = false, false
				resumer := keep.Resumer{Store: x.cfg.Store, Fetch: x.cfg.Fetch, Member: x.cfg.Member}
				err = resumer.Resume(in.ctx, keep.Worker(e.Worker), e.Resume, filepath.Join(x.root(e.Worker), workDir), how, func() { in.came.Add(1) })
			}
			return func(now time.Time) { x.part.Laid(now, e.Worker, err, since) }
		})
	case participant.DoRun:
		x.spawn(func() func(time.Time) { return x.run(e, since) })
	case participant.DoAdopt:
		x.spawn(func() func(time.Time) { return x.adopt(e, since) })
	case participant.DoGather:
		in := x.inputs[e.Worker.Job]
		x.spawn(func() func(time.Time) {
			out, warn, err := x.gatherer.gather(e, in)
			return func(now time.Time) { x.part.Gathered(now, e.Worker, out, warn, err) }
		})
	case participant.DoPark:
		x.close(e.Worker)
		x.spawn(func() func(time.Time) {
			err := x.park(e)
			return func(now time.Time) { x.part.Parked(now, e.Worker, err) }
		})
	case participant.DoRemove:
		proc := x.procs[e.Worker]
		delete(x.procs, e.Worker)
		x.spawn(func() func(time.Time) {
			x.remove(e.Worker, proc)
			return func(now time.Time) { x.part.Removed(now, e.Worker) }
		})
	default: // an effect that nobody does would leave a worker where it is for ever
		panic(fmt.Sprintf("executor: nobody does %T", e))
	}
}

// fetch brings the inputs of a job into the store.
func (x *Executor) fetch(e participant.DoFetch) {
	in := &inputs{done: make(chan struct{})}
	in.ctx, in.cancel = context.WithCancel(x.loop.Leaving)
	in.again = func(tell func(transfer.Stats)) (tree transfer.Manifest, err error) {
		tree, _, err = x.cfg.Fetch(in.ctx, inputsPin(e.Job), e.Inputs, e.Holders, tell)
		return tree, err
	}
	x.inputs[e.Job] = in
	x.spawn(func() func(time.Time) {
		defer close(in.done)
		if !e.Known || !x.knowInputs(e, in) {
			var err error
			if in.tree, err = in.again(func(so transfer.Stats) {
				in.came.Add(1)
				x.loop.Post(func() { x.part.Moved(e.Job, so) })
			}); err != nil {
				in.failed = fmt.Errorf("fetch inputs: %w", err)
			}
		}
		return func(now time.Time) { x.part.Fetched(now, e.Job, in.failed) }
	})
}

// knowInputs finds out what the inputs were, which for workers that have them
// already costs no look at the network. It reports whether all of them are here.
func (x *Executor) knowInputs(e participant.DoFetch, in *inputs) bool {
	tree, err := transfer.PinManifest(x.cfg.Store, inputsPin(e.Job), e.Inputs)
	if err != nil {
		return false
	}
	in.tree = tree
	return !slices.ContainsFunc(tree.Chunks(), func(h transfer.Hash) bool { return !x.cfg.Store.Has(h) })
}

// claim makes a worker's directory, or empties that of an earlier try, and writes down
// that the worker is here.
func (x *Executor) claim(e participant.DoClaim) error {
	root := x.root(e.Worker)
	x.bin.Wait(root) // something of an earlier life
	if listens(e.Worker, &e.Claim.Spec) {
		x.cfg.Ports.Take(root, wire.WantedPort(e.Worker.Job))
	}
	if err := x.sharing.claim(&e.Claim); err != nil {
		return err
	}
	err := makeRoot(&x.cfg, &x.spread, root)
	switch {
	case err == nil:
		group := string(e.Claim.Job)
		if e.Claim.Spec.Array != nil {
			group = ""
		}
		x.cfg.Runner.Warm(group, x.cfg.Dir)
		return e.Claim.Write(root)
	case errors.Is(err, fs.ErrExist):
		return x.clear(root, &e.Claim)
	}
	return err
}

// clear empties a worker's directory but for its claim, which says that it has
// not begun. The claim comes first: no death in between may lose the worker.
func (x *Executor) clear(root string, c *participant.ClaimRecord) error {
	takeBack(x.cfg.Store, root)
	if err := c.Write(root); err == nil {
		return x.cfg.CleanRoot(root, nil, participant.ClaimNote)
	}
	// What is there may have filled the disk.
	if err := x.cfg.CleanRoot(root, nil, participant.ClaimNote); err != nil {
		return err
	}
	return c.Write(root)
}

// park leaves of a worker's directory its claim, which says that it did not begin here
// and will not, since its room is given away: the next life of this node tells that, too,
// or its origin would not hear what became of it.
func (x *Executor) park(e participant.DoPark) error {
	root := x.root(e.Worker)
	x.cfg.Ports.Free(root)
	err := x.clear(root, &e.Claim)
	x.sharing.leave(e.Worker)
	if err != nil { // it must not be prepared again
		_ = process.Forget(root, participant.ClaimNote)
	}
	return err
}

// close lets go of a process that has not begun, or is not to be heard of any more.
func (x *Executor) close(id participant.WorkerID) {
	if proc := x.procs[id]; proc != nil {
		delete(x.procs, id)
		_ = proc.Close()
	}
}

// remove removes all of a worker.
func (x *Executor) remove(id participant.WorkerID, proc *handle) {
	if proc != nil {
		_ = proc.Close()
	}
	root := x.root(id)
	leave := x.bin.Enter(root)
	// The claim goes first: what is half removed when the node is killed must
	// not be taken for a worker.
	forgotten := process.Forget(root, participant.ClaimNote)
	x.sharing.leave(id)
	x.dispose(root, leave, forgotten)
	x.cfg.Ports.Free(root)
	x.cfg.Store.Unpin(outputPin(id))
	x.cfg.Store.Unpin(keep.Worker(id).Pin())
	if x.cfg.WorkerRequests != nil {
		x.cfg.WorkerRequests.Forget(id)
	}
}

// dispose removes a root, which the caller has until leave is called. That something of it could
// not be done before is told.
func (x *Executor) dispose(root string, leave func(), before error) {
	takeBack(x.cfg.Store, root)
	err := errors.Join(before, x.clean(x.loop.Leaving, root))
	if err == nil || errors.Is(err, context.Canceled) { // the next life goes on with that
		leave()
		return
	}
	x.cfg.Log.Error().Err(err).Str("job", jobOf(root)).Msg("remove work directory")
	x.loop.Go(func() {
		defer leave()
		again(x.loop.Leaving, func() error { return x.clean(x.loop.Leaving, root) })
	})
}

// waits reports what a worker waits for, or "", and reports whether it is still wanted.
func waits(l *loop.Loop, part *participant.Participant, id participant.WorkerID, why string) (wanted bool) {
	l.Call(func() { wanted = part.Waits(time.Now(), id, why) })
	return wanted
}

// Written returns how much a worker has written.
func (x *Executor) Written(id participant.WorkerID) (so wire.Written) {
	if proc := x.procs[id]; proc != nil {
		so.Stdout, so.Stderr = proc.Written()
	}
	return so
}

// Ended reports whether a worker has a process that has ended.
func (x *Executor) Ended(id participant.WorkerID) bool {
	proc := x.procs[id]
	if proc == nil {
		return false
	}
	select {
	case <-proc.Done():
		return true
	default:
		return false
	}
}

// Leave lets go of the processes, which go on, when the loop has ended. What nobody
// asks for any more is removed.
func (x *Executor) Leave() {
	for _, w := range x.part.All() {
		for _, k := range w.Workers {
			id := participant.WorkerID{Job: w.Job, RankAttempt: k.RankAttempt}
			if proc := x.procs[id]; k.Phase == participant.PhaseOver && !k.Lasts() {
				x.remove(id, proc)
			} else if proc != nil {
				proc.Leave()
			}
		}
	}
}
