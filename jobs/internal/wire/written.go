package wire

import "zorilla/jobs/work"

// Written counts the bytes of a worker's output: those that it wrote, or that its
// origin has of them.
type Written struct {
	Stdout int64 `json:"stdout"`
	Stderr int64 `json:"stderr"`
}

// Reading says what the origin has of the output of a worker in a Report.
type Reading struct {
	Worker  int // its index
	From    Written
	Skip    bool // nothing is sent before it is known what the origin has
	Results int  // of tasks
}

// Of returns the bytes of one stream.
func (r Written) Of(st work.Stream) int64 {
	if st == work.Stderr {
		return r.Stderr
	}
	return r.Stdout
}
