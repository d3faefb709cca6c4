package transfer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"zorilla/transfer"
)

// Files of holes take neither time nor room, up to what one manifest can tell of;
// what is beyond that is refused at once.
func TestCollectBoundsWhatSparseFilesAreTo(t *testing.T) {
	const tera = 1 << 40
	dir := t.TempDir()
	sparse := func(name string, size int64, at ...int64) {
		f, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			err = f.Truncate(size)
		}
		for _, place := range at {
			if err == nil {
				_, err = f.WriteAt([]byte("data"), place)
			}
		}
		if err = errors.Join(err, f.Close()); errors.Is(err, syscall.EFBIG) {
			t.Skipf("%s takes no file of %d bytes", dir, size)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	const size, last = tera/4 + 17, tera/4 + 10
	sparse("holes", size, 5*transfer.ChunkSize-2, 1<<36, last)
	sparse("nothing", tera/4)
	began := time.Now()
	store := transfer.NewMemStore(0)
	m, _, err := transfer.Collect(t.Context(), store, dir, []string{"*"}, nil)
	if err != nil || m.Size() != size+tera/4 {
		t.Fatalf("%d bytes, %v", m.Size(), err)
	}
	for _, h := range m.Chunks() {
		if !store.Has(h) {
			t.Error("a chunk was not put")
		}
	}
	to := t.TempDir()
	if err := m.Write(t.Context(), store, to); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(to, "holes"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, place := range []int64{5*transfer.ChunkSize - 2, 1 << 36, last} {
		b := make([]byte, 6)
		if _, err := f.ReadAt(b, place-1); err != nil || !bytes.Equal(b, []byte("\x00data\x00")) {
			t.Errorf("at %d there is %q, %v", place, b, err)
		}
	}
	for _, name := range []string{"holes", "nothing"} {
		info, err := os.Stat(filepath.Join(to, name))
		if err != nil || info.Size() < tera/4 || info.Sys().(*syscall.Stat_t).Blocks > 1<<14 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if took := time.Since(began); took > time.Minute { // to read the holes takes longer on any machine
		t.Errorf("that took %v", took)
	}

	sparse("large", 2*tera-1)
	_, _, err = transfer.Collect(t.Context(), store, dir, []string{"*"}, nil)
	if err == nil || !strings.Contains(err.Error(), "all files together have more than") {
		t.Errorf("more than a manifest can tell of: %v", err)
	}
	sparse("larger", 3*tera)
	_, _, err = transfer.Collect(t.Context(), store, dir, []string{"larger"}, nil)
	if err == nil || !strings.Contains(err.Error(), `output "larger": 3298534883328 bytes, at most`) {
		t.Errorf("a hole of 3 TiB: %v", err)
	}
}
