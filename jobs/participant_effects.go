package jobs

import (
	"time"

	"zorilla/transfer"
	"zorilla/vicinity"
)

// What a participant has its executor do. Each but doEnd, doAck, doCancelWork and
// doForgetWork ends with a call of one of the participant's methods.
type (
	// doFetch brings the inputs of a job here: fetched. known says that an earlier
	// life of this node may have had them.
	doFetch struct {
		job     ID
		inputs  transfer.Hash
		holders []vicinity.ID
		known   bool
	}
	// doClaim makes a worker's directory, or empties it, and writes its claim down: claimed.
	doClaim struct {
		worker workerID
		claim  claimRecord
	}
	// doLay writes a worker's input files: laid.
	doLay struct{ worker workerID }
	// doRun starts a worker once it is durable that it may run: begun, or notBegun;
	// when its process has ended: exited.
	doRun struct {
		worker workerID
		claim  claimRecord
		ranks  []int // of the same copy of the job at this node
	}
	// doAdopt goes on with a worker of an earlier life of this node, as doRun:
	// begun, neverBegun, or gone, and then exited.
	doAdopt struct {
		worker workerID
		claim  claimRecord
	}
	// doEnd ends a worker's process.
	doEnd struct {
		worker workerID
		note   bool // that its origin wants that
	}
	// doTry finds out whether workers can be started here: tried. The worker is
	// the one that could not be, or none.
	doTry struct {
		worker workerID
		since  time.Time // a trial that began later will do
	}
	// doGather stores a worker's output files: gathered.
	doGather struct {
		worker  workerID
		who     string
		outputs []string
	}
	// doPark leaves of a worker only its claim, which says that it did not begin: parked.
	doPark struct {
		worker workerID
		claim  claimRecord
	}
	// doRemove removes all of a worker: removed.
	doRemove struct{ worker workerID }
	// doReport sends a report, with output added to it: acknowledged, or unheard.
	doReport struct {
		to       vicinity.ID
		report   Report
		readings []reading
	}
	// doAck tells a worker's process what its origin has, and wants done.
	doAck struct {
		worker workerID
		safe   received // bytes that are durable there
		tasks  *WorkerTasksAck
	}
	// doTable gives a worker its job's table: tabled.
	doTable struct {
		worker workerID
		table  Table
		signal int // 0 = none
	}
	// doCancelWork gives up what is being fetched and written for a job's workers.
	doCancelWork struct{ job ID }
	// doForgetWork: nothing of a job is here any more.
	doForgetWork struct{ job ID }
)

func (doFetch) isEffect()      {}
func (doClaim) isEffect()      {}
func (doLay) isEffect()        {}
func (doRun) isEffect()        {}
func (doAdopt) isEffect()      {}
func (doEnd) isEffect()        {}
func (doTry) isEffect()        {}
func (doGather) isEffect()     {}
func (doPark) isEffect()       {}
func (doRemove) isEffect()     {}
func (doReport) isEffect()     {}
func (doAck) isEffect()        {}
func (doTable) isEffect()      {}
func (doCancelWork) isEffect() {}
func (doForgetWork) isEffect() {}
