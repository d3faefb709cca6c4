package jobfile

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/jobs/groups"
	"zorilla/jobs/placement/topology"
)

// quantity is a kind of what a node has so much of.
type quantity struct {
	read  func(string) (int64, error)
	write func(int64) string
}

var (
	number    = quantity{readNumber, func(n int64) string { return strconv.FormatInt(n, 10) }}
	size      = quantity{readSize, writeSize}
	clock     = quantity{func(s string) (int64, error) { return readUnits(s, errClock, "MHz", "GHz") }, writeClock}
	bandwidth = quantity{func(s string) (int64, error) { return readUnits(s, errBandwidth, "Mbit", "Gbit") }, writeBandwidth}
)

var (
	errNumber    = errors.New("want a number from 1 on such as 2, or a range such as 2..8")
	errSize      = errors.New("want a size such as 200M or 2G, or a range such as 4G..64G")
	errClock     = errors.New("want a clock such as 2.4GHz or 2400MHz, or a range such as 2GHz..3GHz")
	errBandwidth = errors.New("want a bandwidth such as 100Mbit or 1Gbit, or a range such as 1Gbit..10Gbit")
	errRTT       = fmt.Errorf("want a time such as 5ms, a range such as 1ms..10ms, or one of %s", words())
	errOrder     = errors.New("the first is larger than the second: want MIN..MAX")
)

func readNumber(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 {
		return 0, errNumber
	}
	return n, nil
}

func readSize(s string) (int64, error) {
	n, err := units.ParseBytes(s)
	switch {
	case err != nil:
		return 0, errSize
	case n < 1<<20 && strings.Trim(s, "0123456789") == "":
		return 0, fmt.Errorf("that is %s bytes: did you mean %sM?", s, s)
	}
	return n, nil
}

func writeSize(n int64) string {
	for i, unit := range "TGMK" {
		if one := int64(1) << (40 - 10*i); n%one == 0 {
			return strconv.FormatInt(n/one, 10) + string(unit)
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// readUnits reads a number of a unit, of one that is a thousand times larger, or without one.
func readUnits(s string, wrong error, one, thousand string) (int64, error) {
	factor := 1.0
	digits, found := strings.CutSuffix(strings.ToLower(s), strings.ToLower(thousand))
	if found {
		factor = 1000
	} else {
		digits = strings.TrimSuffix(digits, strings.ToLower(one))
	}
	if strings.Trim(digits, "0123456789.") != "" {
		return 0, wrong
	}
	v, err := strconv.ParseFloat(digits, 64)
	n := math.Round(v * factor)
	if err != nil || !(n >= 1 && n <= 1<<30) || math.Abs(v*factor-n) > 1e-6 {
		return 0, wrong
	}
	return int64(n), nil
}

func writeClock(n int64) string {
	if n%100 == 0 {
		return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) + "GHz"
	}
	return strconv.FormatInt(n, 10) + "MHz"
}

func writeBandwidth(n int64) string {
	if n%1000 == 0 {
		return strconv.FormatInt(n/1000, 10) + "Gbit"
	}
	return strconv.FormatInt(n, 10) + "Mbit"
}

// readRange reads MIN, MIN..MAX, MIN.. or ..MAX.
func (q quantity) readRange(s string) (r groups.Range, err error) {
	low, high, _ := strings.Cut(s, "..")
	if low != "" || high == "" {
		if r.Min, err = q.read(low); err != nil {
			return r, err
		}
	}
	if high != "" {
		if r.Max, err = q.read(high); err != nil {
			return r, err
		}
	}
	if r.Max > 0 && r.Min > r.Max {
		return r, errOrder
	}
	return r, nil
}

// writeRange is the counterpart of readRange.
func (q quantity) writeRange(r groups.Range) (s string) {
	if r.Min > 0 {
		s = q.write(r.Min)
	}
	if r.Max > 0 {
		s += ".." + q.write(r.Max)
	}
	return s
}

// Word is a distance by name.
type Word struct {
	Name string
	RTT  time.Duration // at most
}

// Words are the distances that a link can have by name.
func Words() []Word {
	return []Word{
		{"same-host", topology.OneHost},
		{"lan", time.Millisecond}, {"site", 5 * time.Millisecond}, {"country", 30 * time.Millisecond},
	}
}

func words() string {
	var names []string
	for _, w := range Words() {
		names = append(names, w.Name)
	}
	return strings.Join(names, ", ")
}

// readRTT reads a word, MAX, MIN..MAX, MIN.. or ..MAX.
func readRTT(s string) (low, high codec.Duration, err error) {
	for _, w := range Words() {
		if s == w.Name {
			return 0, codec.Duration(w.RTT), nil
		}
	}
	first, last, ranged := strings.Cut(s, "..")
	if !ranged {
		first, last = "", first
	}
	read := func(s string) (d time.Duration) {
		if s == "" {
			return 0
		}
		d, e := time.ParseDuration(s)
		if e != nil || d <= 0 || d > groups.MaxRTT {
			err = errRTT
		}
		return d
	}
	low, high = codec.Duration(read(first)), codec.Duration(read(last))
	switch {
	case err != nil || low == 0 && high == 0:
		return 0, 0, errRTT
	case high > 0 && low > high:
		return 0, 0, errOrder
	}
	return low, high, nil
}

// writeRTT is the counterpart of readRTT.
func writeRTT(low, high codec.Duration) string {
	for _, w := range Words() {
		if low == 0 && high == codec.Duration(w.RTT) {
			return w.Name
		}
	}
	switch {
	case low == 0:
		return high.String()
	case high == 0:
		return low.String() + ".."
	}
	return low.String() + ".." + high.String()
}
