package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"zorilla/cmd/zorilla/config"
	"zorilla/jobs"
	"zorilla/jobs/ports"
	"zorilla/node/api"
)

const (
	maxDevNodes = 64 // all are processes of this machine

	startTimeout = 30 * time.Second
	stopGrace    = 10 * time.Second
	pollEvery    = 20 * time.Millisecond
)

// devNetwork is a network of child processes on loopback.
type devNetwork struct {
	con     *console
	dir     string
	port    int // 0 = free ones
	slots   int
	expose  []string
	verbose bool
	nodes   []*devNode
}

// devNode is one of them.
type devNode struct {
	number int // from 1
	state  string
	log    string // file
	cmd    *exec.Cmd
	done   chan struct{} // closed after its end
	client *api.Client
}

// start starts n nodes, one after the other since all but the first need the
// first one's invitation, and waits until the first one knows all.
func (d *devNetwork) start(ctx context.Context, n int) error {
	ctx, stop := context.WithTimeoutCause(ctx, startTimeout, errors.New("the nodes do not find each other in time"))
	defer stop()
	join := ""
	for number := 1; number <= n; number++ {
		node, err := d.startNode(number, join)
		if err != nil {
			return fmt.Errorf("start node %d: %w", number, err)
		}
		d.nodes = append(d.nodes, node)
		if number > 1 {
			continue
		}
		if err := node.until(ctx, func() bool { _, err := node.client.Node(ctx); return err == nil }); err != nil {
			return err
		}
		if join, err = node.client.Invite(ctx); err != nil {
			return err
		}
	}
	for _, node := range d.nodes {
		err := node.until(ctx, func() bool { all, err := node.client.Nodes(ctx); return err == nil && len(all) == n })
		if err != nil {
			return err
		}
	}
	return nil
}

// until waits for the node to say yes.
func (n *devNode) until(ctx context.Context, ok func() bool) error {
	for !ok() {
		select {
		case <-n.done:
			return fmt.Errorf("node %d ended: %s", n.number, n.lastLine())
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollEvery):
		}
	}
	return nil
}

func (d *devNetwork) startNode(number int, join string) (*devNode, error) {
	host := "127.0.0." + strconv.Itoa(number)
	listen := net.JoinHostPort(host, strconv.Itoa(d.port))
	if d.port == 0 {
		var err error
		if listen, err = addresses.Free(host); err != nil {
			return nil, err
		}
	}
	web, err := addresses.Free("127.0.0.1")
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n := &devNode{number: number, state: d.stateOf(number), done: make(chan struct{})}
	n.log = n.state + ".log"
	log, err := os.Create(n.log)
	if err != nil {
		return nil, err
	}
	if n.client, err = api.Dial(socketOf(n.state)); err != nil {
		return nil, err
	}
	n.cmd = exec.Command(program, d.nodeArgs(n, listen, web)...)
	n.cmd.Env = append(cleanEnvironment(), "XDG_RUNTIME_DIR="+d.dir) // what nodes leave there goes with it
	if join != "" {
		n.cmd.Env = append(n.cmd.Env, "ZORILLA_JOIN="+join) // other users can read arguments
	}
	n.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true, // Ctrl-C is for us; we tell the nodes
		Pdeathsig: syscall.SIGTERM,
	}
	n.cmd.Stdout, n.cmd.Stderr = log, log
	var lines io.WriteCloser
	if d.verbose {
		lines = d.prefixed(fmt.Sprintf("node%d | ", number))
		n.cmd.Stderr = io.MultiWriter(log, lines)
	}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(n.done)
		_ = n.cmd.Wait() // its log tells more
		_ = log.Close()  // nothing is buffered
		if lines != nil {
			_ = lines.Close() // never fails
		}
	}()
	return n, nil
}

// prefixed writes whole lines to standard error, each after the prefix.
func (d *devNetwork) prefixed(prefix string) io.WriteCloser {
	r, w := io.Pipe()
	go func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			fmt.Fprintf(d.con.stderr, "%s%s\n", prefix, lines.Bytes())
		}
		_, _ = io.Copy(io.Discard, r) // after a line that is too long
	}()
	return w
}

// stop ends all nodes and returns when they are gone.
func (d *devNetwork) stop() {
	for _, n := range d.nodes {
		_ = n.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
	}
	grace := time.After(stopGrace)
	for _, n := range d.nodes {
		select {
		case <-n.done:
		case <-grace:
			_ = n.cmd.Process.Kill() // as above
			<-n.done
			grace = time.After(0)
		}
		n.client.Close()
	}
}

// addresses are those that were found for nodes of this process: one is not found twice.
var addresses ports.Addresses

// cleanEnvironment is ours without what would lead a node or a client to
// another network, or change what a node does.
func cleanEnvironment() []string {
	return append(jobs.Foreign(os.Environ()), config.Variable+"="+config.None)
}

// nodeArgs is the command line of one node.
func (d *devNetwork) nodeArgs(n *devNode, listen, web string) []string {
	args := []string{"node", "--state", n.state, "--name", "node" + strconv.Itoa(n.number), "--listen", listen, "--web", web, "--node-limit", "0"}
	if d.slots > 0 {
		args = append(args, "--slots", strconv.Itoa(d.slots))
	}
	for _, path := range d.expose {
		args = append(args, "--expose", path)
	}
	return args
}

// lastLine is the end of what a node logged.
func (n *devNode) lastLine() string {
	b, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

func (d *devNetwork) stateOf(number int) string { return filepath.Join(d.dir, strconv.Itoa(number)) }
