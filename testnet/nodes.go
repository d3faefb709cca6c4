package testnet

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"zorilla/jobs/journal"
	"zorilla/jobs/process"
	"zorilla/node"
	"zorilla/node/gossip"
	"zorilla/node/trust"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// NodesConfig describes a network of whole nodes.
type NodesConfig struct {
	Sites    *Sites             // where the nodes are
	Slots    int                // of each node; 0 = 2
	State    string             // directory for the nodes' state directories, absolute
	Seed     uint64             // of keys, and of what the nodes leave to chance
	Keys     []uint64           // that the keys of the first nodes follow from; the others' from Seed
	Programs map[string]Program // beside the standard ones
	Noise    Noise              // of the network, from the start
	// Lose has packets lost, by the node that sends them, kind and payload; from any goroutine.
	// Nil = none.
	Lose   func(from int, kind byte, payload []byte) bool
	AtOnce bool  // start all in the same moment, instead of one every 50 ms
	Cache  int64 // bytes of blobs that a node keeps although nobody needs them; 0 = transfer.DefaultCache
}

// Nodes are whole nodes (node.Node) on a Network: their TLS, memberlist,
// HTTP/2, vicinity, flood and jobs are the real ones; the network, the disk of
// journal and cache, and the workers are not. Numbers count the nodes from 0,
// in the order of the sites. The methods belong to one goroutine.
type Nodes struct {
	Network *Network

	cfg    NodesConfig
	secret string
	seeds  []string // addresses that everybody is told
	list   []*member
	index  map[vicinity.ID]int
	sent   [256]tally // by kind

	sixth   []time.Duration // how far the sixth nearest node truly is
	sixthOf []int           // from these nodes
}

// member is one node and what outlives it.
type member struct {
	host    *Host
	id      vicinity.ID
	state   string
	seed    uint64
	lives   uint64
	journal *journal.Memory
	store   *transfer.MemStore
	runner  *Runner

	// Of the latest life:
	node   *node.Node // nil while the node is down
	watch  *watch
	cancel context.CancelFunc
	ended  chan error // capacity 1; holds the end until the next life
}

const (
	nodePort     = 5444
	defaultSlots = 2
	maxSeeds     = 3                     // each at another site
	pace         = 50 * time.Millisecond // between the starts of two nodes

	// settleTime is longer than any timer that a node leaves behind when it
	// has ended: idle connections of HTTP are closed after two minutes.
	settleTime = 5 * time.Minute
)

// StartNodes starts the nodes one after the other. All join through the first
// nodes of three sites. Call Stop at the end of the bubble.
func StartNodes(cfg NodesConfig) (*Nodes, error) {
	if cfg.Slots == 0 {
		cfg.Slots = defaultSlots
	}
	n := &Nodes{
		cfg: cfg, index: map[vicinity.ID]int{},
		Network: NewNetwork(Config{Latency: cfg.Sites.Latency, Noise: cfg.Noise, Seed: cfg.Seed}),
	}
	rnd := rand.New(rand.NewPCG(cfg.Seed, 0x6e6f646573))
	secret, err := trust.NewSecret(byteSource{rnd})
	if err != nil {
		return nil, err
	}
	n.secret = secret.Text()
	sites := map[int]bool{}
	for i, host := range cfg.Sites.Hosts(n.Network) {
		m := &member{
			host: host, seed: rnd.Uint64(), state: filepath.Join(cfg.State, fmt.Sprintf("node-%03d", i)),
			journal: journal.NewMemory(), store: transfer.NewMemStore(cfg.Cache), runner: NewRunner(cfg.Programs),
		}
		var from io.Reader = byteSource{rnd}
		if i < len(cfg.Keys) {
			from = bytes.NewReader(binary.BigEndian.AppendUint64(make([]byte, ed25519.SeedSize-8), cfg.Keys[i]))
		}
		if m.id, err = writeIdentity(m.state, from); err != nil {
			return nil, err
		}
		n.list = append(n.list, m)
		n.index[m.id] = i
		if site := cfg.Sites.Site(host); !sites[site] && len(n.seeds) < maxSeeds {
			sites[site] = true
			n.seeds = append(n.seeds, host.Addr(nodePort))
		}
	}
	for i := range n.list {
		if err := n.start(i); err != nil {
			return nil, errors.Join(err, n.Stop())
		}
		if !cfg.AtOnce {
			time.Sleep(pace)
		}
	}
	return n, nil
}

