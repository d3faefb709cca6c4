package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/disk"
	"zorilla/jobs/launch"
	"zorilla/jobs/proc"
	"zorilla/jobs/quota"
	"zorilla/jobs/remover"
	"zorilla/jobs/work"
)

// verdict turns the error of a launch into an exit.
func verdict(err error) work.Exit {
	if r, ok := errors.AsType[*launch.Error](err); ok {
		return Refused(work.Cause(r.Cause), r.Text)
	}
	return Refused(work.Failed, err.Error())
}

// unstarted turns the error of a worker that did not begin to run into an exit.
func unstarted(err error) work.Exit {
	e := verdict(err)
	if e.Cause == work.Failed {
		e.Cause = work.Unstarted
	}
	return e
}

// Started implements launch.Observer.
func (s *keeper) Started(pid int) {
	s.post(func(time.Time) {
		s.answered = true
		if s.spec.terms.Namespaces { // its number is one of theirs
			return
		}
		if err := s.note(s.spec.Root, pid); err != nil {
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

// RunsAs reports whether the worker is UID, which needs root.
func (s *Spec) RunsAs() bool { return s.UID > 0 && os.Geteuid() == 0 }

// roots are Root, and that of what it shares.
func (s *Spec) roots() []string {
	if s.Shared != nil {
		return []string{s.Root, s.Shared.Root}
	}
	return []string{s.Root}
}

// giveFiles hands Root/work and Root/tmp to the worker's user. The rest of
// Root stays closed to it; without namespaces it passes through, and nobody else does.
func (s *Spec) giveFiles() error {
	if !s.RunsAs() {
		return nil
	}
	for _, root := range s.roots() {
		if s.terms.Namespaces {
			break
		}
		if err := errors.Join(os.Chown(root, -1, s.GID), os.Chmod(root, 0o710)); err != nil {
			return err
		}
	}
	begins, tmp := s.Work(), filepath.Join(s.Root, tmpDir)
	if s.Tasks != nil { // which do not write to their inputs
		begins = filepath.Join(s.Root, TaskDir)
	}
	for _, dir := range []string{begins, tmp} {
		leave := func(fs.DirEntry) bool { return false }
		if dir == tmp {
			leave = isShared
		}
		at, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err == nil && dir == begins && isOf(at, s.UID) { // and so is all in it; see transfer.How
			err = at.Close()
		} else if err == nil {
			err = cmp.Or(at.Chown(s.UID, s.GID), giving{s.UID, s.GID, leave}.all(at))
		}
		if err != nil {
			return fmt.Errorf("give files to user %d: %w", s.UID, err)
		}
	}
	return nil
}

// giving hands files to a user, but for what is to be left.
type giving struct {
	uid, gid int
	leave    func(fs.DirEntry) bool
}

// all gives all that is in a directory, and closes it. There may be many files: each is one call
// with a name alone.
func (g giving) all(dir *os.File) error {
	defer dir.Close()
	all, err := dir.ReadDir(-1)
	if err != nil {
		return err
	}
	fd := int(dir.Fd())
	for _, d := range all {
		if g.leave(d) {
			continue
		}
		if err := unix.Fchownat(fd, d.Name(), g.uid, g.gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return &fs.PathError{Op: "chown", Path: filepath.Join(dir.Name(), d.Name()), Err: err}
		}
		if !d.IsDir() {
			continue
		}
		sub, err := os.OpenFile(filepath.Join(dir.Name(), d.Name()), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		if err := g.all(sub); err != nil {
			return err
		}
	}
	return nil
}

// isOf reports whether a file is a user's.
func isOf(f *os.File, uid int) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && int(st.Uid) == uid
}

// isShared reports whether a file has other names, too: it belongs to several workers.
func isShared(d fs.DirEntry) bool {
	info, err := d.Info()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// guard has the directories of the worker watched, if it may take only so much there.
// Of tasks it ends the one whose files were looked at.
func (s *keeper) guard() {
	spec := &s.spec
	if spec.Disk <= 0 {
		return
	}
	task, over := func() int { return 0 }, func(int) { s.post(func(time.Time) { s.life.Overfilled() }) }
	if s.tasks != nil {
		task, over = s.tasks.current, s.tasks.overfilled
	}
	guard := disk.NewGuard(spec.Disk, FileDirs(spec.Root)...)
	guard.All = s.allFiles
	held, uid := s.world.removed(), -1
	if spec.RunsAs() && !s.spec.terms.Namespaces { // of which it is the owner
		uid = spec.UID
	}
	guard.Held = func(now bool) (used int64, at time.Time) {
		proc.Seeing(uid, spec.GID, func() { used, at = spec.held(held, now) })
		return used, at
	}
	if d := spec.Shared; d != nil {
		guard.Shared, guard.Sharers = spec.Work(), d.Workers
	}
	go guard.Watch(s.ended, task, over)
}

// held adds up what was removed from the directories of the worker, or its part of it, and is open.
func (s *Spec) held(all *proc.Removed, now bool) (used int64, at time.Time) {
	used, at = all.Of(shortName(s.Root), now)
	if d := s.Shared; d != nil {
		part, _ := all.Of(shortName(d.Root), false) // as of the same look
		used += part / int64(d.Workers)
	}
	return used, at
}

// spareFiles is how much more than the limit the file system lets a worker take, of which
// it is ended: a write that is refused would leave the cause to what the program says.
func spareFiles(limit int64) int64 { return min(max(limit/16, 4<<20), 256<<20) }

// bound has the file system bound the worker's files. Where it does not, or others have them too,
// they are counted.
func (s *keeper) bound() {
	if spec := &s.spec; spec.Shared == nil && s.spec.terms.Quota && s.spec.terms.Namespaces && spec.Disk > 0 && spec.Disk < math.MaxInt64/2 {
		s.quota, _ = quota.New(spec.Root, spec.Disk+spareFiles(spec.Disk), existing(FileDirs(spec.Root))...)
	}
}

// existing are those of some directories that are there.
func existing(dirs []string) []string {
	return slices.DeleteFunc(dirs, func(dir string) bool {
		_, err := os.Lstat(dir)
		return err != nil
	})
}

// allFiles is what the worker's files take, if the file system tells.
func (s *keeper) allFiles() (used int64, ok bool) {
	if s.quota == nil {
		return 0, false
	}
	used, _, err := s.quota.Used()
	return used, err == nil
}

// overfull reports whether the file system has let the worker take more than its limit,
// and may have refused it something.
func (s *keeper) overfull() bool {
	used, ok := s.allFiles()
	return ok && used > s.spec.Disk
}

// fileDirs are the directories of a worker that Spec.Disk is about, in its Root. Not all of
// them have to exist.
var fileDirs = []string{workDir, TaskDir, tmpDir}

// FileDirs are the paths of these directories.
func FileDirs(root string) (dirs []string) {
	for _, dir := range fileDirs {
		dirs = append(dirs, filepath.Join(root, dir))
	}
	return dirs
}

// removed adds up, by the short names of workers' roots below a directory, what files take that
// were removed from FileDirs and are held open by what is below some processes.
func removed(parent string, tops func() []int) *proc.Removed {
	if real, err := filepath.EvalSymlinks(parent); err == nil {
		parent = real
	}
	pids := func() (all []int) {
		for _, top := range tops() {
			all = append(all, proc.Descendants(top)...)
		}
		return all
	}
	return proc.NewRemoved(pids, func(path string) string {
		for _, above := range []string{parent, insideDir} {
			rel, _ := strings.CutPrefix(path, above)
			if f := strings.SplitN(rel, "/", 5); len(f) > 3 && len(rel) < len(path) && slices.Contains(fileDirs, f[2]) {
				return shortName(f[1])
			}
		}
		return ""
	}, parent)
}

// Measure returns what the files of workers take whose roots are in one directory, as far
// as that can be seen in some time: those in FileDirs, and those that were removed from
// there and are open.
func Measure(within time.Duration, roots []string) []int64 {
	used, end := make([]int64, len(roots)), time.Now().Add(within)
	if len(roots) == 0 {
		return used
	}
	held := removed(filepath.Dir(roots[0]), func() (tops []int) {
		for _, root := range roots {
			var rec record
			if load(root, recordEntry, &rec) == nil && rec.Launcher.Alive() && !slices.Contains(tops, rec.Launcher.PID) {
				tops = append(tops, rec.Launcher.PID)
			}
		}
		return tops
	})
	held.Pass(within / 4)
	for i, root := range roots {
		share := time.Until(end) / time.Duration(len(roots)-i)
		if q := quota.Of(filepath.Join(root, workDir)); q != nil {
			if n, _, err := q.Used(); err == nil {
				used[i] = n
				continue
			}
		}
		spec := Spec{Root: root}
		_ = loadSpec(root, &spec) // of what has none nothing is shared
		nameless, _ := spec.held(held, false)
		used[i] = disk.UsedWithin(share, FileDirs(root)...) + nameless
		if d := spec.Shared; d != nil {
			used[i] += disk.UsedWithin(share, spec.Work()) / int64(max(d.Workers, 1))
		}
	}
	return used
}

// yield removes the files of a worker that has ended to make room: before its end is
// written down, which needs some, and however long its origin takes to hear of it.
func (s *Spec) yield() {
	for _, dir := range append(FileDirs(s.Root), s.Work()) {
		_ = remover.Empty(dir, nil) // what cannot be removed now, is with all of Root
	}
}

// runTasks runs what the node sends, one after the other.
func (s *keeper) runTasks(files [3]*os.File) work.Exit {
	if err := s.world.launcher.Ready(s.number); err != nil {
		return unstarted(err)
	}
	s.answered = true
	s.attend()
	defer s.tasks.dir.close()
	go s.tasks.run()
	s.loop()
	closeFiles(files)
	return s.finishOutput()
}

// whyFailed says what a command has not found, as far as it is known, or "". Its standard
// error begins at an offset.
func (s *keeper) whyFailed(args []string, from int64) string {
	said := s.streams[1].tail(from, launch.MaxWords)
	if why := cmp.Or(launch.Library(said), launch.Unexecuted(s.spec.Root, said)); why != "" {
		return why
	}
	w, c := s.wants(), s.commandOf(args, nil)
	return w.Unseen(&c)
}

const (
	// soon is how early a command fails that may not have found what it needs.
	soon = 30 * time.Second
	// maxHints bounds how often the tasks of a worker are told what they did not find.
	maxHints = 10
)

// explain says in a task's standard error what it has not found, as far as it is known.
// Nothing of the task is alive.
func (t *tasks) explain(id, code int, args []string) {
	if t.hints == maxHints {
		return
	}
	if _, err := t.s.streams[1].flush(); err != nil {
		return // who records the result meets it, too
	}
	if why := t.s.whyFailed(args, t.wrote[1]); why != "" {
		t.hints++
		t.say(fmt.Sprintf("task %d ended with %d; %s", id, code, why))
	}
}
