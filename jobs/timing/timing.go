// Package timing is by when a job is to have ended, whether its start is to be promised, and what a promise is.
package timing

import (
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// Timing is by when a job is to have ended, and whether its start is to be promised.
type Timing struct {
	Deadline time.Time `json:"deadline,omitempty,omitzero"` // by then it has ended, or is ended; zero = it may take its time
	// BookAfter is how long a job waits for room before it has a start promised: BookAtOnce or longer, BookNever,
	// or 0 for what it is by default, see Books.
	BookAfter codec.Duration `json:"book_after,omitempty"`
}

const (
	// Max is the longest time that a job can say.
	Max = 366 * 24 * time.Hour
	// DefaultBookAfter is how long a job waits that was passed over, if it does not say.
	DefaultBookAfter = 10 * time.Minute
	BookAtOnce       = 1
	BookNever        = -1
)

// After has the job's start promised when it has waited for so long, 0 = at once.
func (t *Timing) After(wait time.Duration) { t.BookAfter = max(codec.Duration(wait), BookAtOnce) }

// Check returns what is wrong, as a user sees it, with the times of a job that begins at a time, zero = at once.
func (t *Timing) Check(begin time.Time) string {
	switch {
	case t.BookAfter < BookNever || time.Duration(t.BookAfter) > Max:
		return fmt.Sprintf("--book-after %v: want 0s to %v, or never", t.BookAfter, Max)
	case t.Deadline.IsZero():
		return ""
	case t.Deadline.UTC().Year() < 2000 || t.Deadline.UTC().Year() > 8000:
		return fmt.Sprintf("--deadline: the year %d, want 2000 to 8000", t.Deadline.UTC().Year())
	case !t.Deadline.After(begin):
		return "--deadline is not after --begin: want a later one"
	}
	return ""
}

// CheckWith returns what is wrong with them for a job of a walltime that begins then, as a user sees it.
func (t *Timing) CheckWith(begin time.Time, walltime time.Duration, array bool) string {
	switch {
	case t.BookAfter > 0 && array:
		return "--book-after with an array, whose tasks begin one by one: leave it out"
	case !t.Deadline.IsZero() && !begin.IsZero() && !array && begin.Add(walltime).After(t.Deadline):
		return fmt.Sprintf("--deadline: less than -t %v after --begin", walltime)
	}
	return ""
}

// Books returns how long a job waits for room before it has a start promised, whether it has asked for that, and
// whether it does so at all. Without being asked for it only such jobs do that need more than one slot at a
// time: others get the next one that is free.
func (t *Timing) Books(several bool) (wait time.Duration, asked, ever bool) {
	switch d := time.Duration(t.BookAfter); {
	case d < 0:
		return 0, false, false
	case d == BookAtOnce:
		return 0, true, true
	case d > 0:
		return d, true, true
	}
	return DefaultBookAfter, false, several
}

// Promise is when nodes have promised room to a job that waits.
type Promise struct {
	At      time.Time     `json:"at"`
	Until   time.Time     `json:"until,omitempty,omitzero"` // when its walltime is over then; zero = it has none
	Workers int           `json:"workers"`
	Nodes   []vicinity.ID `json:"nodes"`
}
