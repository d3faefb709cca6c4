package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/jobs/timing"
	"zorilla/jobs/work"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// State is where a job is in its life. States move forward within an attempt;
// final states are final.
type State string

// The states.
const (
	Pending    State = "PENDING"    // looking for workers
	Staging    State = "STAGING"    // workers granted; their nodes fetch the inputs
	Running    State = "RUNNING"    //
	Collecting State = "COLLECTING" // all workers ended; outputs are fetched
	Completed  State = "COMPLETED"  // every worker ended with 0
	Failed     State = "FAILED"     // a worker ended with another code, or the job could not be run
	Cancelled  State = "CANCELLED"
	Timeout    State = "TIMEOUT"   // a worker needed more than the walltime
	NodeFail   State = "NODE_FAIL" // a rigid job lost a node
)

// Final reports whether no other state can follow.
func (s State) Final() bool {
	switch s {
	case Completed, Failed, Cancelled, Timeout, NodeFail:
		return true
	}
	return false
}

// Exit codes of jobs that are not those of their programs.
const (
	CodeTimeout   = 124 // walltime
	CodeZorilla   = 125 // gave up, lost a node, or Zorilla failed
	CodeCancelled = 130
	CodeKilled    = 137 // needed more than it may
)

// Status is what can be told of a job, in one piece. It is a copy.
type Status struct {
	ID     ID          `json:"id"`
	Origin vicinity.ID `json:"origin"`
	Spec   Spec        `json:"spec"`
	State  State       `json:"state"`
	Reason string      `json:"reason,omitempty"` // why it waits, or why it ended as it did; one line
	// ExitCode is the job's exit code once State is final, else -1.
	ExitCode  int       `json:"exit_code"`
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero"` // first START
	Ended     time.Time `json:"ended,omitzero"`

	Workers []WorkerStatus `json:"workers"` // by rank; of the attempt that counts
	Shape
	Array    *ArrayStatus `json:"array,omitempty"`      // nil unless the job is an array
	Worst    *WorstPair   `json:"worst_pair,omitempty"` // of its nodes, at the latest START; nil of one node, and of more than 128
	Rounds   []Round      `json:"rounds"`               // floods so far, at most the last 64
	Outputs  []RankOutput `json:"outputs,omitempty"`    // of ranks that ended
	Warnings []string     `json:"warnings,omitempty"`   // at most 100
	Damaged  []string     `json:"damaged,omitempty"`    // what the disk of its origin lost of it, as far as that was noticed
	Broken   string       `json:"broken,omitempty"`     // nothing is known of it from some point on, since its journal is damaged: how
	Staged   Staged       `json:"staged"`
	Moving   *Moving      `json:"moving,omitempty"` // files of the job that are on their way now; nil = none
	AtOrigin

	// Size is how many bytes of results the origin keeps: what the workers wrote,
	// and the files that they made.
	Size int64 `json:"size"`
	// Forgotten is when the results of a job were, whose record is kept.
	Forgotten time.Time `json:"forgotten,omitzero"`
	// Brief is set if only the job's record is told: of the spec the name (or the
	// beginning of the command) and how many workers it wanted, and no workers,
	// rounds and outputs. So it is for jobs that are forgotten, and in lists for
	// those that are older than the last thousand.
	Brief bool `json:"brief,omitempty"`

	// LastKnown is set when the origin could not be asked and a participant
	// answers from its record.
	LastKnown bool `json:"last_known,omitempty"`
}

// Shape is how many workers a job has, and is to have.
type Shape struct {
	Asked  int           `json:"asked,omitempty"`  // how many were asked for last while it ran; 0 = nobody has asked
	Groups []GroupStatus `json:"groups,omitempty"` // in the order of its file
	Spares []Spare       `json:"spares,omitempty"` // by node
	// Promised is when it starts at the latest, as far as nodes have promised; nil = nothing is.
	Promised *timing.Promise `json:"promised,omitempty"`
}

