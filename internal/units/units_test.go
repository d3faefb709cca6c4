package units_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"zorilla/internal/units"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		-5: "0 B", 0: "0 B", 1: "1 B", 999: "999 B", 1000: "1000 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1 << 20: "1 MiB",
		1<<20 - 1: "1 MiB", 1023 << 10: "1023 KiB", 50 << 20: "50 MiB", 200e6: "191 MiB", 102298: "99.9 KiB", 102360: "100 KiB",
		3 << 29: "1.5 GiB", 8 << 30: "8 GiB", 5 << 40: "5 TiB", 7 << 50: "7 PiB", math.MaxInt64: "8 EiB",
	} {
		if got := units.Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for s, want := range map[string]int64{
		"1": 1, "200M": 200 << 20, "2G": 2 << 30, "2g": 2 << 30, "1.5K": 1536, "64KiB": 64 << 10, "64kib": 64 << 10, "3MB": 3 << 20, "1T": 1 << 40,
		"512B": 512, "4095T": 4095 << 40, "1e3": 1000,
	} {
		if n, err := units.ParseBytes(s); err != nil || n != want {
			t.Errorf("%s: got %d, %v, want %d", s, n, err, want)
		}
	}
	for _, s := range []string{"", "0", "-1G", "G", "B", "lots", "1e30", "NaN", "Inf", "1GG", "1P", "1 G", "0.1", "9999999999T"} {
		if n, err := units.ParseBytes(s); !errors.Is(err, units.ErrSize) {
			t.Errorf("%q was accepted as %d: %v", s, n, err)
		}
	}
}

// What ScanBytes reads, ParseBytes reads too, and as the same.
func TestScanBytes(t *testing.T) {
	for s, want := range map[string]int{
		"8G": 2, "8G && x": 2, "1.5GiB)": 6, "8GB": 3, "8Gi": 3, "8GBx": 3, "2K": 2, "8": 0, "": 0, "G": 0, "8g": 0, "8P": 0, "1.2.3G": 0, "-8G": 0, "9999999999T": 0,
	} {
		n, length := units.ScanBytes(s)
		if length != want {
			t.Errorf("%q: length %d, want %d", s, length, want)
		} else if whole, err := units.ParseBytes(s[:length]); length > 0 && (err != nil || whole != n) {
			t.Errorf("%q: %d, but ParseBytes says %d, %v", s, n, whole, err)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m01s", 90 * time.Minute: "1h30m", 50 * time.Hour: "2d"} {
		if got := units.Span(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestParseSpan(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"90": 90 * time.Second, "10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "01:30:05": 90*time.Minute + 5*time.Second,
		"2d": 48 * time.Hour, "100:00:00": 100 * time.Hour, "1-12:30:05": 36*time.Hour + 30*time.Minute + 5*time.Second, "0-00:00:01": time.Second, "500ms": 500 * time.Millisecond,
	} {
		if d, err := units.ParseSpan(s); err != nil || d != want {
			t.Errorf("%s: got %v, %v, want %v", s, d, err, want)
		}
	}
	for _, s := range []string{"", "0", "-5m", "1:30", "1:60:00", "1:00:61", "x", "NaNd", "1e12d", "9999999999:00:00", "1-24:00:00", "-1-00:00:00", "1-00:00", "1-", "x-00:00:01", "99999-00:00:00", "1-1-00:00:00"} {
		if d, err := units.ParseSpan(s); !errors.Is(err, units.ErrSpan) {
			t.Errorf("%q was accepted as %v: %v", s, d, err)
		}
	}
}

func TestMillis(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "", 0: "", 4 * time.Microsecond: "", 5 * time.Microsecond: "0.01", 42 * time.Microsecond: "0.04", 999 * time.Microsecond: "1.0",
		1500 * time.Microsecond: "1.5", 25 * time.Millisecond: "25.0", 99960 * time.Microsecond: "100", 240 * time.Millisecond: "240",
	} {
		if got, known := units.Millis(d); got != want || known != (want != "") {
			t.Errorf("%v is %q, %v, want %q", d, got, known, want)
		}
	}
}

func TestRate(t *testing.T) {
	for n, want := range map[int64]string{-1: "0.00", 0: "0.00", 20 << 10: "0.02", 1 << 20: "1.0", 3 << 19: "1.5", 104805000: "99.9", 240 << 20: "240"} {
		if got := units.Rate(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 copies", 1: "1 copy", 2: "2 copies", 1200: "1200 copies"} {
		if got := units.Count(n, "copy", "copies"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestParseRange(t *testing.T) {
	for s, want := range map[string][2]int{"1": {1, 1}, "6": {6, 6}, "2..16": {2, 16}, "3..3": {3, 3}} {
		if low, high, err := units.ParseRange(s); err != nil || [2]int{low, high} != want {
			t.Errorf("%s: got %d..%d, %v", s, low, high, err)
		}
	}
	for _, s := range []string{"", "0", "-1", "4..2", "2..", "..4", "2...4", "1.5", "x"} {
		if _, _, err := units.ParseRange(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

func TestClocksAndBandwidths(t *testing.T) {
	for s, want := range map[string]int64{"2.4GHz": 2400, "2.4ghz": 2400, "3GHz": 3000, "800MHz": 800, "2400": 2400, "2.0005GHz": 0, "1": 1, "1000GHz": 1_000_000,
		"": 0, "GHz": 0, "0": 0, "-1GHz": 0, "+1GHz": 0, "2.4": 0, "2.4 GHz": 0, "2GHzGHz": 0, "1e3": 0, "2Hz": 0, "1001GHz": 0, "1.2.3GHz": 0, "InfGHz": 0, "2Gbit": 0} {
		if n, err := units.ParseClock(s); n != want || (err == nil) != (want > 0) || err != nil && !errors.Is(err, units.ErrClock) {
			t.Errorf("clock %q: got %d, %v, want %d", s, n, err, want)
		}
	}
	for s, want := range map[string]int64{"1Gbit": 1000, "2.5gbit": 2500, "100Mbit": 100, "100Mbit/s": 100, "10Gbit/s": 10_000, "1000": 1000,
		"": 0, "1000/s": 0, "1Gb": 0, "1GB": 0, "1Gbit/m": 0, "0Mbit": 0, "1kbit": 0, "1GHz": 0, "bit/s": 0} {
		if n, err := units.ParseBandwidth(s); n != want || (err == nil) != (want > 0) || err != nil && !errors.Is(err, units.ErrBandwidth) {
			t.Errorf("bandwidth %q: got %d, %v, want %d", s, n, err, want)
		}
	}
	for n, want := range map[int64][2]string{1: {"1MHz", "1Mbit"}, 999: {"999MHz", "999Mbit"}, 1000: {"1GHz", "1Gbit"}, 2401: {"2.401GHz", "2.401Gbit"}, 100_000: {"100GHz", "100Gbit"}} {
		clock, err1 := units.ParseClock(want[0])
		bandwidth, err2 := units.ParseBandwidth(want[1])
		if units.Clock(n) != want[0] || units.Bandwidth(n) != want[1] || clock != n || bandwidth != n || err1 != nil || err2 != nil {
			t.Errorf("%d: %s, %s; read as %d, %v, %d, %v", n, units.Clock(n), units.Bandwidth(n), clock, err1, bandwidth, err2)
		}
	}
}
