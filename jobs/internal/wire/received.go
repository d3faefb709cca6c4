package wire

import "zorilla/jobs/process"

// Received counts output bytes that the origin has.
type Received struct{ Stdout, Stderr int64 }

// Reading says what the origin has of the output of a worker in a Report.
type Reading struct {
	Worker  int // its index
	From    Received
	Skip    bool // nothing is sent before it is known what the origin has
	Results int  // of tasks
}

// Of returns the bytes of one stream.
func (r Received) Of(st process.Stream) int64 {
	if st == process.Stderr {
		return r.Stderr
	}
	return r.Stdout
}