// Spare is room that a node keeps for ranks of a job that may be lost.
type Spare struct {
	Node    vicinity.ID `json:"node"`
	Name    string      `json:"name"`
	Workers int         `json:"workers"`
	Ready   bool        `json:"ready"` // the inputs of the job are there
}

// GroupStatus is a group of a job.
type GroupStatus struct {
	Name    string `json:"name"`
	Min     int    `json:"min"` // workers, as submitted
	Max     int    `json:"max"`
	Workers int    `json:"workers,omitempty"` // chosen with the nodes; 0 = that is still to come
}

// AsSubmitted is the job with as many workers in each of its groups as were asked for: how many there are is
// chosen anew when it is submitted again.
func (s *Status) AsSubmitted() Spec {
	spec := s.Spec
	spec.Groups = slices.Clone(spec.Groups)
	for i := range min(len(spec.Groups), len(s.Groups)) {
		spec.Groups[i].Min, spec.Groups[i].Max = s.Groups[i].Min, s.Groups[i].Max
	}
	if len(spec.Groups) > 0 {
		spec.Min, spec.Max = spec.Topology.Least(), spec.Topology.Most()
	}
	return spec
}

// InOrder orders a list of jobs, for slices.SortFunc: those that have not ended
// first, so that no list of bounded length loses one of them, then the newest.
func InOrder(a, b Status) int {
	return inOrder(a.State, b.State, a.Submitted, b.Submitted, a.ID, b.ID)
}

func inOrder(stateA, stateB State, a, b time.Time, idA, idB ID) int {
	if stateA.Final() != stateB.Final() {
		if stateB.Final() {
			return -1
		}
		return 1
	}
	return cmp.Or(b.Compare(a), cmp.Compare(idA, idB))
}

// AllDamage lists what the disk of its origin lost of the job, one line each.
func (s *Status) AllDamage() []string {
	if s.Broken == "" {
		return s.Damaged
	}
	return append([]string{"its journal: " + s.Broken}, s.Damaged...)
}

// WorkerStatus is one rank of a job.
type WorkerStatus struct {
	Rank    int            `json:"rank"`
	Replica int            `json:"replica,omitempty"` // which copy of the rank
	Won     bool           `json:"won,omitempty"`     // of several copies this one counts
	Attempt int            `json:"attempt"`           // from 1
	Retried string         `json:"retried,omitempty"` // why a new attempt was, or is, needed; one line
	Node    vicinity.ID    `json:"node,omitempty"`
	Name    string         `json:"name,omitempty"` // the node's label
	RTT     codec.Duration `json:"rtt,omitempty"`  // between origin and node when it was chosen
	State   WorkerState    `json:"state"`
	Exit    *work.Exit     `json:"exit,omitempty"`
	Stdout  int64          `json:"stdout"` // bytes received
	Stderr  int64          `json:"stderr"` // of an array: of the tasks that have ended
	// Checkpoint is the newest one of the rank, and Resumed the number of that with which the attempt began.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Resumed    int         `json:"resumed,omitempty"`
	// Keepers are the labels of Checkpoint.Holders, with the names that the origin knows; nodes of earlier versions tell none.
	Keepers []string `json:"keepers,omitempty"`
	// Task is the name of the rank's task, of a job whose graph has names.
	Task string `json:"task,omitempty"`
	// Cluster is that of the node, as the node that answers knows clusters now; only of a job with a graph or groups.
	Cluster string `json:"cluster,omitempty"`
	// Replaced is why the attempt has this node, of a rank that was lost with another one.
	Replaced *Replaced `json:"replaced,omitempty"`
}

// KeptAt names the nodes that keep the newest checkpoint of the rank, if there is one.
func (w *WorkerStatus) KeptAt() string {
	if w.Checkpoint == nil {
		return ""
	}
	names := slices.Clone(w.Keepers)
	if len(names) != len(w.Checkpoint.Holders) {
		names = nil
		for _, id := range w.Checkpoint.Holders {
			names = append(names, id.Short())
		}
	}
	return strings.Join(names, ", ")
}

