package units_test

import (
	"math"
	"testing"

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
