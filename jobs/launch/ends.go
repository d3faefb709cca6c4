package launch

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/proc"
)

// members returns the processes of each command that is not gone, zombies left out or
// not. The caller holds mu.
func (l *launcher) members() map[int][]int {
	members, _ := l.find()
	return members
}

// strayRounds is how often those are looked for that were forked while others of no
// command were killed.
const strayRounds = 20

// find returns the processes of each command, and whether some are left that can belong
// to none: orphans in UTS namespaces of their own making, while there are several
// commands, would be in nobody's limits and have nobody's end, so they are killed here.
// The caller holds mu.
func (l *launcher) find() (members map[int][]int, strays bool) {
	if !l.world.Namespaces {
		return l.toOne(proc.Descendants(os.Getpid())), false
	}
	for range strayRounds {
		all := proc.All()
		all = slices.DeleteFunc(all, func(pid int) bool { return pid == os.Getpid() })
		if len(l.runs) == 1 {
			return l.toOne(all), false
		}
		strays, members = false, map[int][]int{}
		of := l.owners()
		for _, pid := range all {
			n, stray := of(pid)
			if stray {
				strays = true
				_ = unix.Kill(pid, unix.SIGKILL)
			} else if n != 0 {
				members[n] = append(members[n], pid)
			}
		}
		if !strays {
			break
		}
	}
	return members, strays
}

// owners returns what tells the number of the command that a process belongs to, 0 if
// nobody knows, or that it can be none's. The caller holds mu.
func (l *launcher) owners() func(pid int) (number int, stray bool) {
	marks, mains := map[string]int{}, map[int]int{}
	for n, w := range l.runs {
		marks[w.uts] = n
		if !w.ended {
			mains[w.pid] = n
		}
	}
	for _, e := range l.sidecars {
		marks[e.mark.uts] = e.mark.number
		if !e.ended {
			mains[e.pid] = e.mark.number
		}
	}
	return func(pid int) (int, bool) {
		// In a namespace of its own making a process is where its parent is.
		for at := pid; at > 1; {
			if n := marks[markOf(at)]; n != 0 {
				return n, false
			}
			if n := mains[at]; n != 0 { // what it runs may hide its mark
				return n, false
			}
			st, err := proc.ReadStat(at)
			if err != nil {
				return 0, false
			}
			if st.Parent == os.Getpid() {
				return 0, len(marks) > 0 && alive(&st)
			}
			at = st.Parent
		}
		return 0, false
	}
}

func alive(st *proc.Stat) bool { return st.State != 'Z' && st.State != 'X' }

func (l *launcher) toOne(pids []int) map[int][]int {
	for n := range l.runs {
		return map[int][]int{n: pids}
	}
	return nil
}

// markOf names the UTS namespace of a process, "" if it has ended.
func markOf(pid int) string {
	mark, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/uts", pid))
	return mark
}

