package jobs

import (
	"cmp"
	"fmt"
	"time"

	"zorilla/internal/codec"
)

// Limits of a Spec. What is beyond them is refused at submission and again by
// every node that receives it.
const (
	MaxRanks    = 100_000
	MaxSlots    = 4096 // per worker
	MaxGPUs     = 256  // per worker
	MaxArgs     = 4096
	MaxArgBytes = 512 << 10 // arguments and environment together
	MaxGlobs    = 256
	MaxName     = 64
	MaxRetries  = 1000
	MaxTime     = 366 * 24 * time.Hour
)

// Failing says what happens when a program fails, ends with another code than 0, and what ends a
// job early: what a rank that has failed for good means for the others, and how much it may write.
type Failing struct {
	// Retries is how many more attempts there are of a rank; of a rigid job as a whole, also if a node is lost.
	Retries int `json:"retries,omitempty"`

	KillOnBadExit *bool `json:"kill_on_bad_exit,omitempty"` // it stops the others; nil = in a rigid job
	MaxFails      int   `json:"max_fails,omitempty"`        // the job is stopped when more ranks have failed; 0 = no limit

	// MaxOutput bounds the bytes of standard output and error that each worker, or task,
	// writes: a worker that writes more ends the job. 0 = no limit.
	MaxOutput int64 `json:"max_output,omitempty"`

	// LostAfter is how long a node may be silent before its ranks count as lost, LeastPatience to
	// MostPatience; 0 = DefaultPatience.
	LostAfter codec.Duration `json:"lost_after,omitempty"`

	// CheckpointFar: one of the nodes that keep a rank's checkpoint is in another cluster than its node, if there is one.
	CheckpointFar bool `json:"checkpoint_far,omitempty"`
}

// How long a job waits for a node that is silent.
const (
	DefaultPatience = 10 * time.Second
	LeastPatience   = 2 * time.Second
	MostPatience    = time.Hour
)

// Patience is how long a node may be silent before its ranks count as lost.
func (f *Failing) Patience() time.Duration {
	return cmp.Or(time.Duration(f.LostAfter), DefaultPatience)
}

// DefaultMaxOutput is the MaxOutput of a job whose user does not choose one, at the command line and
// on the page.
const DefaultMaxOutput = 10 << 30 // bytes

// check returns what is wrong, as a user sees it.
func (f *Failing) check() string {
	switch {
	case f.Retries < 0 || f.Retries > MaxRetries:
		return fmt.Sprintf("--retries %d: want 0 to %d", f.Retries, MaxRetries)
	case f.MaxFails < 0 || f.MaxFails > MaxRanks:
		return fmt.Sprintf("--max-fails %d: want 0 to %d", f.MaxFails, MaxRanks)
	case f.MaxOutput < 0:
		return fmt.Sprintf("--max-output %d: negative", f.MaxOutput)
	}
	if d := time.Duration(f.LostAfter); d != 0 && (d < LeastPatience || d > MostPatience) {
		return fmt.Sprintf("--lost-after %v: want %v to %v", d, LeastPatience, MostPatience)
	}
	return ""
}
