package vicinity

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// maxWaiting is how many packets may wait for Run to send them.
const maxWaiting = 1024

// Config describes a Table. Self and Send are required.
type Config struct {
	Self      ID
	Near, Far int        // links wanted; 0 = 6 and 2
	Peers     int        // other nodes whose measurements are kept; 0 = 1024
	Rand      *rand.Rand // owned by the table; nil = seeded from the system
	// Send sends a payload of at most MaxPacket bytes to a member, as well as
	// it can, or not at all. It is called by Run's goroutine only, with no
	// lock held, and must not block.
	Send func(to ID, payload []byte)
	Log  zerolog.Logger
}

// Table keeps a node's neighbours. All its methods may be called from any
// goroutine, return at once, and call nobody.
type Table struct {
	cfg  Config
	wake chan struct{} // Run has something to send, or an earlier deadline

	mu       sync.Mutex // guards all below
	core     *Core
	roster   *Roster
	members  map[ID]Member
	waiting  []Packet
	asked    map[uint64]chan<- time.Duration // callers of Ping, by nonce
	nextPing map[ID]time.Time                // when a member may be pinged again
	lost     int64
	warned   bool
	version  uint64
	changed  chan struct{}
	clusters []Cluster // until regroup
	regroup  time.Time
}

// New returns a table that knows nobody. It takes in what it is told from now
// on, and acts on it while Run runs.
func New(cfg Config) *Table {
	if cfg.Rand == nil {
		var seed [32]byte
		_, _ = crand.Read(seed[:]) // never returns an error
		cfg.Rand = rand.New(rand.NewChaCha8(seed))
	}
	roster := new(Roster)
	core := CoreConfig{Self: cfg.Self, Near: cfg.Near, Far: cfg.Far, Peers: cfg.Peers, Rand: cfg.Rand, Roster: roster}
	return &Table{
		cfg: cfg, wake: make(chan struct{}, 1), core: NewCore(core, time.Now()), roster: roster,
		members: make(map[ID]Member), changed: make(chan struct{}),
		asked: make(map[uint64]chan<- time.Duration), nextPing: make(map[ID]time.Time),
	}
}

// Run keeps the links until ctx ends, and returns nil then.
func (t *Table) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.wake:
		case <-timer.C:
		}
		packets, next, malformed := t.tick()
		for _, p := range packets {
			t.cfg.Send(p.To, p.Payload)
		}
		if malformed {
			t.cfg.Log.Warn().Msg("malformed vicinity packet dropped; more of them are only counted")
		}
		timer.Reset(time.Until(next))
	}
}

func (t *Table) tick() (packets []Packet, next time.Time, malformed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.takeLocked(t.core.Tick(time.Now()))
	packets, t.waiting = t.waiting, nil
	malformed = !t.warned && t.core.stats.Malformed > 0
	t.warned = t.warned || malformed
	return packets, t.core.Next(), malformed
}

// takeLocked takes what a call to the core returned.
func (t *Table) takeLocked(packets []Packet) {
	free := max(0, maxWaiting-len(t.waiting))
	if len(packets) > free {
		t.lost += int64(len(packets) - free)
		packets = packets[:free]
	}
	t.waiting = append(t.waiting, packets...)
	t.notifyLocked()
	if v := t.core.Version(); v != t.version {
		t.version = v
		close(t.changed)
		t.changed = make(chan struct{})
	}
}

// feed gives the core an input and wakes Run, which sends the answers: the
// caller may be in the middle of the overlay, holding its locks.
func (t *Table) feed(input func(now time.Time) []Packet) {
	t.mu.Lock()
	t.takeLocked(input(time.Now()))
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Join tells that a member is there, or that what it says of itself changed.
// The node itself may be told of too; it is listed but never a neighbour.
func (t *Table) Join(m Member) {
	t.feed(func(now time.Time) []Packet {
		t.members[m.ID] = m
		if !t.roster.Add(m.ID) {
			return nil
		}
		return t.core.Join(now, m.ID)
	})
}

// Leave tells that a member is gone.
func (t *Table) Leave(id ID) {
	t.feed(func(now time.Time) []Packet {
		delete(t.members, id)
		if !t.roster.Remove(id) {
			return nil
		}
		return t.core.Leave(now, id)
	})
}

// Receive takes a payload that another node's table sent. The sender must be
// authenticated. The payload is not kept.
func (t *Table) Receive(from ID, payload []byte) {
	t.feed(func(now time.Time) []Packet { return t.core.Receive(now, from, payload) })
}

// Observe takes a round trip to a member that something else measured.
// Samples that are too large do no harm, as the smallest count.
func (t *Table) Observe(id ID, rtt time.Duration) {
	t.feed(func(now time.Time) []Packet { return t.core.Observe(now, id, rtt) })
}

// Neighbours returns the links: the near ones by round trip, then the far
// ones; of each kind the unmeasured last.
func (t *Table) Neighbours() []Neighbour {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.core.Neighbours()
}

// Changed returns a channel that is closed when Neighbours next returns other
// members, or a near one as far. Ask for it before Neighbours.
func (t *Table) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// Member returns what a member says of itself.
func (t *Table) Member(id ID) (Member, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.members[id]
	return m, ok
}

// Members returns all members in no particular order.
func (t *Table) Members() []Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Member, 0, len(t.members))
	for i := range t.roster.Len() {
		list = append(list, t.members[t.roster.At(i)])
	}
	return list
}

// Size returns how many members there are, this node included.
func (t *Table) Size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.core.others() + 1
}

// RTT returns the measured round trip to a member.
func (t *Table) RTT(id ID) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.core.RTT(id)
}

// Nearer returns the members that were measured to be nearer than a distance,
// nearest first, at most limit.
func (t *Table) Nearer(than time.Duration, limit int) []Measured {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.core.Nearer(than, limit)
}

// Estimate returns the measured round trip to a member; else the one predicted
// from coordinates, else 0, both with false.
func (t *Table) Estimate(id ID) (rtt time.Duration, measured bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.core.Estimate(id)
}

// Distance predicts the round trip between two nodes from their coordinates.
// It is false if one of them was not heard yet.
func (t *Table) Distance(a, b ID) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.core.Distance(a, b)
}

// Bearings returns where this node is, for messages of another protocol; see
// Core.Bearings.
func (t *Table) Bearings() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.core.Bearings()
}

// Placed takes what a member's Bearings returned; see Core.Placed.
func (t *Table) Placed(id ID, bearings []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.core.Placed(time.Now(), id, bearings)
}

// Position returns a node's coordinate in milliseconds, or nil if it is not
// known. Only differences between positions mean something.
func (t *Table) Position(id ID) []float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.core.Coordinate(id)
	if !ok {
		return nil
	}
	return at.Position()
}

// Stats returns the counters since New.
func (t *Table) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.core.Stats()
	s.Lost = t.lost
	return s
}
