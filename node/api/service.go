package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/node/usage"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Errors that callers act on. They keep their identity across the wire:
// errors.Is works on what Client returns. Those of package jobs are the same
// here, so that a node passes them on as they are.
var (
	ErrNotFound    = jobs.ErrNotFound
	ErrAmbiguous   = jobs.ErrAmbiguous
	ErrRefused     = jobs.ErrRefused
	ErrInvalid     = errors.New("invalid")
	ErrUnavailable = errors.New("unavailable") // the origin, or this node, cannot answer now
)

// Service is all that a node does for its clients. The node
// implements it, Handler serves it, Client implements it over HTTP, the page
// renders it and tests call it directly.
//
// A job is named by its ID, by a unique prefix of it, or by "last" (the job
// submitted last at this node). Of jobs that this node does not know a prefix
// has to begin with all random characters and "@". A request about a job of another origin is
// forwarded to that origin; if the origin cannot be reached the node answers
// from its own record where it can, marked LastKnown.
type Service interface {
	MemberService
	JobReader
	JobController
	BlobService
	OwnerService
}

// MemberService describes a node and the other members.
type MemberService interface {
	// Node describes the node itself.
	Node(ctx context.Context) (NodeInfo, error)
	// Nodes lists all members that this node knows, itself first, then by RTT.
	Nodes(ctx context.Context) ([]NodeInfo, error)
	// Survey is Nodes after the nearest members (at most 64, none twice in a
	// second) were asked for their load and links; it waits 2 s for them, and
	// does not ask those again for 15 s that did not answer. What they told
	// before is shown for 30 s.
	Survey(ctx context.Context) ([]NodeInfo, error)
	// Measure has one node ping another (1 to MaxPings times, about five a
	// second). Both are named by a name that is unique, by the beginning of
	// an ID, or by "self", the node that is asked. It is ErrUnavailable if
	// the first of them cannot be asked, and ErrRefused if it measures already:
	// for each other node it does one pair at a time. Pings that are not answered
	// are no error.
	Measure(ctx context.Context, from, to string, pings int) (Measurement, error)
	// Changes returns a channel that is closed at the next change of
	// anything that Node, Nodes, Jobs or Job would return.
	Changes() <-chan struct{}
}

// JobReader reads jobs, their output and their files.
type JobReader interface {
	// Jobs lists the jobs that the node originates or works for, in the order
	// of jobs.InOrder; with all it asks every member.
	Jobs(ctx context.Context, all bool) ([]jobs.Status, error)
	// Summaries is Jobs with no more of each job than lists tell.
	Summaries(ctx context.Context, all bool) ([]jobs.Summary, error)
	// Job returns one job.
	Job(ctx context.Context, job string) (jobs.Status, error)
	// Await returns the job's status as soon as it differs from what has the
	// version since (0 = return at once), together with its version; of a job with many
	// workers up to 0.2 s later, unless it has ended.
	Await(ctx context.Context, job string, since uint64) (jobs.Status, uint64, error)
	// Tasks lists tasks of a job that is an array.
	Tasks(ctx context.Context, job string, q jobs.TaskQuery) (jobs.TaskPage, error)
	// Explain reports why a job waits or ended as it did.
	Explain(ctx context.Context, job string) (jobs.Explanation, error)
	// Output calls f with the job's output in the order of arrival. With
	// Follow it goes on until the job has ended and all of it was sent. An
	// error of f ends it and is returned. F must not keep what it is given.
	Output(ctx context.Context, job string, q OutputQuery, f func(jobs.Output) error) error
	// Snapshot returns what files a rank that runs has made until now, of those that patterns
	// of output files name. Chunk has their chunks for some minutes; the hash of the manifest
	// is zero if there are none. Errors wrap jobs.ErrNotRunning, and ErrRefused if a node
	// would not do it.
	Snapshot(ctx context.Context, job string, rank int, globs []string) (jobs.RankOutput, error)
}

