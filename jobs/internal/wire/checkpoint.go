package wire

import (
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/transfer"
	"zorilla/vicinity"
)

const (
	// KeepLease is how long a node keeps checkpoints of a job of whose origin it hears nothing.
	KeepLease = time.Hour
	// RenewKeep is how often the origin tells keepers what is still needed.
	RenewKeep = 10 * time.Minute
)

type (
	// Resume is what a rank begins with that has checkpoints.
	Resume struct {
		Rank int `json:"rank"`
		Last int `json:"last"` // the largest number of all its checkpoints so far
		// From is what it begins with; nil = it begins anew.
		From *jobs.Checkpoint `json:"from,omitempty"`
	}

	// CheckpointReport is what a report tells of the checkpoints of a worker.
	CheckpointReport struct {
		// Made is the newest that its nodes keep, as long as the origin has not said that it knows it.
		Made *jobs.Checkpoint `json:"made,omitempty"`
		// Missing is the number of the one that it was to begin with, and that no node has given it.
		Missing int `json:"missing,omitempty"`
	}

	// CheckpointAck answers a CheckpointReport.
	CheckpointAck struct {
		Known  int `json:"known,omitempty"`  // the number of the newest that is durable at the origin
		Oldest int `json:"oldest,omitempty"` // those with smaller numbers are not needed any more
	}

	// Keep asks a node to keep a checkpoint, and says which are still needed.
	Keep struct {
		Job jobs.ID `json:"job"`
		New *Kept   `json:"new,omitempty"` // nil = none
		// Needed are ranks of whose checkpoints those with smaller numbers are not needed.
		// What is, is kept for another KeepLease.
		Needed []Needed `json:"needed,omitempty"`
		// All, from the origin alone, when the job has ended: nothing of other ranks is needed.
		All bool `json:"all,omitempty"`
	}

	// Kept is a checkpoint for a node that is to keep it.
	Kept struct {
		Rank     int           `json:"rank"`
		Number   int           `json:"number"`
		Manifest transfer.Hash `json:"manifest"`
		Bytes    int64         `json:"bytes"`
		Holders  []vicinity.ID `json:"holders"`
	}

	// Needed is a rank's oldest checkpoint that is needed.
	Needed struct {
		Rank   int `json:"rank"`
		Oldest int `json:"oldest"`
	}
)

func (r *Resume) check(workers int) error {
	if r.Rank < 0 || r.Rank >= workers || r.Last < 0 || r.From != nil && r.From.Check() != nil {
		return fmt.Errorf("grant: checkpoint: %w", codec.ErrMalformed)
	}
	return nil
}

func (c *CheckpointReport) check() error {
	if c == nil {
		return nil
	}
	if c.Missing < 0 || c.Made != nil && c.Made.Check() != nil {
		return fmt.Errorf("report: checkpoint: %w", codec.ErrMalformed)
	}
	return nil
}

// Check refuses what no honest node sends.
func (k *Keep) Check() error {
	bad := !k.Job.Valid() || len(k.Needed) > jobs.MaxRanks || k.New == nil && len(k.Needed) == 0 && !k.All
	for _, n := range k.Needed {
		bad = bad || n.Rank < 0 || n.Rank >= jobs.MaxRanks || n.Oldest < 0
	}
	if n := k.New; n != nil {
		bad = bad || n.Rank < 0 || n.Rank >= jobs.MaxRanks || n.Number < 1 || n.Manifest.IsZero() || n.Bytes < 0
		bad = bad || len(n.Holders) == 0 || len(n.Holders) > maxHolders
		for _, id := range n.Holders {
			bad = bad || !id.Valid()
		}
	}
	if bad {
		return fmt.Errorf("keep: %w", codec.ErrMalformed)
	}
	return nil
}
