package jobs

import (
	"errors"
	"strings"
)

// Errors that callers act on; see also ErrInvalid.
var (
	ErrNotFound  = errors.New("not found")
	ErrAmbiguous = errors.New("ambiguous") // a prefix names more than one job
	ErrRefused   = errors.New("refused")
	ErrEnded     = errors.New("ended")
	ErrForgotten = errors.New("forgotten") // the job is known, its results are not kept any more
)

// oneLine makes a text fit for a report: printable and not too long.
func oneLine(s string) string { return oneLineOf(s, maxText) }

func oneLineOf(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most-3], "") + "..."
	}
	return s
}
