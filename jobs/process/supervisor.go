package process

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/fdpass"
	"zorilla/jobs/cgroup"
	"zorilla/jobs/disk"
	"zorilla/jobs/launch"
	"zorilla/jobs/proc"
	"zorilla/jobs/session/workerapi"
)

const (
	supervisorName = "zorilla-supervisor" // as ps shows it
	supervisorEnv  = "ZORILLA_SUPERVISOR"
	nodeFD         = 3
)

// IsSupervisor reports whether this process was started as a supervisor.
func IsSupervisor() bool {
	return len(os.Args) == 3 && os.Args[0] == supervisorName && os.Getenv(supervisorEnv) != ""
}

func isLauncher() bool {
	return len(os.Args) == 2 && os.Args[0] == launch.Name && os.Getenv(supervisorEnv) != ""
}

// childEnv is the whole environment of supervisors and launchers: nothing of the
// node's. They wait for the kernel more than they compute: what a second processor would
// take over from the first, and look for in vain, costs more than it saves, unless there are
// so many that the output of their workers would be too much for one. A launcher has two:
// the thread that serves keeps one while it waits, which would be taken from it, and given back.
func childEnv(least int) []string {
	return []string{supervisorEnv + "=1", fmt.Sprintf("GOMAXPROCS=%d", min(max(runtime.NumCPU()/8, least), 4))}
}

// The least processors of supervisors and launchers.
const (
	ofSupervisor = 1
	ofLauncher   = 2
)

