package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/testnet"
)

// falter prints who it is and when, and ends with a code a second later; tasks with odd numbers
// end with 0. With an argument the first copy of rank 1 prints nothing.
func falter(_ context.Context, w *testnet.FakeWorker) int {
	task := w.Getenv("ZORILLA_TASK_ID")
	if len(w.Args) > 1 && w.Getenv("ZORILLA_RANK")+w.Getenv("ZORILLA_REPLICA") == "10" {
		return 9
	}
	fmt.Fprintf(w.Stdout, "%s.%s.%s at %d\n", w.Getenv("ZORILLA_RANK"), w.Getenv("ZORILLA_REPLICA"), task, time.Now().Unix())
	fmt.Fprintf(w.Stderr, "error at %d\n", time.Now().Unix())
	time.Sleep(time.Second)
	if task != "" && strings.Contains("13579", task[len(task)-1:]) {
		return 0
	}
	return 9
}

// attempt returns what an attempt of ranks, or a try of tasks, wrote.
func (n *gridNode) attempt(id jobs.ID, rank, attempt int) (texts map[int]string, err error) {
	texts = map[int]string{}
	err = n.service.Output(n.g.t.Context(), id, jobs.OutputQuery{Rank: rank, Attempt: attempt}, func(o jobs.Output) error {
		texts[o.Rank] += string(o.Data)
		return nil
	})
	return texts, err
}

// Each try of a task can be read, also after a start of the node: those that failed, and the one
// that counts.
func TestOutputOfTries(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		spec := numbered(20, "")
		spec.Args, spec.Retries = []string{"falter"}, 2
		job := g.submit(0, spec)
		g.await(0, job, time.Minute, final)
		for range 2 {
			n := g.node(0)
			var when [4]map[int]int
			for try := 1; try <= 3; try++ {
				when[try] = map[int]int{}
				texts, err := n.attempt(job, -1, try)
				if want := 20 - 10*min(try-1, 1); err != nil || len(texts) != want {
					t.Fatalf("try %d: output of %d tasks, want %d: %v", try, len(texts), want, err)
				}
				for task, text := range texts {
					var rank, replica, id, at, again int
					if _, err := fmt.Sscanf(text, "%d.%d.%d at %d\nerror at %d\n", &rank, &replica, &id, &at, &again); err != nil || id != task || again != at {
						t.Errorf("try %d of task %d: %q", try, task, text)
					}
					if when[try][task] = at; try > 1 && at <= when[try-1][task] {
						t.Errorf("task %d: try %d at %d, the one before at %d", task, try, at, when[try-1][task])
					}
					if one, err := n.attempt(job, task, try); err != nil || one[task] != text || len(one) != 1 {
						t.Errorf("try %d of task %d alone: %v, %v", try, task, one, err)
					}
				}
			}
			texts, err := n.attempt(job, -1, 0)
			if err != nil || len(texts) != 20 || !strings.Contains(texts[4], fmt.Sprint(" at ", when[3][4])) || !strings.Contains(texts[5], fmt.Sprint(" at ", when[1][5])) {
				t.Errorf("what counts: %v, %v", texts, err)
			}
			for task, want := range map[int]string{-1: "no try 4 of job ", 4: "no try 4 of task 4 of job "} {
				if _, err := n.attempt(job, task, 4); err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "is kept: there are 1 to 3") {
					t.Errorf("try 4: %v", err)
				}
			}
			if _, err := n.attempt(job, 5, 2); err == nil || !strings.HasSuffix(err.Error(), "is kept: there is 1") {
				t.Errorf("try 2 of a task that has not failed: %v", err)
			}
			n.stop()
			n.start()
		}
	})
}

// Of a rank with copies an attempt is told as one of them wrote it; what a worker wrote whose node
// is lost is told, too.
func TestAttemptsOfCopiesAndLostNodes(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: []string{"falter", "mute"}, Min: 2, Max: 2, Replicas: 2, Failing: jobs.Failing{Retries: 1}})
		if st := g.await(0, id, time.Minute, final); st.State != jobs.Failed || len(st.Earlier) != 1 {
			t.Fatalf("%s: %s, earlier attempts %d", st.State, st.Reason, st.Earlier)
		}
		for attempt := 1; attempt <= 2; attempt++ {
			texts, err := g.node(0).attempt(id, -1, attempt)
			if err != nil || len(texts) != 2 || strings.Count(texts[0], "\n") != 2 || !strings.HasPrefix(texts[0], "0.") || !strings.HasPrefix(texts[1], "1.1.") {
				t.Errorf("attempt %d: %v, %v", attempt, texts, err)
			}
		}
	})
	bubble(t, 3, 1, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: []string{"tick", "40"}, Min: 2, Max: 2, Failing: jobs.Failing{Retries: 1}})
		st := g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		time.Sleep(10 * time.Second)
		for i := 1; i < 3; i++ {
			if g.order[i] == st.Workers[1].Node {
				g.node(i).kill()
			}
		}
		if st := g.await(0, id, 10*time.Minute, final); st.State != jobs.Completed {
			t.Fatalf("%s: %s", st.State, st.Reason)
		}
		texts, err := g.node(0).attempt(id, 1, 1)
		if lines := strings.Count(texts[1], "\n"); err != nil || lines < 9 || lines > 11 || !strings.HasPrefix(texts[1], "rank 1 at 0\n") {
			t.Errorf("of the rank that was lost there are %d lines: %q, %v", lines, texts[1], err)
		}
	})
}
