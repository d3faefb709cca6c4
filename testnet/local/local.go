// Package local runs real nodes as processes of this machine, each at a loopback address of its own.
package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"zorilla/jobs"
)

// stopGrace is how long nodes may take to end.
const stopGrace = 30 * time.Second

// Build builds the program that is in the repository.
func Build(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "zorilla")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", file, "./cmd/zorilla")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build zorilla: %w: start this in the root of the repository, or name a program that is built", err)
	}
	return file, nil
}

// Config is what a node is started with.
type Config struct {
	Program string
	State   string // directory; its last element is the name of the node
	Listen  string
	Join    string // a token or an address of the network to join; "" = none
	Options []string
	Log     io.Writer // gets what the node prints; nil = nothing does
}

// Node is a process that runs "zorilla node". Its methods may be called from any goroutine.
type Node struct {
	name   string
	cmd    *exec.Cmd
	last   tail
	done   chan struct{} // closed when the process has ended and all that it printed was read
	killed atomic.Bool
}

// Start starts a node. It ends when the thread that called Start does: a command locks its main
// goroutine to a thread and calls Start from there, so that no node outlives the command.
func Start(c Config) (*Node, error) {
	n := &Node{name: filepath.Base(c.State), done: make(chan struct{})}
	args := []string{"node", "--state", c.State, "--name", n.name, "--listen", c.Listen, "--web", "none"}
	n.cmd = exec.Command(c.Program, append(args, c.Options...)...)
	dir := filepath.Dir(c.State) // what nodes leave there goes with it
	n.cmd.Env = append(jobs.Foreign(os.Environ()), "ZORILLA_CONFIG=none", "XDG_RUNTIME_DIR="+dir, "TMPDIR="+dir)
	if c.Join != "" {
		n.cmd.Env = append(n.cmd.Env, "ZORILLA_JOIN="+c.Join)
	}
	// Ctrl-C is for the command that started the node.
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	var log io.Writer = &n.last
	if c.Log != nil {
		log = io.MultiWriter(&n.last, c.Log)
	}
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if err := n.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start node %s: %w", n.name, err)
	}
	go func() {
		_ = n.cmd.Wait() // what the node printed last says more
		close(n.done)
	}()
	return n, nil
}

// PID is the number of the process.
func (n *Node) PID() int { return n.cmd.Process.Pid }

// Killed reports whether Kill was called.
func (n *Node) Killed() bool { return n.killed.Load() }

// Kill kills the node and does not wait for its end.
func (n *Node) Kill() {
	n.killed.Store(true)
	_ = n.cmd.Process.Kill() // fails if it has ended
}

// Await waits until the node has ended.
func (n *Node) Await() { <-n.done }

// Stop ends nodes. It returns an error that names those it had to kill.
func Stop(nodes ...*Node) error {
	for _, n := range nodes {
		_ = n.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
	}
	var errs []error
	grace := time.After(stopGrace)
	for _, n := range nodes {
		select {
		case <-n.done:
		case <-grace:
			errs = append(errs, fmt.Errorf("node %s did not end within %v: %s", n.name, stopGrace, n.last.String()))
			n.Kill()
			n.Await()
			grace = time.After(0)
		}
	}
	return errors.Join(errs...)
}

// Until calls ok every so often until it returns true. It returns an error after the limit, or when
// one of the nodes ends that was not killed.
func Until(ctx context.Context, nodes []*Node, every, limit time.Duration, ok func() bool) error {
	for end := time.Now().Add(limit); !ok(); {
		for _, n := range nodes {
			select {
			case <-n.done:
				if !n.Killed() {
					return fmt.Errorf("node %s has ended: %s", n.name, n.last.String())
				}
			default:
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within %v", limit)
		}
		if err := Wait(ctx, every); err != nil {
			return err
		}
	}
	return nil
}

// Wait waits so long, or until ctx ends, which is an error.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// maxTail is how much is kept of what a node prints.
const maxTail = 2 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = bytes.Clone(t.text[max(0, len(t.text)-maxTail):])
	return len(p), nil
}

// String returns the last three lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}