// byteSource reads from a source of numbers, for keys that nobody must trust.
type byteSource struct{ rnd *rand.Rand }

func (s byteSource) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.rnd.Uint32())
	}
	return len(p), nil
}

// writeIdentity gives a node a key that follows from the seed.
func writeIdentity(state string, seed io.Reader) (vicinity.ID, error) {
	public, private, err := ed25519.GenerateKey(seed)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(state, 0o711); err != nil {
		return "", err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return vicinity.IDFromKey(public), os.WriteFile(filepath.Join(state, "identity.key"), text, 0o600)
}

// start begins a life of node i and returns when it can be used.
func (n *Nodes) start(i int) error {
	m := n.list[i]
	m.lives++
	nd, err := node.New(node.Config{
		State: m.state, Listen: m.host.Addr(nodePort), Join: n.seeds, Secret: n.secret, Web: "none",
		Owner: node.Owner{Name: fmt.Sprintf("node-%03d", i), Site: fmt.Sprintf("site-%d", n.cfg.Sites.Site(m.host)), Slots: n.cfg.Slots, Memory: 1 << 30},
		Seams: node.Seams{
			Net: m.host, Runner: m.runner, CleanRoot: process.CleanFiles, Journal: m.journal, Store: m.store, Offline: true,
			Overlay: func(c gossip.Config) (node.Overlay, error) { return n.watched(i, c) },
			Rand:    rand.New(rand.NewPCG(m.seed, m.lives)),
		},
	})
	if err != nil {
		return err
	}
	life, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	m.node, m.cancel, m.ended = nd, cancel, ended
	go func() { ended <- nd.Run(life) }()
	select {
	case <-nd.Ready():
		return nil
	case err := <-ended:
		m.node = nil
		ended <- nil
		return fmt.Errorf("start node %d: %w", i, err)
	}
}

// Crash takes node i away as if its power had failed: nobody reaches it, its
// workers are gone, and so is what was not on its disk.
func (n *Nodes) Crash(i int) {
	m := n.list[i]
	n.Network.Crash(m.host)
	m.journal = m.journal.Reopen()
	m.node = nil
	m.cancel()
	m.runner.Kill()
}

// Leave ends node i as SIGTERM does, and returns when it has left.
func (n *Nodes) Leave(i int) error {
	m := n.list[i]
	m.node = nil
	m.cancel()
	err := <-m.ended
	m.ended <- nil
	m.journal = m.journal.Reopen()
	return err
}

// Restart starts node i again under its identity, after Crash or Leave.
func (n *Nodes) Restart(i int) error {
	m := n.list[i]
	<-m.ended // what is left of its former life holds the state directory
	n.Network.Restart(m.host)
	return n.start(i)
}

// Partition cuts the network into the groups of nodes; the nodes in none of
// them form one more.
func (n *Nodes) Partition(groups ...[]int) {
	var hosts [][]*Host
	for _, g := range groups {
		var list []*Host
		for _, i := range g {
			list = append(list, n.list[i].host)
		}
		hosts = append(hosts, list)
	}
	n.Network.Partition(hosts...)
}

// Heal ends a partition.
func (n *Nodes) Heal() { n.Network.Heal() }

// Stop ends all nodes at the same time and waits, in the time of the bubble,
// until nothing of them is left. It returns what went wrong with those that
// were up.
func (n *Nodes) Stop() error {
	for _, m := range n.list {
		if m.node != nil {
			m.cancel()
		}
	}
	var errs []error
	for i, m := range n.list {
		if m.ended == nil {
			continue
		}
		if err := <-m.ended; err != nil && m.node != nil {
			errs = append(errs, fmt.Errorf("node %d: %w", i, err))
		}
		m.node, m.ended = nil, nil
	}
	time.Sleep(settleTime)
	return errors.Join(errs...)
}
