package disk

import (
	"errors"
	"math"
	"strings"
	"syscall"
	"testing"
)

func TestReserve(t *testing.T) {
	dir := t.TempDir()
	for _, r := range []Reserve{{}, {Dir: dir}, {Dir: dir, Keep: -1}, {Dir: dir + "/none", Keep: math.MaxInt64 / 2}} {
		if err := r.Check(math.MaxInt64 / 2); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if err := (Reserve{dir, 1}).Check(1); err != nil {
		t.Errorf("there is room: %v", err)
	}
	for _, r := range []struct{ keep, bytes int64 }{{math.MaxInt64 / 2, 0}, {1, math.MaxInt64 / 2}} {
		if err := (Reserve{dir, r.keep}).Check(r.bytes); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "--keep-free") {
			t.Errorf("%d kept, %d more: %v", r.keep, r.bytes, err)
		}
	}
}
