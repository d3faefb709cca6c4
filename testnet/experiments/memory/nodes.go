package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/proc"
	"zorilla/node/api"
	"zorilla/testnet/local"
)

const (
	nodePort   = 5444
	pollEvery  = 200 * time.Millisecond
	startTime  = 30 * time.Second
	submitters = 16
)

// memory is what the two nodes have of their own, in MB.
type memory struct{ origin, worker float64 }

// pair is the two nodes.
type pair struct {
	dir    string
	nodes  []*local.Node
	client *api.Client
	ended  int // jobs that were submitted and have ended
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
	node, err := local.Start(local.Config{
		Program: program, State: filepath.Join(n.dir, name), Listen: fmt.Sprintf("127.78.0.%d:%d", 1+len(n.nodes), nodePort), Join: token,
		Options: []string{"--slots", "4", "--keep-free", "0"},
	})
	if err == nil {
		n.nodes = append(n.nodes, node)
	}
	return err
}

// until waits for something. That a node ends is an error.
func (n *pair) until(ctx context.Context, limit time.Duration, what string, ok func() bool) error {
	if err := local.Until(ctx, n.nodes, pollEvery, limit, ok); err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
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
	if err := local.Wait(ctx, o.rest); err != nil {
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
func (n *pair) memory() memory {
	own := func(i int) float64 { return float64(proc.Resident(n.nodes[i].PID()).Private) / 1e6 }
	return memory{origin: own(0), worker: own(1)}
}

// stop ends the nodes and removes what they left.
func (n *pair) stop() error {
	err := local.Stop(n.nodes...)
	if n.client != nil {
		n.client.Close()
	}
	return errors.Join(err, os.RemoveAll(n.dir))
}
