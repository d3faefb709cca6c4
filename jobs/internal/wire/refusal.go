package wire

import (
	"errors"
	"strings"

	"zorilla/internal/sanitize"
	"zorilla/jobs"
)

// Reasons of refused grants; explain counts nodes by them, too. Where the node offers nothing
// at all any more the reason is that of its declines.
const (
	ReasonLate    = "the grant came too late"
	ReasonYielded = "another job took its slots"
	ReasonFewer   = "has fewer slots left than it offered"
	ReasonEarlier = "its earlier workers are not gone yet"
	ReasonUnknown = "does not know its offer any more"
)

// Refusal is why a node refuses a grant. It wraps jobs.ErrRefused.
type Refusal string

const refused = "refused: " // before the reason, on the wire too

// Error returns the reason, and that it is one.
func (r Refusal) Error() string { return refused + string(r) }

// Unwrap returns jobs.ErrRefused.
func (r Refusal) Unwrap() error { return jobs.ErrRefused }

// Refused makes a refusal of what a node answered.
func Refused(text string) Refusal {
	return Refusal(sanitize.OneLineOf(strings.TrimPrefix(strings.TrimSpace(text), refused), MaxReason))
}

// WhyRefused returns the reason for which a grant was refused, or "" if it was not.
func WhyRefused(err error) string {
	switch r := Refusal(""); {
	case errors.As(err, &r) && r != "":
		return string(r)
	case errors.Is(err, jobs.ErrRefused):
		return ReasonUnknown
	}
	return ""
}
