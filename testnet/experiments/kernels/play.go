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
	plan, err := lab.PlanOf(o.plan)
	if err != nil {
		return err
	}
	nodes, err := lab.Gather(ctx, dir, plan, "--slots", strconv.Itoa(slots))
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
	all, err := n.Submitted(ctx)
	if err != nil || len(all) == 0 {
		return job, false
	}
	return all[len(all)-1], true
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
