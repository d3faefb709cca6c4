package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
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

// parseSize reads a number of bytes with an optional unit of 1024: K, M, G, T.
func parseSize(flag, s string) (int64, error) {
	bad := fmt.Errorf("%s %s: want a size such as 200M or 2G", flag, s)
	digits := strings.ToUpper(s)
	digits = strings.TrimSuffix(strings.TrimSuffix(digits, "B"), "I")
	unit := 1.0
	if i := strings.IndexAny(digits, "KMGT"); i >= 0 && i == len(digits)-1 {
		unit = math.Pow(1024, float64(strings.IndexByte("KMGT", digits[i])+1))
		digits = digits[:i]
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n > 0 && n*unit < 1<<62) || n*unit < 1 {
		return 0, bad
	}
	return int64(n * unit), nil
}

// parseTime reads 1h30m, 2d, HH:MM:SS or a number of seconds.
func parseTime(flag, s string) (time.Duration, error) {
	d, err := timeOf(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s %s: want a time such as 10m, 1h30m, 2d, HH:MM:SS or seconds", flag, s)
	}
	return d, nil
}

func timeOf(s string) (time.Duration, error) {
	if seconds, err := strconv.ParseInt(s, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, nil
	}
	if parts := strings.Split(s, ":"); len(parts) == 3 {
		var total int64
		for i, p := range parts {
			n, err := strconv.ParseUint(p, 10, 31)
			if err != nil || i > 0 && n > 59 {
				return 0, errors.New("not HH:MM:SS")
			}
			total = total*60 + int64(n)
		}
		return boundedTime(float64(total))
	}
	if days, found := strings.CutSuffix(s, "d"); found {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil {
			return 0, err
		}
		return boundedTime(n * 24 * 3600)
	}
	return time.ParseDuration(s)
}

func boundedTime(seconds float64) (time.Duration, error) {
	if !(seconds >= 0 && seconds < 9e9) {
		return 0, errors.New("out of range")
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