func (l *launcher) signal(number int, f func(pid int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs[number] == nil {
		return
	}
	for _, pid := range l.members()[number] {
		f(pid)
	}
}

// kill kills all of a command until nothing is left.
func (l *launcher) kill(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.runs[number]
	if w == nil || w.killed {
		return
	}
	w.killed = true
	go func() {
		for pace := time.Millisecond; ; pace = min(2*pace, huntEvery) {
			l.mu.Lock()
			over := l.runs[number] != w
			if !over {
				l.strike(w)
				over = l.lookForEnd(w)
			}
			l.mu.Unlock()
			if over {
				return
			}
			time.Sleep(pace)
		}
	}()
}

// strike kills what there is of a command now. The caller holds mu.
func (l *launcher) strike(w *run) {
	if l.world.Namespaces && len(l.runs) == 1 {
		_ = unix.Kill(-1, unix.SIGKILL) // all at once, however fast they fork
		return
	}
	// What is stopped forks no more: first all of it is, then it is killed.
	stopped := map[int]bool{}
	for range 20 {
		found := false
		for _, pid := range l.members()[w.number] {
			if !stopped[pid] {
				stopped[pid] = unix.Kill(pid, unix.SIGSTOP) == nil
				found = found || stopped[pid]
			}
		}
		if !found {
			break
		}
	}
	for pid := range stopped {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// lookForEnd reports whether a command whose main process has ended is gone, and
// tells it. The caller holds mu.
func (l *launcher) lookForEnd(w *run) bool {
	if !w.ended || l.left(w) {
		return false
	}
	l.forget(w)
	l.report(report{Op: opGone, Number: w.number, Use: w.used})
	return true
}

// forget says that nothing of a command is left. The caller holds mu.
func (l *launcher) forget(w *run) {
	for _, e := range l.sidecars {
		if e.mark.number == w.number {
			l.over(e)
		}
	}
	delete(l.runs, w.number)
	w.unpin()
}

// left reports whether something is left of a command whose main process has ended.
// The caller holds mu.
func (l *launcher) left(w *run) bool {
	if len(l.runs) == 1 { // orphans are children of this process
		var info unix.Siginfo // reaps nothing
		return unix.Waitid(unix.P_ALL, 0, &info, unix.WNOHANG|unix.WNOWAIT|unix.WEXITED|unix.WALL, nil) == nil
	}
	if len(proc.Orphans()) == 0 { // what it had started would be among them
		return false
	}
	members, strays := l.find()
	return strays || slices.ContainsFunc(members[w.number], func(pid int) bool { // those may be its own
		st, err := proc.ReadStat(pid)
		return err == nil && alive(&st)
	})
}

// brief is how long the thread that serves awaits itself the end of the only command that
// runs. Another thread, which does so from then on, would have to be woken for each: of the
// tasks of an array most may be brief.
const brief = 20 * time.Millisecond

// attend returns when the supervisor may have asked for something. Until then it awaits the
// end of the latest command.
func (l *launcher) attend() {
	for l.newest >= 0 {
		l.mu.Lock()
		only := !l.reaps && len(l.runs) == 1 && len(l.sidecars) == 0
		l.mu.Unlock()
		var asked, ended bool
		if only {
			asked, ended = l.conn.Await(l.newest, brief)
		}
		if asked && !ended {
			return
		}
		l.mu.Lock()
		if !ended || !l.reapEnded() {
			l.reapAside()
		}
		l.forgetNewest()
		l.mu.Unlock()
	}
}

// reapEnded takes the ends of all children that have ended, and reports whether nothing runs
// any more. The caller holds mu.
func (l *launcher) reapEnded() bool {
	for {
		pid, status, used, err := wait(unix.WNOHANG)
		switch {
		case err != nil:
			return l.childless()
		case pid == 0:
			return false
		}
		l.reaped(pid, status, &used)
	}
}

// seeTo leaves the end of the latest command, if that is still awaited, to a goroutine. The
// caller holds mu.
func (l *launcher) seeTo() {
	if l.newest >= 0 {
		l.reapAside()
		l.forgetNewest()
	}
}

func (l *launcher) forgetNewest() {
	_ = unix.Close(l.newest)
	l.newest = -1
}

// reapAside has a goroutine await children, unless one does. The caller holds mu.
func (l *launcher) reapAside() {
	if !l.reaps {
		l.reaps = true
		go l.reap()
	}
}

// reap awaits all children: orphans become this process's.
func (l *launcher) reap() {
	for over := false; !over; {
		pid, status, used, err := wait(0)
		l.mu.Lock()
		if err == nil {
			l.reaped(pid, status, &used)
		} else if over = l.childless(); over {
			l.reaps = false
		}
		l.mu.Unlock()
	}
}

// wait is that of the kernel for any child.
func wait(options int) (pid int, status syscall.WaitStatus, used syscall.Rusage, err error) {
	for {
		pid, err = syscall.Wait4(-1, &status, options|unix.WALL, &used)
		if err != syscall.EINTR {
			return pid, status, used, err
		}
	}
}

// childless tells the ends that show in that no child is left, and reports whether nothing
// runs any more. The caller holds mu.
func (l *launcher) childless() bool {
	for _, w := range slices.Collect(maps.Values(l.runs)) {
		l.lookForEnd(w)
	}
	return len(l.runs) == 0
}

// reaped takes the end of a process. The caller holds mu.
func (l *launcher) reaped(pid int, status syscall.WaitStatus, used *syscall.Rusage) {
	var its *run
	for _, w := range l.runs {
		if w.pid == pid && !w.ended {
			its = w
		}
	}
	owner := its
	if owner == nil {
		owner = l.sidecarReaped(pid, status)
	}
	if owner == nil && len(l.runs) == 1 {
		for _, w := range l.runs {
			owner = w
		}
	}
	if owner != nil {
		owner.used.CPU += time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
		owner.used.Read += used.Inblock * blockSize
		owner.used.Written += used.Oublock * blockSize
		if used.Maxrss > ownPeak() {
			owner.used.Peak = max(owner.used.Peak, used.Maxrss<<10)
		}
	}
	if its != nil {
		its.ended = true
		alone := !l.left(its)
		if alone {
			l.forget(its)
		}
		l.report(report{Op: opExited, Number: its.number, Status: int(status), Alone: alone, Use: its.used})
		return
	}
	if len(l.runs) > 1 {
		for _, w := range slices.Collect(maps.Values(l.runs)) {
			if w.ended {
				l.lookForEnd(w)
			}
		}
	}
}

// blockSize is in what the kernel counts what a process has read and written.
const blockSize = 512

// blurred is by how many KiB the kernel's count of memory may be wrong: each processor keeps some
// pages to itself.
const blurred = 1 << 10

// ownPeak is the most memory that this process had, in KiB. The kernel counts for a process what
// it had before it became another program, which is as much: of less nothing is known.
func ownPeak() int64 {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return 0
	}
	return own.Maxrss + blurred
}

// endAll kills everything below this process.
func (l *launcher) endAll() {
	for {
		l.mu.Lock()
		numbers := slices.Collect(maps.Keys(l.runs))
		l.mu.Unlock()
		if len(numbers) == 0 {
			return
		}
		for _, n := range numbers {
			l.kill(n)
		}
		time.Sleep(huntEvery)
	}
}
