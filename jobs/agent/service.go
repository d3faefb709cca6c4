package agent

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/disk"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/executor"
	"zorilla/jobs/internal/keep"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/origin"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/journal"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Config is what a Service needs. All fields but Sessions, Early, Knock, Await, Cores, Limits, Disk, Reserve,
// Results and Hooks must be set.
type Config struct {
	Self vicinity.Member
	Dir  string // absolute; for output
	// Workers says how workers are run. Its Dir may be "": Dir/work.
	Workers Workers
	Overlay Overlay
	Client  *http.Client // reaches node N as https://N/
	// Sessions is a Client for sessions with workers, over connections of its own; nil = Client.
	Sessions *http.Client
	PeerID   func(*http.Request) (vicinity.ID, error)
	// Early has small requests to this node, or of its Client, travel as packets: nil = none do.
	Early EarlyKeys
	// Knock asks the machine of a node for a connection to it, and waits for the answer; the error
	// wraps ErrNoAddress if it is not known where the node is. Nil = nobody is knocked at.
	Knock  func(ctx context.Context, id vicinity.ID) error
	Others Others
	Sign   func(domain string, msg []byte) []byte
	Verify func(domain string, from vicinity.ID, msg, sig []byte) error

	Journal journal.Journal
	Store   transfer.PinStore
	Fetch   FetchFunc
	// FetchToKeep is Fetch for what is made durable then; nil = Fetch does.
	FetchToKeep FetchFunc

	Await AwaitFunc // of any job, for dependencies; nil = only of this node's
	// Cores are processors that ranks of MPI programs are given some of, for each slot one;
	// nil = they share all.
	Cores []int
	// Limits are those of the owner.
	Limits jobs.Limits
	Disk   Disk
	// Reserve is what is left free where Dir is.
	Reserve disk.Reserve

	Results Results

	// Hooks runs the commands of --on-end; nil = jobs with one are refused.
	Hooks HookRunner

	Rand *rand.Rand // owned by the service from now on
	Log  zerolog.Logger
}

// Others is what else is known of other nodes.
type Others struct {
	Speed func(vicinity.ID) vicinity.Speed // of files to a node; nil = none is known
	// Clusters are those of the network, this node's own first, then the nearest; nil = none are known.
	Clusters func() []vicinity.Cluster
}

// Results says what is kept of jobs that have ended.
type Results struct {
	// KeepFor is how long their results are kept; 0 = a week. Their records live ten times as long.
	KeepFor time.Duration
	// KeepOutputs is how many bytes of results are kept; 0 = without limit.
	KeepOutputs int64
}

// Disk is that of the work directories.
type Disk struct {
	// Free is how many bytes are free there; nil = without limit.
	Free func() (int64, error)
	// Touch writes a little to it, and to whichever else the node needs for workers, and returns
	// when they have it; nil = they are taken to answer.
	Touch func() error
}

// Service runs jobs at one node: as the primary of those submitted here, and
// as a participant in others'. One goroutine, that of Run, owns all primaries
// and the claims; everything else sends it functions to call.
type Service struct {
	cfg         Config
	self        vicinity.Member
	overlay     Overlay
	store       transfer.PinStore
	log         zerolog.Logger
	loop        *loop.Loop
	peers       *peer.Client
	dropped     *peer.Counters // messages
	own         *origin.Jobs
	origin.API  // what clients ask about them
	visits      // of who runs more beside workers
	checkpoints checkpoints
	bookings    bookings // at this node

	// Owned by the loop.
	core        *core.Core
	exec        *executor.Executor
	preconnects preconnects

	clocks *clocks // of other nodes; it has a mutex of its own
}

// New makes a service; Run starts it.
func New(cfg Config) *Service {
	w := &cfg.Workers
	w.Dir = cmp.Or(w.Dir, filepath.Join(cfg.Dir, "work"))
	w.NodeLimit = cmp.Or(w.NodeLimit, participant.NodeLimit)
	w.OrphanLimit = cmp.Or(w.OrphanLimit, participant.OrphanLimit)
	s := &Service{
		cfg: cfg, self: cfg.Self, overlay: cfg.Overlay, store: cfg.Store, log: cfg.Log,
		loop: loop.New(cfg.Log), peers: &peer.Client{HTTP: cfg.Client, Sessions: cmp.Or(cfg.Sessions, cfg.Client)}, dropped: &peer.Counters{},
		clocks: newClocks(time.Now()), preconnects: preconnects{},
	}
	s.core = core.New(cfg.Self, around{cfg.Overlay, cfg.Sign, cfg.Others.Speed}, cfg.Rand, w.OrphanLimit)
	s.core.Claims.Limits, s.core.Claims.Disk.Keep, s.core.Claims.Cores.All = cfg.Limits, w.KeepFree, cfg.Cores
	s.checkpoints = checkpoints{self: s.self, loop: s.loop, around: cfg.Overlay, clusters: cfg.Others.Clusters, peers: s.peers, part: &s.core.Part, log: s.log}
	s.bookings = bookings{loop: s.loop, core: s.core, journal: cfg.Journal, log: cfg.Log, peers: s.peers, waiting: map[uint64]chan<- wire.Booked{}}
	s.visits = visits{s, &keyedLimit{}, &keyedLimit{}, executor.NewRecent(cfg.Store)}
	s.exec = executor.New(executor.Config{
		Workers: *w, Self: cfg.Self, State: cfg.Dir, Store: cfg.Store, Fetch: cfg.Fetch, Peers: s.peers, Log: cfg.Log,
		Member:         func(id vicinity.ID) (vicinity.Member, bool) { return s.overlay.Member(id) },
		WorkerRequests: s.checkpoints.requests(executor.WorkerRequests{Enter: s.visit, Resize: s.resize}),
	}, s.loop, &s.core.Part)
	s.checkpoints.visits = executor.NewVisits(s.exec)
	s.own = origin.New(origin.Config{
		Self: cfg.Self, Dir: cfg.Dir, Journal: cfg.Journal, Store: cfg.Store, Fetch: cfg.fetchToKeep(), Written: s.exec.Written, Peers: s.peers,
		Learn: func(id vicinity.ID, addrs []string) { s.overlay.Learn(id, addrs) },
		Room:  cfg.Reserve.Check, KeepFor: cfg.Results.KeepFor, KeepOutputs: cfg.Results.KeepOutputs, Hooks: cfg.Hooks, Rand: cfg.Rand, Log: cfg.Log,
	}, s.loop, s.core)
	s.API = s.own.API()
	return s
}

