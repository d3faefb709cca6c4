package node

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/journal"
	"zorilla/jobs/process"
	"zorilla/node/api"
	"zorilla/node/gossip"
	"zorilla/node/trust"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// ProtocolVersion is what nodes tell each other of what they speak.
const ProtocolVersion = 2

// Node is one node. Make it with New; it works while Run does.
type Node struct {
	cfg   Config
	log   zerolog.Logger
	ready chan struct{}

	exits   atomic.Bool  // it is to stop once it is drained
	unknown atomic.Int64 // packets of kinds that this version does not know

	// Set by Run before ready is closed.
	started  time.Time
	owner    *owner
	devices  []string // of the GPUs
	work     string   // directory for workers
	creds    *trust.Credentials
	fresh    bool // its key was made in this life
	twins    *twins
	doorway  doorway
	invite   trust.Secret
	overlay  Overlay
	vicinity *vicinity.Table
	flooder  *flood.Flooder
	store    transfer.PinStore
	jobs     *jobs.Service
	peers    *peers
	client   *http.Client
	service  *service
	webURL   string
}

// New makes a node. It does no I/O.
func New(cfg Config) (*Node, error) {
	if cfg.State == "" {
		return nil, errors.New("no state directory: name one with --state")
	}
	if cfg.Listen == "" {
		cfg.Listen = DefaultListen
	}
	if err := vicinity.CheckLabels(cfg.Owner.Labels); err != nil {
		return nil, err
	}
	if cfg.Seams.Net == nil {
		cfg.Seams.Net = gossip.RealNet{}
	}
	if cfg.Seams.Rand == nil {
		var seed [16]byte
		crand.Read(seed[:])
		cfg.Seams.Rand = rand.New(rand.NewPCG(binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:])))
	}
	return &Node{cfg: cfg, log: cfg.Log, ready: make(chan struct{})}, nil
}

// Ready is closed when the node can be used; what Service, Self and Invite
// return is valid then.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Service is the node's door for clients. Call it after Ready.
func (n *Node) Service() api.Service { return n.service }

// Self describes the node as it tells others. Call it after Ready.
func (n *Node) Self() vicinity.Member { return n.overlay.Self() }

// Vicinity tells who is near. Call it after Ready.
func (n *Node) Vicinity() *vicinity.Table { return n.vicinity }

// First reports whether the node's key was made in this life. Call it after
// Ready.
func (n *Node) First() bool { return n.fresh }

// WebURL returns the address of the page with its token, or "" if the node
// has none. Call it after Ready.
func (n *Node) WebURL() string { return n.webURL }

// Run works until ctx ends, or until the node is empty if its owner wants that,
// then tells the origins of its workers that these go on without it, leaves the
// network and returns nil. An error says why the node could not go on.
func (n *Node) Run(ctx context.Context) error {
	n.started = time.Now()
	unlock, err := n.openState()
	if err != nil {
		return err
	}
	defer unlock()
	sockets, page, err := n.bind(ctx)
	if err != nil {
		return err
	}
	defer sockets.Close()
	defer page.Close()
	seeds, err := n.identify()
	if err != nil {
		return err
	}

	disk := newGroup(context.WithoutCancel(ctx))
	defer disk.stop(nil)
	network := newGroup(context.WithoutCancel(ctx))
	defer network.stop(nil)
	if err := n.startNetwork(network, sockets, seeds); err != nil {
		return err
	}
	defer n.client.CloseIdleConnections()
	if err := n.alone(ctx, seeds); err != nil || ctx.Err() != nil {
		return err
	}
	release, err := n.openWork()
	if err != nil {
		return err
	}
	defer release()
	log, err := n.openDisk(disk)
	if err != nil {
		return err
	}
	if err := n.makeJobs(log); err != nil {
		return err
	}
	n.openDoorway()
	n.startOverlay(network)

	front := newGroup(ctx)
	defer front.stop(nil)
	front.run(n.jobs.Run)
	front.run(n.twins.watch)
	front.run(n.service.watchTraffic)
	empty := make(chan struct{})
	front.run(func(ctx context.Context) error { return n.awaitDrained(ctx, empty) })
	if err := n.serveClients(front, page); err != nil {
		return err
	}
	close(n.ready)

	select {
	case <-front.ctx.Done():
		if ctx.Err() != nil {
			n.log.Info().Msg("stopping: leaving the network")
		}
	case <-empty:
		n.log.Info().Msg("drained: leaving the network")
	case <-network.ctx.Done():
	case <-disk.ctx.Done():
	}
	failed := front.stop(nil)
	return errors.Join(failed, network.stop(context.Cause(front.ctx)), disk.stop(nil))
}

