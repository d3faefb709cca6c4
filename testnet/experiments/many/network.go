package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"zorilla/node/api"
	"zorilla/testnet/local"
)

const (
	nodePort  = 5444
	pollEvery = 20 * time.Millisecond
	startTime = 30 * time.Second // of the first node
)

// network is the processes. Its methods belong to one goroutine, that which began.
type network struct {
	dir, zorilla string
	roll         *roll
	nodes        []*local.Node
}

func newNetwork(dir, zorilla string) *network { return &network{dir: dir, zorilla: zorilla} }

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
	node, err := local.Start(local.Config{
		Program: n.zorilla, State: n.state(i), Listen: fmt.Sprintf("127.77.%d.%d:%d", i/250, 1+i%250, nodePort), Join: token, Log: n.roll.log(i),
		// Without --run-as each node of root looks at the users of all processes of the machine: many machines have no such load.
		Options: []string{"--slots", "1", "--run-as", "nobody"},
	})
	if err == nil {
		n.nodes = append(n.nodes, node)
	}
	return err
}

// until waits for something, and returns when it was. That a node ends is an error.
func (n *network) until(ctx context.Context, limit time.Duration, ok func() bool) (time.Time, error) {
	if err := local.Until(ctx, n.nodes, pollEvery, limit, ok); err != nil {
		return time.Time{}, fmt.Errorf("%w (%.4f of all pairs known, %.4f miss who was killed)", err, n.roll.share(), n.roll.missed())
	}
	return time.Now(), nil
}

// kill kills some nodes, the last ones.
func (n *network) kill(some int) {
	for i := len(n.nodes) - some; i < len(n.nodes); i++ {
		n.roll.kill(i)
		n.nodes[i].Kill()
	}
}
