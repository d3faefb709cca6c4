package testnet

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestBubbleIsVirtual: a Bubble has the clock of testing/synctest.
func TestBubbleIsVirtual(t *testing.T) {
	bubble := InTest(t)
	begun := RealTime()
	why := errors.New("why")
	for range 2 {
		err := bubble(func() error {
			now := time.Now()
			time.Sleep(time.Hour)
			if d := time.Since(now); d != time.Hour {
				t.Errorf("an hour took %v", d)
			}
			return why
		})
		if err != why {
			t.Errorf("bubble returned %v", err)
		}
	}
	if RealTime() <= begun || RealTime()-begun > time.Hour || CPUTime() <= 0 {
		t.Errorf("clocks: %v after %v, %v of CPU", RealTime(), begun, CPUTime())
	}
}

// TestMainEndsTheProcess runs itself as a command.
func TestMainEndsTheProcess(t *testing.T) {
	const name = "ZORILLA_TEST_MAIN"
	if want := os.Getenv(name); want != "" {
		Main(func(bubble Bubble) error {
			return bubble(func() error {
				time.Sleep(time.Hour)
				if want == "fail" {
					return errors.New("it failed")
				}
				return nil
			})
		})
	}
	for want, code := range map[string]int{"fail": 1, "work": 0} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMainEndsTheProcess$")
		cmd.Env = append(os.Environ(), name+"="+want)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != code || (code != 0) != strings.Contains(string(out), "it failed") {
			t.Errorf("%s: %v: %s", want, err, out)
		}
	}
}
