package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/cgroup"
	"zorilla/jobs/disk"
	"zorilla/jobs/launch"
	"zorilla/jobs/pmi"
	"zorilla/jobs/proc"
	"zorilla/jobs/quota"
	"zorilla/jobs/work"
)

// keeper looks after one worker in its supervisor. Its run loop owns life; other
// goroutines talk to it through post.
type keeper struct {
	sup  *supervisor
	spec Spec
	life *Life

	events    chan func(now time.Time)
	terminate chan struct{} // closed when the supervisor is to end
	ended     chan struct{} // closed after the loop
	streams   [2]*spool
	written   allowance
	room      *disk.Room // of output and notes
	control   *control
	tasks     *tasks // nil unless the spec has some
	world     *world // what the worker's launcher has made; nil before
	number    int    // of its commands there
	left      bool   // that world, for good
	looped    bool
	answered  bool  // it runs the worker, or has refused to
	refused   error // why nothing ran
	group     *cgroup.Group
	rank      *pmi.Manager // nil unless the spec has a place for one
	quota     *quota.Quota // nil = the files are counted
	pumps     sync.WaitGroup
	lost      [2]error // of the pumps; read after pumps.Wait

	using sync.Mutex // guards what follows
	used  launch.Use
	kills int // of the group's processes, for want of memory, that were told of
}

// run starts the worker, and returns when nothing of it is left.
func (s *keeper) run(root string) work.Exit {
	defer s.depart()
	files, err := s.prepare(root)
	defer func() { closeFiles(files) }()
	if err == nil {
		err = s.sup.enter(s)
	}
	if err == nil && s.group != nil {
		err = s.world.launcher.Join(s.number, s.group)
	}
	if err == nil {
		err = s.note(root, 0)
	}
	if err != nil {
		return unstarted(err)
	}
	s.life.Begin(time.Now())
	if s.tasks != nil {
		return s.runTasks(files)
	}
	// The limits hold from here on, whatever the launcher makes of the command.
	err = s.world.launcher.Begin(s.number, s.commandOf(s.spec.Args, s.spec.Env), files, s, s.rank.Files()...)
	closeFiles(files)
	s.rank.Started()
	if err != nil {
		return unstarted(err)
	}
	s.attend()
	s.loop()
	exit := s.finishOutput()
	if s.refused != nil && s.streams[0].size()+s.streams[1].size() == 0 { // else it has begun, and nobody could say so
		return unstarted(s.refused)
	}
	return exit
}

// closeFiles closes files that may be closed already, or not have been made.
func closeFiles(files [3]*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// depart gives back what was made for the worker.
func (s *keeper) depart() {
	if !s.looped {
		close(s.ended)
	}
	for _, st := range s.streams {
		if st != nil {
			st.close()
		}
	}
	s.rank.Close()
	s.leave()
	if s.group != nil {
		s.group.Remove()
	}
}

// note records which processes belong to root, first without the worker: as long
// as there is no record nothing of it has run. Before that a restarted node finds
// the supervisor by its socket alone. Tasks, of which none has a number
// for good, are found by their environment.
func (s *keeper) note(root string, pid int) error {
	self, err1 := self()
	launcher, err2 := s.world.id()
	var worker proc.ID
	if pid > 0 {
		worker, _ = proc.Identify(pid) // unless it has ended already
	}
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return save(root, recordEntry, record{Version: protocol, Socket: s.spec.terms.Socket, Supervisor: self, Launcher: launcher, Worker: worker})
}

// prepare makes everything that the worker needs, and returns its three
// standard descriptors.
func (s *keeper) prepare(root string) (files [3]*os.File, err error) {
	dirs := []string{tmpDir}
	if s.spec.Tasks != nil {
		dirs = append(dirs, TaskDir)
	}
	for _, dir := range dirs {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return files, err
		}
	}
	if err := s.spec.giveFiles(); err != nil {
		return files, err
	}
	s.bound()
	s.written.limit = s.spec.MaxOutput
	s.written.over = func(int) { s.post(func(time.Time) { s.life.Overflowed() }) }
	s.written.begin(0)
	for i, stream := range []work.Stream{work.Stdout, work.Stderr} {
		if s.streams[i], files[i+1], err = newSpool(root, stream.String(), s.spec.terms.Spool, &s.written, s.room, s.control.progress); err != nil {
			return files, err
		}
		if s.spec.RunsAs() { // for /dev/stdout and /dev/stderr
			if err := files[i+1].Chown(s.spec.UID, s.spec.GID); err != nil {
				return files, err
			}
		}
	}
	if files[0], err = s.control.inputPipe(s.spec.Stdin); err != nil {
		return files, err
	}
	if s.spec.Tasks != nil {
		if s.tasks, err = newTasks(s, files); err != nil {
			return files, err
		}
	} else if place := s.spec.PMI; place != nil {
		if s.rank, err = pmi.Manage(place, func(code int) { s.post(func(time.Time) { s.life.Aborted(code) }) }); err != nil {
			return files, err
		}
	}
	if groups := &s.spec.terms.Groups; !groups.IsZero() {
		limits := cgroup.Limits{Memory: s.spec.Memory, Processes: maxProcesses, Shares: s.spec.Shares}
		if s.group, err = groups.New(groupName(root), limits); err != nil {
			return files, err
		}
	}
	return files, s.control.open()
}

