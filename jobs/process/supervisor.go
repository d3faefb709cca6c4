package process

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	supervisorName = "zorilla-supervisor" // as ps shows it
	supervisorEnv  = "ZORILLA_SUPERVISOR"
	listenerFD     = 3
	huntEvery      = 10 * time.Millisecond
)

// IsSupervisor reports whether this process was started as a supervisor.
func IsSupervisor() bool {
	return len(os.Args) == 3 && os.Args[0] == supervisorName && os.Getenv(supervisorEnv) != ""
}

// Main must be called first in the main function of every program that starts
// workers, and in TestMain of such tests. In a supervisor it does all the
// work and exits; elsewhere it returns at once.
func Main() {
	if !IsSupervisor() {
		return
	}
	var err error
	switch os.Args[1] {
	case "run":
		err = supervise(os.Args[2])
	case "probe":
		err = probe(os.Stdout)
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

// supervisor looks after one worker. Its run loop owns life; other goroutines
// talk to it through post.
type supervisor struct {
	order order
	life  *Life

	events    chan func(now time.Time)
	terminate chan os.Signal
	ended     chan struct{} // closed after the loop
	streams   [2]*spool
	control   *control
	tasks     *tasks // nil unless the spec has some
	pumps     sync.WaitGroup
	lost      [2]error // of the pumps; read after pumps.Wait
	peak      atomic.Int64
}

// supervise is the whole life of a supervisor process.
func supervise(root string) error {
	s := &supervisor{events: make(chan func(time.Time)), terminate: make(chan os.Signal, 1), ended: make(chan struct{})}
	// Before there is a worker, which nobody would end otherwise.
	signal.Notify(s.terminate, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := load(root, orderFile, &s.order); err != nil {
		return err
	}
	if s.order.Version != protocol || s.order.Spec.Root != root {
		return fmt.Errorf("%s: written by another version or for another directory", filepath.Join(root, orderFile))
	}
	o := &s.order
	s.life = NewLife(&o.Spec, o.Grace)
	exit := s.run(root)
	exit.Ended = time.Now()
	var size [2]int64
	var acked [2]int64
	for i, st := range s.streams {
		if st != nil {
			size[i], acked[i] = st.size(), st.confirmed()
		}
	}
	_ = os.Remove(o.Socket)
	rec := exitRecord{Version: protocol, Exit: exit, Stdout: size[0], Stderr: size[1], AckedOut: acked[0], AckedErr: acked[1], Tasks: s.tasks.endedSoFar()}
	err := save(root, exitFile, rec)
	if err == nil && (s.control == nil || s.control.current() == nil) { // else the node does that, if need be
		err = keepExit(root)
	}
	return err
}

// run starts the worker, and returns when nothing of it is left.
func (s *supervisor) run(root string) Exit {
	files, err := s.prepare(root)
	if err == nil {
		err = s.note(root, 0)
	}
	if err != nil {
		return unstarted(err)
	}
	s.life.Begin(time.Now())
	if s.tasks != nil {
		return s.runTasks(root, files)
	}
	pid, err := launch(&s.order.Spec, files)
	for _, f := range files {
		_ = f.Close()
	}
	if err != nil {
		return unstarted(err)
	}
	if err := s.note(root, pid); err != nil {
		s.life.Fail(err)
	}
	s.attend()
	go s.reap(pid)
	s.loop()
	return s.settle()
}

// runTasks runs what the node sends, one after the other.
func (s *supervisor) runTasks(root string, files [3]*os.File) Exit {
	if err := closeOnExec(); err != nil {
		return unstarted(err)
	}
	s.attend()
	s.tasks.run()
	s.loop()
	for _, f := range files {
		_ = f.Close()
	}
	return s.settle()
}

// note records which processes belong to root, first without the worker: as long
// as there is no record nothing of it has run. Before that a restarted node finds
// the supervisor by its socket alone. Tasks, of which none has a number
// for good, are found by their environment.
func (s *supervisor) note(root string, pid int) error {
	self, err1 := identify(os.Getpid())
	var worker procID
	var err2 error
	if pid > 0 {
		worker, err2 = identify(pid)
	}
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return save(root, recordFile, record{Version: protocol, Socket: s.order.Socket, Supervisor: self, Worker: worker})
}

// prepare makes everything that the worker needs, and returns its three
// standard descriptors.
func (s *supervisor) prepare(root string) (files [3]*os.File, err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return files, fmt.Errorf("become subreaper: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return files, fmt.Errorf("forbid core dumps: %w", err)
	}
	unix.Umask(0o022)
	dirs := []string{tmpDir}
	if s.order.Spec.Tasks != nil {
		dirs = append(dirs, TaskDir)
	}
	for _, dir := range dirs {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return files, err
		}
	}
	if err := giveFiles(&s.order.Spec); err != nil {
		return files, err
	}
	// The worker inherits the directory: it may lie where its user could not
	// go by itself.
	if err := os.Chdir(filepath.Join(root, workDir)); err != nil {
		return files, err
	}
	s.control = newControl(s)
	for i, stream := range []Stream{Stdout, Stderr} {
		if s.streams[i], files[i+1], err = newSpool(root, stream.String(), s.order.Spool, s.control.progress); err != nil {
			return files, err
		}
		if runsAs(&s.order.Spec) { // for /dev/stdout and /dev/stderr
			if err := files[i+1].Chown(s.order.Spec.UID, s.order.Spec.GID); err != nil {
				return files, err
			}
		}
	}
	if files[0], err = s.control.inputPipe(s.order.Spec.Stdin); err != nil {
		return files, err
	}
	if s.order.Spec.Tasks != nil {
		if s.tasks, err = newTasks(s, files); err != nil {
			return files, err
		}
	}
	return files, s.control.listen(listenerFD)
}

// attend starts the goroutines that watch the worker.
func (s *supervisor) attend() {
	for i, st := range s.streams {
		s.pumps.Go(func() {
			if err := st.pump(); err != nil {
				s.lost[i] = err
				s.post(func(time.Time) { s.life.Fail(err) })
			}
		})
	}
	if s.order.Spec.Memory > 0 {
		go s.watchMemory()
	}
	go func() {
		<-s.terminate
		s.post(func(now time.Time) { s.life.Stop(now, s.order.Grace) })
	}()
}

// watchMemory ends the worker, or a task of it, that needs too much.
func (s *supervisor) watchMemory() {
	limit := s.order.Spec.Memory
	if s.tasks == nil {
		watchMemory(limit, &s.peak, s.ended, func() { s.post(func(time.Time) { s.life.Exceeded() }) })
		return
	}
	for !isClosed(s.ended) {
		watchMemory(limit, &s.peak, s.ended, s.tasks.exceeded)
	}
}

// reap waits for every process below this one. All orphans of the tree become
// children of this subreaper, so "no child" means that none is left.
func (s *supervisor) reap(worker int) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			s.post(func(time.Time) { s.life.Gone() })
			return
		case pid == worker:
			// Its orphans are children of this process by now. Mostly there are none,
			// and nothing is to be looked for and killed.
			_, err := syscall.Wait4(-1, nil, unix.WALL|unix.WNOHANG, nil)
			alone := err == syscall.ECHILD
			s.post(func(time.Time) {
				s.life.Exited(status)
				if alone {
					s.life.Gone()
				}
			})
			if alone {
				return
			}
		}
	}
}

