package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"zorilla/jobs/disk"
	"zorilla/jobs/launch"
)

// verdict turns the error of a launch into an exit.
func verdict(err error) Exit {
	if r, ok := errors.AsType[*launch.Error](err); ok {
		return Refused(Cause(r.Cause), r.Text)
	}
	return Refused(Failed, err.Error())
}

// unstarted turns the error of a worker that did not begin to run into an exit.
func unstarted(err error) Exit {
	e := verdict(err)
	if e.Cause == Failed {
		e.Cause = Unstarted
	}
	return e
}

// Started implements launch.Observer.
func (s *keeper) Started(pid int) {
	s.post(func(time.Time) {
		s.answered = true
		if s.order.Namespaces { // its number is one of theirs
			return
		}
		if err := s.note(s.order.Spec.Root, pid); err != nil {
			s.life.Fail(err)
		}
	})
}

// Refused implements launch.Observer. What ended the worker before counts.
func (s *keeper) Refused(err error) {
	s.post(func(time.Time) {
		if s.life.Phase() == Running {
			s.refused = err
		}
		s.life.Gone()
	})
}

// answerWithin is how long a launcher may take to say what has become of a start when
// the worker is to be killed.
const answerWithin = 5 * time.Second

// abandon ends a launcher that is caught in the start of the worker.
func (s *keeper) abandon() {
	s.post(func(time.Time) {
		if !s.answered {
			s.world.launcher.Abandon()
		}
	})
}

// runsAs reports whether the worker gets a user of its own.
func runsAs(s *Spec) bool { return s.UID > 0 && os.Geteuid() == 0 }

// giveFiles hands Root/work and Root/tmp to the worker's user. The rest of
// Root stays closed to it; without namespaces it passes through, and nobody else does.
func giveFiles(o *order) error {
	s := &o.Spec
	if !runsAs(s) {
		return nil
	}
	if !o.Namespaces {
		if err := errors.Join(os.Chown(s.Root, -1, s.GID), os.Chmod(s.Root, 0o710)); err != nil {
			return err
		}
	}
	dirs := []string{workDir, tmpDir}
	if s.Tasks != nil { // which do not write to their inputs
		dirs = []string{TaskDir, tmpDir}
	}
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(s.Root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, s.UID, s.GID)
		})
		if err != nil {
			return fmt.Errorf("give files to user %d: %w", s.UID, err)
		}
	}
	return nil
}

// guard has the directories of the worker watched, if it may take only so much there.
// Of tasks it ends the one whose files were looked at.
func (s *keeper) guard() {
	spec := &s.order.Spec
	if spec.Disk <= 0 {
		return
	}
	task, over := func() int { return 0 }, func(int) { s.post(func(time.Time) { s.life.Overfilled() }) }
	if s.tasks != nil {
		task, over = s.tasks.current, s.tasks.overfilled
	}
	go disk.NewGuard(spec.Disk, FileDirs(spec.Root)...).Watch(s.ended, task, over)
}

// FileDirs are the directories of a worker that Spec.Disk is about. Not all of them have to
// exist.
func FileDirs(root string) []string {
	return []string{filepath.Join(root, workDir), filepath.Join(root, TaskDir), filepath.Join(root, tmpDir)}
}

// yield removes the files of a worker that has ended to make room: before its end is
// written down, which needs some, and however long its origin takes to hear of it.
func (s *Spec) yield() {
	for _, dir := range FileDirs(s.Root) {
		_ = emptyTree(dir, nil) // what cannot be removed now, is with all of Root
	}
}
