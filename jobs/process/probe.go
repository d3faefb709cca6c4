package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"zorilla/internal/codec"
	"zorilla/jobs/cgroup"
	"zorilla/jobs/launch"
	"zorilla/jobs/netpolicy"
	"zorilla/jobs/proc"
	"zorilla/jobs/sandbox"
)

// probe tries every limit on this process, which does nothing else, and
// writes the names of those that work, one per line. Of groups, the place that it reads
// is tried.
func probe(r io.Reader, w io.Writer) error {
	var groups cgroup.Place
	b, err := io.ReadAll(io.LimitReader(r, maxFile))
	if err == nil {
		err = codec.Unmarshal(b, &groups)
	}
	if err != nil {
		return err
	}
	works := map[string]bool{}
	checks := []struct {
		name string
		try  func() error
	}{
		{"walltime", func() error { return nil }}, // needs a clock only
		{"tree-kill", probeTree},
		{"memory", probeMemory},
		{Landlock, sandbox.TryFiles},
		{"seccomp", sandbox.TryCalls},
		{"user", sandbox.TryUser},
		{Namespaces, func() error { return tryLauncher(true, nil, nil) }},
		{cgroups, func() error { return tryGroups(&groups, works[Namespaces]) }},
		{NetworkJob, func() error { return tryReach(&groups, works[cgroups] && works["seccomp"]) }}, // last: it moves this process
	}
	for _, c := range checks {
		done := make(chan error, 1)
		sandbox.OnOwnThread(func() { done <- c.try() })
		if <-done != nil {
			continue
		}
		works[c.name] = true
		if _, err := fmt.Fprintln(w, c.name); err != nil {
			return err
		}
	}
	return nil
}

// Names of what Probe finds: namespaces for each job, Landlock, a network that ends at the nodes
// of a job, control groups for each worker, and a file system that bounds what its files take.
const (
	Namespaces = "namespaces"
	Landlock   = "landlock"
	NetworkJob = "network-job"
	cgroups    = "cgroups"
	quotas     = "quota"
)

// What Enforces tells of others' processes: that a worker changes neither processors nor
// scheduling of those of the same user, sends them no signals, and connects to none of
// their unix sockets; and that the number of a worker's own is bounded.
const (
	affinity    = "affinity"
	signals     = "signals"
	unixSockets = "unix-sockets"
	processes   = "processes"
)

// concluded adds to what works, with a version of Landlock (0 = none), what holds because
// of it. Workers of root, which the kernel exempts, are bounded by control groups alone.
func concluded(works []string, landlock int, root bool) []string {
	has := func(name string) bool { return slices.Contains(works, name) }
	if !has(Landlock) {
		landlock = 0
	}
	apart := has(Namespaces)
	for _, c := range []struct {
		name  string
		holds bool
	}{
		{affinity, apart},
		{signals, apart || landlock >= 6},
		// Abstract ones are there in namespaces, too; seccomp keeps from both without these.
		{unixSockets, landlock >= 9 || apart && landlock >= 6 || !apart && has("seccomp")},
		{processes, has(cgroups) || !root || has("user")},
	} {
		if c.holds {
			works = append(works, c.name)
		}
	}
	return works
}

// tryReach looks whether it can be said whom workers reach. By the unix sockets of others
// they could lead each other around that: Landlock or seccomp keeps these from them.
func tryReach(p *cgroup.Place, confined bool) error {
	if !confined {
		return cgroup.ErrNone
	}
	return netpolicy.Try(p)
}

// tryLauncher runs a command that shows its group, which may be nil.
func tryLauncher(spaces bool, group *cgroup.Group, stdout *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	if stdout == nil {
		stdout = null
	}
	w := launch.World{Namespaces: spaces, UID: -1, Base: "/var/lib/zorilla-probe"}
	c := launch.Command{Args: []string{"/bin/cat", "/proc/self/cgroup"}, Dir: "/"}
	return launch.Try(w, c, group, [3]*os.File{null, stdout, null}, childEnv(ofLauncher))
}

// tryGroups looks whether what is started in a group is there.
func tryGroups(p *cgroup.Place, spaces bool) error {
	if p.IsZero() {
		return cgroup.ErrNone
	}
	const name = "probe"
	group, err := p.New(name, cgroup.Limits{Memory: 64 << 20, Processes: 64})
	if err != nil {
		return err
	}
	defer group.Remove()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	err = tryLauncher(spaces, group, w)
	_ = w.Close()
	if err != nil {
		return err
	}
	said, err := io.ReadAll(r)
	if err == nil && !strings.Contains(string(said), "/"+name) {
		err = cgroup.ErrNone
	}
	return err
}

func probeTree() error {
	if _, err := proc.Identify(os.Getpid()); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

func probeMemory() error {
	if proc.Resident(os.Getpid()) == (proc.Memory{}) {
		return errors.New("what a process needs cannot be seen")
	}
	return nil
}
