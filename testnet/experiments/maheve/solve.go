package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/testnet/hosts/lab"
)

// solve has examples/async iterate until each rank has told enough. Its ranks are at two sites, twice as many at
// one as at the other: so of those beside each other some are at the same site, whichever they are, and some are not.
func (s *scene) solve(ctx context.Context, f *found) error {
	var hosts []string
	for i, of := range []int{2 * s.ranks / 3, s.ranks / 3} {
		for k := range of {
			hosts = append(hosts, strconv.Quote(fmt.Sprintf("%s-%d", s.plan.Sites[1+i].Name, k+1)))
		}
	}
	args := append([]string{"host", s.origin.Name, "zorilla", "submit", "--parsable", "-n", strconv.Itoa(s.ranks),
		"--where", "name in [" + strings.Join(hosts, ", ") + "]", "--", "./async"}, s.solver.strings()...)
	cmd := exec.CommandContext(ctx, "lab", args...)
	cmd.Dir = lab.Programs()
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("submit the solver: %w", err)
	}
	id := jobs.ID(strings.TrimSpace(string(out)))
	site := make([]int, s.ranks)
	if err := s.follow(ctx, id, "all ranks run", func(st *jobs.Status) bool {
		for _, w := range st.Workers {
			if w.State != jobs.WorkerRunning {
				return false
			}
			site[w.Rank] = s.plan.SiteOf(w.Name)
		}
		return len(st.Workers) == s.ranks
	}); err != nil {
		return err
	}
	t := tales{f: f, site: site, want: s.rounds, rest: make([]string, s.ranks), iterations: make([]int, s.ranks)}
	if err := t.listen(ctx, s.origin.Client, id); err != nil {
		return err
	}
	return s.origin.Client.Cancel(ctx, string(id), true)
}

// tales is what ranks tell of their iterations and messages.
type tales struct {
	f          *found
	site       []int // of each rank
	want       int   // iterations of each
	rest       []string
	iterations []int
}

// listen takes what they tell until it is enough.
func (t *tales) listen(ctx context.Context, c *api.Client, id jobs.ID) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, fmt.Errorf("the solver has not told enough in two minutes"))
	defer cancel()
	err := c.Output(ctx, string(id), api.OutputQuery{Rank: -1, Follow: true}, func(o jobs.Output) error {
		if t.take(&o); t.enough() {
			cancel()
		}
		return nil
	})
	if t.enough() {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("after %v iterations, %d planes near and %d far: %v", t.iterations, len(t.f.Near), len(t.f.Far), err)
}

var (
	iterated = regexp.MustCompile(`^rank \d+: iteration \d+ took (\S+) s, (\S+) s of computing$`)
	arrived  = regexp.MustCompile(`^rank \d+: plane of rank (\d+) took (\S+) s$`)
)

// take takes a piece of what a rank prints.
func (t *tales) take(o *jobs.Output) {
	t.rest[o.Rank] += string(o.Data)
	for {
		line, rest, ok := strings.Cut(t.rest[o.Rank], "\n")
		if !ok {
			return
		}
		t.rest[o.Rank] = rest
		t.hear(o.Rank, line)
	}
}

// hear takes a line of a rank.
func (t *tales) hear(rank int, line string) {
	if m := iterated.FindStringSubmatch(line); m != nil {
		took, _ := strconv.ParseFloat(m[1], 64)     // the program prints numbers
		computed, _ := strconv.ParseFloat(m[2], 64) // likewise
		t.f.Took, t.f.Iterations = append(t.f.Took, took), append(t.f.Iterations, computed)
		t.iterations[rank]++
	}
	if m := arrived.FindStringSubmatch(line); m != nil {
		from, _ := strconv.Atoi(m[1])              // likewise
		seconds, _ := strconv.ParseFloat(m[2], 64) // likewise
		if from < len(t.site) && t.site[from] == t.site[rank] {
			t.f.Near = append(t.f.Near, seconds)
		} else {
			t.f.Far = append(t.f.Far, seconds)
		}
	}
}

// enough reports whether each rank has told of as many iterations as are wanted, and there are as many planes.
func (t *tales) enough() bool {
	for _, n := range t.iterations {
		if n < t.want {
			return false
		}
	}
	return len(t.f.Near) >= t.want && len(t.f.Far) >= t.want
}
