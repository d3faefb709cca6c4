package vicinity

import (
	"math/rand/v2"
	"time"
)

// CoreConfig describes a Core. Self, Rand and Roster are required.
type CoreConfig struct {
	Self      ID
	Near, Far int        // links wanted; 0 = 6 and 2
	Peers     int        // records of other nodes kept; 0 = 1024
	Rand      *rand.Rand // owned by the core
	Roster    *Roster    // all members; may hold Self; the caller keeps it up to date
}

// maxLinks is how many links a node keeps, its own wishes and those of others
// together, so that one that is near to many is not overrun.
func maxLinks(cfg CoreConfig) int { return 2 * (cfg.Near + cfg.Far) }

func (cfg CoreConfig) withDefaults() CoreConfig {
	if cfg.Near <= 0 {
		cfg.Near = 6
	}
	if cfg.Far <= 0 {
		cfg.Far = 2
	}
	if cfg.Peers <= 0 {
		cfg.Peers = 1024
	}
	cfg.Peers = max(cfg.Peers, 4*maxLinks(cfg))
	return cfg
}

// Packet is a payload to be sent to a member.
type Packet struct {
	To      ID
	Payload []byte
}

// Stats counts what a node did since it started.
type Stats struct {
	Sent          int64 `json:"sent"` // messages
	Received      int64 `json:"received"`
	SentBytes     int64 `json:"sent_bytes"`
	ReceivedBytes int64 `json:"received_bytes"`
	Malformed     int64 `json:"malformed"`  // messages dropped for their form
	Absurd        int64 `json:"absurd"`     // round trips and coordinates not taken because they cannot be true
	Strangers     int64 `json:"strangers"`  // messages dropped because the sender is no member
	Excess        int64 `json:"excess"`     // messages dropped because a peer sent too many
	Unanswered    int64 `json:"unanswered"` // questions whose answer did not come: it, or they, were lost, or the member is gone
	Lost          int64 `json:"lost"`       // packets not sent because too many were waiting
	Links         int   `json:"links"`
	Measured      int   `json:"measured"` // members with a measured round trip
}

const (
	forever = time.Duration(1<<63 - 1)
	never   = time.Duration(-1 << 62)
)

// local is what all parts of a core share: the configuration, the time, what
// is to be sent, and what was counted.
type local struct {
	cfg   CoreConfig
	epoch time.Time
	at    time.Duration // now, since epoch
	out   []Packet
	stats Stats
}

func (l *local) enter(now time.Time) { l.at = max(l.at, now.Sub(l.epoch)) }

func (l *local) flush() []Packet {
	out := l.out
	l.out = nil
	return out
}

func (l *local) send(to ID, m message) {
	b := m.encode()
	l.stats.Sent++
	l.stats.SentBytes += int64(len(b))
	l.out = append(l.out, Packet{To: to, Payload: b})
}

// jitter returns d, up to a quarter more or less.
func (l *local) jitter(d time.Duration) time.Duration {
	return d*3/4 + time.Duration(l.cfg.Rand.Int64N(int64(d)/2))
}

// member reports whether id is a member beside the node itself.
func (l *local) member(id ID) bool { return id != l.cfg.Self && l.cfg.Roster.Has(id) }

// others is the number of members beside the node itself.
func (l *local) others() int {
	n := l.cfg.Roster.Len()
	if l.cfg.Roster.Has(l.cfg.Self) {
		n--
	}
	return n
}

// few reports whether there are no more members than links wanted: all are linked then.
func (l *local) few() bool { return l.others() <= l.cfg.Near+l.cfg.Far }

// draw returns a random other member that suits, or "" if a few tries find
// none.
func (l *local) draw(suits func(ID) bool) ID {
	n := l.cfg.Roster.Len()
	for range min(2*n, 24) {
		id := l.cfg.Roster.At(l.cfg.Rand.IntN(n))
		if id != l.cfg.Self && suits(id) {
			return id
		}
	}
	return ""
}
