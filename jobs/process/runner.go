package process

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/codec"
	"zorilla/jobs/cgroup"
	"zorilla/jobs/launch"
	"zorilla/jobs/netpolicy"
	"zorilla/jobs/proc"
	"zorilla/jobs/quota"
	"zorilla/jobs/sandbox"
)

// Config says how a Runner works. The zero value is good.
type Config struct {
	// Executable is the program that becomes the supervisor; its main calls
	// Main first. "" = this program, even if its file has been replaced.
	Executable string
	// Grace is the time between SIGTERM and SIGKILL at the end of the
	// walltime or without a node; 0 = 5 s.
	Grace time.Duration
	// Spool is how many bytes of each stream may wait for their
	// acknowledgement; 0 = DefaultSpool.
	Spool int64
	// Basic: workers get no namespaces, also where they can be had.
	Basic bool
	// Groups names this node's place for the control groups of its workers, which no
	// other node of the machine has; "" = they get none. Memory is how many bytes they
	// may have together, and Processes how many processes; 0 = unlimited.
	Groups    string
	Memory    int64
	Processes int
	// Work is the directory of all roots, which need not be there yet: Probe looks what its
	// file system enforces. "" = nothing.
	Work string
	Log  zerolog.Logger
}

const defaultGrace = 5 * time.Second

// Runner starts workers. Its methods may be called from any goroutine.
type Runner struct {
	cfg   Config
	hosts hosts
	reach netpolicy.Keeper

	mu       sync.Mutex
	enforces []string
	groups   cgroup.Place
}

// New returns a Runner. It does nothing yet.
func New(cfg Config) *Runner {
	if cfg.Executable == "" {
		cfg.Executable = "/proc/self/exe"
	}
	if cfg.Grace <= 0 {
		cfg.Grace = defaultGrace
	}
	cfg.Grace = min(cfg.Grace, maxGrace)
	if cfg.Spool <= 0 {
		cfg.Spool = DefaultSpool
	}
	return &Runner{cfg: cfg, hosts: hosts{busy: map[string]*host{}}}
}

// Start starts the supervisor of a worker and returns without waiting for
// either: also a command that does not exist shows in the worker's Exit. An
// error means that nothing was started. ctx bounds only the call itself.
func (r *Runner) Start(ctx context.Context, spec Spec) (Worker, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := spec.Check(); err != nil {
		return nil, err
	}
	if spec.NodeLimit <= 0 {
		spec.NodeLimit = defaultNodeLimit
	}
	if err := r.complete(&spec); err != nil {
		return nil, err
	}
	return r.start(spec)
}

// errAlone and errAmong are why a worker that is to have no network, or that of its job, is
// not started.
var (
	errAlone = errors.New("this node cannot keep workers from the network: it has no namespaces")
	errAmong = errors.New("this node cannot keep workers to the nodes of their job")
)

// Among implements Worker.
func (w *worker) Among(addrs []netip.Addr) error {
	if w.spec.terms.Groups.Around == "" || w.spec.terms.Groups.Open {
		return nil
	}
	return w.reach.Change(&w.spec.terms.Groups, addrs)
}

// complete adds its terms to what the supervisor is to do, and writes that down. It comes before
// all else that is made for the worker, so that whoever cleans up finds it.
func (r *Runner) complete(spec *Spec) error {
	// The name cannot be guessed, and a worker cannot list the directory.
	socket := filepath.Join(spec.Root, socketPrefix+rand.Text())
	t := terms{Version: protocol, Socket: socket, Key: rand.Text(), Grace: cmp.Or(spec.Rank.Grace, r.cfg.Grace), Spool: r.cfg.Spool, Counts: true}
	r.mu.Lock()
	t.Namespaces, t.Groups = slices.Contains(r.enforces, Namespaces), r.groups
	t.Quota = slices.Contains(r.enforces, quotas)
	r.mu.Unlock()
	if spec.Alone && !t.Namespaces {
		return errAlone
	}
	if spec.At != "" && (!t.Namespaces || spec.At != Inside(spec.Root)) {
		return fmt.Errorf("%w: its root cannot be seen at %s", ErrSpec, spec.At)
	}
	if a := spec.Among; a != nil {
		if !slices.Contains(r.Enforces(), NetworkJob) {
			return errAmong
		}
		var err error
		if t.Groups, err = t.Groups.Of(a.Job); err != nil {
			return err
		}
	}
	if spec.PMI != nil {
		t.Groups = t.Groups.Jointly(spec.Group)
	}
	spec.terms = t
	if err := spec.note(); err != nil {
		return err
	}
	if spec.Among != nil {
		return r.reach.Admit(&t.Groups, groupName(spec.Root), spec.Among.Addrs)
	}
	return nil
}

// start gives a worker to a supervisor, with connections to it, which wait until it is
// ready.
func (r *Runner) start(spec Spec) (Worker, error) {
	w := newWorker(spec, r.cfg.Log)
	w.reach = &r.reach
	theirs, err := w.pair()
	if err == nil {
		w.host, err = r.host(spec.supervisor(), filepath.Dir(spec.Root))
	}
	if err == nil {
		err = w.host.adopt(spec.Root, spec.terms.Socket, theirs)
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		w.disconnect()
		w.host.dismiss()
		return nil, err
	}
	go w.send()
	go w.receive()
	return w, nil
}

// supervisor names that of a worker: one that workers share needs to tell their
// processes from each other.
func (s *Spec) supervisor() string {
	if s.Group == "" || !launch.Shared(s.terms.Namespaces, s.UID) {
		return s.Root
	}
	return groupPrefix + s.Group
}

// groupPrefix tells the names of groups from those of roots.
const groupPrefix = "job "

