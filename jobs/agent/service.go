package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/agenda"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/journal"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Config is what a Service needs. All fields but Work, RunAs, Expose, Devices,
// Limits, FreeDisk and Schedule must be set.
type Config struct {
	Self    vicinity.Member
	Dir     string // absolute; for output
	Work    string // absolute; for work directories, see CheckWork; "" = Dir/work
	Overlay Overlay
	Client  *http.Client // reaches node N as https://N/
	PeerID  func(*http.Request) (vicinity.ID, error)
	Sign    func(domain string, msg []byte) []byte
	Verify  func(domain string, from vicinity.ID, msg, sig []byte) error

	Journal   journal.Journal
	Store     transfer.PinStore
	Fetch     FetchFunc
	Runner    Runner
	CleanRoot func(root string, keep ...string) error // as process.CleanRoot

	Await  AwaitFunc // of any job, for dependencies; nil = only of this node's
	RunAs  *jobs.User
	Expose []string
	// Devices are device files that workers with GPUs may use.
	Devices []string
	// Limits are those of the owner.
	Limits jobs.Limits
	// FreeDisk is how many bytes are free where the work directories are; nil =
	// without limit.
	FreeDisk func() (int64, error)
	// NodeLimit is how long workers go on without this node; 0 = an hour,
	// negative = they end with it.
	NodeLimit time.Duration
	// OrphanLimit is how long workers go on without word of their origin; 0 =
	// an hour.
	OrphanLimit time.Duration

	// KeepFor is how long results of jobs that have ended are kept; 0 = a week.
	// Their records live ten times as long.
	KeepFor time.Duration
	// KeepOutputs is how many bytes of results are kept; 0 = without limit.
	KeepOutputs int64

	Schedule flood.Schedule
	Rand     *rand.Rand // owned by the service from now on
	Log      zerolog.Logger
}

// FetchFunc brings the blobs of a manifest, and the manifest, from the holders
// into the store, pinned for the owner. Unless tell is nil it is called with
// what is there so far.
type FetchFunc func(ctx context.Context, owner string, manifest transfer.Hash, holders []vicinity.ID, tell func(transfer.Stats)) (transfer.Manifest, transfer.Stats, error)

// Service runs jobs at one node: as the primary of those submitted here, and
// as a participant in others'. One goroutine, that of Run, owns all primaries
// and the claims; everything else sends it functions to call.
type Service struct {
	cfg     Config
	self    vicinity.Member
	overlay Overlay
	store   transfer.PinStore
	log     zerolog.Logger
	inbox   chan func()
	fetches chan struct{} // a place for each fetch of outputs

	// Owned by the loop.
	core      *core.Core
	exec      *executor
	jobs      map[jobs.ID]*job
	keys      map[string]keyed // jobs by the keys of their submissions
	archive   archive          // of jobs that have ended
	last      jobs.ID          // submitted last
	lastStamp jobs.Stamp
	answers   map[uint64]chan<- wire.Ack // to requests, by their numbers; each has room for one
	number    uint64                     // of the last of them
	next      time.Time                  // when it wants to wake; zero = only when something comes

	clocks *clocks // of other nodes; it has a mutex of its own

	children   sync.WaitGroup
	leaving    <-chan struct{} // closed: leave the workers
	leavingCtx context.Context
	leave      context.CancelFunc
	stopped    <-chan struct{} // closed: end everything
	stoppedCtx context.Context
	stop       context.CancelFunc
	ready      chan struct{} // closed when the journal has been read
	ended      chan struct{} // closed when the loop does not run any more
	failed     chan error    // capacity 1: why the service cannot go on

	mu      sync.Mutex // guards what follows
	changed chan struct{}
	counts  jobs.Counts
}

// New makes a service; Run starts it.
func New(cfg Config) *Service {
	if cfg.Work == "" {
		cfg.Work = filepath.Join(cfg.Dir, "work")
	}
	if cfg.NodeLimit == 0 {
		cfg.NodeLimit = participant.NodeLimit
	}
	if cfg.OrphanLimit == 0 {
		cfg.OrphanLimit = participant.OrphanLimit
	}
	s := &Service{
		cfg: cfg, self: cfg.Self, overlay: cfg.Overlay, store: cfg.Store, log: cfg.Log,
		inbox: make(chan func(), 1024), fetches: make(chan struct{}, maxFetches), ready: make(chan struct{}), ended: make(chan struct{}), failed: make(chan error, 1),
		clocks: newClocks(time.Now()),
		jobs:   map[jobs.ID]*job{}, keys: map[string]keyed{}, answers: map[uint64]chan<- wire.Ack{}, changed: make(chan struct{}),
		archive: newArchive(cfg.KeepFor, cfg.KeepOutputs),
	}
	s.core = core.New(cfg.Self, around{s}, cfg.Rand, cfg.Schedule, cfg.OrphanLimit)
	s.core.Claims.Limits = cfg.Limits
	s.exec = newExecutor(s, &s.core.Part)
	s.leavingCtx, s.leave = context.WithCancel(context.Background())
	s.stoppedCtx, s.stop = context.WithCancel(context.Background())
	s.leaving, s.stopped = s.leavingCtx.Done(), s.stoppedCtx.Done()
	return s
}

