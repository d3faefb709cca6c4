// Package units writes and reads quantities of people, everywhere alike: sizes
// in units of 1024, lengths of time, round trips, counts.
package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bytes writes a number of bytes in units of 1024, which are those of options
// such as --mem 2G: "512 B", "1.5 GiB". Less than none is written as none.
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", max(n, 0))
	}
	v, unit := float64(n)/1024, 0
	for v >= 1023.5 && unit < 5 { // else it would be written as 1024
		v, unit = v/1024, unit+1
	}
	text := fmt.Sprintf("%.0f", v)
	if v < 99.95 {
		text = strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	}
	return text + " " + "KMGTPE"[unit:unit+1] + "iB"
}

// ErrSize is the error of ParseBytes.
var ErrSize = errors.New("want a size such as 200M or 2G")

// sizes are the units that can be typed, each 1024 of the one before.
const sizes = "KMGT"

// maxBytes is what sizes that are typed are smaller than.
const maxBytes = 1 << 62

// ParseBytes reads a size as people type it: a number from 1 on, of bytes or with
// one of the units K, M, G and T of 1024, in either case, also as KB or KiB.
func ParseBytes(s string) (int64, error) {
	s = strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I")
	power := 0
	if s != "" {
		if power = strings.IndexByte(sizes, s[len(s)-1]) + 1; power > 0 {
			s = s[:len(s)-1]
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if n = math.Ldexp(n, 10*power); err != nil || !(n >= 1 && n < maxBytes) {
		return 0, ErrSize
	}
	return int64(n), nil
}

// ScanBytes reads a size with a unit, such as 8G or 1.5GiB, at the beginning of a
// text, and tells its length; 0 means that there is none.
func ScanBytes(s string) (bytes int64, length int) {
	digits := 0
	for digits < len(s) && (s[digits] >= '0' && s[digits] <= '9' || s[digits] == '.') {
		digits++
	}
	if digits == 0 || digits == len(s) {
		return 0, 0
	}
	power := strings.IndexByte(sizes, s[digits]) + 1
	n, err := strconv.ParseFloat(s[:digits], 64)
	if n = math.Ldexp(n, 10*power); power == 0 || err != nil || n >= maxBytes {
		return 0, 0
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(s[digits+1:], "i"), "B")
	return int64(n), len(s) - len(rest)
}

// Span writes a length of time with one or two units: "59s", "1m05s", "2d". Less
// than none is written as none.
func Span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// ErrRange is the error of ParseRange.
var ErrRange = errors.New("want N or MIN..MAX, as in 4 or 2..16")

// ParseRange reads how many there may be of something, from 1 on: N or MIN..MAX.
func ParseRange(s string) (low, high int, err error) {
	a, b, found := strings.Cut(s, "..")
	if !found {
		b = a
	}
	low, err1 := strconv.Atoi(a)
	high, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || low < 1 || high < low {
		return 0, 0, ErrRange
	}
	return low, high, nil
}

// ErrSpan is the error of ParseSpan.
var ErrSpan = errors.New("want a time such as 10m, 1h30m, 2d, HH:MM:SS or seconds")

// ParseSpan reads a length of time, more than 0, as people type it: 1h30m, 2d,
// HH:MM:SS or a number of seconds.
func ParseSpan(s string) (time.Duration, error) {
	d, ok := parseSpan(s)
	if !ok || d <= 0 {
		return 0, ErrSpan
	}
	return d, nil
}

func parseSpan(s string) (time.Duration, bool) {
	if seconds, err := strconv.ParseInt(s, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	whole, clock, dashed := strings.Cut(s, "-")
	if !dashed {
		whole, clock = "0", s
	}
	if parts := strings.Split(clock, ":"); len(parts) == 3 {
		total, err := strconv.ParseUint(whole, 10, 15)
		if total *= 24; err != nil {
			return 0, false
		}
		for i, p := range parts {
			n, err := strconv.ParseUint(p, 10, 31)
			if err != nil || i > 0 && n > 59 || i == 0 && dashed && n > 23 {
				return 0, false
			}
			if i == 0 {
				total += n
				continue
			}
			total = total*60 + n
		}
		return seconds(float64(total))
	}
	if days, found := strings.CutSuffix(s, "d"); found {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil {
			return 0, false
		}
		return seconds(n * 24 * 3600)
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// seconds refuses what no time.Duration can hold.
func seconds(n float64) (time.Duration, bool) {
	if !(n >= 0 && n < 9e9) {
		return 0, false
	}
	return time.Duration(n * float64(time.Second)), true
}

// NoNetwork is the round trip below which there is no network: a node is nearer
// than that only to itself.
const NoNetwork = 5 * time.Microsecond

// Millis writes a round trip in milliseconds, without the unit: "0.04", "1.5",
// "240". It is not known if it is shorter than NoNetwork.
func Millis(d time.Duration) (text string, known bool) {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case d < NoNetwork:
		return "", false
	case ms < 0.995:
		return fmt.Sprintf("%.2f", ms), true
	case ms < 99.95:
		return fmt.Sprintf("%.1f", ms), true
	}
	return fmt.Sprintf("%.0f", ms), true
}

// Rate writes a number of bytes a second in MiB, without the unit: "0.02", "1.5", "240".
func Rate(perSecond int64) string {
	switch mib := float64(max(perSecond, 0)) / (1 << 20); {
	case mib < 0.995:
		return fmt.Sprintf("%.2f", mib)
	case mib < 99.95:
		return fmt.Sprintf("%.1f", mib)
	default:
		return fmt.Sprintf("%.0f", mib)
	}
}

// Count writes a number of things: "1 copy", "2 copies".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// ErrClock is the error of ParseClock.
var ErrClock = errors.New("want a clock such as 2.4GHz, 800MHz or 2400 (MHz)")

// ErrBandwidth is the error of ParseBandwidth.
var ErrBandwidth = errors.New("want a bandwidth such as 1Gbit, 100Mbit or 1000 (Mbit/s)")

// ParseClock reads the clock of a processor as people type it, in whole MHz from 1 to
// 10^6: 2.4GHz, 800MHz, in any case, or a number of MHz.
func ParseClock(s string) (mhz int64, err error) {
	if n := thousands(s, "mhz", "ghz"); n > 0 {
		return n, nil
	}
	return 0, ErrClock
}

// ParseBandwidth reads a bandwidth as people type it, in whole Mbit/s from 1 to 10^6:
// 1Gbit, 100Mbit, in any case and also with /s, or a number of Mbit/s.
func ParseBandwidth(s string) (mbit int64, err error) {
	if strings.HasSuffix(s, "bit/s") {
		s = strings.TrimSuffix(s, "/s")
	}
	if n := thousands(s, "mbit", "gbit"); n > 0 {
		return n, nil
	}
	return 0, ErrBandwidth
}

// thousands reads a number with a unit, or with another of which one is a thousand, or
// without; 0 = it is none that is whole, and from 1 to 10^6.
func thousands(s, unit, kilo string) int64 {
	s = strings.ToLower(s)
	number, factor := s, 1.0
	if rest, ok := strings.CutSuffix(s, kilo); ok {
		number, factor = rest, 1000
	} else if rest, ok := strings.CutSuffix(s, unit); ok {
		number = rest
	}
	if number == "" || strings.Trim(number, "0123456789.") != "" {
		return 0
	}
	n, err := strconv.ParseFloat(number, 64)
	whole := math.Round(n * factor)
	if err != nil || math.Abs(n*factor-whole) > 1e-6 || !(whole >= 1 && whole <= 1e6) {
		return 0
	}
	return int64(whole)
}

// Clock writes one, as ParseClock reads it: "2.4GHz", "800MHz".
func Clock(mhz int64) string { return inThousands(mhz, "MHz", "GHz") }

// Bandwidth writes one, as ParseBandwidth reads it: "1Gbit", "100Mbit".
func Bandwidth(mbit int64) string { return inThousands(mbit, "Mbit", "Gbit") }

func inThousands(n int64, unit, kilo string) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + unit
	}
	return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) + kilo
}
