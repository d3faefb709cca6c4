package agent_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
)

// A node that stops says so of jobs that it will know again: neither that their
// output has ended, nor that it knows no such job.
func TestANodeThatStopsSaysSo(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: []string{"sleep", "60"}, Min: 2, Max: 2})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		s := g.node(0).service
		output, state := make(chan error, 1), make(chan error, 1)
		go func() {
			output <- s.Output(t.Context(), id, jobs.OutputQuery{Rank: -1, Follow: true}, func(jobs.Output) error { return nil })
		}()
		go func() {
			_, version, err := s.Status(id)
			for err == nil {
				_, version, err = s.Await(t.Context(), id, version)
			}
			state <- err
		}()
		synctest.Wait()
		g.node(0).stop()
		if err := <-output; !errors.Is(err, jobs.ErrStopped) {
			t.Errorf("its output ended with %v", err)
		}
		if err := <-state; !errors.Is(err, jobs.ErrStopped) {
			t.Errorf("its state ended with %v", err)
		}
		for _, name := range []string{"last", string(id), string(id[:5]), "aaaaa@zaaaa"} {
			if _, err := s.Find(name); errors.Is(err, jobs.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !s.Owns(id) {
			t.Error("the node says that another one has the job")
		}
		g.node(0).start()
		if st := g.await(0, id, 2*time.Minute, final); st.ID != id {
			t.Errorf("it knows %s", st.ID)
		}
	})
}
