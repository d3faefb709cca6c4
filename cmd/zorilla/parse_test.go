package main

import (
	"testing"
	"time"
)

func TestParseRanks(t *testing.T) {
	for s, want := range map[string][2]int{"1": {1, 1}, "6": {6, 6}, "2..16": {2, 16}, "3..3": {3, 3}} {
		if low, high, err := parseRanks(s); err != nil || [2]int{low, high} != want {
			t.Errorf("%s: got %d..%d, %v", s, low, high, err)
		}
	}
	for _, s := range []string{"", "0", "-1", "4..2", "2..", "..4", "2...4", "1.5", "x"} {
		if _, _, err := parseRanks(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{"1": 1, "200M": 200 << 20, "2G": 2 << 30, "2g": 2 << 30, "1.5K": 1536, "64KiB": 64 << 10, "3MB": 3 << 20, "1T": 1 << 40, "512B": 512} {
		if n, err := parseSize("--mem", s); err != nil || n != want {
			t.Errorf("%s: got %d, %v, want %d", s, n, err, want)
		}
	}
	for _, s := range []string{"", "0", "-1G", "G", "lots", "1e30", "NaN", "1GG", "0.1", "9999999999T"} {
		if n, err := parseSize("--mem", s); err == nil {
			t.Errorf("%q was accepted as %d", s, n)
		}
	}
}

func TestParseTime(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"90": 90 * time.Second, "10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "01:30:05": 90*time.Minute + 5*time.Second,
		"2d": 48 * time.Hour, "100:00:00": 100 * time.Hour, "500ms": 500 * time.Millisecond,
	} {
		if d, err := parseTime("-t", s); err != nil || d != want {
			t.Errorf("%s: got %v, %v, want %v", s, d, err, want)
		}
	}
	for _, s := range []string{"", "0", "-5m", "1:30", "1:60:00", "1:00:61", "x", "1e12d", "9999999999:00:00"} {
		if d, err := parseTime("-t", s); err == nil {
			t.Errorf("%q was accepted as %v", s, d)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m01s", 90 * time.Minute: "1h30m", 50 * time.Hour: "2d"} {
		if got := span(d); got != want {
			t.Errorf("span(%v) is %s, want %s", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "-", 42 * time.Microsecond: "0.04ms", 1500 * time.Microsecond: "1.5ms", 240 * time.Millisecond: "240ms"} {
		if got := rtt(d); got != want {
			t.Errorf("rtt(%v) is %s, want %s", d, got, want)
		}
	}
}
