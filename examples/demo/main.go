// Command demo shows Zorilla at work on one machine: it builds Zorilla and the
// N-Queens example, starts a network of three nodes on loopback, counts the
// solutions on them with six workers, and keeps the network up until Ctrl-C.
//
//	go run ./examples/demo          # from the root of the repository
//	go run ./examples/demo --once   # ends after the result
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	once := flag.Bool("once", false, "end after the result")
	queens := flag.Int("queens", 14, "size of the board")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo(ctx, *queens, *once); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

// demo does all of it in a directory that it removes at the end.
func demo(ctx context.Context, queens int, once bool) error {
	dir, err := os.MkdirTemp("", "zorilla-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Println("building zorilla and nqueens ...")
	for _, name := range []string{"cmd/zorilla", "examples/nqueens"} {
		build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, filepath.Base(name)), "./"+name)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build %s: %w: start me in the root of the repository", name, err)
		}
	}
	fmt.Println("starting three nodes on 127.0.0.1, 127.0.0.2 and 127.0.0.3 ...")
	net, err := startNetwork(ctx, dir)
	if err != nil {
		return err
	}
	defer net.stop()
	if err := count(ctx, dir, net.state, queens); err != nil {
		return err
	}
	if once {
		return nil
	}
	fmt.Printf(`
The network is up until Ctrl-C. Its page: %s
Try it from another terminal:

  export ZORILLA_STATE=%s PATH=%s:$PATH
  zorilla nodes
  zorilla run -l -n 6 hostname
`, net.page, net.state, dir)
	select {
	case <-ctx.Done():
	case <-net.ended:
		return fmt.Errorf("the network has ended")
	}
	return nil
}

// network is a running "zorilla dev".
type network struct {
	cmd         *exec.Cmd
	state, page string
	ended       chan struct{}
}

// startNetwork returns when all nodes know each other.
func startNetwork(ctx context.Context, dir string) (*network, error) {
	n := &network{ended: make(chan struct{})}
	n.cmd = exec.Command(filepath.Join(dir, "zorilla"), "dev", "-n", "3", "--slots", "2")
	n.cmd.Stderr = os.Stderr
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us; we tell it
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	go func() {
		defer close(n.ended)
		n.listen(out, ready)
		_ = n.cmd.Wait() // it has said why on its standard error
	}()
	select {
	case <-ready:
		return n, nil
	case <-n.ended:
		return nil, fmt.Errorf("the network did not start")
	case <-ctx.Done():
		n.stop()
		return nil, ctx.Err()
	}
}

// listen takes what we need to know from the network's greeting.
func (n *network) listen(out io.Reader, ready chan<- struct{}) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if state, ok := strings.CutPrefix(line, "export ZORILLA_STATE="); ok {
			n.state = state
		}
		if page, ok := strings.CutPrefix(line, "page "); ok {
			n.page = strings.TrimSpace(page)
			close(ready)
		}
	}
}

func (n *network) stop() {
	_ = n.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
	<-n.ended
}

// count runs the example with six workers and adds their parts up.
func count(ctx context.Context, dir, state string, queens int) error {
	parts := filepath.Join(dir, "parts")
	if err := os.Mkdir(parts, 0o755); err != nil {
		return err
	}
	size := strconv.Itoa(queens)
	fmt.Printf("\n$ zorilla run -l -n 6 -o 'part-*' -- ./nqueens %s\n", size)
	run := exec.CommandContext(ctx, "./zorilla", "run", "-l", "-n", "6", "-o", "part-*", "--into", parts, "--stdin", "none", "--", "./nqueens", size)
	run.Dir, run.Env = dir, append(os.Environ(), "ZORILLA_CONFIG=none", "ZORILLA_STATE="+state)
	run.Stdout, run.Stderr = os.Stdout, os.Stderr
	begun := time.Now()
	if err := run.Run(); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	took := time.Since(begun)
	files, err := filepath.Glob(filepath.Join(parts, "part-*"))
	if err != nil {
		return err
	}
	fmt.Println("\n$ nqueens -sum part-*")
	sum := exec.CommandContext(ctx, filepath.Join(dir, "nqueens"), append([]string{"-sum"}, files...)...)
	sum.Stdout, sum.Stderr = os.Stdout, os.Stderr
	if err := sum.Run(); err != nil {
		return fmt.Errorf("sum: %w", err)
	}
	fmt.Printf("(%d queens, 6 workers on 3 nodes, %v from submission to the last file)\n", queens, took.Round(time.Millisecond))
	return nil
}
