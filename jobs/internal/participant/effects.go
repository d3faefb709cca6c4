package participant

import (
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// What a participant has its executor do. Each but DoEnd, DoPart, DoAck, DoCancelWork
// and DoForgetWork ends with a call of one of the participant's methods.
type (
	// DoFetch brings the inputs of a job here: Fetched. Known says that an earlier
	// life of this node may have had them.
	DoFetch struct {
		Job     jobs.ID
		Inputs  transfer.Hash
		Holders []vicinity.ID
		Known   bool
	}
	// DoClaim makes a worker's directory, or empties it, and writes its claim down: Claimed.
	DoClaim struct {
		Worker WorkerID
		Claim  ClaimRecord
	}
	// DoLay writes a worker's input files, and the checkpoint that it begins with: Laid.
	DoLay struct {
		Worker WorkerID
		Resume *jobs.Checkpoint // nil = it begins anew
	}
	// DoRun starts a worker once it is durable that it may run: Begun, or NotBegun;
	// when its process has ended: Exited.
	DoRun struct {
		Worker WorkerID
		Claim  ClaimRecord
		Ranks  []int // of the same copy of the job at this node
		GPUs   []int // of all workers of the job at this node, by number; they share device files
	}
	// DoAdopt goes on with a worker of an earlier life of this node, as DoRun:
	// Begun, NeverBegun, or Gone, and then Exited.
	DoAdopt struct {
		Worker WorkerID
		Claim  ClaimRecord
	}
	// DoEnd ends a worker's process: SIGTERM when its program has had notice, SIGKILL after the grace.
	DoEnd struct {
		Worker WorkerID
		Note   bool          // that its origin wants that
		Notice time.Duration // by its signal; 0 = none
		Grace  time.Duration
	}
	// DoTry finds out whether workers can be started here: Tried. The worker is
	// the one that could not be, or none.
	DoTry struct {
		Worker WorkerID
		Since  time.Time // a trial that began later will do
	}
	// DoPart tells the gang of an MPI program that a rank has ended, and why it cannot go on
	// without, or "".
	DoPart struct {
		Worker WorkerID
		Claim  ClaimRecord
		Why    string
		Failed bool // the program has failed, of which the origin hears
		Again  bool // this life of the node did not see the rank run
	}
	// DoGather stores a worker's output files: Gathered. Without patterns they are what it has
	// left, if that is little.
	DoGather struct {
		Worker  WorkerID
		Who     string
		Outputs []string
		Until   time.Time // it is tried again on a full disk; zero = for as long as that is
	}
	// DoPark leaves of a worker only its claim, which says that it did not begin: Parked.
	DoPark struct {
		Worker WorkerID
		Claim  ClaimRecord
	}
	// DoRemove removes all of a worker: Removed.
	DoRemove struct{ Worker WorkerID }
	// DoReport sends a report, with output added to it: Acknowledged, or Unheard.
	DoReport struct {
		To       vicinity.ID
		Report   wire.Report
		Readings []wire.Reading
	}
	// DoAck tells a worker's process what its origin has, and wants done.
	DoAck struct {
		Worker WorkerID
		Safe   wire.Written // bytes that are durable there
		Tasks  *wire.WorkerTasksAck
		// Checkpoint is nil if nothing was told of one.
		Checkpoint *wire.CheckpointAck
	}
	// DoTable gives a worker its job's table: Tabled.
	DoTable struct {
		Worker WorkerID
		Table  wire.Table
		Signal int // 0 = none
	}
	// DoCancelWork gives up what is being fetched and written for a job's workers.
	DoCancelWork struct{ Job jobs.ID }
	// DoForgetWork: nothing of a job is here any more.
	DoForgetWork struct{ Job jobs.ID }
)

func (DoFetch) ofParticipant()      {}
func (DoClaim) ofParticipant()      {}
func (DoLay) ofParticipant()        {}
func (DoRun) ofParticipant()        {}
func (DoAdopt) ofParticipant()      {}
func (DoEnd) ofParticipant()        {}
func (DoTry) ofParticipant()        {}
func (DoPart) ofParticipant()       {}
func (DoGather) ofParticipant()     {}
func (DoPark) ofParticipant()       {}
func (DoRemove) ofParticipant()     {}
func (DoReport) ofParticipant()     {}
func (DoAck) ofParticipant()        {}
func (DoTable) ofParticipant()      {}
func (DoCancelWork) ofParticipant() {}
func (DoForgetWork) ofParticipant() {}

// Effect is something to be done for the participant.
type Effect interface{ ofParticipant() }
