package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"zorilla/jobs/proc"
)

// victim is where all floods go: to an address of its own, at which nothing else listens.
const victim = "127.0.33.1:5444"

// late is how long a user waits at most.
const late = 30 * time.Second

// seen is what a flood did.
type seen struct {
	cpu       float64 // of one core
	memory    int64   // bytes
	files     int
	listed    int
	run, join time.Duration // late = not within that
	sent      int64
}

// String is a row of the table.
func (s seen) String() string {
	return fmt.Sprintf("%7d %4.0f %% %5.0f MiB %6d %7d %9s %9s",
		s.sent, 100*s.cpu, float64(s.memory)/(1<<20), s.files, s.listed, duration(s.run), duration(s.join))
}

func duration(d time.Duration) string {
	if d >= late {
		return "> " + late.String()
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// try lets one flood go to a node of a program.
func try(ctx context.Context, dir, program string, f flood, length time.Duration) (s seen, err error) {
	if err := os.RemoveAll(dir); err != nil {
		return s, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s, err
	}
	secret := filepath.Join(dir, "secret")
	here := node{program: program, dir: filepath.Join(dir, "victim"), secret: secret, listen: victim}
	if err := os.WriteFile(secret, newSecret(), 0o600); err != nil {
		return s, err
	}
	if err := here.start(); err != nil {
		return s, err
	}
	defer here.stop()
	if _, err := here.user(ctx, "run", "--", "true"); err != nil {
		return s, err
	}
	flooding, stop := context.WithTimeout(ctx, length)
	defer stop()
	begin, before := time.Now(), here.cpu()
	ended := make(chan error, 1)
	var sent atomic.Int64
	go func() { ended <- f.send(flooding, secret, &sent) }()
	watched := make(chan struct{})
	go func() { defer close(watched); s.watch(flooding, &here) }()

	pause(flooding, length/4)
	run, err := here.user(ctx, "run", "--", "true")
	if err != nil && run < late {
		return s, err
	}
	other := node{program: program, dir: filepath.Join(dir, "other"), secret: secret, listen: "127.0.33.2:5444"}
	join, err := other.join(ctx, &here)
	defer other.stop()
	if err != nil {
		return s, err
	}
	<-flooding.Done()
	<-watched
	s.run, s.join, s.sent = run, join, sent.Load()
	s.cpu = float64(here.cpu()-before) / float64(time.Since(begin))
	s.listed = here.listed(ctx)
	return s, <-ended
}

// watch notes the most that a node has of what it may run out of.
func (s *seen) watch(ctx context.Context, n *node) {
	for ctx.Err() == nil {
		open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.cmd.Process.Pid))
		s.files = max(s.files, len(open))
		s.memory = max(s.memory, proc.Resident(n.cmd.Process.Pid).Private)
		pause(ctx, 100*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// node is a process.
type node struct {
	program, dir, secret, listen string
	cmd                          *exec.Cmd
}

func (n *node) start(options ...string) error {
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(filepath.Dir(n.dir), filepath.Base(n.dir)+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	options = append([]string{"node", "--listen", n.listen, "--secret-file", n.secret, "--web", "none", "--slots", "4"}, options...)
	n.cmd = n.command(context.Background(), options...)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	return n.cmd.Start()
}

func (n *node) stop() {
	if n.cmd == nil || n.cmd.Process == nil {
		return
	}
	_ = n.cmd.Process.Signal(syscall.SIGKILL)
	_ = n.cmd.Wait()
}

// command is one of a user of the node.
func (n *node) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, n.program, args...)
	cmd.Env = append(os.Environ(), "ZORILLA_STATE="+n.dir, "ZORILLA_CONFIG=none", "ZORILLA_HINTS=off")
	return cmd
}

// user runs a command until it succeeds, and returns how long that took. What takes longer than late
// is an error.
func (n *node) user(ctx context.Context, args ...string) (time.Duration, error) {
	ctx, stop := context.WithTimeout(ctx, late)
	defer stop()
	begin := time.Now()
	for {
		out, err := n.command(ctx, args...).CombinedOutput()
		switch {
		case err == nil:
			return time.Since(begin), nil
		case ctx.Err() != nil:
			return late, fmt.Errorf("zorilla %s: not within %v: %s", strings.Join(args, " "), late, out)
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// join starts a node and returns how long it takes until that lists another, or late.
func (n *node) join(ctx context.Context, to *node) (time.Duration, error) {
	begin := time.Now()
	if err := n.start("--join", to.listen); err != nil {
		return 0, err
	}
	for time.Since(begin) < late && ctx.Err() == nil {
		if n.listed(ctx) > 1 {
			return time.Since(begin), nil
		}
		pause(ctx, 20*time.Millisecond)
	}
	return late, ctx.Err()
}

// listed counts the nodes that a user sees there.
func (n *node) listed(ctx context.Context) int {
	out, _ := n.command(ctx, "nodes", "--json").Output()
	var list []json.RawMessage
	_ = json.Unmarshal(out, &list)
	return len(list)
}

// tick is the unit of processor time in /proc, the same on all systems that Go runs on.
const tick = 10 * time.Millisecond

// cpu is the processor time that the node has used.
func (n *node) cpu() time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.cmd.Process.Pid))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}
