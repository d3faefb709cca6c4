package main

import (
	"fmt"
	"time"

	"zorilla/internal/units"
)

// parseSize reads the size that an option has.
func parseSize(flag, s string) (int64, error) {
	n, err := units.ParseBytes(s)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", flag, s, err)
	}
	return n, nil
}

// parseTime reads the length of time that an option has.
func parseTime(flag, s string) (time.Duration, error) {
	d, err := units.ParseSpan(s)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", flag, s, err)
	}
	return d, nil
}
