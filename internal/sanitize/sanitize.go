// Package sanitize makes texts of other machines fit to be shown: one line, printable, not too long.
package sanitize

import (
	"strings"
	"unicode/utf8"
)

// Limits of what is read from packets.
const (
	MaxText = 500 // bytes of a reason or a warning
)

// OneLine makes a text fit for a report: printable and not too long.
func OneLine(s string) string { return OneLineOf(s, MaxText) }

// OneLineOf is OneLine with a bound of its own, in bytes.
func OneLineOf(s string, most int) string {
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

// Printable reports whether a text is UTF-8 without control characters.
func Printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return false
		}
	}
	return true
}
