package jobs

import "errors"

// Errors that callers act on; see also ErrInvalid.
var (
	ErrNotFound  = errors.New("not found")
	ErrAmbiguous = errors.New("ambiguous") // a prefix names more than one job
	ErrRefused   = errors.New("refused")
	ErrEnded     = errors.New("ended")
	ErrForgotten = errors.New("forgotten") // the job is known, its results are not kept any more
)
