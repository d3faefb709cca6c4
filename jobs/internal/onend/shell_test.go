package onend_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/onend"
)

func TestShell(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("ZORILLA_SECRET", "squirrel")
	t.Setenv("OTHER", "of the node")
	end := onend.Shell(t.Context(), onend.Call{
		Command: `cat >input; echo "$ZORILLA_JOB_ID,$ZORILLA_SECRET,$OTHER" >told; exec sleep 0`,
		Env:     []string{"ZORILLA_JOB_ID=k7f3q@z"}, Input: []byte("how it ended"),
	})
	if end.Code != 0 || end.Text != "" || end.At.IsZero() {
		t.Errorf("%+v", end)
	}
	for name, want := range map[string]string{"input": "how it ended", "told": "k7f3q@z,,of the node\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestShellTellsOfFailures(t *testing.T) {
	t.Setenv("HOME", "/nowhere") // then it runs elsewhere
	long := strings.Repeat("x", 70000)
	for command, want := range map[string]jobs.OnEnd{
		"exit 3": {Code: 3},
		"for i in 1 2 3 4 5 6; do echo out$i; done; printf 'no\\tmail\\n' >&2; exit 1": {Code: 1, Text: "out3; out4; out5; out6; no mail"},
		"kill -TERM $$":            {Code: 143},
		"/no/such/program":         {Code: 127, Text: "not found"},
		"exec true":                {},
		"exec <&-; exit 0":         {}, // reads nothing of its input
		"echo much >&2; exit 0":    {},
		"sleep 5 & exit 0":         {}, // what it leaves behind holds its output open
		"echo " + long + "; false": {Code: 1, Text: "xxx..."},
	} {
		end := onend.Shell(t.Context(), onend.Call{Command: command, Input: []byte(long)})
		if end.Code != want.Code || !strings.Contains(end.Text, want.Text) || len(end.Text) > 500 || want.Text == "" && end.Text != "" {
			t.Errorf("%.60q: %d %q; want %d %q", command, end.Code, end.Text, want.Code, want.Text)
		}
	}
}

// A command that takes too long is killed, with what it has started.
func TestShellHasALimit(t *testing.T) {
	end := onend.ShellWithin(t.Context(), 50*time.Millisecond, onend.Call{Command: "sleep 1000 & sleep 1000"})
	if end.Code != jobs.CodeTimeout || !strings.Contains(end.Text, "was killed after") {
		t.Errorf("%+v", end)
	}
}

// A command ends with its node, and what it has started ends with it.
func TestShellEndsWithItsNode(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	started := filepath.Join(dir, "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan jobs.OnEnd)
	go func() {
		ended <- onend.Shell(ctx, onend.Call{Command: "sleep 1000 & echo $! >started; wait"})
	}()
	child, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if end := <-ended; end.Code == 0 {
		t.Errorf("%+v", end)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(child)))
	if err != nil {
		t.Fatal(err)
	}
	for { // it may be some time until it is gone
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			break
		}
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err != nil || strings.Contains(string(stat), ") Z ") {
			break
		}
	}
}
