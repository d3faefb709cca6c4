package jobs

import (
	"fmt"
	"slices"

	"zorilla/vicinity"
)

// Resize asks for another number of workers of a malleable job (-n MIN..MAX) that has not
// ended, or for other nodes for some of a job's workers. The zero value only asks how many there are.
type Resize struct {
	// Workers is how many are wanted, MIN to MAX; 0 = without those in Release.
	Workers int `json:"workers,omitempty"`
	// Release names the ranks that go first if some have to; after them go the highest.
	Release []int `json:"release,omitempty"`
	// Move names ranks that go on at other nodes, of any job that replaces single ranks. It
	// goes with neither of the others.
	Move []Move `json:"move,omitempty"`
}

// Move has a rank go on at another node, with its newest checkpoint.
type Move struct {
	Rank int `json:"rank"`
	// To is where, if that offers room, else near there; "" = near where it was. A client may
	// write a name, or the beginning of an ID.
	To vicinity.ID `json:"to,omitempty"`
}

// Size is how many workers a malleable job has, and is to have.
type Size struct {
	Wanted int `json:"wanted"` // as was asked for last, else MAX
	Have   int `json:"have"`   // have a node or need another, and neither ended nor were given back
	Min    int `json:"min"`
	Max    int `json:"max"`
	Moving int `json:"moving,omitempty"` // of the ranks that Resize.Move named; nodes of earlier versions move none
}

// MaxRelease bounds how many ranks a Resize names, of each kind.
const MaxRelease = 4096

// Check returns an error that wraps ErrRange if no job could do that.
func (q *Resize) Check() error {
	if q.Workers < 0 || q.Workers > MaxRanks || len(q.Release) > MaxRelease {
		return fmt.Errorf("%w: %d workers, %d ranks: want at most %d and %d", ErrRange, q.Workers, len(q.Release), MaxRanks, MaxRelease)
	}
	if len(q.Move) > MaxRelease || len(q.Move) > 0 && (q.Workers != 0 || len(q.Release) > 0) {
		return fmt.Errorf("%w: %d ranks to move: want at most %d, and no other number of workers with them", ErrRange, len(q.Move), MaxRelease)
	}
	ranks := slices.Clone(q.Release)
	for _, m := range q.Move {
		ranks = append(ranks, m.Rank)
	}
	for _, rank := range ranks {
		if rank < 0 || rank >= MaxRanks {
			return fmt.Errorf("%w: rank %d: want 0 to %d", ErrRange, rank, MaxRanks-1)
		}
	}
	return nil
}
