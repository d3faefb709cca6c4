// Package executor does on a machine what a node's participant decides: it makes the
// directories of workers, fetches their inputs, starts, follows and ends their processes,
// and sends what they wrote to the origins of their jobs.
package executor

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/gpu"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/ports"
	"zorilla/jobs/process"
	"zorilla/jobs/remover"
	"zorilla/jobs/users"
	"zorilla/transfer"
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
	// Warm prepares for a worker that will soon be started: group is the job whose workers share a
	// supervisor ("" = none), and where is the directory of the roots.
	Warm(group, where string)
	// Enforces lists what really confines workers, for people and for --where.
	Enforces() []string
}

// FetchFunc brings the blobs of a manifest, and the manifest, from the holders
// into the store, pinned for the owner. Unless tell is nil it is called with
// what is there so far, also while that gets on and is no more yet.
type FetchFunc func(ctx context.Context, owner string, manifest transfer.Hash, holders []vicinity.ID,
	tell func(transfer.Stats)) (transfer.Manifest, transfer.Stats, error)

// Workers says how a node runs workers.
type Workers struct {
	Dir       string // absolute; for work directories, see CheckDir
	Runner    Runner
	CleanRoot func(root string, pace remover.Pace, keep ...string) error // as process.CleanRoot
	RunAs     *jobs.User                                                 // nil = as the node
	Users     *users.Block                                               // of jobs, instead of RunAs; nil = none
	Ports     *ports.Book                                                // for programs; nil = all nodes of a job agree on one without looking
	// Limits reports what the owner allows now, of which is what workers are shown; nil =
	// nothing but the system.
	Limits func() jobs.Limits
	// GPUs are the machine's, of which workers are given some; nil = none is known of.
	GPUs *gpu.Machine
	// KeepFree is how many bytes of the disk of Dir workers leave free: below it none is taken in,
	// and those whose files take most are ended.
	KeepFree int64
	// NodeLimit is how long workers go on without this node; 0 = an hour,
	// negative = they end with it.
	NodeLimit time.Duration
	// OrphanLimit is how long workers go on without word of their origin; 0 =
	// an hour.
	OrphanLimit time.Duration
}

// Config is what an Executor needs. All fields but those of Workers
// that say so must be set.
type Config struct {
	Workers
	Self  vicinity.Member
	State string // absolute; the node's own directory, which workers must not see
	Store transfer.PinStore
	Fetch FetchFunc
	Peers *peer.Client
	// Member reports what is known of a node. It must not block.
	Member         func(vicinity.ID) (vicinity.Member, bool)
	WorkerRequests *WorkerRequests // of processes inside workers; nil = they cannot ask
	Log            zerolog.Logger
}
