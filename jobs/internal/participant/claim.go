package participant

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
)

// ClaimNote is the name of a ClaimRecord among the notes of a worker's directory.
const ClaimNote = "claim"

// ClaimRecord is what a node must know of a worker to go on with it in its next
// life. It is written when the worker is prepared, and again, and made durable,
// before the worker starts.
type ClaimRecord struct {
	Version int      `json:"version"`
	Job     jobs.ID  `json:"job"`
	Addrs   []string `json:"addrs"` // of its origin
	jobs.RankAttempt
	Spec  jobs.Spec   `json:"spec"`
	GPUs  []int       `json:"gpus,omitempty"`  // numbers of those that are its own
	Cores []int       `json:"cores,omitempty"` // the same of processors
	Share int         `json:"share,omitempty"` // the number of the work directory that it shares with others; 0 = none
	Stamp jobs.Stamp  `json:"stamp"`
	Since time.Time   `json:"since"`           // when this node was granted the job
	Start *wire.Start `json:"start,omitempty"` // nil = it may not have started
	At    time.Time   `json:"at"`              // of Start
	// Lost says why it did not begin here, and will not.
	Lost string `json:"lost,omitempty"`
	// Allowed is how long the owner of this node lets the worker, or each of its tasks, run, as its job has no
	// walltime; 0 = it has, or there is no limit.
	Allowed codec.Duration `json:"allowed,omitempty"`
	// Last is the largest number of the rank's checkpoints before, Resume the one that it begins with.
	Last   int              `json:"last,omitempty"`
	Resume *jobs.Checkpoint `json:"resume,omitempty"`
}

const claimVersion = 2

// check refuses what this version did not write, or does not understand.
func (c *ClaimRecord) check() error {
	switch {
	case c.Version != claimVersion:
		return fmt.Errorf("claim of version %d, this node understands only %d", c.Version, claimVersion)
	case len(c.GPUs) > jobs.MaxGPUs || slices.ContainsFunc(c.GPUs, func(i int) bool { return i < 0 }):
		return fmt.Errorf("claim: GPUs: %w", codec.ErrMalformed)
	case len(c.Cores) > c.Spec.Needs(c.Rank).Slots || slices.ContainsFunc(c.Cores, func(i int) bool { return i < 0 }):
		return fmt.Errorf("claim: processors: %w", codec.ErrMalformed)
	case c.Share < 0, c.Share > 0 && !c.Spec.ShareWork, c.Share == 0 && c.Spec.ShareWork && c.Lost == "":
		return fmt.Errorf("claim: shared directory: %w", codec.ErrMalformed)
	case c.Allowed < 0, c.Allowed.Std() > jobs.MaxTime:
		return fmt.Errorf("claim: walltime: %w", codec.ErrMalformed)
	case c.Last < 0, c.Resume != nil && c.Resume.Check() != nil:
		return fmt.Errorf("claim: checkpoint: %w", codec.ErrMalformed)
	case !c.Job.Valid(), c.Rank >= c.Spec.Workers():
		return fmt.Errorf("claim: %w", codec.ErrMalformed)
	case c.Start != nil && c.Start.Check() != nil:
		return c.Start.Check()
	}
	if err := wire.CheckAddrs(c.Addrs); err != nil {
		return err
	}
	if err := wire.CheckRanks([]jobs.RankAttempt{c.RankAttempt}); err != nil {
		return err
	}
	return c.Spec.Validate()
}

// Walltime is how long the worker, or each of its tasks, may run; 0 = without limit.
func (c *ClaimRecord) Walltime() time.Duration { return cmp.Or(c.Spec.Walltime, c.Allowed).Std() }

// LoadClaim reads the claim of a worker's directory.
func LoadClaim(root string) (ClaimRecord, error) {
	var c ClaimRecord
	b, damaged := process.Noted(root, ClaimNote)
	if b == nil && damaged != nil {
		return c, damaged
	}
	if len(b) > wire.MaxBody {
		return c, fmt.Errorf("claim: %w: %d bytes", codec.ErrMalformed, len(b))
	}
	if err := codec.Unmarshal(b, &c); err != nil {
		return c, err
	}
	if err := c.check(); err != nil {
		return c, err
	}
	if damaged != nil && c.Start == nil { // what is damaged may be that it was to start
		return c, damaged
	}
	if name := RootName(c.Job, c.RankAttempt); name != filepath.Base(root) {
		return c, fmt.Errorf("claim of another worker: %s", name)
	}
	return c, nil
}

// Write writes a claim into a worker's directory; one that lets the worker start so that
// no failure of the machine takes it away.
func (c *ClaimRecord) Write(root string) error {
	b, err := codec.Marshal(c)
	if err != nil {
		return err
	}
	return process.Note(root, ClaimNote, b, c.Start != nil) // a node that forgets one without Start was not asked to start anything
}

// Shared is the name of the directory around the one that a worker shares with others of its job;
// "" = it has its own.
func (c *ClaimRecord) Shared() string {
	if c.Share == 0 {
		return ""
	}
	return SharedName(c.Job, c.Share)
}

// SharedName is the name of the directory around one that workers of a job share, by its number.
func SharedName(job jobs.ID, number int) string { return fmt.Sprintf("%s-shared-%d", job, number) }

// RootName is the name of a worker's own directory.
func RootName(job jobs.ID, ra jobs.RankAttempt) string {
	return fmt.Sprintf("%s-%d-%d", job, ra.Rank, ra.Attempt)
}
