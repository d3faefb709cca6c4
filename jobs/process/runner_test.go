package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A program that forgot to call Main would start itself without end.
func TestSupervisorsStartNone(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{supervisorName, "probe", "-"}
	t.Setenv(supervisorEnv, "1")
	r := New(Config{})
	if err := r.Probe(t.Context()); !errors.Is(err, errNoMain) {
		t.Errorf("probe: %v", err)
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, workDir), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Start(t.Context(), Spec{Root: root, Args: []string{"true"}, UID: -1, GID: -1}); !errors.Is(err, errNoMain) {
		t.Errorf("start: %v", err)
	}
}

// A probe that takes too long is no failure of the probe.
func TestProbeThatTakesTooLong(t *testing.T) {
	slow := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := New(Config{Executable: slow}).Probe(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that it took too long", err)
	}
}
