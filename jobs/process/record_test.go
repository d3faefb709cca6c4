package process

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/work"

	"github.com/rs/zerolog"
)

// How a worker ended is not read from a file of which a bit was flipped: then it is
// not known.
func TestEveryBitOfAnExitRecord(t *testing.T) {
	root := t.TempDir()
	want := exitRecord{Version: protocol, Exit: work.Exit{Code: 3, Cause: work.Exited}, Stdout: 71}
	if err := save(root, exitEntry, want); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, entriesFile)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(file) {
		spoiled := bytes.Clone(file)
		spoiled[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, spoiled, 0o600); err != nil {
			t.Fatal(err)
		}
		var got exitRecord
		if err := load(root, exitEntry, &got); err == nil {
			t.Errorf("bit %d: got %+v", bit, got)
		}
	}
	// That of a supervisor of an earlier version is read.
	if err := errors.Join(os.Remove(path), os.WriteFile(filepath.Join(root, exitEntry), codec.MustMarshal(want), 0o600)); err != nil {
		t.Fatal(err)
	}
	var got exitRecord
	if err := load(root, exitEntry, &got); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

// unsynced tells of errors that are logged.
type unsynced chan string

func (u unsynced) Write(b []byte) (int, error) { u <- string(b); return len(b), nil }

// The exit record of a worker is made durable soon, or when the node leaves it, but not
// when it is closed before: then it goes.
func TestExitRecordsAreSynced(t *testing.T) {
	for name, end := range map[string]func(*worker){"soon": func(*worker) {}, "left": (*worker).Leave} {
		root := t.TempDir()
		if err := os.Symlink(os.DevNull, filepath.Join(root, entriesFile)); err != nil { // which cannot be synced
			t.Fatal(err)
		}
		told := make(unsynced, 2)
		w := newWorker(Spec{Root: root}, zerolog.New(told))
		w.finish(work.Exit{})
		end(w)
		select {
		case <-told:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: its exit record was not synced", name)
		}
	}
}

// A worker of which nothing is noted did not start, unless the machine has failed since:
// then it may have been noted and lost.
func TestNothingIsNotedOfAWorker(t *testing.T) {
	for boot, want := range map[string]error{"": ErrNotStarted, "an earlier one": ErrLost} {
		root := newRoot(t)
		var m mark
		if err := load(root, markEntry, &m); err != nil {
			t.Fatal(err)
		}
		if boot != "" {
			m.Boot = boot
		}
		if err := save(root, markEntry, m); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{}).Adopt(t.Context(), root); !errors.Is(err, want) {
			t.Errorf("made in the time of boot %q: %v, want %v", boot, err, want)
		}
	}
}
