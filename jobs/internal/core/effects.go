package core

import "zorilla/jobs"

// Action is an effect that is to be done outside, and the job that was submitted here
// whose it is, if it is one's.
type Action struct {
	Job jobs.ID
	Effect
}

// Effect is something to be done outside: an effect of a primary or of the
// participant, or one of this package.
type Effect interface{ IsEffect() }
