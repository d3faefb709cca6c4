package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
)

const (
	nodePort  = 5444
	pollEvery = 20 * time.Millisecond
	startTime = 30 * time.Second // of the first node
	stopGrace = 30 * time.Second // of all
)

// network is the processes. Its methods belong to one goroutine, that which began.
type network struct {
	dir, zorilla string
	roll         *roll
	nodes        []*process
}

type process struct {
	cmd    *exec.Cmd
	done   chan struct{} // closed after its end
	killed bool
}

func newNetwork(dir, zorilla string) *network { return &network{dir: dir, zorilla: zorilla} }

// build makes the program, so that what is measured is what is in the repository.
func build(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "zorilla")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", file, "./cmd/zorilla")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build zorilla: %w: start me in the root of the repository, or give me the program with -zorilla", err)
	}
	return file, nil
}

func nameOf(i int) string { return "node-" + strconv.Itoa(i) }

func (n *network) state(i int) string { return filepath.Join(n.dir, nameOf(i)) }

// start starts the first node, whose token the others need, and then all of them.
// At most so many are starting at a time: one machine is slower with all of them than
// many machines are.
func (n *network) start(ctx context.Context, nodes, atOnce int) error {
	n.roll = newRoll(nodes)
	if err := n.launch(0, ""); err != nil {
		return err
	}
	client, err := api.Dial(filepath.Join(n.state(0), "zorilla.sock"))
	if err != nil {
		return err
	}
	defer client.Close()
	token := ""
	if _, err := n.until(ctx, startTime, func() bool { token, err = client.Invite(ctx); return err == nil }); err != nil {
		return err
	}
	for i := 1; i < nodes; i++ {
		if _, err := n.until(ctx, startTime, func() bool { return i-n.roll.joined() <= atOnce }); err != nil {
			return err
		}
		if err := n.launch(i, token); err != nil {
			return err
		}
	}
	return nil
}

func (n *network) launch(i int, token string) error {
	cmd := exec.Command(n.zorilla, "node", "--state", n.state(i), "--name", nameOf(i), "--web", "none", "--slots", "1",
		// Else each node of root looks at the users of all processes of the machine, which belongs to none of many machines.
		"--run-as", "nobody",
		"--listen", fmt.Sprintf("127.77.%d.%d:%d", i/250, 1+i%250, nodePort))
	cmd.Env = append(jobs.Foreign(os.Environ()), "ZORILLA_CONFIG=none", "XDG_RUNTIME_DIR="+n.dir, "TMPDIR="+n.dir) // what nodes leave there goes with it
	if token != "" {
		cmd.Env = append(cmd.Env, "ZORILLA_JOIN="+token)
	}
	// Ctrl-C is for us, and should we be gone they end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return fmt.Errorf("start node %d: %w", i, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	n.nodes = append(n.nodes, p)
	var reading sync.WaitGroup
	reading.Go(func() {
		n.roll.read(i, r)
		r.Close()
	})
	go func() {
		_ = cmd.Wait() // its last words tell more
		reading.Wait()
		close(p.done)
	}()
	return nil
}

// until waits for something, and returns when it was. That a node ends is an error.
func (n *network) until(ctx context.Context, limit time.Duration, ok func() bool) (time.Time, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for end := time.Now().Add(limit); !ok(); {
		for i, p := range n.nodes {
			select {
			case <-p.done:
				if !p.killed {
					return time.Time{}, fmt.Errorf("node %d has ended: %s", i, n.roll.lastWords(i))
				}
			default:
			}
		}
		if time.Now().After(end) {
			return time.Time{}, fmt.Errorf("not within %v: %.4f of all pairs known, %.4f miss who was killed", limit, n.roll.share(), n.roll.missed())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
	return time.Now(), nil
}

// kill kills some nodes, the last ones.
func (n *network) kill(some int) {
	for i := len(n.nodes) - some; i < len(n.nodes); i++ {
		n.roll.kill(i)
		n.nodes[i].killed = true
		_ = n.nodes[i].cmd.Process.Kill() // it is a child that nobody has waited for
	}
}

// stop ends all processes, and tells of those that had to be killed.
func (n *network) stop() error {
	for _, p := range n.nodes {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
	}
	var errs []error
	grace := time.After(stopGrace)
	for i, p := range n.nodes {
		select {
		case <-p.done:
		case <-grace:
			errs = append(errs, fmt.Errorf("node %d did not end within %v: %s", i, stopGrace, n.roll.lastWords(i)))
			_ = p.cmd.Process.Kill() // as above
			<-p.done
			grace = time.After(0)
		}
	}
	return errors.Join(errs...)
}