// JobController submits and changes jobs.
type JobController interface {
	// Submit accepts a job. Its inputs must be in the node's store already.
	// It may be repeated if the spec has a key.
	Submit(ctx context.Context, spec jobs.Spec) (jobs.ID, error)
	// Cancel stops a job's workers, which have a few seconds to end. The job has ended when
	// their output and files are at its origin; if atOnce it ends without what is still to
	// come. Cancelling an ended job is not an error.
	Cancel(ctx context.Context, job string, atOnce bool) error
	// Remove forgets a job that has ended and all of its results, for good. It
	// is for clients of the job's origin only.
	Remove(ctx context.Context, job string) error
	// Stdin appends r to the standard input of rank 0 and closes it when r ends.
	Stdin(ctx context.Context, job string, r io.Reader) error
	// Resize makes another number of workers the one that a malleable job wants, and returns
	// what is in force when that is durable. Or it has ranks end where they are, to go on
	// elsewhere, and returns as soon as that has begun. Errors wrap jobs.ErrRange,
	// jobs.ErrNotRunning if the job, or a rank to move, does not run, and ErrRefused if that
	// cannot be.
	Resize(ctx context.Context, job string, q jobs.Resize) (jobs.Size, error)
	// Enter runs a command beside that of a rank: in has the client's frames of a session
	// (jobs/session), and out gets the worker's. It returns when the session has ended. The
	// error is jobs.ErrNotRunning if the rank does not run; if it comes after the first frame,
	// the session broke. The command ends with ctx, and with in.
	Enter(ctx context.Context, job string, rank int, in io.Reader, out io.Writer) error
}

// BlobService takes and returns chunks of files.
type BlobService interface {
	// Missing returns those of the chunks that the node does not hold.
	Missing(ctx context.Context, chunks []transfer.Hash) ([]transfer.Hash, error)
	// PutChunk stores one chunk of at most transfer.MaxBlob bytes, which it does not keep
	// itself. The error is ErrInvalid if they have another hash.
	PutChunk(ctx context.Context, h transfer.Hash, data []byte) error
	// Chunk returns one chunk, which was compared with its hash. If the node does not hold
	// it and a job is named, as for outputs, it asks the job's origin.
	Chunk(ctx context.Context, job string, h transfer.Hash) ([]byte, error)
	// Refer makes the node read chunks from a file instead of having them put. The error is
	// transfer.ErrElsewhere if the file is not there.
	Refer(ctx context.Context, f transfer.File) error
	// Locate is that of a transfer.Locator. Clients do without it if it fails: nodes of earlier
	// versions do not have it.
	Locate(ctx context.Context, content transfer.Hash) (transfer.File, error)
}

// OwnerService is for the owner of the node.
type OwnerService interface {
	// Drain makes the node take no new workers, so that it becomes empty, or
	// takes that back, and returns how far it is.
	Drain(ctx context.Context, d Drain) (jobs.Drained, error)
	// Limits returns what the node's owner allows.
	Limits(ctx context.Context) (jobs.Limits, error)
	// SetLimits makes changes, in the form of jobs.Limits.Change, all of them
	// or none, and returns what is allowed then. They are in force and on disk
	// when it returns.
	SetLimits(ctx context.Context, changes []string) (jobs.Limits, error)
	// Queue lists the jobs that wait for room at this node, in order.
	Queue(ctx context.Context) ([]jobs.Waiting, error)
	// Cache does what is asked for, verifies before it prunes, and returns what the
	// node's store of chunks holds then.
	Cache(ctx context.Context, care CacheOp) (Cache, error)
	// Invite returns the token that lets another machine join.
	Invite(ctx context.Context) (string, error)
	// Web returns the address of the node's page, with its access token, or
	// with one that only shows and cannot act.
	Web(ctx context.Context, readOnly bool) (string, error)
}