// Replaced is how near the node of a rank is to the one that the rank was lost with.
type Replaced struct {
	From vicinity.ID    `json:"from"`                   // the other one; it may be the same
	Same bool           `json:"same_cluster,omitempty"` // both were in one cluster
	RTT  codec.Duration `json:"rtt,omitempty"`          // between them, perhaps estimated; 0 = not known
}

// WorkerState is where one worker is.
type WorkerState string

// The worker states.
const (
	WorkerWanted    WorkerState = "wanted"    // no node yet
	WorkerPreparing WorkerState = "preparing" // granted; its node fetches the inputs
	WorkerReady     WorkerState = "ready"     // waits for START
	WorkerRunning   WorkerState = "running"
	WorkerEnded     WorkerState = "ended"
	WorkerLost      WorkerState = "lost"    // its node is gone
	WorkerStopped   WorkerState = "stopped" // by the end of the job, or as fewer were asked for
)

// Round is one flood of a job's search.
type Round struct {
	Number   int            `json:"number"` // from 1
	Radius   int            `json:"radius"`
	At       time.Time      `json:"at"`
	Wait     codec.Duration `json:"wait"`    // until the next one at the latest
	Wanted   int            `json:"wanted"`  // workers still looked for
	Reached  int            `json:"reached"` // nodes that answered this round
	Offers   int            `json:"offers"`
	Workers  int            `json:"workers"` // workers offered
	Declines int            `json:"declines"`
	// What the flood took, as far as the answers tell:
	Messages   int `json:"messages"`   // copies sent, by all nodes together
	Duplicates int `json:"duplicates"` // copies that told nobody anything new, or were lost
	Bytes      int `json:"bytes"`      // of these copies
	Hops       int `json:"hops"`       // links to the farthest node that answered
	Extended   int `json:"extended"`   // nodes beyond which the flood was carried on, without flooding again
}

// RankOutput is the output files of one rank.
type RankOutput struct {
	Rank     int           `json:"rank"`
	Attempt  int           `json:"attempt"`
	Manifest transfer.Hash `json:"manifest"`
	Files    int           `json:"files"`
	Bytes    int64         `json:"bytes"`
	// Left has the names of some of them, for people, if no pattern asked for them.
	Left string `json:"left,omitempty"`
}

// Staged counts what the participants had to fetch.
type Staged struct {
	Total   int64 `json:"total"`   // bytes of input, once, and of what is in it twice once
	Fetched int64 `json:"fetched"` // bytes moved to participants
	Cached  int64 `json:"cached"`  // bytes that participants had already
}

// Moving reports how far files of a job are that are on their way: inputs to the nodes of its
// workers, or outputs to its origin.
type Moving struct {
	What    string         `json:"what"`              // MovingInputs or MovingOutputs
	Done    int64          `json:"done"`              // bytes that are where they are to be, of all nodes together
	Total   int64          `json:"total"`             // bytes
	Rate    int64          `json:"rate,omitempty"`    // bytes a second, lately; 0 = it is too early to tell
	Left    codec.Duration `json:"left,omitempty"`    // until all is there, at that rate; 0 = not known
	Nodes   int            `json:"nodes"`             // that get inputs; of outputs the workers that made them
	Holders int            `json:"holders,omitempty"` // nodes that have all of the inputs, and pass them on: the origin, and of those that get them
}

// What is on its way.
const (
	MovingInputs  = "inputs"
	MovingOutputs = "outputs"
)

// String is a line for people.
func (m *Moving) String() string {
	text := "inputs are sent"
	switch {
	case m.What == MovingOutputs:
		text = "fetching the outputs of " + units.Count(m.Nodes, "worker", "workers")
	case m.Nodes > 1:
		text += fmt.Sprintf(" to %d nodes", m.Nodes)
	}
	text += fmt.Sprintf(": %s of %s are there", units.Bytes(m.Done), units.Bytes(m.Total))
	if m.Rate > 0 {
		text += fmt.Sprintf(", %s/s", units.Bytes(m.Rate))
	}
	if m.Left > 0 {
		text += fmt.Sprintf(", %s left", units.Span(time.Duration(m.Left)))
	}
	return text
}

