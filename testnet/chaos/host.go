package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/vicinity"
)

const (
	slots     = 6 // of each node
	startTime = 30 * time.Second
	firstNode = "10.0.1.1:5444" // whom the others join
)

// host is an emulated host and the node process on it. Its methods may be called
// from any goroutine; those that end or start the process by one at a time, who
// holds turn.
type host struct {
	name string
	lab  string
	turn sync.Mutex

	wanted atomic.Bool // the process is not to end by itself
	mu     sync.Mutex  // guards what follows
	cmd    *exec.Cmd
	done   chan struct{}
	api    *api.Client
	id     vicinity.ID // of the node; it stays the same
}

func newHost(lab, name string) *host { return &host{name: name, lab: lab} }

func (h *host) state() string   { return filepath.Join(h.lab, h.name) }
func (h *host) logFile() string { return filepath.Join(h.lab, h.name+".log") }

// client talks to the node, whether it runs or not.
func (h *host) client() *api.Client {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.api
}

// start starts the node and waits until it answers.
func (h *host) start(ctx context.Context) error {
	if err := h.launch(); err != nil {
		return err
	}
	if err := h.answers(ctx, startTime); err != nil {
		return err
	}
	h.wanted.Store(true)
	return nil
}

// stumble starts the node and kills it soon.
func (h *host) stumble(after time.Duration) error {
	if err := h.launch(); err != nil {
		return err
	}
	time.Sleep(after)
	return h.end(syscall.SIGKILL)
}

// launch starts the process.
func (h *host) launch() error {
	log, err := os.OpenFile(h.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"host", h.name, "zorilla", "node", "-v", "--web", "none", "--name", h.name, "--slots", fmt.Sprint(slots), "--expose", filepath.Join(h.lab, "bin"), "--join", firstNode}
	cmd := exec.Command("lab", args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(h.lab, "tmp"), "XDG_RUNTIME_DIR=")
	if err := cmd.Start(); err != nil {
		return err
	}
	client, err := api.Dial(filepath.Join(h.state(), "zorilla.sock"))
	if err != nil {
		return err
	}
	done := make(chan struct{})
	h.mu.Lock()
	before := h.api
	h.cmd, h.done, h.api = cmd, done, client
	h.mu.Unlock()
	if before != nil {
		before.Close()
	}
	go func() {
		_ = cmd.Wait() // what matters is that it has ended
		close(done)
	}()
	return nil
}

// answers waits until the node answers.
func (h *host) answers(ctx context.Context, limit time.Duration) error {
	for end := time.Now().Add(limit); ; {
		try, cancel := context.WithTimeout(ctx, time.Second)
		info, err := h.client().Node(try)
		cancel()
		switch {
		case err == nil:
			h.mu.Lock()
			defer h.mu.Unlock()
			h.id = info.ID
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case h.ended():
			return fmt.Errorf("the node of %s ended: %s", h.name, h.lastWords(5))
		case time.Now().After(end):
			return fmt.Errorf("the node of %s does not answer within %v: %w: %s", h.name, limit, err, h.lastWords(5))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// owns reports whether the node is the origin of a job.
func (h *host) owns(st *jobs.Status) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return st.Origin == h.id
}

func (h *host) process() (*exec.Cmd, chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cmd, h.done
}

func (h *host) ended() bool {
	_, done := h.process()
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// signal sends a signal to the node.
func (h *host) signal(s syscall.Signal) error {
	cmd, _ := h.process()
	if err := cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s: %w", h.name, err)
	}
	return nil
}

// end sends a signal that ends the node, and waits for that.
func (h *host) end(s syscall.Signal) error {
	h.wanted.Store(false)
	if err := h.signal(s); err != nil {
		return err
	}
	cmd, done := h.process()
	select {
	case <-done:
	case <-time.After(startTime):
		return fmt.Errorf("the node of %s goes on %v after %v", h.name, startTime, s)
	}
	if code := cmd.ProcessState.ExitCode(); s == syscall.SIGTERM && code != 0 {
		return fmt.Errorf("the node of %s ended with %d after SIGTERM: %s", h.name, code, h.lastWords(5))
	}
	return nil
}

// gone reports whether the node has ended though nobody wanted that.
func (h *host) gone() bool { return h.wanted.Load() && h.ended() && h.wanted.Load() }

// lastWords returns the last lines of the node's log.
func (h *host) lastWords(lines int) string {
	b, err := os.ReadFile(h.logFile())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], " | ")
}

// lab asks the lab for something, such as "cut host east-1".
func lab(args ...string) error {
	out, err := exec.Command("lab", args...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("lab %s: %s", strings.Join(args, " "), strings.TrimSpace(string(out)))
	}
	return err
}
