package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Checkpoint is a state of a rank that its program has written into a directory, and that
// nodes keep. A later attempt of the rank begins with it.
type Checkpoint struct {
	Number   int           `json:"number"`          // from 1; those of later attempts have larger ones
	Epoch    int64         `json:"epoch"`           // from 1: ranks that start again together begin with the same; the number if the program gave none
	All      bool          `json:"all,omitempty"`   // it is the state of all ranks that start again together, which begin with it
	Dir      string        `json:"dir"`             // below the work directory; "." = that itself
	At       time.Time     `json:"at,omitzero"`     // when its origin heard of it
	Manifest transfer.Hash `json:"manifest"`        // of its files, with their paths below the work directory
	Files    int           `json:"files"`           //
	Bytes    int64         `json:"bytes"`           //
	Holders  []vicinity.ID `json:"holders"`         // nodes that have all of it; the last one is that of the rank
	Short    string        `json:"short,omitempty"` // why fewer nodes keep it than there should be, or none far away; one line
}

// Node is that of the rank which made it, unless it does not keep it itself.
func (c *Checkpoint) Node() vicinity.ID { return c.Holders[len(c.Holders)-1] }

const (
	// Keepers is how many nodes keep a checkpoint, beside that of its rank.
	Keepers = 2
	// MaxCheckpoints bounds how many of a rank are kept: more than one only where ranks start
	// again together, and have not all made a newer one.
	MaxCheckpoints = 8

	maxHolders = 2 * (Keepers + 1)
)

// ErrNoCheckpoint: none of the nodes that kept the checkpoint with which a worker was to begin has given it.
var ErrNoCheckpoint = errors.New("none of the nodes that kept its checkpoint has given it")

// Check refuses what no honest node sends.
func (c *Checkpoint) Check() error {
	bad := c.Number < 1 || c.Epoch < 1 || c.Manifest.IsZero() || c.Files < 1 || c.Bytes < 0 || len(c.Holders) == 0 || len(c.Holders) > maxHolders ||
		CheckCheckpointDir(c.Dir) != nil || len(c.Short) > MaxShort
	for _, id := range c.Holders {
		bad = bad || !id.Valid()
	}
	if bad {
		return fmt.Errorf("checkpoint: %w", codec.ErrMalformed)
	}
	return nil
}

// MaxShort bounds Short, in bytes.
const MaxShort = 300

// CheckCheckpointDir says what is wrong with the directory of a checkpoint.
func CheckCheckpointDir(dir string) error {
	if !fs.ValidPath(dir) || path.Clean(dir) != dir || len(dir) > transfer.MaxPath || strings.ContainsAny(dir, `*?[]\`) {
		return fmt.Errorf("checkpoint directory %.80q: want a path below the work directory, without * ? [ ] and \\", dir)
	}
	return nil
}

// CheckpointAsk is what a program asks that has written its state.
type CheckpointAsk struct {
	Dir   string // below the work directory
	Epoch int64  // 0 = none
	// All: it is the state of all ranks that start again together.
	All bool
	// Wait: the answer comes when its nodes keep it; else as soon as the directory was read.
	Wait bool
}

// Check says what is wrong with it.
func (q *CheckpointAsk) Check() error {
	if q.Epoch < 0 {
		return fmt.Errorf("epoch %d: want 1 or more", q.Epoch)
	}
	return CheckCheckpointDir(q.Dir)
}

// CheckpointAnswer answers a CheckpointAsk.
type CheckpointAnswer struct {
	Number int   `json:"number"`
	Epoch  int64 `json:"epoch"`
	Files  int   `json:"files"`
	Bytes  int64 `json:"bytes"`
	// Keepers are the names of the nodes that keep it, beside that of the rank.
	Keepers []string `json:"keepers"`
	// Short says why these are fewer than there should be, or why none is far away (--checkpoint-far); one line.
	Short string `json:"short,omitempty"`
	// Told is set if the answer to the checkpoint before had the same Short.
	Told bool `json:"told,omitempty"`
	// LeftOut says which files of the directory are not in it, since they are links or the like, or have names
	// that cannot be sent; one line.
	LeftOut string `json:"left_out,omitempty"`
	// Safe is set if another attempt would begin with it, or a later one.
	Safe bool `json:"safe"`
}
