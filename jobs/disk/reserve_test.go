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
		if err := r.Check(0, math.MaxInt64/2); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if err := (Reserve{dir, 1}).Check(0, 1); err != nil {
		t.Errorf("there is room: %v", err)
	}
	for _, r := range []struct{ keep, bytes int64 }{{math.MaxInt64 / 2, 0}, {1, math.MaxInt64 / 2}} {
		if err := (Reserve{dir, r.keep}).Check(0, r.bytes); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "--keep-free") {
			t.Errorf("%d kept, %d more: %v", r.keep, r.bytes, err)
		}
	}
}

// What is little finds room where a stream does not any more.
func TestReserveForLittle(t *testing.T) {
	dir := t.TempDir()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	r := Reserve{dir, int64(st.Bavail) * int64(st.Bsize) / 21 * 20}
	for _, c := range []struct {
		have, more int64
		fits       bool
	}{{0, 1, true}, {little - 1, 1, true}, {little, 1, false}, {0, little + 1, false}} {
		if err := r.Check(c.have, c.more); (err == nil) != c.fits {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