// fetchToKeep is Fetch for what is made durable then.
func (c *Config) fetchToKeep() FetchFunc {
	if c.FetchToKeep == nil {
		return c.Fetch
	}
	return c.FetchToKeep
}

// keeping says how checkpoints are kept here.
func (s *Service) keeping() keep.Config {
	return keep.Config{
		Dir: filepath.Join(s.cfg.Dir, keptDir), Store: s.store, Fetch: s.cfg.fetchToKeep(), Room: s.cfg.Reserve.Check, Log: s.log,
		Limit: func() int64 {
			limits := s.cfg.Limits
			if s.cfg.Workers.Limits != nil {
				limits = s.cfg.Workers.Limits()
			}
			return limits.KeptBytes()
		},
	}
}

// Run reads the journal and then works until ctx ends. Then it tells the origins
// of its workers that these go on without it, and returns when that is done. It
// ends them instead if Workers.NodeLimit says so.
func (s *Service) Run(ctx context.Context) error {
	defer s.loop.Stop() // whoever waits for the service must not do so for ever
	if err := s.own.Load(func() error { return s.exec.Adopt(s.adopt) }); err != nil {
		return err
	}
	if err := s.checkpoints.open(s.keeping()); err != nil {
		return err
	}
	s.store.StartEviction() // what the jobs need is pinned by now
	s.loop.Start(owner{s})
	s.loop.Go(s.own.CheckStored)
	s.loop.Go(s.checkpoints.expire)
	if s.cfg.Disk.Free != nil {
		s.loop.Go(s.watchDisk)
	}
	if s.cfg.Disk.Touch != nil {
		s.loop.Go(func() { watchAnswers(s) })
	}
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-s.loop.Failed():
	}
	s.loop.Call(func() {
		s.core.Claims.Closed = wire.ReasonLeaving
		if s.cfg.Workers.NodeLimit < 0 || errors.Is(context.Cause(ctx), vicinity.ErrTwin) {
			s.core.Part.EvictAll(time.Now(), participant.WantEvict|participant.WantNow, wire.ReasonLeaving)
		}
		s.core.Leave(time.Now(), s.away())
	})
	s.loop.Leave()
	s.awaitReports()
	s.loop.Stop()
	s.loop.Wait()
	s.exec.Leave()
	s.own.Close()
	s.logLeftovers()
	return failure
}

// pollInterval is how often the loop reads the clock while nodes work for this one's jobs, so
// that it notices a pause of the process.
const pollInterval = time.Second

// owner is a Service as its loop sees it.
type owner struct{ s *Service }

// Stalled gives the nodes that work for the jobs their time to report anew.
func (o owner) Stalled() { o.s.core.Stalled(time.Now()) }

// Due does what the core wants done, and what else has come.
func (o owner) Due() {
	s := o.s
	for {
		before := time.Now()
		list, news := s.core.Advance(before)
		if now := time.Now(); now.Sub(before) >= pollInterval { // the loop itself took as long
			s.core.Stalled(now)
		}
		if news {
			s.loop.Notify()
		}
		if len(list) == 0 {
			break
		}
		for _, a := range list {
			s.perform(a)
		}
	}
	s.own.Due()
}

// Wake returns when something is due.
func (o owner) Wake() time.Time {
	at := timers.Earlier(o.s.core.Wake(), o.s.own.Wake())
	if o.s.core.Busy > 0 {
		at = timers.Earlier(at, time.Now().Add(pollInterval))
	}
	return at
}

// Changes returns a channel that is closed at the next change of any job.
func (s *Service) Changes() <-chan struct{} { return s.loop.Changes() }

// Counts returns the counters.
func (s *Service) Counts() jobs.Counts { return s.dropped.Counts() }

// Busy returns how many slots are in use or held.
func (s *Service) Busy() (slots int) {
	s.loop.Call(func() { slots = s.core.Claims.Busy() })
	return slots
}

// Membership tells that the overlay has a member, perhaps once more, or has declared a
// node dead.
func (s *Service) Membership(id vicinity.ID, member bool) {
	s.loop.Post(func() { s.core.Membership(time.Now(), id, member) })
}

// Broken says why this node cannot start workers, or has no room for their files, or "".
func (s *Service) Broken() (why string) {
	s.loop.Call(func() {
		switch why = s.core.Claims.Starts.Broken; {
		case s.core.Claims.Disk.Hangs:
			why = wire.ReasonHangs
		case s.core.Claims.Disk.Full:
			why = wire.ReasonFull
		}
	})
	return why
}

// Self returns the node that the service runs at.
func (s *Service) Self() vicinity.Member { return s.self }

// adopt goes on with a worker of an earlier life of this node.
func (s *Service) adopt(c participant.ClaimRecord) {
	s.overlay.Learn(c.Job.Origin(), c.Addrs)
	s.core.Adopt(time.Now(), c)
}
