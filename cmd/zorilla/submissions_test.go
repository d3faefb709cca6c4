package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"zorilla/jobs"
)

// submitted is what a client said of a submission.
type submitted struct {
	name   string
	id     string // "" = it is said not to be accepted
	stderr string
}

func (s submitted) again() bool { return strings.Contains(s.stderr, "submitting again") }

// submitter submits jobs, one after the other, until it is stopped.
type submitter struct {
	node  *realNode
	input string
	stop  chan struct{}
	ended chan struct{} // gets one for each submission that has ended

	mu   sync.Mutex
	list []submitted
}

// again counts the submissions that took more than one try.
func (s *submitter) again() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, one := range s.list {
		if one.again() {
			n++
		}
	}
	return n
}

func (s *submitter) loop(t *testing.T, number int) {
	for i := 0; ; i++ {
		select {
		case <-s.stop:
			return
		default:
		}
		name := fmt.Sprintf("job-%d-%d", number, i)
		cmd := s.node.command(t, "submit", "-J", name, "-i", s.input, "sh", "-c", "cat input; echo "+name)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		one := submitted{name, strings.TrimSpace(stdout.String()), stderr.String()}
		if (err == nil) != (one.id != "") {
			t.Errorf("submission %s: %v, printed %q and %q", name, err, one.id, one.stderr)
		}
		s.mu.Lock()
		s.list = append(s.list, one)
		s.mu.Unlock()
		select {
		case s.ended <- struct{}{}:
		case <-s.stop:
		}
	}
}

// A node is killed again and again while clients submit jobs at it: what they say
// is true, and each job is there once.
func TestKilledDuringSubmissions(t *testing.T) {
	t.Parallel()
	endedDuringSubmissions(t, syscall.SIGKILL)
}

func TestStoppedDuringSubmissions(t *testing.T) {
	t.Parallel()
	endedDuringSubmissions(t, syscall.SIGTERM)
}

func endedDuringSubmissions(t *testing.T, signal syscall.Signal) {
	net := realNet(t, 1, "--slots", "2", "--node-limit", "1m")
	node := net.nodes[1]
	s := &submitter{node: node, input: filepath.Join(net.dir, "input"), stop: make(chan struct{}), ended: make(chan struct{})}
	if err := os.WriteFile(s.input, []byte(strings.Repeat("input ", 100_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	var loops sync.WaitGroup
	for number := range 3 {
		loops.Go(func() { s.loop(t, number) })
	}
	// Who is asked to stop may answer all first. That a submission is tried again
	// is shown by TestSubmissionIsTriedAgain.
	const least, most = 6, 40
	for round := 0; round < least || signal == syscall.SIGKILL && s.again() == 0 && round < most; round++ {
		for range 4 { // the others are at it when one has ended
			<-s.ended
		}
		net.nodes[1].ends(t, signal)
		net.again(t, 1, "--slots", "2", "--node-limit", "1m")
	}
	<-s.ended
	close(s.stop)
	loops.Wait()

	var all []jobs.Status
	if err := net.nodes[1].until("finish all jobs", func(ctx context.Context) bool {
		var err error
		all, err = net.nodes[1].client.Jobs(ctx, false)
		for _, st := range all {
			if !st.State.Final() {
				return false
			}
		}
		return err == nil
	}); err != nil {
		t.Fatal(err)
	}
	there := map[string][]jobs.Status{}
	for _, st := range all {
		there[st.Spec.Name] = append(there[st.Spec.Name], st)
		if st.State != jobs.Completed {
			t.Errorf("job %s (%s) is %s: %s", st.ID, st.Spec.Name, st.State, st.Reason)
		}
	}
	for _, one := range s.list {
		list := there[one.name]
		switch {
		case one.id != "" || one.again():
			if len(list) != 1 || list[0].ID.Short() != one.id {
				t.Errorf("%s is said to be %q, there is %+v; it said %s", one.name, one.id, list, one.stderr)
			}
		case len(list) != 0 || !strings.Contains(one.stderr, "no node is running"):
			t.Errorf("%s is said not to be accepted (%s), there is %+v", one.name, one.stderr, list)
		}
		delete(there, one.name)
	}
	for name, list := range there {
		t.Errorf("job %s, which nobody submitted: %+v", name, list)
	}
	t.Logf("%d submissions, %d of them in more than one try", len(s.list), s.again())
}
