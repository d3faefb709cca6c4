package agent

import (
	"context"
	"time"

	"zorilla/flood"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// Runner starts worker processes. process.Runner is the real one; tests on an
// emulated network use one that runs functions in virtual time.
type Runner interface {
	// Start starts a worker whose input files are in spec.Root/work. It
	// returns before the program runs; how it went is in Worker.Exit.
	Start(ctx context.Context, spec process.Spec) (process.Worker, error)
	// Adopt returns the worker that an earlier life of this node started in
	// root, whether it still runs or has ended. Errors wrap process.ErrLost or
	// process.ErrNotStarted, or are those of ctx.
	Adopt(ctx context.Context, root string) (process.Worker, error)
	// Enforces lists what really confines workers, for people and for --where.
	Enforces() []string
}

// Overlay is what jobs need of the network besides HTTP. Its methods may be
// called from any goroutine and must not block.
type Overlay interface {
	// Flood sends the payload to all nodes within the radius.
	Flood(radius int, payload []byte) flood.Flood
	// Extend carries a flood one hop beyond nodes on its rim, and to nodes that
	// it did not reach.
	Extend(f flood.Flood, rim []flood.Reach)
	// Size returns how many members there are, this node included.
	Size() int
	// Send sends one packet to a member, best effort.
	Send(to vicinity.ID, payload []byte)
	// Member returns what is known of a node, and the RTT to it (0 = not known).
	// It reports false for a node that is not a member.
	Member(id vicinity.ID) (m vicinity.Member, rtt time.Duration, ok bool)
	// Measured returns the RTT to a member if it was measured well enough to
	// compare it with others, else 0.
	Measured(id vicinity.ID) time.Duration
	// Nearer returns the members that were measured to be nearer than a
	// distance, nearest first, at most limit.
	Nearer(than time.Duration, limit int) []vicinity.Measured
	// Probe has the RTT to a member measured so, soon.
	Probe(id vicinity.ID)
	// Distance estimates the round trip between two other nodes; 0 = not known.
	Distance(a, b vicinity.ID) time.Duration
	// Bearings says where this node is, for Placed at another one.
	Bearings() []byte
	// Placed takes the bearings of a member.
	Placed(id vicinity.ID, bearings []byte)
	// Learn tells at which addresses a node that may not be a member yet is
	// to be found.
	Learn(id vicinity.ID, addrs []string)
}
