package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"zorilla/jobs/proc"
	"zorilla/testnet/local"
)

// victim is where all floods go: to an address of its own, at which nothing else listens.
const victim = "127.0.33.1:5444"

// late is how long a user waits at most.
const late = 30 * time.Second

// seen is what a flood did.
type seen struct {
	cpu float64 // of one core
	peak
	listed    int
	run, join time.Duration // late = not within that
	sent      int64
}

// peak is the most that a node had.
type peak struct {
	memory int64 // bytes
	files  int
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
	if err := here.start(""); err != nil {
		return s, err
	}
	defer here.stop()
	if _, err := here.user(ctx, "run", "--", "true"); err != nil {
		return s, err
	}
	flooding, stop := context.WithTimeout(ctx, length)
	begin, before := time.Now(), here.cpu()
	var sent atomic.Int64
	var failed error
	var most peak
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() { failed = f.send(flooding, secret, &sent) })
	all.Go(func() { most = here.watch(flooding) })

	_ = local.Wait(flooding, length/4)
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
	used := float64(here.cpu()-before) / float64(time.Since(begin))
	listed := here.listed(ctx)
	all.Wait()
	return seen{cpu: used, peak: most, listed: listed, run: run, join: join, sent: sent.Load()}, failed
}

// watch returns the most that a node has, until ctx ends, of what it may run out of.
func (n *node) watch(ctx context.Context) (p peak) {
	for ctx.Err() == nil {
		open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.PID()))
		p.files = max(p.files, len(open))
		p.memory = max(p.memory, proc.Resident(n.PID()).Private)
		_ = local.Wait(ctx, 100*time.Millisecond)
	}
	return p
}

// node is a process.
type node struct {
	program, dir, secret, listen string
	*local.Node
}

func (n *node) start(join string) (err error) {
	n.Node, err = local.Start(local.Config{
		Program: n.program, State: n.dir, Listen: n.listen, Join: join,
		Options: []string{"--secret-file", n.secret, "--slots", "4"},
	})
	return err
}

func (n *node) stop() {
	if n.Node != nil {
		n.Kill()
		n.Await()
	}
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
		_ = local.Wait(ctx, 20*time.Millisecond)
	}
}

// join starts a node and returns how long it takes until that lists another, or late.
func (n *node) join(ctx context.Context, to *node) (time.Duration, error) {
	begin := time.Now()
	if err := n.start(to.listen); err != nil {
		return 0, err
	}
	for time.Since(begin) < late && ctx.Err() == nil {
		if n.listed(ctx) > 1 {
			return time.Since(begin), nil
		}
		_ = local.Wait(ctx, 20*time.Millisecond)
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

// cpu is the processor time that the node has used.
func (n *node) cpu() time.Duration {
	stat, _ := proc.ReadStat(n.PID()) // of one that has ended 0
	return stat.CPU
}
