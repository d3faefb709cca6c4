package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
	"zorilla/testnet/hosts/lab"
)

// awaitEnds waits until all jobs have ended, with a network that is whole.
func (p *play) awaitEnds(ctx context.Context) error {
	if _, err := lab.Do("heal"); err != nil {
		return err
	}
	_, err := lab.Until(ctx, settleTime, "all jobs have ended", func(context.Context) string { return p.open() })
	if ctx.Err() != nil {
		return err
	}
	if err != nil { // what has ended can be judged all the same
		p.blame("%v", err)
	}
	return nil
}

// finale judges all jobs, before and after all nodes were killed once more, and
// looks for what is left.
func (p *play) finale(ctx context.Context) error {
	p.log("-", "judging all jobs")
	first, err := p.judgeAll(ctx)
	if err != nil {
		return err
	}
	p.empty(ctx)
	p.log("-", "all nodes are killed and started once more")
	if err := p.each(p.nodes, func(n *lab.Node) error {
		if err := n.End(syscall.SIGKILL); err != nil {
			return err
		}
		return n.Start(ctx, p.args...)
	}); err != nil {
		p.blame("%v", err)
	}
	second, err := p.judgeAll(ctx)
	if err != nil {
		return err
	}
	for id, before := range first {
		if now := second[id]; now != before {
			p.blame("job %s: told %s, and after a restart of all nodes %s", id, before, now)
		}
	}
	p.empty(ctx)
	if err := p.each(p.nodes, func(n *lab.Node) error { return n.End(syscall.SIGTERM) }); err != nil {
		p.blame("%v", err)
	}
	p.deserted()
	p.sane()
	return nil
}

// sane looks in the nodes' logs for what must never happen. Built with GOFLAGS=-race
// they tell of races, too.
func (p *play) sane() {
	for _, n := range p.nodes {
		b, err := os.ReadFile(n.LogFile())
		if err != nil {
			p.blame("%v", err)
			continue
		}
		lines := strings.Split(string(b), "\n")
		for i, line := range lines {
			for _, bad := range []string{"panic: ", "panic serving", "fatal error: ", "WARNING: DATA RACE"} {
				if strings.Contains(line, bad) {
					p.blame("%s: %s", n.Name, strings.Join(lines[i:min(len(lines), i+12)], " | "))
				}
			}
		}
	}
}

// judgeAll judges every job that the nodes know, among which all must be that
// they had accepted, and tells in short what each was.
func (p *play) judgeAll(ctx context.Context) (map[jobs.ID]string, error) {
	known := map[jobs.ID]string{}
	found := map[int]bool{}
	for _, n := range p.nodes {
		list, err := n.Client.Jobs(ctx, false)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		for _, st := range list {
			i := slices.IndexFunc(p.story, func(j *order) bool { return j.spec.Name == st.Spec.Name })
			switch {
			case st.LastKnown:
				p.blame("%s still works for %s, whose origin does not tell of it", n.Name, st.ID)
				continue
			case i < 0:
				p.blame("%s has a job %s that nobody submitted", n.Name, st.ID)
				continue
			}
			if !n.Owns(&st) {
				continue
			}
			found[i] = true
			known[st.ID] = p.judge(ctx, n, p.story[i], st)
		}
	}
	for _, j := range p.story {
		if id := p.ids[j.number]; id != "" && (known[id] == "" || !found[j.number]) {
			p.blame("job %d (%s) %s was accepted by %s, which has forgotten it", j.number, j.kind, id, j.origin)
		}
	}
	return known, nil
}

// judge judges one job.
func (p *play) judge(ctx context.Context, n *lab.Node, j *order, st jobs.Status) string {
	r, err := fetch(ctx, n.Client, st)
	if err != nil {
		p.blameJob(j, &st, err.Error())
		return "-"
	}
	if info, err := n.Client.Node(ctx); err == nil {
		r.boundless = !slices.Contains(info.Enforces, "cgroups")
	}
	before := jobs.State("")
	p.mu.Lock()
	r.broken = p.broken[st.ID]
	if j.after >= 0 {
		before = p.ends[p.ids[j.after]].State
	}
	p.mu.Unlock()
	for _, what := range j.judge(r, func(host string, atEnd bool) string { return p.away.excuse(&st, j.origin, host, atEnd) }, before) {
		p.blameJob(j, &st, what)
	}
	size := 0
	for _, m := range []map[int][]byte{r.stdout, r.stderr} {
		for _, b := range m {
			size += len(b)
		}
	}
	return fmt.Sprintf("%s with %d (%s), %d bytes of output", st.State, st.ExitCode, st.Reason, size)
}

