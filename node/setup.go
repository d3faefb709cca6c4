package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/disk"
	"zorilla/jobs/gpu"
	"zorilla/jobs/journal"
	"zorilla/jobs/ports"
	"zorilla/jobs/process"
	"zorilla/node/api"
	"zorilla/node/gossip"
	"zorilla/node/speed"
	"zorilla/node/trust"
	"zorilla/node/web"
	"zorilla/transfer"
	"zorilla/transfer/exchange"
	"zorilla/vicinity"
)

// Finding out what the sandbox can do takes some ten milliseconds where the program begins with
// process.Main; where a machine has hundreds of programs that want its processors, a minute.
const (
	probeTimeout = 10 * time.Minute
	probeSlow    = 10 * time.Second // how often the log says that it still goes on
)

// bind opens the node's ports. It comes first, since a secret that is a phrase
// takes a while to stretch and a port that is taken shall be told at once.
func (n *Node) bind(ctx context.Context) (sockets *gossip.Sockets, page net.Listener, err error) {
	if sockets, err = gossip.Bind(ctx, n.cfg.Seams.Net, n.cfg.Listen); err != nil {
		return nil, nil, err
	}
	web := n.cfg.Web
	if n.cfg.Seams.Offline {
		web = "none"
	}
	if page, err = bindPage(web, n.cfg.WebInsecure); err != nil {
		sockets.Close()
		return nil, nil, err
	}
	return sockets, page, nil
}

// identify loads the node's key and the network's secret.
func (n *Node) identify() (seeds []string, err error) {
	path := n.state.file("identity.key")
	_, missing := os.Stat(path)
	n.fresh = errors.Is(missing, fs.ErrNotExist)
	id, err := trust.LoadIdentity(path)
	if err != nil {
		return nil, err
	}
	secret, seeds, err := n.state.secret(n.cfg.Secret, n.cfg.Join, n.log)
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

// probe finds out what the sandbox can enforce, and logs that it still does.
func probe(ctx context.Context, log zerolog.Logger, find func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	found := make(chan error, 1)
	go func() { found <- find(ctx) }()
	slow := time.NewTicker(probeSlow)
	defer slow.Stop()
	for begun := time.Now(); ; {
		select {
		case err := <-found:
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("%w: it took more than %v: start the node when the machine is less busy", err, probeTimeout)
			}
			return err
		case <-slow.C:
			log.Warn().Stringer("for", time.Since(begun).Round(time.Second)).
				Msg("still testing what the sandbox can enforce, before the node starts: this machine is busy, or a file system does not answer")
		}
	}
}

// startNetwork makes the overlay on the node's port and what lives on it, and
// lets other nodes ask for twins. The rest of what they may ask is to be opened.
func (n *Node) startNetwork(g *group, sockets *gossip.Sockets, seeds []string) (*peerHandler, error) {
	if n.cfg.Seams.Runner == nil {
		runner := process.New(process.Config{
			Groups: string(n.creds.ID()), Memory: forWorkers(n.memory()), Processes: findProcesses(os.DirFS("/")), Log: n.log,
			Work: cmp.Or(n.cfg.Work, filepath.Join(string(n.state), "work")),
		})
		if err := probe(g.ctx, n.log, runner.Probe); err != nil {
			return nil, err
		}
		n.cfg.Seams.Runner, n.closeRunner, n.ports = runner, runner.Close, &ports.Book{}
		if n.cfg.Seams.Hooks == nil {
			n.cfg.Seams.Hooks = agent.RunHook
		}
	}
	err := require(n.cfg.Owner.Require, n.cfg.Seams.Runner.Enforces())
	if err != nil {
		return nil, err
	}
	self := n.member(n.cfg.Seams.Runner)
	n.net, err = newNetwork(gossip.Config{
		Self: self, Said: n.speeds.said, Creds: n.creds, Net: n.cfg.Seams.Net,
		Sockets: sockets, Listen: n.cfg.Listen, Advertise: n.cfg.Advertise, Seeds: append(seeds, n.state.loadPeers()...),
		Beacons: true, Log: n.log,
	}, n.cfg.Seams.Rand, n.cfg.Seams.Overlay, n.state)
	if err != nil {
		return nil, err
	}
	if err := n.net.overlay.Listen(g.ctx); err != nil {
		return nil, err
	}
	n.net.twins = newTwins(n.creds.ID(), n.state, n.started, n.net.peers, n.log)
	h := newPeerHandler(n.net.portions, n.net.twins)
	serve(g, server(h, n.log), n.net.overlay.PeerListener())
	return h, nil
}