// Main must be called first in the main function of every program that starts
// workers, and in TestMain of such tests. In a supervisor it does all the
// work and exits; elsewhere it returns at once.
func Main() {
	var err error
	switch {
	case isLauncher():
		err = launch.Main()
	case !IsSupervisor():
		return
	case os.Args[1] == "run":
		err = supervise()
	case os.Args[1] == "probe":
		err = probe(os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("unknown mode %q", os.Args[1])
	}
	code := 0
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	// Not os.Exit, which under the race detector waits for a second.
	syscall.Exit(code)
}

// supervisor is this process: it takes workers from the node that started it, as long
// as that is there, and goes on until the last one has ended.
type supervisor struct {
	where     string        // the directory of its workers' roots
	terminate chan struct{} // closed when all workers are to end
	left      chan struct{} // closed when no worker comes any more
	reception *reception
	keepers   sync.WaitGroup

	mu     sync.Mutex // guards what follows
	next   int        // number of a worker's commands
	world  *world     // of the workers that there are
	groups cgroup.Place
	spare  *launch.Launcher
	alone  bool // no worker comes any more
}

// world is a launcher that workers share. It ends with the last of them.
type world struct {
	launcher *launch.Launcher
	id       func() (proc.ID, error) // its process
	wants    launch.World
	removed  func() *proc.Removed // made when a worker needs it
	users    int
}

// self is this process.
var self = sync.OnceValues(func() (proc.ID, error) { return proc.Identify(os.Getpid()) })

// take is what a node asks of a supervisor: to look after the worker of a root. The
// connections to it come along, and last a listener on its control socket, if that is
// not another name of an earlier one.
type take struct {
	Root    string `json:"root"` // "" = one will come, with namespaces
	Listens bool   `json:"listens,omitempty"`
	Conns   int    `json:"conns,omitempty"` // how many descriptors come along
}

// Threads that are made before there is a worker, which may leave none to be had later:
// those that wait for a disk, or for a child, and those that run meanwhile.
const (
	nodeThreads       = 32
	supervisorThreads = 12
)

// supervise is the whole life of a supervisor process.
func supervise() error {
	s := &supervisor{where: os.Args[2], terminate: make(chan struct{}), left: make(chan struct{}), reception: newReception()}
	parent := os.Getppid()
	// Before there is a worker, which nobody would end otherwise.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	unix.Umask(0o022)
	if err := proc.Guard(); err != nil {
		return err
	}
	node, err := fdpass.Open(os.NewFile(nodeFD, "node"))
	if err != nil {
		return err
	}
	proc.Warm(supervisorThreads)
	go func() {
		<-signals
		close(s.terminate)
		_ = node.Close() // takes no more
	}()
	for {
		var t take
		fds, err := fdpass.Receive(node, &t)
		if err == nil && len(fds) < t.Conns { // there was no room for more: the node sees that the others end
			fmt.Fprintln(os.Stderr, "a worker cannot be looked after: too many open files")
			closeAll(fds)
			continue
		}
		if err != nil {
			closeAll(fds)
			break
		}
		if t.Root == "" {
			go s.prepare()
			continue
		}
		conns := make([]*os.File, len(fds))
		for i, fd := range fds {
			conns[i] = os.NewFile(uintptr(fd), "control")
		}
		s.reception.expect()
		if t.Listens && len(conns) > 0 {
			s.reception.listen(conns[len(conns)-1])
			conns = conns[:len(conns)-1]
		}
		s.keepers.Go(func() { s.serve(t.Root, conns) })
	}
	s.mu.Lock()
	s.alone = true
	s.mu.Unlock()
	close(s.left)
	s.keepers.Wait()
	if os.Getppid() != parent { // its node is gone: perhaps for good
		s.groups.Remove()
	}
	return nil
}

// serve looks after a worker until it has ended and that is written down.
func (s *supervisor) serve(root string, conns []*os.File) {
	k := &keeper{sup: s, events: make(chan func(time.Time)), terminate: s.terminate, ended: make(chan struct{})}
	k.control = newControl(k, conns)
	defer k.control.close()
	err := loadSpec(root, &k.spec)
	if err == nil && (k.spec.terms.Version != protocol || k.spec.Root != root) {
		err = fmt.Errorf("what is noted in %s is of another version or for another directory", root)
	}
	if err != nil {
		k.control.lament(errors.Join(err, save(root, exitEntry, exitRecord{Version: protocol, Exit: unstarted(err)})))
		return
	}
	k.room = disk.NewRoom(disk.Reserve{Dir: root, Keep: k.spec.KeepFree}, k.control.progress)
	k.life = NewLife(&k.spec, k.spec.terms.Grace)
	exit := k.run(root)
	exit.Ended = time.Now()
	var size, acked [2]int64
	for i, st := range k.streams {
		if st != nil {
			size[i], acked[i] = st.size(), st.confirmed()
		}
	}
	_ = os.Remove(k.spec.terms.Socket)
	rec := exitRecord{Version: protocol, Exit: exit, Stdout: size[0], Stderr: size[1], AckedOut: acked[0], AckedErr: acked[1], Tasks: k.tasks.endedSoFar()}
	err = k.room.Try(func() error { return save(root, exitEntry, rec) })
	if err == nil && k.control.current() == nil { // else the node does that, if need be
		err = k.room.Try(func() error { return keepExit(root) })
	}
	if err != nil {
		k.control.lament(err)
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// prepare starts a launcher for the next workers, unless there is one.
func (s *supervisor) prepare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.alone && s.world == nil && (s.spare == nil || s.spare.Ended()) {
		s.spare, _ = launch.Prestart(launch.World{Namespaces: true, Base: s.where}, childEnv(ofLauncher))
	}
}

// launcher returns one with a world, the one that was prepared if that will do.
func (s *supervisor) launcher(wants launch.World) (*launch.Launcher, error) {
	l := s.spare
	s.spare = nil
	switch {
	case l == nil:
	case wants.Namespaces && !wants.Alone && wants.Base == s.where && !l.Ended():
		l.Build(wants)
		return l, nil
	default:
		l.Close()
	}
	return launch.Start(wants, childEnv(ofLauncher))
}

// enter gives a worker its place in the world of those that there are, or in a new
// one.
func (s *supervisor) enter(k *keeper) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Where the owner shows something else by now, those that begin see that; those
	// that are here keep what they have.
	wants := k.wants()
	if s.world == nil || s.world.launcher.Ended() || !reflect.DeepEqual(s.world.wants, wants) {
		l, err := s.launcher(wants)
		if err != nil {
			return err
		}
		held := func() *proc.Removed {
			return removed(filepath.Dir(k.spec.Root), func() []int { return []int{l.PID()} })
		}
		id := sync.OnceValues(func() (proc.ID, error) { return proc.Identify(l.PID()) })
		s.world = &world{launcher: l, id: id, wants: wants, removed: sync.OnceValue(held)}
	}
	s.next++
	s.world.users++
	s.groups = k.spec.terms.Groups
	k.world, k.number = s.world, s.next
	return nil
}

// leave says that nothing of a worker is left. It may be called again.
func (k *keeper) leave() {
	if k.world == nil || k.left {
		return
	}
	k.left = true
	s := k.sup
	s.mu.Lock()
	w := k.world
	w.users--
	last := w.users == 0
	if last && s.world == w {
		s.world = nil
	}
	s.mu.Unlock()
	if !last {
		w.launcher.Release(k.number, k.commandOf(nil, nil))
		return
	}
	w.launcher.Close()
	if w.wants.Namespaces {
		s.keepers.Go(s.prepareSoon)
	}
}

// tellFirst is how long the start of a launcher that nobody waits for leaves the processors
// to those who are to hear how the last worker has ended.
const tellFirst = 50 * time.Millisecond

// prepareSoon is prepare for workers of which nothing is known yet.
func (s *supervisor) prepareSoon() {
	timer := time.NewTimer(tellFirst)
	defer timer.Stop()
	select {
	case <-timer.C:
		s.prepare()
	case <-s.terminate:
	case <-s.left:
	}
}

// wants is what the launcher is to build.
func (s *keeper) wants() launch.World {
	spec := &s.spec
	w := launch.World{
		Namespaces: spec.terms.Namespaces, UID: spec.UID, GID: spec.GID, Base: spec.Root,
		Sight: spec.Sight, Among: spec.Among != nil,
	}
	if w.Namespaces { // of all workers
		w.Base = filepath.Dir(spec.Root)
	}
	if spec.At != "" {
		w.At = filepath.Dir(spec.At)
	}
	switch {
	case w.Namespaces || spec.OwnUser: // the user has no other processes there
		w.Processes = maxProcesses
	case s.spec.terms.Groups.IsZero():
		w.Processes, w.Besides = maxProcesses, true
	}
	return w
}

// maxProcesses bounds the processes and threads of a job at a node, where it has
// namespaces or a user of its own, else of a worker, beside those of its user that were
// there before.
const maxProcesses = 4096

// commandOf is what the launcher is to run, in the directory of the worker or task.
func (s *keeper) commandOf(args, env []string) launch.Command {
	root := s.spec.Seen()
	work, tmp := s.spec.SeenWork(), filepath.Join(root, tmpDir)
	c := launch.Command{
		Args: args, Env: env, Dir: work, Write: []string{work, tmp},
		Memory: s.spec.Memory, Cores: s.spec.Rank.Cores, Together: s.spec.PMI != nil,
	}
	c.Root, c.RootAt = s.spec.Root, s.spec.At
	if d := s.spec.Shared; d != nil && c.RootAt != "" {
		c.Shared, c.SharedAt = d.Root, Inside(d.Root)
	}
	if s.spec.WorkerAPI {
		c.Read = []string{filepath.Join(root, workerapi.Dir)}
	}
	if s.tasks != nil {
		c.Dir = filepath.Join(root, TaskDir)
		c.Write, c.Read = []string{c.Dir, tmp}, []string{work}
	}
	return c
}
