package judge_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/judge"
	"zorilla/jobs/sandbox"
)

// onOwnThread calls f on a thread that ends with it. The first one of a process does not: it waits
// meanwhile.
func onOwnThread(f func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread()
			onOwnThread(f)
			return
		}
		f()
	}()
	<-over
}

// A judge ends with the last thread behind its filter, so that none is left over of each command.
func TestJudgeEndsWithWhoItJudges(t *testing.T) {
	own, other := filepath.Join(t.TempDir(), "own"), filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(own, nil, 0o644), os.WriteFile(other, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	serve := func(fd int, allowed []string) error {
		go func() {
			defer close(over)
			(&judge.Judge{Allowed: allowed}).Serve(fd)
		}()
		return nil
	}
	var errs [3]error
	onOwnThread(func() {
		errs[0] = sandbox.Confine(sandbox.Access{Write: []string{filepath.Dir(own)}, Judge: serve})
		errs[1], errs[2] = os.Chmod(own, 0o600), os.Chmod(other, 0o600)
	})
	if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], unix.EPERM) {
		t.Fatalf("confine, chmod inside and outside: got %v", errs)
	}
	select {
	case <-over:
	case <-time.After(30 * time.Second):
		t.Error("the judge does not end")
	}
}
