package executor

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/heartbeat"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/launch"
	"zorilla/jobs/mpi"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// parallel is what is done for workers that are the ranks of an MPI program.
type parallel struct {
	*Executor

	mu sync.Mutex
	of map[jobs.ID]*program // those of jobs, for their workers that begin later
}

type program struct {
	once  sync.Once
	found mpi.Found
	err   error // why it cannot be served

	mu   sync.Mutex
	root string // of the worker that has the libraries; "" = none
}

func (p *parallel) forget(job jobs.ID) {
	p.mu.Lock()
	delete(p.of, job)
	p.mu.Unlock()
	p.Gangs.Forget(job)
}

// program returns what is known of the program of a job. It does not wait for a disk.
func (p *parallel) program(job jobs.ID) *program {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[job] == nil {
		p.of[job] = &program{}
	}
	return p.of[job]
}

// look finds out what the command of a worker is linked with, as far as that worker will
// see it.
func (g *program) look(p *process.Spec, env map[string]string) {
	v := viewOf(p)
	var dirs []string
	for _, dir := range filepath.SplitList(env["LD_LIBRARY_PATH"]) {
		if !filepath.IsAbs(dir) { // of where the worker begins
			dir = filepath.Join(v.work, dir)
		}
		dirs = append(dirs, dir)
	}
	found, err := mpi.Detect(v.open, v.locate(p.Args[0], env["PATH"]), dirs...)
	if err != nil {
		return // that is told when it is started
	}
	if err := found.Served(); err != nil { // its files are named as the user does
		g.err = errors.New(strings.ReplaceAll(err.Error(), v.work+"/", ""))
	}
	g.found = found
}

// install has what programs load be in the TMPDIR of a worker, which calls that at.
func (g *program) install(root, at string) (mpi.Libraries, error) {
	tmp := filepath.Join(root, "tmp")
	if err := makeTmp(root); err != nil { // else the supervisor makes it
		return mpi.Libraries{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.root != "" {
		if l, err := mpi.Link(g.root, tmp); err == nil {
			return l.In(at), nil
		}
	}
	// Where no worker can put something else in their place.
	switch _, err := mpi.Install(root); {
	case errors.Is(err, mpi.ErrNoLibrary): // what does without is served
		return mpi.Libraries{}, nil
	case err != nil:
		return mpi.Libraries{}, err
	}
	g.root = root
	l, err := mpi.Link(root, tmp)
	if err != nil { // not every file system has links
		l, err = mpi.Install(tmp)
	}
	return l.In(at), err
}

// gangName names the ranks that run together, which are others after each new start.
func (b *beginning) gangName() string {
	return string(b.Claim.Job) + "/" + strconv.Itoa(b.replica) + "/" + strconv.FormatInt(b.Claim.Start.Epoch, 10)
}

// variables are what a rank of an MPI program finds besides the environment that it has so far,
// but for those that its user has set.
func (x *parallel) variables(b *beginning, p *process.Spec, env map[string]string) (map[string]string, error) {
	g := x.program(b.Claim.Job)
	g.once.Do(func() { g.look(p, env) })
	if g.err != nil {
		return nil, g.err
	}
	libraries, err := g.install(p.Root, filepath.Join(p.Seen(), "tmp"))
	if err != nil {
		return nil, err
	}
	r := mpi.Rank{
		Kind: g.found.Kind, Rank: b.rank, Size: b.start.Size, LocalRank: b.local, LocalSize: b.localSize, Hosts: max(1, len(b.start.Hosts)),
		Job: b.gangName(), FD: process.PMIFD, Libraries: libraries, Busy: max(b.localSize, x.cfg.Self.Slots) > runtime.NumCPU(),
		Memory: x.cfg.spaces() && launch.Shared(true, p.UID), Interface: b.face,
	}
	if ip, err := netip.ParseAddr(b.addr); err == nil {
		r.Address = x.interfaces.network(ip)
	}
	found := r.Environment()
	asked := b.Claim.Spec.Of(b.Claim.Rank).Env
	maps.DeleteFunc(found, func(name, _ string) bool { _, own := asked[name]; return own })
	return found, nil
}

// numbers tells at which node each rank is, by their place in the table; nil = it is not
// complete.
func numbers(start *wire.Start) []int {
	nodes := make([]int, start.Size)
	count := 0
	for i, h := range start.Hosts {
		for _, r := range h.Ranks {
			if r < 0 || r >= start.Size {
				return nil
			}
			nodes[r] = i
			count++
		}
	}
	if count != start.Size {
		return nil
	}
	return nodes
}

// gangs returns what keeps this node in touch with others that run ranks of the same
// programs.
func (x *parallel) gangs() *heartbeat.Keeper {
	return &heartbeat.Keeper{
		Self: x.cfg.Self.ID, Go: x.loop.Go,
		Name: func(id vicinity.ID) string {
			if m, ok := x.cfg.Member(id); ok && m.Name != "" {
				return jobs.Label(m.Name, id)
			}
			return "node " + id.Short()
		},
		Send: func(ctx context.Context, to vicinity.ID, b *wire.Beat) (a wire.BeatAnswer, err error) {
			if err = x.cfg.Peers.Send(ctx, to, peer.PathBeat, b, &a); err == nil {
				err = a.Check()
			}
			return a, err
		},
		Has: func(id wire.Gang) (has bool) {
			// That the loop has ended does not say that it is gone.
			return !x.loop.Call(func() { has = x.part.Has(id) }) || has
		},
		Lost: func(id wire.Gang, why string, failed bool) {
			x.loop.Post(func() { x.part.GangLost(time.Now(), id, why, failed) })
		},
	}
}

// meet goes with a rank of an MPI program to its end.
func (x *parallel) meet(proc process.Worker, c *participant.ClaimRecord, again bool) {
	if !c.Spec.MPI {
		return
	}
	if r, ok := x.member(c); ok {
		r.Link, r.Again = proc.Barriers(), again
		x.loop.Go(x.Gangs.Follow(x.loop.Stopped, r))
	}
}

// parted tells the gang of a rank how that has ended.
func (x *parallel) parted(e participant.DoPart) {
	if r, ok := x.member(&e.Claim); ok {
		r.Again = e.Again
		x.Gangs.Left(x.loop.Stopped, r, e.Why, e.Failed)
	}
}

// member says which rank of which gang a worker is, if its START names it.
func (x *parallel) member(c *participant.ClaimRecord) (r heartbeat.Rank, ok bool) {
	start := c.Start.OfReplica(&c.Spec, c.Rank)
	rank, replica := c.Spec.RankOf(c.Rank)
	r = heartbeat.Rank{Gang: wire.Gang{Job: c.Job, Replica: replica, Epoch: c.Start.Epoch}, Rank: rank}
	for _, h := range start.Hosts {
		if slices.Contains(h.Ranks, 0) {
			r.Nodes = slices.Insert(r.Nodes, 0, h.Node)
		} else {
			r.Nodes = append(r.Nodes, h.Node)
		}
		if h.Node == x.cfg.Self.ID {
			r.Local = h.Ranks
		}
	}
	return r, len(r.Nodes) > 0 && slices.Contains(r.Local, rank)
}
