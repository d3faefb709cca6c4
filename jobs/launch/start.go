package launch

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/fdpass"
	"zorilla/jobs/proc"
	"zorilla/jobs/sandbox"
)

// Start starts a launcher, and returns before it has built its world: that it cannot
// is the error of each Run. The calling process is a subreaper, and has no other
// child unless the world has namespaces. env is the launcher's environment, which its
// program needs to know what it is.
func Start(w World, env []string) (*Launcher, error) {
	l, err := Prestart(w, env)
	if err == nil {
		l.Build(w)
	}
	return l, err
}

// Prestart is the first part of Start, which takes most of its time: of the world only
// Namespaces, Alone and Base have to be known.
func Prestart(w World, env []string) (*Launcher, error) {
	conn, theirs, err := fdpass.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	l := &Launcher{world: w, conn: conn, done: make(chan struct{}), observers: map[int]Observer{}, answers: map[int]chan report{}}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Env, cmd.ExtraFiles = []string{Name, w.Base}, env, []*os.File{theirs}
	cmd.Stderr = os.Stderr
	cmd.Dir = "/"
	cmd.SysProcAttr = attributes(&w)
	started := make(chan error)
	starter() <- func() {
		proc.Unguarded(func() {
			defer volunteer()()
			err = cmd.Start()
		})
		started <- err
	}
	if err := <-started; err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("start launcher: %w", err)
	}
	l.pid = cmd.Process.Pid
	if !w.Namespaces { // there it cannot be stopped from within
		l.endStopped(cmd)
	}
	go l.follow(cmd)
	return l, nil
}

// Build has a launcher of Prestart build its world. It is called once, before all else.
func (l *Launcher) Build(w World) {
	l.ask(w)
}

// starter returns what runs functions on the one thread that starts launchers: its end
// would be theirs.
var starter = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	sandbox.OnOwnThread(func() {
		for f := range c {
			f()
		}
	})
	return c
})

// endWithin is how long a launcher without namespaces may take to end everything.
const endWithin = 5 * time.Second

// powers are what the first process of a user namespace needs in it.
var powers = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_KILL, unix.CAP_NET_ADMIN, unix.CAP_SYS_RESOURCE}

// everybody maps all users of the machine to themselves.
var everybody = []syscall.SysProcIDMap{{Size: 1<<32 - 1}}

func attributes(w *World) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if !w.Namespaces { // it ends all of them when it is left alone
		return a
	}
	a.Pdeathsig = syscall.SIGKILL
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if w.Alone {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	if os.Geteuid() == 0 {
		a.UidMappings, a.GidMappings, a.GidMappingsEnableSetgroups = everybody, everybody, true
		return a
	}
	self := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	a.UidMappings, a.GidMappings, a.AmbientCaps = self(os.Geteuid()), self(os.Getegid()), powers
	return a
}

// volunteer makes what is started now the first choice of a machine that runs
// out of memory, and returns how to take that back: workers go before their
// supervisors and the node.
func volunteer() (restore func()) {
	const file = "/proc/self/oom_score_adj"
	before, err := os.ReadFile(file)
	if err != nil || os.WriteFile(file, []byte("500"), 0) != nil {
		return func() {}
	}
	return func() { _ = os.WriteFile(file, before, 0) }
}
