package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/onend"
)

// told is a HookRunner that hands over what it is called with, and answers with what it is
// given, or ends with its node.
type told struct {
	calls chan onend.Call
	ends  chan jobs.OnEnd
}

func (r *told) run(ctx context.Context, c onend.Call) jobs.OnEnd {
	r.calls <- c
	select {
	case end := <-r.ends:
		return end
	case <-ctx.Done():
		return jobs.OnEnd{At: time.Now(), Code: 137}
	}
}

// called returns the one call that there was.
func (r *told) called(t *testing.T) onend.Call {
	t.Helper()
	synctest.Wait()
	if len(r.calls) != 1 {
		t.Fatalf("%d calls, want one", len(r.calls))
	}
	return <-r.calls
}

func commanded(st jobs.Status) bool { return st.OnEnd != nil }

func ending(g *grid) (*told, jobs.Spec) {
	r := &told{make(chan onend.Call, 10), make(chan jobs.OnEnd)}
	n := g.node(0)
	n.stop()
	n.hooks = r.run
	n.start()
	return r, jobs.Spec{Name: "tea", Args: ticking(2), Min: 3, Max: 3, Slots: 1, Notices: jobs.Notices{OnEnd: "mail me"}}
}

// The command of a job is run once when it has ended, and how that ended is known from then on.
func TestCommandAtTheEnd(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		r, spec := ending(g)
		id := g.submit(0, spec)
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		if st, _, err := g.node(1).service.Status(id); err != nil || !st.LastKnown || st.Spec.OnEnd != "" {
			t.Errorf("another node knows %q, %v", st.Spec.OnEnd, err)
		}
		if len(r.calls) != 0 {
			t.Error("called before the end")
		}
		st := g.await(0, id, time.Minute, final)
		if st.OnEnd != nil {
			t.Errorf("%+v before its end", st.OnEnd)
		}
		c := r.called(t)
		if c.Command != "mail me" || !slices.Contains(c.Env, "ZORILLA_JOB_STATE=COMPLETED") || !strings.Contains(string(c.Input), "at 1") || !strings.Contains(string(c.Input), "COMPLETED, exit code 0") {
			t.Errorf("called with %q, %q,\n%s", c.Command, c.Env, c.Input)
		}
		r.ends <- jobs.OnEnd{At: time.Now(), Code: 3, Text: "no mail"}
		g.await(0, id, time.Minute, commanded)
		for range 2 {
			if st, _, err := g.node(0).service.Status(id); err != nil || st.OnEnd == nil || st.OnEnd.Code != 3 || st.OnEnd.Text != "no mail" || st.Spec.OnEnd != "mail me" {
				t.Errorf("%+v, %v", st.OnEnd, err)
			}
			g.node(0).crash()
			g.node(0).start()
		}
		if time.Sleep(time.Minute); len(r.calls) != 0 {
			t.Error("called again")
		}
		g.node(0).stop()
		g.node(0).hooks = nil
		g.node(0).start()
		if _, err := g.node(0).service.Submit(t.Context(), spec); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), "--on-end") {
			t.Errorf("a node that runs none: %v", err)
		}
	})
}

// It is run at least once: again if its node died, or was stopped, before it had ended.
func TestCommandAtTheEndOutlivesItsNode(t *testing.T) {
	for name, end := range map[string]func(*gridNode){"crash": (*gridNode).crash, "stop": (*gridNode).stop} {
		bubble(t, 2, 2, func(t *testing.T, g *grid) {
			r, spec := ending(g)
			id := g.submit(0, spec)
			g.await(0, id, time.Minute, final)
			r.called(t)
			end(g.node(0))
			g.node(0).start()
			if c := r.called(t); c.Command != "mail me" || !strings.Contains(string(c.Input), "at 1") {
				t.Errorf("%s: called with %q", name, c)
			}
			r.ends <- jobs.OnEnd{At: time.Now()}
			g.await(0, id, time.Minute, commanded)
			g.node(0).crash()
			g.node(0).start()
			if st, _, err := g.node(0).service.Status(id); err != nil || st.OnEnd == nil || st.OnEnd.Code != 0 || len(r.calls) != 0 {
				t.Errorf("%s: %+v, %v, %d calls", name, st.OnEnd, err, len(r.calls))
			}
		})
	}
}

// Nothing is written down of a job that was removed meanwhile.
func TestCommandOfAJobThatIsRemoved(t *testing.T) {
	bubble(t, 1, 3, func(t *testing.T, g *grid) {
		r, spec := ending(g)
		id := g.submit(0, spec)
		g.await(0, id, time.Minute, final)
		r.called(t)
		if err := g.node(0).service.Remove(id); err != nil {
			t.Fatal(err)
		}
		r.ends <- jobs.OnEnd{At: time.Now(), Code: 1}
		time.Sleep(time.Second)
		if left, err := g.node(0).log.Read(string(id)); err != nil || len(left) > 0 {
			t.Errorf("%d entries are left, %v", len(left), err)
		}
	})
}

// What tasks wrote, and copies of ranks, is told as that of others is.
func TestCommandOfTasksAndOfCopies(t *testing.T) {
	for said, spec := range map[string]jobs.Spec{"end 5": numbered(5, "1"), "at 1": {Args: ticking(2), Min: 1, Max: 1, Replicas: 2}} {
		bubble(t, 2, 2, func(t *testing.T, g *grid) {
			r, _ := ending(g)
			spec.Slots, spec.OnEnd = 1, "mail me"
			g.await(0, g.submit(0, spec), time.Minute, final)
			if c := r.called(t); !strings.Contains(string(c.Input), said) {
				t.Errorf("called without %q:\n%s", said, c.Input)
			}
			r.ends <- jobs.OnEnd{At: time.Now()}
		})
	}
}
