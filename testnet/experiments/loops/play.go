package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"zorilla/jobs"
	"zorilla/testnet/hosts/lab"
)

// limit is how long a job may take, of which most end within half a second.
const limit = 30 * time.Second

// play is the script of a lab: all jobs of a part.
func play(ctx context.Context, o *options) error {
	dir, err := lab.Enter()
	if err != nil {
		return err
	}
	plan, err := lab.PlanOf(o.plan)
	if err != nil {
		return err
	}
	p := o.parts()[slices.IndexFunc(o.parts(), func(p part) bool { return p.plan == o.plan })]
	nodes, err := lab.Gather(ctx, dir, plan, "--slots", strconv.Itoa(slots))
	if err != nil {
		return err
	}
	var users []*user
	for _, host := range p.users {
		users = append(users, &user{node: nodes[plan.HostIndex(host)], workers: p.workers})
	}
	if p.turns {
		for range o.tries {
			for _, u := range users {
				u.run(ctx)
			}
		}
	} else {
		var all sync.WaitGroup
		for _, u := range users {
			all.Go(func() {
				for range o.rounds {
					u.run(ctx)
				}
			})
		}
		all.Wait()
	}
	found, err := told(ctx, users, o.plan)
	if err != nil {
		return err
	}
	b, err := json.Marshal(found)
	if err != nil {
		return err
	}
	return os.WriteFile(o.found, b, 0o600)
}

// told asks the users' nodes for their jobs.
func told(ctx context.Context, users []*user, part string) (found []job, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, u := range users {
		some, err := u.jobs(ctx, part)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	for i := range found {
		if j := &found[i]; passedOver(j, found) > 0 {
			j.Told = users[slices.IndexFunc(users, func(u *user) bool { return u.node.Name == j.User })].explain(ctx, j.ID)
		}
	}
	return found, nil
}

// user runs one job after the other at a node.
type user struct {
	node    *lab.Node
	workers int
	said    []said
}

// said is what a run printed, one host a line, and how it ended.
type said struct {
	hosts []string
	err   error
}

func (u *user) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "lab", "host", u.node.Name, "zorilla", "run", "-n", strconv.Itoa(u.workers), "hostname")
	cmd.WaitDelay = 5 * time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %.300s", err, strings.TrimSpace(stderr.String()))
	}
	u.said = append(u.said, said{strings.Fields(string(out)), err})
}

// jobs returns what the user's node tells of his jobs.
func (u *user) jobs(ctx context.Context, part string) (list []job, err error) {
	all, err := u.node.Submitted(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) != len(u.said) {
		err := fmt.Errorf("%s knows %d jobs of %d", u.node.Name, len(all), len(u.said))
		for _, s := range u.said {
			err = errors.Join(err, s.err)
		}
		return nil, err
	}
	for i, st := range all {
		list = append(list, newJob(part, u.node.Name, &st, u.said[i]))
	}
	return list, nil
}

// newJob is what is judged of a job.
func newJob(part, user string, st *jobs.Status, s said) job {
	j := job{Part: part, User: user, ID: st.ID, Wanted: st.Spec.Min, Submitted: st.Submitted, Started: st.Started}
	var hosts []string
	for _, w := range st.Workers {
		hosts = append(hosts, w.Name)
		j.Attempts = max(j.Attempts, w.Attempt)
		end := st.Ended
		if w.Exit != nil {
			end = w.Exit.Ended
		}
		j.Workers = append(j.Workers, worker{Host: w.Name, Ended: end})
	}
	slices.Sort(hosts)
	slices.Sort(s.hosts)
	switch {
	case s.err != nil:
		j.Failed = s.err.Error()
	case st.State != jobs.Completed || len(hosts) != j.Wanted:
		j.Failed = fmt.Sprintf("%s with %d workers: %s", st.State, len(hosts), st.Reason)
	case !slices.Equal(hosts, s.hosts):
		j.Failed = fmt.Sprintf("it ran at %v, its node says %v", s.hosts, hosts)
	}
	return j
}

// explain tells in one line what nodes had answered to a job.
func (u *user) explain(ctx context.Context, id jobs.ID) string {
	e, err := u.node.Client.Explain(ctx, string(id))
	if err != nil {
		return err.Error()
	}
	told := []string{fmt.Sprintf("started at %+.0f ms", e.Until.Sub(e.Since).Seconds()*1000), e.Summary}
	for _, r := range e.Rounds {
		told = append(told, fmt.Sprintf("flood %d at %+.0f ms", r.Number, r.At.Sub(e.Since).Seconds()*1000))
	}
	for _, a := range e.Nodes {
		told = append(told, strings.TrimSpace(fmt.Sprintf("%s (%.1f ms) offered %d at %+.0f ms %s %s",
			a.Name, a.RTT.Std().Seconds()*1000, a.Offered, a.At.Sub(e.Since).Seconds()*1000, a.Reason, a.Fate)))
	}
	return strings.Join(told, "; ")
}
