package disk

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

func TestFirst(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		what string
		list []Taken
		want int
	}{
		{"nobody", nil, -1},
		{"who takes little", []Taken{{Used: mib - 1}, {Used: 0}}, -1},
		{"without a limit", []Taken{{Used: 10 * mib}, {Used: 30 * mib}, {Used: 20 * mib}}, 1},
		{"within limits, beside one that has none", []Taken{{Used: 90 * mib, Limit: 100 * mib}, {Used: 2 * mib}}, 1},
		{"within limits, beside one that takes little", []Taken{{Used: 90 * mib, Limit: 100 * mib}, {Used: mib / 2}}, 0},
		{"within limits", []Taken{{Used: 90 * mib, Limit: 100 * mib}, {Used: 95 * mib, Limit: 200 * mib}}, 1},
		{"beyond a limit", []Taken{{Used: 90 * mib, Limit: 10 * mib}, {Used: 100 * mib, Limit: 50 * mib}, {Used: 60 * mib}}, 0},
		{"one like the other", []Taken{{Used: 8 * mib}, {Used: 8 * mib}}, 0},
	} {
		if got := First(test.list); got != test.want {
			t.Errorf("%s: %d, want %d", test.what, got, test.want)
		}
	}
}

// A look at a full disk must not last as long as somebody's files make it.
func TestUsedWithin(t *testing.T) {
	dir := t.TempDir()
	for i := range 4 * lookAtClock {
		write(t, filepath.Join(dir, fmt.Sprint(i)), 4096)
	}
	whole, before := UsedWithin(time.Hour, dir), descriptors(t)
	if want := Used(enough, dir); whole != want {
		t.Errorf("with time enough: %d, want %d", whole, want)
	}
	if got := UsedWithin(-1, dir); got >= whole {
		t.Errorf("without time: %d of %d", got, whole)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