// Explanation answers "why does it wait?" and "why did it end so?".
type Explanation struct {
	ID       ID              `json:"id"`
	State    State           `json:"state"`
	Summary  string          `json:"summary"`          // one line
	Wanted   int             `json:"wanted"`           // workers still looked for
	Spares   bool            `json:"spares,omitempty"` // which they are: all ranks have nodes
	Asked    int             `json:"asked"`            // distinct nodes that answered
	Offered  int             `json:"offered"`          // distinct nodes that offered
	Declined map[string]int  `json:"declined"`         // distinct nodes by reason
	Nodes    []NodeAnswer    `json:"nodes"`
	Since    time.Time       `json:"since,omitzero"` // when it began to wait for workers
	Until    time.Time       `json:"until,omitzero"` // when that ended: with its first START, or with the job; zero = it waits, or is staged
	Next     time.Time       `json:"next,omitzero"`  // next flood
	Promised *timing.Promise `json:"promised,omitempty"`
	Rounds   []Round         `json:"rounds"`
}

// NodeAnswer is the latest answer of one node to a job's advertisements.
type NodeAnswer struct {
	Node    vicinity.ID    `json:"node"`
	Name    string         `json:"name,omitempty"`
	RTT     codec.Duration `json:"rtt,omitempty"`
	Offered int            `json:"offered"`          // workers
	Reason  string         `json:"reason,omitempty"` // why not, or why not more
	Fate    string         `json:"fate,omitempty"`   // what became of the offer, or of slots that were held for another job
	At      time.Time      `json:"at,omitzero"`      // zero = it has not answered
	Round   int            `json:"round,omitempty"`  // the flood that it answered; 0 = it offered from its queue
	Hops    int            `json:"hops,omitempty"`   // links that the flood travelled to it; 0 = the origin itself
}

// Why reports why a node declined, and what became of what it offered or held for others; "" if
// its offer stands.
func (n NodeAnswer) Why() string {
	if n.Reason != "" && n.Fate != "" {
		return n.Reason + ": " + n.Fate
	}
	return n.Reason + n.Fate
}

// Output is a piece of a worker's standard output or error.
type Output struct {
	Rank    int         `json:"rank"`
	Attempt int         `json:"attempt"`
	Stream  work.Stream `json:"stream"`
	Offset  int64       `json:"offset"`
	Data    []byte      `json:"data"`
	// At is when it came to the job's origin, about, by the clock of that: milliseconds since
	// 1970; 0 = not known.
	At int64 `json:"at,omitempty"`
}

// Drained is how far a node is with becoming empty.
type Drained struct {
	Draining bool `json:"draining"`
	Workers  int  `json:"workers"` // that are here still, or of which something is to be told
	Jobs     int  `json:"jobs"`    // that were submitted here and have not ended
}

// MaxWarnings bounds the warnings of a job, and of a report.
const MaxWarnings = 100

// Results reports how much an origin keeps of jobs that have ended.
type Results struct {
	Jobs      int            `json:"jobs"`                 // that have ended and whose record is kept
	Forgotten int            `json:"forgotten"`            // of these, those without results
	Bytes     int64          `json:"bytes"`                // of results
	Inputs    int64          `json:"inputs,omitempty"`     // bytes of inputs, which make room for results
	Limit     int64          `json:"limit,omitempty"`      // of Bytes; 0 = none
	KeepFor   codec.Duration `json:"keep_for"`             // how long results are kept
	Full      bool           `json:"over_limit,omitempty"` // nobody has read so much of it, and none of it is a day old
}

// User is whom workers run as.
type User struct{ UID, GID int }

// Counts reports how much arrived that could not be used.
type Counts struct {
	Malformed int64 // packets that are not what they should be
	Forged    int64 // packets whose signature is not that of the node they seem to come from
	Refused   int64 // peer messages that are not allowed
}

// Gone returns an error that wraps ErrForgotten, and says so in one line, if the
// job's results are not kept any more.
func (st *Status) Gone() error {
	if st.Forgotten.IsZero() {
		return nil
	}
	return &ForgottenError{*st}
}