// NodeInfo is a node as another one, or itself, sees it.
type NodeInfo struct {
	vicinity.Member
	Self      bool           `json:"self,omitempty"`
	RTT       codec.Duration `json:"rtt,omitempty"`       // 0 = not measured (or self)
	Bandwidth Bandwidth      `json:"bandwidth,omitzero"`  // as far as it is known from transfers
	Way       Way            `json:"way,omitzero"`        // what hinders packets between the node and it
	Neighbour string         `json:"neighbour,omitempty"` // "near", "far" or ""
	Position  []float64      `json:"position,omitempty"`  // network coordinate in milliseconds, for maps
	Cluster   string         `json:"cluster,omitempty"`   // nodes that are near to each other, found from round trips

	// Of the node itself, and of members that have told it:
	Told time.Time `json:"told,omitzero"` // when; zero = what follows is not known
	Busy int       `json:"busy"`          // slots in use or held
	// State: it takes no new workers, since it is "draining", "paused" (by its owner), "outside hours" (of its owner) or
	// "broken"; "" = it does.
	State string `json:"state,omitempty"`
	Why   string `json:"why,omitempty"` // of "broken": what keeps it from starting workers; of "outside hours": until when
	Links []Link `json:"links,omitempty"`
	// Lately is how its slots were used in the last hour; nil = not known.
	Lately *usage.Lately `json:"lately,omitempty"`

	// Of the node itself only:
	Started  time.Time `json:"started,omitzero"`
	Release  string    `json:"release,omitempty"` // version of the program
	Traffic  Traffic   `json:"traffic,omitempty"`
	StateDir string    `json:"state_dir,omitempty"`
	Room     *Room     `json:"room,omitempty"` // nil = not known
	// Results is how much is kept of jobs that were submitted there and have ended.
	Results *jobs.Results `json:"results,omitempty"`
	// Distances are between the nearest clusters, and within each, as far as they are known; in
	// listings only.
	Distances []Distance `json:"distances,omitempty"`
}

// StateHours is the state of a node outside of its owner's hours.
const StateHours = "outside hours"

// Because is what is said of a node's state after it, given what is shown of Why.
func (n *NodeInfo) Because(why string) string {
	switch {
	case why == "":
		return ""
	case n.State == StateHours:
		return " " + why
	}
	return ": " + why
}

// Distance is the round trip between nodes of two clusters, or of one: the median of some pairs.
type Distance struct {
	From string         `json:"from"` // name of a cluster
	To   string         `json:"to"`
	RTT  codec.Duration `json:"rtt"`
}

// Way is what hinders packets to and from a member.
type Way struct {
	NoUDP bool `json:"no_udp,omitempty"` // it answers by TCP alone
	Small bool `json:"small,omitempty"`  // large packets do not get through
}

// Room is how much there is on the disk of workers' files.
type Room struct {
	Dir  string `json:"dir"`
	Free int64  `json:"free"` // bytes
	Keep int64  `json:"keep"` // with less than that free the node takes no work
	// NoExec: no program is executed from there (mount option noexec), also none that a job brings.
	NoExec bool `json:"noexec,omitempty"`
}

// Drain says how a node is to become empty.
type Drain struct {
	Now bool `json:"now,omitempty"` // end its workers, instead of letting them finish
	// Discard, with Now: programs have no notice of their end (jobs.Notices.Signal).
	Discard bool `json:"discard,omitempty"`
	Exit    bool `json:"exit,omitempty"` // then stop the node
	Undo    bool `json:"undo,omitempty"` // take workers again
}

// Check returns an error that wraps ErrInvalid if d asks for the impossible.
func (d Drain) Check() error {
	switch {
	case d.Undo && (d.Now || d.Exit):
		return fmt.Errorf("%w: undo goes with neither now nor exit", ErrInvalid)
	case d.Discard && !d.Now:
		return fmt.Errorf("%w: discard is about workers that are ended: want now with it", ErrInvalid)
	}
	return nil
}

// Loaded reports whether Busy and Links are known.
func (n NodeInfo) Loaded() bool { return n.Self || !n.Told.IsZero() }

// Link is a neighbour of a node.
type Link struct {
	ID   vicinity.ID `json:"id"`
	Kind string      `json:"kind"` // "near" or "far"
}

// OutputQuery selects output.
type OutputQuery = jobs.OutputQuery