// bind opens the node's ports. It comes first, since a secret that is a phrase
// takes a while to stretch and a port that is taken shall be told at once.
func (n *Node) bind(ctx context.Context) (sockets *gossip.Sockets, page net.Listener, err error) {
	if sockets, err = gossip.Bind(ctx, n.cfg.Seams.Net, n.cfg.Listen); err != nil {
		return nil, nil, err
	}
	if page, err = n.bindPage(); err != nil {
		sockets.Close()
		return nil, nil, err
	}
	return sockets, page, nil
}

// identify loads the node's key and the network's secret.
func (n *Node) identify() (seeds []string, err error) {
	path := filepath.Join(n.cfg.State, "identity.key")
	_, missing := os.Stat(path)
	n.fresh = errors.Is(missing, fs.ErrNotExist)
	id, err := trust.LoadIdentity(path)
	if err != nil {
		return nil, err
	}
	secret, seeds, err := n.secret()
	if err != nil {
		return nil, err
	}
	network, err := trust.NewNetwork(secret)
	if err != nil {
		return nil, err
	}
	n.invite = secret
	n.creds, err = trust.NewCredentials(id, network)
	n.log = n.log.With().Str("node", id.ID().Short()).Logger()
	return seeds, err
}

// openDisk opens what the node has kept.
func (n *Node) openDisk(g *group) (journal.Journal, error) {
	var err error
	if n.owner, err = loadOwner(ownerPath(n.cfg.State), n.cfg.Owner.Changes); err != nil {
		return nil, err
	}
	log, err := n.openJournal(g)
	if err != nil {
		return nil, err
	}
	return log, n.openStore()
}

func (n *Node) openJournal(g *group) (journal.Journal, error) {
	j := n.cfg.Seams.Journal
	if j == nil {
		file, err := journal.Open(filepath.Join(n.cfg.State, "journal.db"))
		if err != nil {
			return nil, err
		}
		for _, line := range file.Lost() {
			n.log.Error().Msg(line)
		}
		j = file
	}
	g.run(j.Run)
	return j, nil
}

func (n *Node) openStore() error {
	if n.cfg.Seams.Store != nil {
		n.store = n.cfg.Seams.Store
		return nil
	}
	disk := transfer.NewDirStore(filepath.Join(n.cfg.State, "cache"), transfer.DefaultCache)
	n.store = disk
	return disk.Open()
}

// member describes this node to others.
func (n *Node) member(runner jobs.Runner) vicinity.Member {
	m := vicinity.Member{
		ID: n.creds.ID(), Name: n.cfg.Owner.Name, Site: n.cfg.Owner.Site,
		Slots: n.cfg.Owner.Slots, Memory: n.cfg.Owner.Memory,
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Enforces: runner.Enforces(), Version: ProtocolVersion, Labels: n.cfg.Owner.Labels,
	}
	if m.Name == "" {
		m.Name, _ = os.Hostname()
	}
	if m.Slots == 0 {
		m.Slots = runtime.NumCPU()
	}
	if n.cfg.Owner.GPUs >= 0 {
		m.GPUs, n.devices = findGPUs(os.DirFS("/"))
	}
	if n.cfg.Owner.GPUs > 0 {
		m.GPUs = n.cfg.Owner.GPUs
	}
	if m.Memory == 0 {
		m.Memory = findMemory(os.DirFS("/"))
	}
	return m
}

// makeJobs makes the service of jobs, which needs the node's addresses.
func (n *Node) makeJobs(log journal.Journal) error {
	rnd := n.cfg.Seams.Rand
	fetcher := transfer.NewFetcher(transfer.FetcherConfig{
		Store: n.store, Source: transfer.HTTPSource(n.client, peerURL), Rand: rand.New(rand.NewPCG(rnd.Uint64(), rnd.Uint64())),
	})
	clean := n.cfg.Seams.CleanRoot
	if clean == nil {
		clean = process.CleanRoot
	}
	dir, err := filepath.EvalSymlinks(n.cfg.State)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	n.jobs = jobs.New(jobs.Config{
		Self: n.overlay.Self(), Dir: dir, Work: n.work, Overlay: overlay{n}, Client: n.client, PeerID: peerID,
		Sign: n.creds.Sign, Verify: trust.Verify,
		Await: func(ctx context.Context, id jobs.ID, since uint64) (jobs.Status, uint64, error) {
			return n.service.awaitJob(ctx, id, since)
		},
		Journal: log, Store: n.store, Fetch: fetcher.Fetch, Runner: n.cfg.Seams.Runner, CleanRoot: clean,
		RunAs: n.cfg.Owner.RunAs, Expose: n.cfg.Owner.Expose, Devices: n.devices, NodeLimit: n.cfg.Owner.NodeLimit, OrphanLimit: n.cfg.Owner.OrphanLimit,
		KeepFor: n.cfg.Owner.KeepFor, KeepOutputs: n.keepOutputs(),
		Limits: n.owner.get(), FreeDisk: n.freeDisk, Schedule: n.cfg.Seams.Schedule,
		Rand: rand.New(rand.NewPCG(rnd.Uint64(), rnd.Uint64())), Log: n.log,
	})
	return nil
}