// post hands an event to the loop; after the loop it is dropped.
func (s *supervisor) post(event func(now time.Time)) {
	select {
	case s.events <- event:
	case <-s.ended:
	}
}

// loop runs until nothing of the worker is left.
func (s *supervisor) loop() {
	defer close(s.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	asked := false
	for s.life.Phase() != Over {
		select {
		case event := <-s.events:
			event(time.Now())
		case <-timer.C:
		}
		now := time.Now()
		s.life.Tick(now)
		if s.tasks != nil && s.life.Phase() != Running {
			s.tasks.halt()
		}
		switch s.life.Phase() {
		case Ending:
			if !asked {
				asked = true
				signalTree(unix.SIGTERM)
			}
		case Killing:
			signalTree(unix.SIGKILL)
			timer.Reset(huntEvery)
			continue
		}
		if next := s.life.Next(); !next.IsZero() {
			timer.Reset(next.Sub(now))
		} else {
			timer.Stop()
		}
	}
}

// settle completes the output when all processes are gone, and sums up.
func (s *supervisor) settle() Exit {
	s.control.closeInput()
	for _, st := range s.streams {
		st.finish()
	}
	s.pumps.Wait()
	for _, err := range s.lost {
		if err != nil {
			s.life.cause, s.life.detail = Failed, err.Error()
		}
	}
	exit := s.life.Exit()
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &ru); err == nil {
		exit.CPU = time.Duration(ru.Utime.Nano() + ru.Stime.Nano()).Seconds()
		exit.Peak = max(s.peak.Load(), ru.Maxrss<<10)
	}
	return exit
}
