package wire

import (
	"time"

	"zorilla/jobs"
)

// Leases and timeouts. Nodes must agree on the leases; PROTOCOL.md lists them.
const (
	// HoldLease is how long an offer holds slots that are not granted, or from when a grant
	// of them was announced.
	HoldLease = 5 * time.Second
	// GrantTimeout bounds one grant to a node near by: one that does not answer is not waited
	// for. See GrantWithin.
	GrantTimeout = 5 * time.Second
	// PartLease is how long a participant may be silent before its ranks
	// count as lost, if its job does not say; it reports every ReportEvery.
	PartLease   = jobs.DefaultPatience
	ReportEvery = 2 * time.Second
	// ReportTimeout bounds one report.
	ReportTimeout = 30 * time.Second
	// AwayLease is how long origins are asked to wait for this node after it
	// was stopped: enough for another program, or another kernel.
	AwayLease = 2 * time.Minute
	// LeaveWait is how long a leaving node tries to tell the origins of its
	// workers.
	LeaveWait = 3 * time.Second
	// AskAgain is waited before a job whose origin is not reachable is asked about
	// once more.
	AskAgain = 2 * time.Second
	// MeasureTime bounds how long a node measures, MeasureWait how long its
	// answer is waited for.
	MeasureTime  = 300 * time.Millisecond
	MeasurePause = 10 * time.Millisecond
	MeasureWait  = 700 * time.Millisecond
)

// GrantWithin bounds one grant to a node so far away: it may take two round trips to connect, and
// one for the grant and its answer. After PartLease a participant counts as lost anyway.
func GrantWithin(rtt time.Duration) time.Duration {
	return min(GrantTimeout+3*min(max(rtt, 0), PartLease), PartLease)
}
