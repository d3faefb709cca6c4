package executor

import (
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/jobs/sandbox"
	"zorilla/transfer"
)

// processSpec tells the supervisor what to run.
func (x *Executor) processSpec(root string, e *participant.DoRun) (process.Spec, error) {
	c, ranks := &e.Claim, e.Ranks
	spec, start := &c.Spec, c.Start.OfReplica(&c.Spec, c.Rank)
	rank, _ := spec.RankOf(c.Rank)
	p, err := x.cfg.confined(string(c.Job), process.Spec{
		Root: root, Args: spec.Args, Stdin: spec.Stdin && rank == 0,
		Memory: spec.Memory, Disk: spec.Disk, MaxOutput: spec.MaxOutput, KeepFree: x.cfg.KeepFree, Shares: spec.Slots, Walltime: spec.Walltime.Std(),
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
		p.Devices = x.cfg.GPUs.Devices(x.cfg.shownGPUs(e, p.Writable))
	}
	if a := spec.Array; a != nil {
		p.Tasks = &process.TaskSpec{IDs: a.Tasks, Outputs: spec.Globs()}
		if len(spec.Outputs) == 0 && x.cfg.takesLeft(c.Job.Origin()) {
			p.Tasks.Left = &process.LeftLimit{Files: jobs.MaxLeftFiles, Bytes: jobs.MaxLeftBytes, All: jobs.MaxTasksLeft}
		}
		if a.Lines {
			p.Tasks.Lines = jobs.ArrayLines
		}
	}
	p.Shared = x.sharing.config(participant.WorkerID{Job: c.Job, RankAttempt: c.RankAttempt})
	if spec.Array == nil { // tasks do not know of each other
		p.Group = string(c.Job)
		if err := x.tables.give(root, c.Job, wire.HostFile(start.Hosts), start.Epoch); err != nil {
			return p, err
		}
	}
	env := x.environment(e, &p, start)
	if err := x.parallel.rank(&p, c, &start, ranks, env); err != nil {
		return p, err
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		p.Env = append(p.Env, name+"="+env[name])
	}
	return p, nil
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

// owner returns whose the input files of a worker are; nil = this node's, or that is not known yet.
func (x *Executor) owner(id participant.WorkerID) *transfer.Owner {
	p, err := x.cfg.confined(string(id.Job), process.Spec{Root: x.root(id)})
	if err != nil || !p.RunsAs() {
		return nil
	}
	return &transfer.Owner{UID: p.UID, GID: p.GID}
}

// userName is what workers are told who they are.
func userName(w *Workers) string {
	uid := os.Geteuid()
	if w.RunAs != nil {
		uid = w.RunAs.UID
	}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil && w.Users == nil {
		return u.Username
	}
	return sandbox.UserName
}

// environment is all that a worker finds: a plain system environment, what
// gives its place in the job, and what the user asked for.
func (x *Executor) environment(e *participant.DoRun, p *process.Spec, start wire.Start) map[string]string {
	c, root := &e.Claim, p.Seen()
	spec := &c.Spec
	local, localSize := x.place(spec, start, c.Rank, e.Ranks)
	rank, replica := spec.RankOf(c.Rank)
	home := p.SeenWork()
	if spec.Array != nil {
		home = filepath.Join(root, process.TaskDir)
	}
	env := map[string]string{
		"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "LANG": "C.UTF-8",
		"HOME": home, "TMPDIR": filepath.Join(root, "tmp"), "SHELL": "/bin/sh",
		"USER": x.user, "LOGNAME": x.user,
		"PYTHONUNBUFFERED":   "1", // what a job prints is seen while it runs
		"ZORILLA_JOB_ID":     string(c.Job),
		"ZORILLA_RANK":       strconv.Itoa(rank),
		"ZORILLA_REPLICA":    strconv.Itoa(replica),
		"ZORILLA_SIZE":       strconv.Itoa(start.Size),
		"ZORILLA_MIN":        strconv.Itoa(spec.Min),
		"ZORILLA_MAX":        strconv.Itoa(spec.Max),
		"ZORILLA_LOCAL_RANK": strconv.Itoa(local),
		"ZORILLA_NNODES":     strconv.Itoa(max(1, len(start.Hosts))),
		"ZORILLA_ATTEMPT":    strconv.Itoa(c.Attempt),
		"ZORILLA_SLOTS":      strconv.Itoa(spec.Slots),
	}
	if spec.Array == nil {
		env["ZORILLA_HOSTFILE"] = filepath.Join(root, "tmp", wire.HostFileName)
	}
	if start.Epoch > 0 && spec.Array == nil {
		env["ZORILLA_EPOCH_FILE"] = filepath.Join(root, "tmp", wire.EpochFileName)
	}
	x.cfg.addGPUs(env, e, p.Writable)
	maps.Copy(env, rendezvous(x.cfg.Self.ID, start, rank, local, localSize))
	x.interfaces.setEnv(env, x.cfg.Self.ID, start.Hosts)
	maps.Copy(env, threadVariables(spec))
	x.sockets.setEnv(env, root, spec, slices.Concat(p.Expose, p.Writable)...)
	maps.Copy(env, spec.Env)
	return env
}

// place finds a rank's place among those of its own node, as far as the table
// and this node know of them.
func (x *Executor) place(spec *jobs.Spec, start wire.Start, worker int, here []int) (local, size int) {
	rank, _ := spec.RankOf(worker)
	ranks := map[int]bool{rank: true}
	for _, h := range start.Hosts {
		if h.Node == x.cfg.Self.ID {
			for _, r := range h.Ranks {
				ranks[r] = true
			}
		}
	}
	for _, r := range here {
		ranks[r] = true
	}
	return slices.Index(slices.Sorted(maps.Keys(ranks)), rank), len(ranks)
}

// leastNodeLimit is for workers that end with their node: it must have the
// time to connect to them.
const leastNodeLimit = 2 * time.Second
