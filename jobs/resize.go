package jobs

import "fmt"

// Resize asks for another number of workers of a malleable job (-n MIN..MAX) that has not
// ended. The zero value only asks how many there are.
type Resize struct {
	// Workers is how many are wanted, MIN to MAX; 0 = without those in Release.
	Workers int `json:"workers,omitempty"`
	// Release names the ranks that go first if some have to; after them go the highest.
	Release []int `json:"release,omitempty"`
}

// Size is how many workers a malleable job has, and is to have.
type Size struct {
	Wanted int `json:"wanted"` // as was asked for last, else MAX
	Have   int `json:"have"`   // have a node or need another, and neither ended nor were given back
	Min    int `json:"min"`
	Max    int `json:"max"`
}

// MaxRelease bounds how many ranks a Resize names.
const MaxRelease = 4096

// Check returns an error that wraps ErrRange if no job could do that.
func (q *Resize) Check() error {
	if q.Workers < 0 || q.Workers > MaxRanks || len(q.Release) > MaxRelease {
		return fmt.Errorf("%w: %d workers, %d ranks: want at most %d and %d", ErrRange, q.Workers, len(q.Release), MaxRanks, MaxRelease)
	}
	for _, rank := range q.Release {
		if rank < 0 || rank >= MaxRanks {
			return fmt.Errorf("%w: rank %d: want 0 to %d", ErrRange, rank, MaxRanks-1)
		}
	}
	return nil
}