// attend starts the goroutines that watch the worker.
func (s *keeper) attend() {
	for i, st := range s.streams {
		s.pumps.Go(func() {
			if err := st.pump(); err != nil {
				s.lost[i] = err
				s.post(func(time.Time) { s.life.Fail(err) })
			}
		})
	}
	s.guard()
	go func() {
		select {
		case <-s.terminate:
			s.post(func(now time.Time) { s.life.Stop(now, 0, s.spec.terms.Grace) })
		case <-s.ended:
		}
	}()
	if s.group != nil {
		go s.watchGroup()
	}
}

// watchEvery is how often is looked whether the kernel has killed one of the worker's
// processes for want of memory, while others go on.
const watchEvery = time.Second

// watchGroup ends the worker, or its task, if the kernel has begun with that.
func (s *keeper) watchGroup() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.ended:
			return
		}
		switch starved, own := s.starved(); {
		case !starved:
		case s.tasks != nil:
			s.tasks.starved(own)
		default:
			s.post(func(time.Time) { s.starve(own) })
		}
	}
}

// starved reports whether the kernel has killed a process of the worker for want of
// memory since it was asked last, and whether the worker's own limit was why.
func (s *keeper) starved() (yes, own bool) {
	if s.group == nil {
		return false, false
	}
	kills, own := s.group.OutOfMemory()
	s.using.Lock()
	defer s.using.Unlock()
	yes = kills > s.kills
	s.kills = kills
	return yes, own
}

func (s *keeper) starve(own bool) {
	if own {
		s.life.Exceeded()
	} else {
		s.life.Starved()
	}
}

// Exited implements launch.Observer.
func (s *keeper) Exited(status syscall.WaitStatus, alone bool, use launch.Use) {
	s.uses(use)
	starved, own := s.starved()
	refused := status != 0 && s.overfull()
	s.post(func(time.Time) {
		if starved {
			s.starve(own)
		} else if refused {
			s.life.Overfilled()
		}
		s.life.Exited(status)
		if alone {
			s.life.Gone()
		}
	})
}

// Gone implements launch.Observer.
func (s *keeper) Gone(use launch.Use) {
	s.uses(use)
	s.post(func(time.Time) { s.life.Gone() })
}

// Exceeded implements launch.Observer.
func (s *keeper) Exceeded(int) { s.post(func(time.Time) { s.life.Exceeded() }) }

// Lost implements launch.Observer.
func (s *keeper) Lost(err error) {
	s.post(func(time.Time) {
		if !s.answered && s.life.Phase() == Running {
			s.refused = err
		}
		s.life.Fail(err)
		s.life.Gone()
	})
}

// uses keeps what the only command has used in all.
func (s *keeper) uses(u launch.Use) {
	s.using.Lock()
	defer s.using.Unlock()
	s.used = u
}

// post hands an event to the loop; after the loop it is dropped.
func (s *keeper) post(event func(now time.Time)) {
	select {
	case s.events <- event:
	case <-s.ended:
	}
}

// loop runs until nothing of the worker is left.
func (s *keeper) loop() {
	s.looped = true
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
		if s.life.Signals() {
			s.world.launcher.Hint(s.number, unix.Signal(s.spec.Rank.Signal))
		}
		if s.tasks != nil && s.life.Phase() != Running {
			s.room.Leave()
			s.tasks.halt()
		}
		switch s.life.Phase() {
		case Ending:
			if !asked {
				asked = true
				s.world.launcher.Signal(s.number, unix.SIGTERM)
			}
		case Killing:
			s.world.launcher.Kill(s.number) // until it says that nothing is left
			if timer.Stop(); !s.answered {
				late := time.AfterFunc(answerWithin, s.abandon)
				defer late.Stop()
			}
			continue
		}
		if next := s.life.Next(); !next.IsZero() {
			timer.Reset(next.Sub(now))
		} else {
			timer.Stop()
		}
	}
}

// unfinished is why an end with 0 is none: mpirun takes it for a failure, too.
const unfinished = "ended with 0, but without MPI_Finalize: other ranks may wait for it"

// finishOutput completes the output when all processes are gone, and sums up.
func (s *keeper) finishOutput() work.Exit {
	s.leave()
	s.control.closeInput()
	defer s.boundRoom()()
	for _, st := range s.streams {
		st.finish()
	}
	s.pumps.Wait()
	if s.tasks == nil && s.written.lift() {
		s.life.Overflowed()
	}
	for _, err := range s.lost {
		if err != nil && s.life.cause != work.Stopped && s.life.cause != work.Full {
			s.life.cause, s.life.detail = work.Failed, err.Error()
		}
	}
	exit := s.life.Exit()
	if exit.Cause == work.Full {
		s.spec.yield()
	}
	if exit.Cause == work.Exited && exit.Code == 0 && s.rank.Missed() {
		exit.Code, exit.Cause, exit.Detail = codeFailed, work.Failed, unfinished
	}
	if exit.Cause == work.Exited && exit.Code != 0 && s.tasks == nil && time.Since(exit.Started) < soon {
		if why := s.whyFailed(s.spec.Args, 0); why != "" {
			exit.Detail = fmt.Sprintf("ended with %d; %s", exit.Code, why)
		}
	}
	exit.Left = s.tasks.removed()
	s.using.Lock()
	defer s.using.Unlock()
	exit.CPU, exit.Peak, exit.Read, exit.Written = s.used.CPU, s.used.Peak, s.used.Read, s.used.Written
	exit.Counted = s.used.CPU > 0 // else the launcher saw no end
	if s.group != nil {           // with processes that nobody has waited for
		exit.CPU = max(exit.CPU, s.group.CPU().Seconds())
	}
	return exit
}
