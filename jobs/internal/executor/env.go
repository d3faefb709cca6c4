package executor

import (
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/jobs/sandbox"
	"zorilla/jobs/session/workerapi"
)

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

// systemPath is where workers look for programs.
const systemPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

// environment is all that a worker finds: a plain system environment, what
// gives its place in the job, and what the user asked for, which counts.
func (x *Executor) environment(b *beginning, p *process.Spec) (list []string, err error) {
	spec, root, home, path := b.Claim.Spec.Of(b.Claim.Rank), p.Seen(), p.SeenWork(), []string{systemPath}
	if spec.Array != nil {
		home = filepath.Join(root, process.TaskDir)
	}
	if x.cfg.Self.GPUs > 0 {
		path = append(path, x.cfg.GPUs.Programs()...)
	}
	if p.WorkerAPI && sandbox.HasProgram(slices.Concat(p.Expose, p.Writable)...) {
		path = append(path, sandbox.ProgramDir)
	}
	env := map[string]string{
		"PATH": strings.Join(path, ":"), "LANG": "C.UTF-8",
		"HOME": home, "TMPDIR": filepath.Join(root, "tmp"), "SHELL": "/bin/sh",
		"USER": x.user, "LOGNAME": x.user,
		"PYTHONUNBUFFERED":   "1", // what a job prints is seen while it runs
		"ZORILLA_JOB_ID":     string(b.Claim.Job),
		"ZORILLA_RANK":       strconv.Itoa(b.rank),
		"ZORILLA_REPLICA":    strconv.Itoa(b.replica),
		"ZORILLA_SIZE":       strconv.Itoa(b.start.Size),
		"ZORILLA_MIN":        strconv.Itoa(spec.Min),
		"ZORILLA_MAX":        strconv.Itoa(spec.Max),
		"ZORILLA_LOCAL_RANK": strconv.Itoa(b.local),
		"ZORILLA_NNODES":     strconv.Itoa(max(1, len(b.start.Hosts))),
		"ZORILLA_ATTEMPT":    strconv.Itoa(b.Claim.Attempt),
		"ZORILLA_SLOTS":      strconv.Itoa(spec.Slots),
	}
	if spec.Array == nil {
		env["ZORILLA_HOSTFILE"] = filepath.Join(root, "tmp", wire.HostFileName)
	}
	if len(spec.Groups) > 0 {
		env["ZORILLA_TOPOLOGY_FILE"] = filepath.Join(root, "tmp", wire.TopologyFileName)
		maps.Copy(env, wire.TopologyVariables(spec, b.Claim.Rank))
	}
	if b.start.Epoch > 0 && spec.Array == nil {
		env["ZORILLA_EPOCH_FILE"] = filepath.Join(root, "tmp", wire.EpochFileName)
	}
	if b.Claim.Resume != nil {
		env["ZORILLA_RESTART"] = strconv.Itoa(b.Claim.Resume.Number)
	}
	if p.WorkerAPI {
		env[workerapi.Variable] = filepath.Join(root, workerapi.Dir, workerapi.Name)
	}
	if x.cfg.Self.GPUs > 0 { // a worker that asked for none finds none
		maps.Copy(env, x.cfg.GPUs.Variables(b.Claim.GPUs, x.cfg.shownGPUs(b.DoRun, p.Writable)))
	}
	maps.Copy(env, b.rendezvous(x.cfg.Self.ID))
	maps.Copy(env, threadVariables(spec))
	maps.Copy(env, spec.Env)
	if spec.MPI {
		found, err := x.parallel.variables(b, p, env)
		if err != nil {
			return nil, err
		}
		maps.Copy(env, found)
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list, nil
}
