package process

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"zorilla/internal/codec"
)

// How a worker ended is not read from a file of which a bit was flipped: then it is
// not known.
func TestEveryBitOfAnExitRecord(t *testing.T) {
	root := t.TempDir()
	want := exitRecord{Version: protocol, Exit: Exit{Code: 3, Cause: Exited}, Stdout: 71}
	if err := save(root, exitFile, want); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(root, exitFile))
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(file) {
		spoiled := bytes.Clone(file)
		spoiled[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(filepath.Join(root, exitFile), spoiled, 0o600); err != nil {
			t.Fatal(err)
		}
		var got exitRecord
		if err := load(root, exitFile, &got); err == nil {
			t.Errorf("bit %d: got %+v", bit, got)
		}
	}
	// That of a supervisor of an earlier version is read.
	if err := os.WriteFile(filepath.Join(root, exitFile), codec.MustMarshal(want), 0o600); err != nil {
		t.Fatal(err)
	}
	var got exitRecord
	if err := load(root, exitFile, &got); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}
