package fastrpc

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// Header has the number of a request that goes over a connection, if it may have come as a packet.
const Header = "Zorilla-Once"

const (
	// lasts bounds how long a request goes on over its connection when its answer has come as a
	// packet, and how long one that has come as a packet takes.
	lasts = 10 * time.Second
)

// Config is what a Messenger needs. All of it is set; functions may be called from any goroutine.
type Config struct {
	Self vicinity.ID
	// Sign and Verify are of the node's key, for a purpose; signatures have 96 bytes.
	Sign   func(domain string, msg []byte) []byte
	Verify func(domain string, from vicinity.ID, msg, sig []byte) error
	// Send sends a packet to a member, as well as may be; it does not wait.
	Send func(to vicinity.ID, packet []byte)
	// Member reports whether a node is a member: who is none gets no answer.
	Member func(vicinity.ID) bool
	// Early reports whether requests to a path may be packets.
	Early func(path string) bool
	// Over is how requests go over connections. Where it has to make one it calls Dialing.
	Over http.RoundTripper
	// Serve does a request of a node, which has come as a packet.
	Serve func(w http.ResponseWriter, r *http.Request, from vicinity.ID)
	// PeerID returns who sends a request that comes over a connection.
	PeerID func(*http.Request) (vicinity.ID, error)
	Log    zerolog.Logger
}

// Messenger sends a node's small requests ahead, and takes those of others.
type Messenger struct {
	cfg    Config
	ctx    context.Context // of all that is under way
	cancel context.CancelFunc
	under  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	stopped bool
	own     windows
	theirs  theirs
	calls   map[number]*call
	seen    seen

	counts struct{ sent, received, answered, left, late, malformed, forged atomic.Int64 }
}

// New makes a messenger. It does nothing by itself.
func New(cfg Config) *Messenger {
	m := &Messenger{cfg: cfg, theirs: theirs{}, calls: map[number]*call{}, seen: seen{senders: map[vicinity.ID]*sender{}}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Run forgets old keys and requests until the context ends, and then ends all that is under way: no
// request is a packet any more.
func (m *Messenger) Run(ctx context.Context) error {
	tick := time.NewTicker(keyLasts / 4)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case now := <-tick.C:
			m.mu.Lock()
			m.own.expire(now)
			m.seen.expire(now)
			m.mu.Unlock()
		case <-ctx.Done():
		}
	}
	m.mu.Lock()
	m.stopped = true
	m.mu.Unlock()
	m.cancel()
	m.under.Wait()
	return nil
}

// begin runs f in a goroutine that Run waits for, and reports whether it does: not when it has ended.
func (m *Messenger) begin(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return false
	}
	m.under.Go(f)
	return true
}

// Key returns the key that a node needs for requests to this one within the next minute.
func (m *Messenger) Key() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, err := m.own.current(time.Now())
	if err != nil {
		return nil
	}
	return key
}

// Learn takes a key that a node has told. What is none is ignored.
func (m *Messenger) Learn(from vicinity.ID, key []byte) {
	if len(key) != keyLen {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.theirs.learn(time.Now(), from, key)
}

var errForged = errors.New("not by whom it seems to be, or not for this node")

// Receive takes a packet.
func (m *Messenger) Receive(from vicinity.ID, packet []byte) {
	var err error
	switch {
	case len(packet) == 0:
		err = codec.ErrMalformed
	case packet[0] == kindRequest:
		err = m.request(from, packet[1:])
	case packet[0] == kindAnswer:
		err = m.answered(from, packet[1:])
	default:
		err = codec.ErrMalformed
	}
	switch {
	case errors.Is(err, errForged):
		m.counts.forged.Add(1)
	case err != nil:
		m.counts.malformed.Add(1)
	}
}

// Stats counts what has become of packets.
type Stats struct {
	Sent, Received    int64 // requests
	Answered          int64 // of those sent, by a packet
	Left              int64 // received, but done before, or left to the connection
	Late              int64 // sealed with a key that is forgotten, or by who is no member
	Malformed, Forged int64
}

// Stats returns the counters.
func (m *Messenger) Stats() Stats {
	c := &m.counts
	return Stats{
		Sent: c.sent.Load(), Received: c.received.Load(), Answered: c.answered.Load(), Left: c.left.Load(), Late: c.late.Load(),
		Malformed: c.malformed.Load(), Forged: c.forged.Load(),
	}
}