// fetch gets all that a job left.
func fetch(ctx context.Context, client *api.Client, st jobs.Status) (*result, error) {
	r := &result{st: st, stdout: map[int][]byte{}, stderr: map[int][]byte{}, files: map[int]map[string][]byte{}}
	err := client.Output(ctx, string(st.ID), api.OutputQuery{Rank: -1}, func(o jobs.Output) error {
		to := r.stdout
		if o.Stream == work.Stderr {
			to = r.stderr
		}
		if o.Offset != int64(len(to[o.Rank])) {
			return fmt.Errorf("output of %d goes on at byte %d after %d", o.Rank, o.Offset, len(to[o.Rank]))
		}
		to[o.Rank] = append(to[o.Rank], o.Data...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("fetch its output: %w", err)
	}
	if st.Array != nil {
		if r.tasks, _, err = api.AllTasks(ctx, client, string(st.ID), jobs.TaskQuery{}); err != nil {
			return nil, fmt.Errorf("fetch its tasks: %w", err)
		}
	}
	apart, numbers := "%r", []int{}
	for _, o := range st.Outputs {
		numbers = append(numbers, o.Rank)
	}
	if st.Array != nil && len(st.Spec.Outputs) > 0 {
		apart = "%t"
		for _, t := range r.tasks {
			numbers = append(numbers, t.ID)
		}
	}
	if len(numbers) == 0 {
		return r, nil
	}
	dir, err := os.MkdirTemp("", "zorilla-chaos-files-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := api.Pull(ctx, client, st, api.Wanted{Rank: -1, Into: filepath.Join(dir, apart)}); err != nil {
		return nil, fmt.Errorf("fetch its files: %w", err)
	}
	for _, n := range numbers {
		r.files[n] = map[string][]byte{}
		names, err := filepath.Glob(filepath.Join(dir, fmt.Sprint(n), "*"))
		for _, name := range names {
			b, rerr := os.ReadFile(name)
			err = errors.Join(err, rerr)
			r.files[n][filepath.Base(name)] = bytes.Clone(b)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// empty waits until nodes have nothing left of any job.
func (p *play) empty(ctx context.Context) {
	for _, n := range p.nodes {
		if _, err := lab.Until(ctx, emptyTime, n.Name+" has nothing left of any job", func(ctx context.Context) string { return leftAt(ctx, n) }); err != nil {
			p.blame("%v", err)
		}
	}
	if _, err := lab.Until(ctx, emptyTime, "no worker is left", func(context.Context) string {
		for _, q := range processes() {
			if q.args[0] == launcherName || q.args[0] == trailName || len(q.args) > 1 && q.args[1] == workMode {
				return fmt.Sprintf("process %d is %.300q", q.pid, q.args)
			}
		}
		sockets, _ := filepath.Glob(filepath.Join(p.dir, "tmp", "*", "*")) // the pattern is good
		if len(sockets) > 0 {
			return fmt.Sprintf("%d sockets, such as %s", len(sockets), sockets[0])
		}
		return systemV("/proc/sysvipc")
	}); err != nil {
		p.blame("%v", err)
	}
}

// leftAt reports what a node has left of jobs.
func leftAt(ctx context.Context, n *lab.Node) string {
	info, err := n.Client.Node(ctx)
	if err != nil {
		return err.Error()
	}
	queue, err := n.Client.Queue(ctx)
	if err != nil {
		return err.Error()
	}
	groups := controlGroups(groupRoot, info.ID)
	dirs, err := os.ReadDir(filepath.Join(n.State(), "work"))
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err.Error()
	case len(dirs) > 0:
		return fmt.Sprintf("%d work directories, such as %s", len(dirs), dirs[0].Name())
	case len(groups) > 0:
		return fmt.Sprintf("%d control groups, such as %s", len(groups), groups[0])
	case info.Busy > 0:
		return fmt.Sprintf("%d slots are used or held", info.Busy)
	case len(queue) > 0:
		return fmt.Sprintf("%d jobs are in its queue, such as %s", len(queue), queue[0].Job)
	}
	return ""
}

// deserted looks for processes that are left when all nodes have ended: there may
// be the lab's own and this one.
func (p *play) deserted() {
	for _, q := range processes() {
		if q.pid != os.Getpid() && q.pid != 1 && q.parent != 1 && q.parent != os.Getppid() {
			p.blame("process %d (of %d) is left: %.300q", q.pid, q.parent, q.args)
		}
		if q.parent == 1 && q.pid != os.Getppid() {
			p.blame("process %d is left: %.300q", q.pid, q.args)
		}
	}
}
