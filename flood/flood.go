package flood

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

const inboxSize = 1024

// Config is what a Flooder needs. All functions are called from the goroutine
// of Run and must return at once; they must not call Start.
type Config struct {
	Self       vicinity.ID
	Neighbours func() []vicinity.ID
	// Send hands a packet of at most MaxPacket bytes to the overlay, best
	// effort. The packet is shared by several calls: it must not be changed.
	Send func(to vicinity.ID, packet []byte)
	// Check returns nil if the payload is genuine, that is, signed by the
	// origin. It is asked once per message, before anything else is done; again
	// if it returned ErrLate, by which a message goes no further and is no fault
	// of whoever handed it on.
	Check func(origin vicinity.ID, payload []byte) error
	// Deliver gets the first copy of each message of other nodes.
	Deliver func(Message)

	Rate  float64    // floods per second taken from one origin; 0 = 50
	Burst int        // floods at once taken from one origin; 0 = 500
	Rand  *rand.Rand // used by Run alone; nil = seeded at random
	Log   zerolog.Logger
}

func (c Config) withDefaults() Config {
	if c.Rate == 0 {
		c.Rate = defaultRate
	}
	if c.Burst == 0 {
		c.Burst = defaultBurst
	}
	if c.Rand == nil {
		c.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	return c
}

// Flooder is a node's end of all floods. Make one with New.
type Flooder struct {
	cfg     Config
	core    *Core // owned by Run
	inbox   chan inbound
	starts  chan start
	extends chan extend
	done    chan struct{} // closed when Run ends
	dropped atomic.Uint64

	mu    sync.Mutex
	stats Stats // the core's, after its last step
}

type inbound struct {
	from   vicinity.ID
	packet []byte
	at     time.Time
}

type start struct {
	radius  int
	life    time.Duration
	payload []byte
	reply   chan started // has room for the answer
}

type started struct {
	flood Flood
	err   error
}

type extend struct {
	flood Flood
	rim   []Reach
}

// New returns a Flooder that does nothing until Run.
func New(cfg Config) *Flooder {
	cfg = cfg.withDefaults()
	return &Flooder{
		cfg:     cfg,
		core:    NewCore(cfg),
		inbox:   make(chan inbound, inboxSize),
		starts:  make(chan start),
		extends: make(chan extend),
		done:    make(chan struct{}),
	}
}

// Run floods until ctx ends, then returns nil. Call it once.
func (f *Flooder) Run(ctx context.Context) error {
	defer close(f.done)
	var logged [3]bool
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-f.starts: // before what waits in the inbox
			f.start(s)
			continue
		case e := <-f.extends:
			f.extend(e)
			continue
		default:
		}
		select {
		case <-ctx.Done():
			return nil
		case s := <-f.starts:
			f.start(s)
		case e := <-f.extends:
			f.extend(e)
		case in := <-f.inbox:
			now := time.Now()
			out := f.core.Receive(now, now.Sub(in.at), in.from, in.packet)
			f.emit(out)
			if out.Err != nil {
				f.complain(out.Err, &logged)
			}
		}
	}
}

func (f *Flooder) start(s start) {
	flood, out, err := f.core.Start(time.Now(), s.radius, s.life, s.payload)
	f.emit(out)
	s.reply <- started{flood, err}
}

func (f *Flooder) extend(e extend) {
	for _, out := range f.core.Extend(time.Now(), e.flood, e.rim) {
		f.emit(out)
	}
}

func (f *Flooder) emit(out Out) {
	f.mu.Lock()
	f.stats = f.core.Stats()
	f.mu.Unlock()
	for _, to := range out.To {
		f.cfg.Send(to, out.Packet)
	}
	if out.Deliver != nil {
		f.cfg.Deliver(*out.Deliver)
	}
}

// complain warns of each kind of bad message once: more would let a stranger
// fill the log. All are counted.
func (f *Flooder) complain(err error, logged *[3]bool) {
	for i, kind := range []error{codec.ErrMalformed, ErrRefused, ErrTooFast} {
		if errors.Is(err, kind) && !logged[i] {
			logged[i] = true
			f.cfg.Log.Warn().Err(err).Msg("dropped a flooded message; the next ones of this kind are only counted")
			return
		}
	}
}

// Start floods a payload of at most MaxPayload bytes to all nodes at most
// radius links away (0 to MaxRadius; 0 = to nobody, until it is extended), for
// whom it is of use for the given life (1ms to MaxLife). It is not delivered here.
// What it returns says how many copies left this node, and lets the flood be extended.
//
// It may be called from any goroutine but those of the functions in Config. It
// waits for Run to start, and returns ErrStopped once Run has ended. ErrTooFast
// means that other nodes would not take the flood.
func (f *Flooder) Start(radius int, life time.Duration, payload []byte) (Flood, error) {
	s := start{radius, life, payload, make(chan started, 1)}
	select {
	case f.starts <- s:
		r := <-s.reply
		return r.flood, r.err
	case <-f.done:
		return Flood{}, ErrStopped
	}
}

// Extend carries a flood that Start has returned one hop beyond nodes that it
// has reached with no hops left (its rim, see doc.go); Node and Hops are used of
// each. Nodes that have the
// message already drop it, so what lies inside is not flooded again. Nodes that
// are not on the rim do nothing, but those that it did not reach take it as new.
// It has no effect when the flood's life is over.
//
// It may be called from where Start may, and waits for Run to start.
func (f *Flooder) Extend(fl Flood, rim []Reach) {
	select {
	case f.extends <- extend{fl, rim}:
	case <-f.done:
	}
}

// Receive takes a packet that the overlay got from a node. It returns at once
// and keeps nothing of the packet; if too many wait, the packet is dropped. An
// empty from means that the overlay does not know the sender.
func (f *Flooder) Receive(from vicinity.ID, packet []byte) {
	// One byte too many is enough to be found malformed.
	packet = append([]byte(nil), packet[:min(len(packet), MaxPacket+1)]...)
	select {
	case f.inbox <- inbound{from, packet, time.Now()}:
	default:
		f.dropped.Add(1)
	}
}

// Stats returns the counts so far.
func (f *Flooder) Stats() Stats {
	f.mu.Lock()
	s := f.stats
	f.mu.Unlock()
	s.Dropped = f.dropped.Load()
	return s
}
