package local

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// start starts a shell script in place of a node.
func start(t *testing.T, script string, c Config) *Node {
	t.Helper()
	dir := t.TempDir()
	c.Program, c.State, c.Listen = filepath.Join(dir, "program"), filepath.Join(dir, "some"), "127.0.0.1:5444"
	if err := os.WriteFile(c.Program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	n, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Kill(); n.Await() })
	return n
}

func never() bool { return false }

func TestNodeThatEnds(t *testing.T) {
	var log bytes.Buffer
	n := start(t, `for i in 1 2 3; do echo line $i; done; echo "$@" "$ZORILLA_JOIN" >&2`, Config{Join: "token", Options: []string{"--slots", "4"}, Log: &log})
	err := Until(t.Context(), []*Node{n}, time.Millisecond, time.Minute, never)
	if err == nil || !strings.Contains(err.Error(), "some has ended: line 2; line 3; node --state ") || !strings.HasSuffix(err.Error(), "--slots 4 token") {
		t.Errorf("got %v", err)
	}
	if !strings.HasPrefix(log.String(), "line 1\nline 2\n") {
		t.Errorf("logged %q", log.String())
	}
}

func TestNodesThatAreEnded(t *testing.T) {
	killed, stopped := start(t, "exec sleep 1000", Config{}), start(t, "exec sleep 1000", Config{})
	both := []*Node{killed, stopped}
	killed.Kill()
	killed.Await()
	if err := Until(t.Context(), both, time.Millisecond, 10*time.Millisecond, never); err == nil || !strings.Contains(err.Error(), "not within") {
		t.Errorf("got %v", err)
	}
	if err := Stop(both...); err != nil || stopped.Killed() {
		t.Errorf("%v; killed: %v", err, stopped.Killed())
	}
	if err := Until(t.Context(), both, time.Millisecond, time.Minute, never); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("got %v", err)
	}
}

func TestTail(t *testing.T) {
	var last tail
	for range maxTail {
		_, _ = last.Write([]byte("some words\n"))
	}
	if _, _ = last.Write([]byte("a\nb\n")); last.String() != "some words; a; b" || len(last.text) != maxTail {
		t.Errorf("%q of %d bytes", last.String(), len(last.text))
	}
}
