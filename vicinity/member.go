package vicinity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ID names a node for good: "z" and 26 characters of a base32 hash of the
// node's public key. The zero value means "no node".
type ID string

const idLength = 27

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// IDFromKey returns the ID of the node that owns the key.
func IDFromKey(key ed25519.PublicKey) ID {
	sum := sha256.Sum256(key)
	return ID("z" + idEncoding.EncodeToString(sum[:])[:idLength-1])
}

// Valid reports whether id has the form of a node ID. Check it before an ID
// from the network is stored or shown.
func (id ID) Valid() bool {
	return len(id) == idLength && id[0] == 'z' &&
		strings.Trim(string(id), "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// Short returns the first five characters, which people use to name a node.
func (id ID) Short() string {
	return string(id[:min(len(id), 5)])
}

// ErrTwin is why a node stops that has met another one with its identity. It
// says farewell to nobody: others would take that for the other one's.
var ErrTwin = errors.New("another node has this identity")

// Member is a node as the overlay sees it: what the node says of itself. All
// of it comes from the network and has been checked for form, not for truth.
type Member struct {
	ID       ID       `json:"id"`
	Name     string   `json:"name"`               // label chosen by the owner; need not be unique
	Site     string   `json:"site,omitempty"`     // free label
	Addrs    []string `json:"addrs"`              // "host:port", best first; TCP and UDP
	Slots    int      `json:"slots"`              // capacity, not what is free
	Memory   int64    `json:"memory"`             // bytes
	Platform string   `json:"platform"`           // GOOS/GOARCH
	Enforces []string `json:"enforces,omitempty"` // what its sandbox really enforces: "landlock", "memory", ...
	GPUs     int      `json:"gpus,omitempty"`
	Speeds   Speeds   `json:"speeds,omitzero"`
	// Labels are free words of the owner for free words, together at most
	// MaxLabels bytes; see CheckLabels.
	Labels  map[string]string `json:"labels,omitempty"`
	Version int               `json:"version"` // protocol version
}

// Speeds is how fast a machine is; 0 = not known.
type Speeds struct {
	Clock     int64 `json:"clock,omitempty"`     // MHz, nominal: what a processor runs at for good
	Power     int64 `json:"power,omitempty"`     // of a core, measured; 1000 = one of a server with 2.4 GHz
	Bandwidth int64 `json:"bandwidth,omitempty"` // Mbit/s, of the interface to other nodes
}

// UsualPower is what counts as the power of a core that is not known.
const UsualPower = 1000

// maxOfMachine is more than any machine has of each.
const maxOfMachine = 1 << 30

// Valid reports whether they can be those of a machine: none is negative or over 2^30.
func (s Speeds) Valid() bool {
	return min(s.Clock, s.Power, s.Bandwidth) >= 0 && max(s.Clock, s.Power, s.Bandwidth) <= maxOfMachine
}

// MaxLabels bounds a member's labels: their names and values, and two bytes for
// each of these, so that they fit into what a member says of itself.
const MaxLabels = 256

// CheckLabels says whether labels are fit to be told: names of letters, digits,
// '-', '_' and '.', values of printable text.
func CheckLabels(labels map[string]string) error {
	total := 0
	for name, value := range labels {
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
			return fmt.Errorf("label %.40q: want a name of letters, digits, '-', '_' and '.'", name)
		}
		for _, r := range value {
			if !unicode.IsPrint(r) || r == utf8.RuneError {
				return fmt.Errorf("label %.40s: its value %.40q cannot be printed", name, value)
			}
		}
		total += len(name) + len(value) + 4
	}
	if total > MaxLabels {
		return fmt.Errorf("labels take %d bytes, at most %d: leave some out", total, MaxLabels)
	}
	return nil
}

// Measured is a member and the round trip to it.
type Measured struct {
	ID    ID
	RTT   time.Duration
	Least bool          // RTT is a lower bound: there is no sample, or one that was longer, and cannot be right
	Most  time.Duration // an upper bound, where RTT is a lower one
}

// Neighbour is a member chosen as near enough to flood to. Both ends keep the
// link.
type Neighbour struct {
	ID  ID            `json:"id"`
	RTT time.Duration `json:"rtt"` // 0 while not measured
	Far bool          `json:"far"` // a random long link, not one of the nearest
}
