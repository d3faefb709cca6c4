package node

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/gpu"
	"zorilla/jobs/ports"
	"zorilla/jobs/users"
	"zorilla/node/api"
	"zorilla/node/gossip"
	"zorilla/node/trust"
	"zorilla/transfer"
	"zorilla/transfer/exchange"
	"zorilla/vicinity"
)

// ProtocolVersion is what nodes tell each other of what they speak.
const ProtocolVersion = jobs.CurrentVersion

// Node is one node. Make it with New; it works while Run does.
type Node struct {
	cfg   Config
	state stateDir
	log   zerolog.Logger
	ready chan struct{}

	// Set by Run before ready is closed.
	started  time.Time
	owner    *owner
	gpus     gpu.Machine
	speeds   speeds
	work     workDir
	users    *users.Block // of jobs; nil = none
	ports    *ports.Book  // of workers; nil = none
	creds    *trust.Credentials
	fresh    bool // its key was made in this run
	invite   trust.Secret
	net      *network
	store    transfer.PinStore
	exchange *exchange.Exchange
	jobs     *agent.Service
	service  *service

	closeRunner func() // when no worker is to be started any more; may be nil
}

// New makes a node, and begins nothing.
func New(cfg Config) (*Node, error) {
	if cfg.State == "" {
		return nil, errors.New("no state directory: name one with --state-dir")
	}
	if cfg.Listen == "" {
		cfg.Listen = DefaultListen
	}
	if err := vicinity.CheckLabels(cfg.Owner.Labels); err != nil {
		return nil, err
	}
	if _, _, err := stateDir(cfg.State).invited(cfg.Secret, cfg.Join); err != nil { // before anything is made
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
	return &Node{cfg: cfg, state: stateDir(cfg.State), log: cfg.Log, ready: make(chan struct{})}, nil
}

// Ready is closed when the node can be used; what Service, Self and Invite
// return is valid then.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Service is the API of the node for clients. Call it after Ready.
func (n *Node) Service() api.Service { return n.service }

// Self describes the node as it tells others. Call it after Ready.
func (n *Node) Self() vicinity.Member { return n.net.overlay.Self() }

// Vicinity reports who is near. Call it after Ready.
func (n *Node) Vicinity() *vicinity.Table { return n.net.near }

// First reports whether the node's key was made in this run. Call it after
// Ready.
func (n *Node) First() bool { return n.fresh }

// WebURL returns the address of the page with its token, or "" if the node
// has none. Call it after Ready.
func (n *Node) WebURL() string { return n.service.webURL }

// acquireResources reserves the directory of workers and the users that they run as.
func (n *Node) acquireResources() (release func(), err error) {
	o := &n.cfg.Owner
	if n.work, release, err = openWork(n.state, n.cfg.Work, n.creds.ID(), passers(o, n.cfg.Seams.Runner.Enforces())); err != nil {
		return nil, err
	}
	if n.work.noexec() {
		n.log.Warn().Str("dir", string(n.work)).
			Msg("the work directory is on a file system that is mounted noexec: " +
				"programs that jobs bring cannot be executed: " +
				"keep it elsewhere, with zorilla node --work DIR")
	}
	if o.Users == nil {
		return release, nil
	}
	unlock := release
	if n.users, err = users.Reserve(users.Place, *o.Users, string(n.work)); err != nil {
		unlock()
		return nil, err
	}
	return func() {
		n.users.Close()
		unlock()
	}, nil
}

// release gives back what startNetwork has made.
func (n *Node) releaseResources() {
	if n.closeRunner != nil {
		n.closeRunner()
	}
	n.ports.Close()
	if n.net != nil {
		n.net.client.CloseIdleConnections()
		n.net.sessions.CloseIdleConnections()
		n.net.files.CloseIdleConnections()
	}
}

// Run works until ctx ends, or until the node is empty if its owner wants that,
// then tells the origins of its workers that these go on without it, leaves the
// network and returns nil. An error says why the node could not go on; after ErrMoved another
// Node of the same Config can.
func (n *Node) Run(ctx context.Context) error {
	n.started = time.Now()
	lock, err := n.state.open()
	if err != nil {
		return err
	}
	defer lock.Close()
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
	defer n.releaseResources()
	peers, err := n.startNetwork(network, sockets, seeds)
	if err != nil {
		return err
	}
	if err := n.alone(ctx, seeds); err != nil || ctx.Err() != nil {
		return err
	}
	release, err := n.acquireResources()
	if err != nil {
		return err
	}
	defer release()
	log, err := n.openDisk(disk)
	if err != nil {
		return err
	}
	if err := n.makeJobs(log, peers); err != nil {
		return err
	}
	n.service = newService(n)
	peers.open(n.net, n.exchange, forOthers{n.service.origin})
	n.net.run(network)

	front := newGroup(ctx)
	defer front.stop(nil)
	front.run(n.jobs.Run, n.net.twins.watch, n.service.watchTraffic, n.service.memberService.self.watch, n.watchAddresses, n.findPower)
	empty := make(chan struct{})
	front.run(func(ctx context.Context) error { return n.service.awaitDrained(ctx, empty) })
	if err := n.serveClients(front, page, lock); err != nil {
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
	return errors.Join(front.stop(nil), network.stop(context.Cause(front.ctx)), disk.stop(nil))
}
