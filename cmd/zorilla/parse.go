package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"zorilla/internal/units"
)

// parseRanks reads N or MIN..MAX.
func parseRanks(s string) (low, high int, err error) {
	a, b, found := strings.Cut(s, "..")
	if !found {
		b = a
	}
	low, err1 := strconv.Atoi(a)
	high, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || low < 1 || high < low {
		return 0, 0, fmt.Errorf("-n %s: want N or MIN..MAX, as in 4 or 2..16", s)
	}
	return low, high, nil
}

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
