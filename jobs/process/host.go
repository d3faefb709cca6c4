package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"zorilla/internal/fdpass"
	"zorilla/jobs/proc"
)

// hosts are the supervisors that a Runner has started, by what they are for.
type hosts struct {
	mu   sync.Mutex // guards all, and what it guards of each
	busy map[string]*host
	idle []*host // without workers: they wait for those of another group
}

const (
	// idleAtMost and idleFor bound the supervisors that wait for more workers: a
	// start that they save costs more than the worker of a small job.
	idleAtMost = 2
	idleFor    = 20 * time.Second
)

// host is a supervisor process.
type host struct {
	all   *hosts
	group string
	cmd   *exec.Cmd
	conn  *net.UnixConn
	words words
	done  chan struct{} // closed when the process has ended

	sending sync.Mutex // on conn; guards socket
	socket  *os.File   // the latest control socket, by whatever name it has; nil = none

	workers int         // guarded by all.mu
	rest    *time.Timer // while it is idle; the same
}

// words keeps the first line that a supervisor says, and logs all.
type words struct {
	log zerolog.Logger

	mu   sync.Mutex
	said string
}

// Write implements io.Writer.
func (w *words) Write(p []byte) (int, error) {
	line, _, _ := bytes.Cut(p[:min(len(p), 300)], []byte("\n"))
	text := string(bytes.ToValidUTF8(line, nil))
	w.log.Warn().Msg("supervisor: " + text)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said == "" {
		w.said = text
	}
	return len(p), nil
}

// lastWords says, after its end, how a supervisor has ended.
func (h *host) lastWords() string {
	why := fmt.Sprintf("supervisor ended unexpectedly (%v)", h.cmd.ProcessState)
	h.words.mu.Lock()
	defer h.words.mu.Unlock()
	if h.words.said != "" {
		why += ": " + h.words.said
	}
	return why
}

// host returns a supervisor for one more worker of a group, whose directory lies where
// all do.
func (r *Runner) host(group, where string) (*host, error) {
	all := &r.hosts
	all.mu.Lock()
	defer all.mu.Unlock()
	h := all.busy[group]
	if h == nil || isClosed(h.done) {
		h = nil
		for len(all.idle) > 0 && h == nil {
			h, all.idle = all.idle[0], all.idle[1:]
			h.rest.Stop()
			if isClosed(h.done) {
				h = nil
			}
		}
	}
	if h == nil {
		var err error
		if h, err = r.spawn(where); err != nil {
			return nil, err
		}
	}
	h.group = group
	h.workers++
	all.busy[group] = h
	return h, nil
}

// Warm starts a supervisor, unless there is one, for a worker of a group that will soon be started
// in a root below the directory where.
func (r *Runner) Warm(group, where string) {
	all := &r.hosts
	all.mu.Lock()
	defer all.mu.Unlock()
	if h := all.busy[groupPrefix+group]; group != "" && h != nil && !isClosed(h.done) {
		return
	}
	all.idle = slices.DeleteFunc(all.idle, func(h *host) bool { return isClosed(h.done) })
	var h *host
	if len(all.idle) > 0 {
		h = all.idle[0] // which may have no launcher yet
	} else {
		var err error
		if h, err = r.spawn(where); err != nil {
			return // who starts the worker will see that
		}
		all.addIdle(h)
	}
	if slices.Contains(r.Enforces(), Namespaces) {
		h.sending.Lock()
		defer h.sending.Unlock()
		_ = fdpass.Send(h.conn, take{})
	}
}

// spawn starts a supervisor.
func (r *Runner) spawn(where string) (*host, error) {
	conn, theirs, err := fdpass.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	h := &host{all: &r.hosts, conn: conn, words: words{log: r.cfg.Log}, done: make(chan struct{})}
	h.cmd = r.process(context.Background(), "run", where)
	h.cmd.Stderr = &h.words
	h.cmd.WaitDelay = time.Second // whoever has its standard error outlives it no longer
	h.cmd.ExtraFiles = []*os.File{theirs}
	if proc.Unhurried(func() { err = h.cmd.Start() }); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	go func() {
		_ = h.cmd.Wait()
		h.forget()
		close(h.done)
	}()
	return h, nil
}

// adopt gives the supervisor the worker of a root, with connections, and makes its control
// socket. That the supervisor has ended already shows in the worker.
func (h *host) adopt(root, socket string, conns []*os.File) error {
	h.sending.Lock()
	defer h.sending.Unlock()
	t := take{Root: root}
	// One socket by many names costs less than many, and so it can be found in each root.
	if h.name(socket) != nil {
		ln, err := listen(socket)
		if err != nil {
			return err
		}
		defer ln.Close()
		file, err := ln.File()
		if err != nil {
			return err
		}
		defer file.Close()
		if h.socket != nil {
			_ = h.socket.Close()
		}
		if h.socket, err = os.OpenFile(socket, unix.O_PATH|unix.O_NOFOLLOW, 0); err != nil {
			h.socket = nil
		}
		t.Listens, conns = true, append(conns, file)
	}
	t.Conns = len(conns)
	_ = fdpass.Send(h.conn, t, conns...)
	return nil
}

var errNoSocket = errors.New("no control socket")

// name gives the control socket that there is one more name, which it can get as long as a
// worker has one.
func (h *host) name(path string) error {
	if h.socket == nil {
		return errNoSocket
	}
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", h.socket.Fd()), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}

// forget closes what is left of a supervisor that has ended.
func (h *host) forget() {
	_ = h.conn.Close()
	h.sending.Lock()
	defer h.sending.Unlock()
	if h.socket != nil {
		_ = h.socket.Close()
		h.socket = nil
	}
}

// dismiss says that a worker has ended, or was left. h may be nil.
func (h *host) dismiss() {
	if h == nil {
		return
	}
	all := h.all
	all.mu.Lock()
	defer all.mu.Unlock()
	if h.workers--; h.workers > 0 {
		return
	}
	if all.busy[h.group] == h {
		delete(all.busy, h.group)
	}
	all.addIdle(h)
}

// addIdle has a supervisor without workers wait for some. all.mu is held.
func (all *hosts) addIdle(h *host) {
	if len(all.idle) == idleAtMost {
		_ = h.conn.Close() // it ends with its workers
		return
	}
	all.idle = append(all.idle, h)
	h.rest = time.AfterFunc(idleFor, func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		if i := slices.Index(all.idle, h); i >= 0 {
			all.idle = slices.Delete(all.idle, i, i+1)
			_ = h.conn.Close()
		}
	})
}
