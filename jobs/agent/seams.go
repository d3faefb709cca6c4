package agent

import (
	"context"
	"errors"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/executor"
	"zorilla/jobs/internal/onend"
	"zorilla/jobs/internal/peer"
	"zorilla/vicinity"
)

// What a node gives an agent for its workers.
type (
	// Workers says how workers are run.
	Workers = executor.Workers
	// Runner starts worker processes.
	Runner = executor.Runner
	// FetchFunc brings files from other nodes.
	FetchFunc = executor.FetchFunc
	// HookRunner runs a command of --on-end.
	HookRunner = onend.Runner
)

// RunHook is the HookRunner that has a shell of this machine run it.
func RunHook(ctx context.Context, c onend.Call) jobs.OnEnd { return onend.Shell(ctx, c) }

// PeerPrefix begins the paths of requests to PeerHandler.
const PeerPrefix = peer.Prefix

// CheckWork refuses a directory as one for the workers of a node, if it is there
// and not the node's alone.
func CheckWork(dir string, node vicinity.ID) error { return executor.CheckDir(dir, node) }

// HasWork reports whether something of a node's workers is in a directory for
// them.
func HasWork(dir string, node vicinity.ID) bool { return executor.HasWork(dir, node) }

// EarlyKeys are the keys that small requests need which are sent ahead of their connection. Its
// methods may be called from any goroutine and must not block.
type EarlyKeys interface {
	// Key is what another node needs for requests to this one.
	Key() []byte
	// Learn takes the key of another node.
	Learn(from vicinity.ID, key []byte)
}

// Overlay is what jobs need of the network besides HTTP. Its methods may be
// called from any goroutine and must not block.
type Overlay interface {
	core.Around
	// Flood sends the payload to all nodes within the radius; 0 = to nobody, until it is extended.
	Flood(radius int, payload []byte) flood.Flood
	// Extend carries a flood one hop beyond nodes on its rim, and to nodes that
	// it did not reach.
	Extend(f flood.Flood, rim []flood.Reach)
	// Send sends one packet to a member, best effort.
	Send(to vicinity.ID, payload []byte)
	// Probe has the RTT to a member measured so, soon.
	Probe(id vicinity.ID)
	// Learn tells at which addresses a node that may not be a member yet is
	// to be found.
	Learn(id vicinity.ID, addrs []string)
}

// ErrNoAddress is wrapped by what Config.Knock returns of a node that nobody has told of.
var ErrNoAddress = errors.New("no address is known")
