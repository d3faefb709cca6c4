package jobs

import (
	"errors"
	"fmt"
)

// Errors that callers act on; see also ErrInvalid.
var (
	ErrNotFound  = errors.New("not found")
	ErrAmbiguous = errors.New("ambiguous") // a prefix names more than one job
	ErrRefused   = errors.New("refused")
	ErrEnded     = errors.New("ended")
	// ErrNotRunning: there is no worker beside which a command could run.
	ErrNotRunning = errors.New("not running")
	ErrRange      = errors.New("out of range")
	ErrForgotten  = errors.New("forgotten") // the job is known, its results are not kept any more
)

// ForgottenError is what is said of results that are not here any more.
type ForgottenError struct{ St Status }

// ErrDamaged: the disk lost something of a job that the origin had stored.
var ErrDamaged = errors.New("damaged")

// ErrStopped is what requests get when the service ends while they wait.
var ErrStopped = errors.New("the node is stopping")

// Error reports how the job ended, and when its results went.
func (e *ForgottenError) Error() string {
	return fmt.Sprintf("job %s ended with %d; its output was %v on %s",
		e.St.ID.Short(), e.St.ExitCode, ErrForgotten, e.St.Forgotten.Local().Format("2006-01-02 15:04 MST"))
}

// Unwrap makes it an ErrForgotten.
func (e *ForgottenError) Unwrap() error { return ErrForgotten }