var errNoMain = errors.New("this program is to become a supervisor: its main must call process.Main first")

// process is that of the supervisor: no terminal, no session, nothing of
// the node's environment. Where its workers are is told for people who look at
// processes.
func (r *Runner) process(ctx context.Context, mode, where string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.cfg.Executable)
	cmd.Args = []string{supervisorName, mode, where}
	cmd.Env = childEnv(ofSupervisor)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if IsSupervisor() {
		// This is what would come of a program without Main: it starts
		// itself, and that starts itself, until the memory is full.
		cmd.Err = errNoMain
	}
	return cmd
}

// beside reports whether a path may be the root of what several workers share: beside that of this one.
func (s *Spec) beside(root string) bool {
	return filepath.Clean(root) == root && filepath.Dir(root) == filepath.Dir(s.Root) && root != s.Root
}

// Check refuses, with an error that wraps ErrSpec, what no supervisor could use:
// also a Root that another worker had, or without its work directory.
func (s *Spec) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrSpec, fmt.Sprintf(format, args...))
	}
	switch {
	case !filepath.IsAbs(s.Root) || filepath.Clean(s.Root) != s.Root:
		return bad("root %q is not a clean absolute path", s.Root)
	case len(s.Args) == 0 || s.Args[0] == "":
		return bad("no command")
	case s.Memory < 0 || s.Disk < 0 || s.MaxOutput < 0 || s.Walltime < 0 || s.OrphanLimit < 0:
		return bad("negative limit")
	case s.Rank.Signal < 0 || s.Rank.Signal > maxSignal || s.Rank.Notice < 0 || s.Rank.Notice > maxGrace:
		return bad("signal %d, %v before the end", s.Rank.Signal, s.Rank.Notice)
	}
	if s.Tasks != nil {
		if err := s.Tasks.check(); err != nil {
			return err
		}
	}
	if d := s.Shared; d != nil && (!s.beside(d.Root) || d.Workers < 1 || s.Tasks != nil) {
		return bad("its work directory cannot be that of %d workers in %q", d.Workers, d.Root)
	}
	if info, err := os.Lstat(s.Work()); err != nil || !info.IsDir() {
		return bad("%s is not a directory", s.Work())
	}
	if !isMissing(s.Root, specEntry) {
		return bad("root %s was used before: want a new one for each worker", s.Root)
	}
	for _, text := range slices.Concat(s.Args, s.Env) {
		if strings.Contains(text, "\x00") {
			return bad("%.40q holds a zero byte", text)
		}
	}
	return nil
}

// CheckReach reports whether a user other than root can pass all directories
// down to dir, by their modes. A node that starts workers as another user
// asks this of its state directory: else workers could not use absolute paths
// into their own directories, such as TMPDIR.
func CheckReach(dir string, uid, gid int) error {
	for p := filepath.Clean(dir); ; p = filepath.Dir(p) {
		info, err := os.Stat(p)
		if err != nil {
			return err
		}
		pass := info.Mode().Perm() & 0o001
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == uid {
			pass = info.Mode().Perm() & 0o100
		} else if ok && int(st.Gid) == gid {
			pass = info.Mode().Perm() & 0o010
		}
		if pass == 0 {
			return fmt.Errorf("%s: user %d cannot pass %s (mode %04o): choose another --state-dir or --run-as, or chmod it", dir, uid, p, info.Mode().Perm())
		}
		if p == filepath.Dir(p) {
			return nil
		}
	}
}

// Probe finds out what this machine really enforces, by trying it in a child
// that lives for a few milliseconds. Call it once at start, before there are other
// processes: it makes a place for control groups, and sets threads of this process aside,
// for when workers have left none.
func (r *Runner) Probe(ctx context.Context) error {
	proc.Warm(nodeThreads)
	groups := r.makeGroups()
	place, err := codec.Marshal(groups)
	if err != nil {
		return err
	}
	cmd := r.process(ctx, "probe", "-")
	cmd.Stdin = bytes.NewReader(place)
	out, err := cmd.Output()
	if ctx.Err() != nil { // which has it killed
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("probe for limits: %w", err)
	}
	var found []string
	for _, f := range bytes.Fields(out) {
		if r.cfg.Basic && string(f) == Namespaces {
			continue
		}
		found = append(found, string(f))
	}
	// Who is in no user namespace could leave a project.
	if r.cfg.Work != "" && slices.Contains(found, Namespaces) && quota.Works(r.cfg.Work) {
		found = append(found, quotas)
	}
	found = concluded(found, sandbox.LandlockVersion(), os.Geteuid() == 0)
	slices.Sort(found)
	netpolicy.Tried(&groups)
	if !slices.Contains(found, cgroups) {
		groups.Remove()
		groups = cgroup.Place{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enforces, r.groups = found, groups
	return nil
}

// Close gives back what Probe has made for workers, when none is to be started any more.
// Those that go on keep it, and their supervisors give it back.
func (r *Runner) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups.Remove()
}

func (r *Runner) makeGroups() cgroup.Place {
	if r.cfg.Groups == "" {
		return cgroup.Place{}
	}
	p, err := cgroup.Make(r.cfg.Groups, cgroup.Limits{Memory: r.cfg.Memory, Processes: r.cfg.Processes})
	if err != nil {
		r.cfg.Log.Debug().Err(err).Msg("workers get no control groups")
	}
	return p
}

// Enforces lists what Probe found, sorted: "affinity", "cgroups", "landlock", "memory",
// "namespaces", "network-job", "processes", "quota", "seccomp", "signals", "tree-kill",
// "unix-sockets", "user", "walltime". It is empty before Probe.
func (r *Runner) Enforces() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.enforces)
}