func (s *Service) now() time.Time { return time.Now() }

// Run reads the journal and then works until ctx ends. Then it tells the origins
// of its workers that these go on without it, and returns when that is done. It
// ends them instead if Config.NodeLimit says so.
func (s *Service) Run(ctx context.Context) error {
	defer s.stop() // whoever waits for the service must not do so for ever
	if err := s.load(); err != nil {
		return err
	}
	s.store.StartEviction() // what the jobs need is pinned by now
	close(s.ready)
	go func() {
		defer close(s.ended)
		s.loop()
	}()
	s.children.Go(s.checkStored)
	if s.cfg.FreeDisk != nil {
		s.children.Go(s.watchDisk)
	}
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-s.failed:
	}
	s.call(func() {
		s.core.Claims.Closed = wire.ReasonLeaving
		if s.cfg.NodeLimit < 0 || errors.Is(context.Cause(ctx), vicinity.ErrTwin) {
			s.core.Part.EvictAll(s.now(), wire.ReasonLeaving)
		}
		s.core.Leave(s.now(), s.away())
	})
	s.leave()
	s.settle()
	s.stop()
	<-s.ended
	s.children.Wait()
	s.exec.leave()
	s.closeFiles()
	s.bequeath()
	return failure
}

// fail ends the service because of an error.
func (s *Service) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// loop runs what is sent to it, and ticks what is due.
func (s *Service) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	s.overslept() // who worked for the jobs could not be heard while the node started
	for {
		select {
		case f := <-s.inbox:
			s.rouse()
			f()
		case <-timer.C:
		case <-s.stopped:
			return
		}
		s.due()
		if s.next = s.wake(); !s.next.IsZero() {
			s.next = agenda.Later(s.next, s.now())
			timer.Reset(max(0, time.Until(s.next)))
		} else {
			timer.Stop()
		}
	}
}

const (
	// drowsy is how late the loop may be before it counts as asleep: the
	// machine was too busy, or the process was paused.
	drowsy = time.Second
	// wakeful is how often the loop looks at the clock while nodes work for
	// this one's jobs, so that it knows.
	wakeful = time.Second
)

// rouse looks whether the loop has slept too long, before anything else sees what
// time it is.
func (s *Service) rouse() {
	now := s.now()
	if s.next.IsZero() || now.Before(s.next.Add(drowsy)) {
		return
	}
	s.log.Warn().Msgf("this node was paused, or too busy to run, for %v", now.Sub(s.next).Round(time.Millisecond))
	s.next = now
	s.overslept()
}

// overslept gives the nodes that work for the jobs their time to report anew.
func (s *Service) overslept() { s.core.Overslept(s.now()) }

// due does what the core wants done, and what else has come.
func (s *Service) due() {
	s.rouse()
	for {
		list, news := s.core.Advance(s.now())
		if news {
			s.notify()
		}
		if len(list) == 0 {
			break
		}
		for _, a := range list {
			s.perform(a)
		}
	}
	if at := s.archive.next; !at.IsZero() && !s.now().Before(at) {
		s.sweep()
	}
}

func (s *Service) wake() time.Time {
	at := agenda.Earlier(s.core.Wake(), s.archive.next)
	if s.core.Busy > 0 {
		at = agenda.Earlier(at, s.now().Add(wakeful))
	}
	return at
}

// post has f called in the loop, unless the service has ended.
func (s *Service) post(f func()) {
	select {
	case s.inbox <- f:
	case <-s.stopped:
	}
}

// call has f called in the loop and waits for it. It reports false if the
// service has ended.
func (s *Service) call(f func()) bool {
	done := make(chan struct{})
	s.post(func() { f(); close(done) })
	select {
	case <-done:
		return true
	case <-s.stopped:
	}
	select { // f may be running still
	case <-s.ready:
		<-s.ended
	default:
		return false
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func (s *Service) running() bool { return s.stoppedCtx.Err() == nil }

// notify tells watchers that something has changed.
func (s *Service) notify() {
	s.mu.Lock()
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
}

// Changes returns a channel that is closed at the next change of any job.
func (s *Service) Changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Counts returns the counters.
func (s *Service) Counts() jobs.Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Busy returns how many slots are in use or held.
func (s *Service) Busy() (slots int) {
	s.call(func() { slots = s.core.Claims.Busy() })
	return slots
}

// MemberGone tells that the overlay has declared a node dead.
func (s *Service) MemberGone(id vicinity.ID) {
	s.post(func() { s.core.MemberGone(s.now(), id) })
}

func (s *Service) jobDir(id jobs.ID) string { return filepath.Join(s.cfg.Dir, "jobs", string(id)) }
