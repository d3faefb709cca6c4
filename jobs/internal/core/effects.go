package core

import "zorilla/jobs"

// Action is an effect that is to be done outside, and the job that was submitted here
// whose it is, if it is one's.
type Action struct {
	Job jobs.ID
	Effect
}

// Effect is something to be done outside: a primary.Effect, a participant.Effect,
// DoPacket, DoConnect, DoRecord, DoSettle, DoFollow, DoKeepBooking, DoForgetBooking or DoBooked.
type Effect any
