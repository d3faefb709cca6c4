package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/testnet/hosts/lab"
)

// limit is how long a run may take; the longest here take six seconds.
const limit = time.Minute

// play is the script of a lab: all runs, each kind in turn.
func play(ctx context.Context, o *options) error {
	dir, err := lab.Enter()
	if err != nil {
		return err
	}
	nodes, err := begin(ctx, dir, o.plan)
	if err != nil {
		return err
	}
	var all []trial
	for round := range o.rounds {
		for _, k := range kernels {
			for _, n := range sizes {
				for _, s := range strategies {
					t := trial{Plan: o.plan, Kernel: k.name, Strategy: s, Size: n, Round: round}
					if err := t.run(ctx, o.programs, &k, nodes[0]); err != nil {
						if ctx.Err() != nil {
							return err
						}
						t.Failed = err.Error()
					}
					all = append(all, t)
				}
			}
		}
		fmt.Fprintf(os.Stderr, "%s: round %d of %d\n", o.plan, round+1, o.rounds)
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(o.trials, b, 0o600)
}

// begin starts a node on each host, and waits until they know each other and how far.
func begin(ctx context.Context, dir, plan string) (nodes []*lab.Node, err error) {
	p, err := lab.PlanOf(plan)
	if err != nil {
		return nil, err
	}
	for _, name := range p.Names() {
		n, err := lab.NewNode(dir, name)
		if err != nil {
			return nil, err
		}
		if err := n.Start(ctx, "--slots", strconv.Itoa(slots), "--join", lab.Address(0, 1).String()+":5444"); err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	_, err = lab.Until(ctx, 2*time.Minute, "all nodes have measured all", lab.All(nodes, func(_ *lab.Node, members []api.NodeInfo) string {
		if len(members) < len(nodes) {
			return fmt.Sprintf("knows %d of %d", len(members), len(nodes))
		}
		for _, m := range members {
			if m.RTT == 0 && !m.Self {
				return "has not measured " + m.Name
			}
		}
		return ""
	}))
	return nodes, err
}

// says is how a program tells its time.
var says = regexp.MustCompile(`on [0-9]+ ranks: ([0-9.]+) s, verified`)

// run starts a kernel from the first host, and notes what it says and where it was.
func (t *trial) run(ctx context.Context, programs string, k *kernel, origin *lab.Node) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "lab", append([]string{"host", origin.Name, "zorilla", "run", "-q", "--stdin", "none", "--mpi",
		"-n", strconv.Itoa(t.Size), "--strategy", t.Strategy, "--", "./" + k.name + ".openmpi"}, k.args...)...)
	cmd.Dir, cmd.WaitDelay = programs, 5*time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	before := time.Now()
	out, err := cmd.Output()
	t.Wall = time.Since(before).Seconds()
	job, found := newest(ctx, origin)
	if err != nil {
		return fmt.Errorf("%w: %s: %.300s", err, job.Reason, strings.TrimSpace(stderr.String()))
	}
	if t.Seconds, err = seconds(string(out)); err != nil {
		return err
	}
	if !found {
		return errors.New("its job is not known")
	}
	t.Hosts, t.Sites = places(&job)
	return nil
}

// seconds is the time that a program tells, if its result was right.
func seconds(text string) (float64, error) {
	m := says.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("it says %.200q", text)
	}
	return strconv.ParseFloat(m[1], 64)
}

// newest is the job that was submitted last at a node.
func newest(ctx context.Context, n *lab.Node) (job jobs.Status, found bool) {
	all, err := n.Client.Jobs(ctx, false)
	if err != nil {
		return job, false
	}
	for _, st := range all {
		if n.Owns(&st) && st.Submitted.After(job.Submitted) {
			job, found = st, true
		}
	}
	return job, found
}

// places counts the hosts of a job, and their sites.
func places(job *jobs.Status) (hosts, sites int) {
	h, s := map[string]bool{}, map[string]bool{}
	for _, w := range job.Workers {
		site, _, _ := strings.Cut(w.Name, "-")
		h[w.Name], s[site] = true, true
	}
	return len(h), len(s)
}
