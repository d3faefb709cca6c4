package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
)

const (
	nodePort   = 5444
	pollEvery  = 200 * time.Millisecond
	startTime  = 30 * time.Second
	stopGrace  = 30 * time.Second
	submitters = 16
)

// memory is what the two nodes have of their own, in MB.
type memory struct{ origin, worker float64 }

// pair is the two nodes.
type pair struct {
	dir    string
	nodes  []*node
	client *api.Client
	ended  int // jobs that were submitted and have ended
}

type node struct {
	cmd  *exec.Cmd
	log  bytes.Buffer // to be read when done is closed
	done chan struct{}
}

// build makes the program, so that what is measured is what is in the repository.
func build(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "zorilla")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", file, "./cmd/zorilla")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build zorilla: %w: start me in the root of the repository, or give me the program with -programs", err)
	}
	return file, nil
}

// start starts a node that jobs are submitted at, and one that helps.
func start(ctx context.Context, program string) (_ *pair, err error) {
	n := &pair{}
	if n.dir, err = os.MkdirTemp("", "memory-nodes-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.stop())
		}
	}()
	if err := n.launch(program, "origin", ""); err != nil {
		return nil, err
	}
	if n.client, err = n.dial("origin"); err != nil {
		return nil, err
	}
	token := ""
	if err := n.until(ctx, startTime, "the first node to answer", func() bool { token, err = n.client.Invite(ctx); return err == nil }); err != nil {
		return nil, err
	}
	if err := n.launch(program, "worker", token); err != nil {
		return nil, err
	}
	return n, n.until(ctx, startTime, "the nodes to find each other", func() bool {
		all, err := n.client.Nodes(ctx)
		return err == nil && len(all) == 2
	})
}

func (n *pair) dial(name string) (*api.Client, error) {
	return api.Dial(filepath.Join(n.dir, name, "zorilla.sock"))
}

func (n *pair) launch(program, name, token string) error {
	cmd := exec.Command(program, "node", "--state", filepath.Join(n.dir, name), "--name", name, "--web", "none", "--slots", "4", "--keep-free", "0",
		"--listen", fmt.Sprintf("127.78.0.%d:%d", 1+len(n.nodes), nodePort))
	cmd.Env = append(jobs.Foreign(os.Environ()), "ZORILLA_CONFIG=none", "XDG_RUNTIME_DIR="+n.dir, "TMPDIR="+n.dir) // what nodes leave there goes with it
	if token != "" {
		cmd.Env = append(cmd.Env, "ZORILLA_JOIN="+token)
	}
	// Ctrl-C is for us, and should we be gone they end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	one := &node{cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &one.log, &one.log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start node %s: %w", name, err)
	}
	n.nodes = append(n.nodes, one)
	go func() {
		_ = cmd.Wait() // its last words say more
		close(one.done)
	}()
	return nil
}

// until waits for something. That a node ends is an error.
func (n *pair) until(ctx context.Context, limit time.Duration, what string, ok func() bool) error {
	for end := time.Now().Add(limit); !ok(); {
		for _, one := range n.nodes {
			select {
			case <-one.done:
				return fmt.Errorf("a node has ended: %s", lastOf(one.log.String()))
			default:
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("waited %v for %s", limit, what)
		}
		if err := wait(ctx, pollEvery); err != nil {
			return err
		}
	}
	return nil
}

// lastOf is the end of a log.
func lastOf(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

// submit submits so many jobs, and waits until all of them have ended.
func (n *pair) submit(ctx context.Context, limit time.Duration, count int) error {
	spec := jobs.Spec{Args: []string{"/bin/true"}, Min: 1, Max: 1, Slots: 1}
	var left atomic.Int64
	left.Store(int64(count))
	errs := make([]error, submitters)
	var all sync.WaitGroup
	for i := range submitters {
		all.Go(func() {
			for errs[i] == nil && left.Add(-1) >= 0 {
				_, errs[i] = n.client.Submit(ctx, spec)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	n.ended += count
	return n.until(ctx, limit, fmt.Sprintf("%d jobs to end", n.ended), func() bool {
		info, err := n.client.Node(ctx)
		return err == nil && info.Results != nil && info.Results.Jobs == n.ended
	})
}

// follow has many clients follow one job, and calls look before, when all of them have all
// that the job has written and wait for more, and when they have been gone for a while.
func (n *pair) follow(ctx context.Context, o options, look func(what string)) error {
	script := fmt.Sprintf("head -c %d /dev/zero; sleep 600", o.bytes)
	id, err := n.client.Submit(ctx, jobs.Spec{Args: []string{"/bin/sh", "-c", script}, Min: 1, Max: 1, Slots: 1, Where: `name == "worker"`})
	if err != nil {
		return err
	}
	if err := n.read(ctx, id, o.bytes, 1, func() {}); err != nil { // until all of it is here
		return err
	}
	look(fmt.Sprintf("a job has written %d MiB", o.bytes>>20))
	if err := n.read(ctx, id, o.bytes, o.followers, func() { look(fmt.Sprintf("%d clients follow it", o.followers)) }); err != nil {
		return err
	}
	if err := n.client.Cancel(ctx, string(id), true); err != nil {
		return err
	}
	if err := wait(ctx, o.rest); err != nil {
		return err
	}
	look(fmt.Sprintf("%v after they left", o.rest))
	return nil
}

// read has clients follow a job, and calls f while they wait after so many bytes.
func (n *pair) read(ctx context.Context, id jobs.ID, bytes, clients int, f func()) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	errs := make(chan error, clients)
	var all sync.WaitGroup
	defer all.Wait()
	defer leave()
	for range clients {
		all.Go(func() {
			c, err := n.dial("origin")
			if err != nil {
				errs <- err
				return
			}
			defer c.Close()
			got := 0
			err = c.Output(ctx, string(id), jobs.OutputQuery{Rank: -1, Follow: true}, func(p jobs.Output) error {
				if got += len(p.Data); got == bytes {
					errs <- nil
				}
				return nil
			})
			if got < bytes {
				errs <- fmt.Errorf("a follower had %d of %d bytes: %w", got, bytes, err)
			}
		})
	}
	for range clients {
		if err := <-errs; err != nil {
			return err
		}
	}
	f()
	return nil
}

// memory is what the nodes have now. One that has just ended has nothing.
func (n *pair) memory() (m memory) {
	for i, to := range []*float64{&m.origin, &m.worker} {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.nodes[i].cmd.Process.Pid))
		*to = ownOf(status)
	}
	return m
}

// ownOf reads how many MB of its own a process has, of its file status.
func ownOf(status []byte) float64 {
	_, after, _ := bytes.Cut(status, []byte("RssAnon:"))
	if fields := strings.Fields(string(after)); len(fields) > 0 {
		if kb, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
			return float64(kb) * 1024 / 1e6
		}
	}
	return 0
}

// stop ends the nodes and removes what they left.
func (n *pair) stop() error {
	for _, one := range n.nodes {
		_ = one.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
	}
	var errs []error
	grace := time.After(stopGrace)
	for _, one := range n.nodes {
		select {
		case <-one.done:
		case <-grace:
			errs = append(errs, fmt.Errorf("a node did not end within %v", stopGrace))
			_ = one.cmd.Process.Kill() // it is a child that nobody has waited for
			<-one.done
			grace = time.After(0)
		}
	}
	if n.client != nil {
		n.client.Close()
	}
	return errors.Join(append(errs, os.RemoveAll(n.dir))...)
}
