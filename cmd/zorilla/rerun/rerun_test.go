package rerun

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	noKeeper := errors.New("no node keeps it")
	for name, c := range map[string]struct {
		script string
		fail   error // of the second checkpoint
		code   int
		prints string
	}{
		"never asks":         {script: "exit 3", code: 3},
		"ends well":          {script: "exit 0", code: 0},
		"asks twice":         {script: `echo from ${ZORILLA_RESTART-none}; [ "$ZORILLA_RESTART" = 8 ] || exit 85`, prints: "from none\nfrom 7\nfrom 8\n"},
		"dies of a signal":   {script: "kill -9 $$", code: 137},
		"its state is lost":  {script: "echo again; exit 85", fail: noKeeper, prints: "again\nagain\n"},
		"is to end":          {script: "echo once; kill -TERM $PPID; sleep 0.2; exit 85", code: 143, prints: "once\n"},
		"is hinted at":       {script: `kill -USR1 $PPID; [ "$ZORILLA_RESTART" = 7 ] || exit 85; exit 4`, code: 4},
		"fails after asking": {script: `[ "$ZORILLA_RESTART" = 7 ] && exit 5; exit 85`, code: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(Variable, "") // so that it is restored
			if err := os.Unsetenv(Variable); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			number := 6
			cmd := Command{Args: []string{"sh", "-c", c.script}, Code: 85, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
				Keep: func(context.Context) (int, error) {
					number++
					if number == 8 {
						return number, c.fail
					}
					return number, nil
				}}
			if code, err := cmd.Run(t.Context()); code != c.code || !errors.Is(err, c.fail) {
				t.Errorf("ends with %d, %v, want %d, %v", code, err, c.code, c.fail)
			}
			if out.String() != c.prints {
				t.Errorf("prints %q, want %q", out.String(), c.prints)
			}
		})
	}
}

func TestRunNothing(t *testing.T) {
	cmd := Command{Args: []string{"no-such-program"}, Code: 85, Keep: func(context.Context) (int, error) { return 0, errors.New("kept") }}
	if _, err := cmd.Run(t.Context()); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v, want that it is not found", err)
	}
}

func TestCheckCode(t *testing.T) {
	for code, ok := range map[int]bool{-1: false, 0: false, 1: true, 85: true, 123: true, 124: false, 255: false} {
		if err := CheckCode(code); (err == nil) != ok {
			t.Errorf("%d: %v", code, err)
		}
	}
}