// alone makes sure that no other node has this one's identity before anything
// is touched that they would share. A key that was made just now has no twin.
func (n *Node) alone(ctx context.Context, seeds []string) error {
	peers := n.state.loadPeers()
	var addrs []string
	if !n.fresh {
		addrs = slices.Concat(n.state.formerAddrs(), seeds, peers)
	}
	if err := n.net.twins.alone(ctx, addrs); err != nil || ctx.Err() != nil {
		return err
	}
	err := n.state.savePeers(peers, n.Self().Addrs)
	if errors.Is(err, syscall.ENOSPC) { // who has room to make must reach a node for that
		n.log.Warn().Err(err).Msg("save the addresses of members")
		return nil
	}
	return err
}

// openDisk opens what the node has kept.
func (n *Node) openDisk(g *group) (journal.Journal, error) {
	var err error
	if n.owner, err = loadOwner(n.state.file("owner.json"), n.cfg.Owner.Changes); err != nil {
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
		file, err := journal.Open(n.state.file("journal.db"))
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

// reserve is what is left free of the disk that the state directory is on.
func (n *Node) reserve() disk.Reserve {
	return disk.Reserve{Dir: string(n.state), Keep: workDir(n.state).keepFree(n.cfg.Owner.KeepFree)}
}

func (n *Node) openStore() error {
	if n.cfg.Seams.Store != nil {
		n.store = n.cfg.Seams.Store
		return nil
	}
	store := transfer.NewDirStore(n.state.file("cache"), n.cfg.Owner.Cache)
	transfer.Reserve(store, n.reserve().Check)
	n.store = store
	return store.Open()
}

// member describes this node to others.
func (n *Node) member(runner agent.Runner) vicinity.Member {
	m := vicinity.Member{
		ID: n.creds.ID(), Name: n.cfg.Owner.Name, Site: n.cfg.Owner.Site,
		Slots: n.cfg.Owner.Slots, Memory: n.memory(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Enforces: runner.Enforces(), Version: ProtocolVersion, Labels: n.cfg.Owner.Labels,
	}
	if m.Name == "" {
		m.Name, _ = os.Hostname()
	}
	if m.Slots == 0 {
		m.Slots = runtime.NumCPU()
	}
	if n.cfg.Owner.GPUs >= 0 {
		n.gpus = gpu.Find(os.DirFS("/"))
		m.GPUs = len(n.gpus.GPUs)
	}
	if n.cfg.Owner.GPUs > 0 {
		m.GPUs = n.cfg.Owner.GPUs
	}
	n.findSpeeds()
	m.Speeds = n.speeds.known
	return m
}

// findSpeeds finds how fast the machine is, as far as nothing has to be measured.
func (n *Node) findSpeeds() {
	n.speeds = speeds{known: n.cfg.Owner.Speeds, said: &gossip.Said{}, log: n.log}
	if n.cfg.Seams.Offline {
		return
	}
	n.speeds.meter = &speed.Meter{
		Root: os.DirFS("/"), File: n.state.file("power"), Cores: runtime.NumCPU(),
		Busy: func() bool { return n.jobs.Busy() > 0 }, Measure: speed.Measure,
	}
	n.speeds.known = findSpeeds(n.cfg.Owner.Speeds, n.cfg.Listen, n.speeds.meter)
}

// findPower has the power of the machine measured, for other nodes and this one's own claims.
func (n *Node) findPower(ctx context.Context) error {
	return n.speeds.measure(ctx, n.Self, n.jobs.Describe)
}

// memory is what there is for workers, as others are told.
func (n *Node) memory() int64 {
	if n.cfg.Owner.Memory > 0 {
		return n.cfg.Owner.Memory
	}
	return findMemory(os.DirFS("/"))
}

// forWorkers is what workers may fill of so much memory: the machine itself, and the
// node, need some.
func forWorkers(memory int64) int64 { return memory - min(memory/16, 1<<30) }

// makeJobs makes the service of jobs, which needs the node's addresses. Requests of others that
// come as packets are served by h.
func (n *Node) makeJobs(log journal.Journal, h http.Handler) error {
	rnd := n.cfg.Seams.Rand
	peers := &exchange.HTTP{Client: n.net.client, Files: n.net.files, URL: peerURL}
	n.exchange = exchange.New(exchange.Config{Self: n.Self().ID, Store: n.store, Source: peers.Blob,
		Bulk: peers.Bulk, Trees: peers, PeerID: peerID, Uplink: n.net.flow.Uplink(), Rand: split(rnd)})
	n.net.flow.Uplink().Limit(n.owner.get().UploadLimit)
	clean := n.cfg.Seams.CleanRoot
	if clean == nil {
		clean = process.CleanRoot
	}
	dir, err := filepath.EvalSymlinks(n.cfg.State)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	cores, err := coresOf(n.cfg.Owner.Pin, n.Self().Slots)
	if err != nil {
		return err
	}
	n.net.sendAhead(n.creds, h)
	toSelf := &loopback{RoundTripper: n.net.early, self: n.Self().ID}
	room := agent.Disk{Free: n.work.free}
	if !n.cfg.Seams.Offline {
		room.Touch = func() error { return n.work.touch(n.state) }
	}
	n.jobs = agent.New(agent.Config{
		Self: n.Self(), Dir: dir, Overlay: jobsOverlay{n.net}, Others: agent.Others{Speed: n.net.flow.To, Clusters: n.net.near.Clusters},
		Client: &http.Client{Transport: toSelf}, Sessions: n.net.sessions, PeerID: peerID,
		Early: n.net.early, Knock: n.net.peers.Knock,
		Sign: n.creds.Sign, Verify: trust.Verify,
		Await: func(ctx context.Context, id jobs.ID, since uint64) (jobs.Status, uint64, error) {
			return n.service.awaitUnread(ctx, id, since)
		},
		Journal: log, Store: n.store, Fetch: n.exchange.Fetch, FetchToKeep: n.exchange.FetchToKeep,
		Workers: agent.Workers{
			Dir: string(n.work), Runner: n.cfg.Seams.Runner, CleanRoot: clean, RunAs: n.cfg.Owner.RunAs, Users: n.users, Ports: n.ports, Limits: n.owner.get,
			GPUs: &n.gpus, KeepFree: n.work.keepFree(n.cfg.Owner.KeepFree), NodeLimit: n.cfg.Owner.NodeLimit, OrphanLimit: n.cfg.Owner.OrphanLimit,
		},
		Results: agent.Results{KeepFor: n.cfg.Owner.KeepFor, KeepOutputs: n.state.keepOutputs(n.cfg.Owner.KeepOutputs)},
		Cores:   cores, Limits: n.owner.get(), Disk: room, Reserve: n.reserve(),
		Hooks: n.cfg.Seams.Hooks, Rand: split(rnd), Log: n.log,
	})
	toSelf.handler = n.jobs.PeerHandler()
	n.net.jobs = n.jobs
	return nil
}

// watchAddresses looks whether the machine still has the address that the node tells, unless
// its owner has said what that is.
func (n *Node) watchAddresses(ctx context.Context) error {
	own, ok := n.cfg.Seams.Net.(interface{ Addrs() ([]netip.Addr, error) })
	if !ok || n.cfg.Advertise != "" || !listensEverywhere(n.cfg.Listen) {
		return nil
	}
	err := awaitMove(ctx, own.Addrs, func() string { return n.Self().Addrs[0] })
	if err != nil {
		// Before anything else ends: members believe the new address at once then, and origins hear of
		// their workers over new connections, not over those from the old address, which hang.
		n.net.overlay.Leave()
	}
	return err
}

// serveClients opens the unix socket for the command line, and the page.
func (n *Node) serveClients(g *group, page net.Listener, lock *stateLock) error {
	if n.cfg.Seams.Offline {
		return nil
	}
	if _, none := page.(noPage); !none {
		token, err := n.state.webToken()
		if err != nil {
			return fmt.Errorf("page: %w", err)
		}
		n.service.webURL, n.service.lookURL = pageURL(page, token), pageURL(page, web.ReadOnly(token))
		cfg := web.Config{Service: n.service, Owner: n.service, API: api.Guard(api.Handler(n.service), token)}
		if err := servePage(g, page, token, cfg, n.log); err != nil {
			return err
		}
	}
	return serveSocket(g, lock, n.service, n.log)
}
