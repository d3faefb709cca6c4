package wire

import "strings"

// Reasons of declines; explain counts nodes by them.
const (
	ReasonBusy      = "busy"
	ReasonSlots     = "too few slots"
	ReasonMemory    = "too little memory"
	ReasonDisk      = "too little disk"
	ReasonGPUs      = "too few GPUs"
	ReasonWhere     = "does not match --where"
	ReasonDenied    = "denied by owner"
	ReasonPaused    = "owner paused"
	ReasonHours     = "outside the hours of its owner"
	ReasonHoursSoon = "the hours of its owner end too soon"
	ReasonLeaving   = "leaving"
	ReasonDraining  = "draining"
	ReasonQueueing  = "too many jobs waiting"
	ReasonFull      = "its disk is nearly full"
	ReasonHangs     = "its disk does not answer"
	ReasonNetwork   = "its owner allows --net none only"
	ReasonNetJob    = "its owner allows --net job and none only"
	ReasonNoNet     = "cannot keep workers from the network"
	ReasonNoFence   = "cannot keep workers to the nodes of their job"
	ReasonSingle    = "has a worker of the job already"
)

// ReasonMount begins the decline of a node whose owner does not show a path; the path
// follows.
const ReasonMount = "its owner does not expose"

// ReasonWalltime begins the decline of a job that wants to run for longer; the time follows.
const ReasonWalltime = "owner allows walltimes up to"

// ReasonBroken begins the decline of such a node; the cause follows.
const ReasonBroken = "cannot start workers"

// Lasts reports whether a decline for a reason lasts as long as the node and its owner's settings are as
// they are. Others may pass without anybody's doing.
func Lasts(reason string) bool {
	switch reason {
	case ReasonSlots, ReasonMemory, ReasonGPUs, ReasonWhere, ReasonDenied, ReasonNetwork, ReasonNetJob, ReasonNoNet, ReasonNoFence:
		return true
	}
	return strings.HasPrefix(reason, ReasonMount) || strings.HasPrefix(reason, ReasonWalltime)
}
