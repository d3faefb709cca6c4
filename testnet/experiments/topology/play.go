package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/testnet/hosts/lab"
	"zorilla/transfer"
)

// tries is how often a run is tried.
const tries = 3

// trial is a run of a program.
type trial struct {
	Program, Arrangement string
	Size, Round          int
	Seconds, Wall        float64  // as the program says; with its start
	Result               string   // what it found
	Sites                []string // of each rank
	Failed               []string // why tries before this one failed
}

// play is the script of the lab: all runs, each kind in turn.
func play(ctx context.Context, o *options) error {
	dir, err := lab.Enter()
	if err != nil {
		return err
	}
	plan, err := lab.PlanOf(network)
	if err != nil {
		return err
	}
	nodes, err := lab.Gather(ctx, dir, plan, "--slots", strconv.Itoa(slotsOfHost))
	if err != nil {
		return err
	}
	p := &player{node: nodes[0], programs: o.programs}
	if err := p.table(ctx); err != nil {
		return err
	}
	var all []trial
	for round := range o.rounds {
		for _, c := range o.cases() {
			t, err := p.run(ctx, &c, round)
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "round %d: %s %s of %d: %.3f s; failed before: %q\n", round, t.Program, t.Arrangement, t.Size, t.Seconds, t.Failed)
			all = append(all, t)
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(o.trials, b, 0o600)
}

// player submits jobs at a node.
type player struct {
	node     *lab.Node
	programs string // a folder
}

// run runs a program.
func (p *player) run(ctx context.Context, c *one, round int) (trial, error) {
	t := trial{Program: c.program, Arrangement: c.arrangement, Size: c.spec.Max, Round: round}
	var err error
	t.Failed, err = again(ctx, func() error {
		begun := time.Now()
		job, text, err := p.submit(ctx, c.spec, c.program+".openmpi")
		if err != nil {
			return err
		}
		t.Wall, t.Sites = time.Since(begun).Seconds(), sitesOf(&job)
		t.Result, t.Seconds, err = said(text)
		return err
	})
	if err != nil {
		err = fmt.Errorf("%s %s of %d: %w", t.Program, t.Arrangement, t.Size, err)
	}
	return t, err
}

// again repeats what fails, and returns why it did. It is an error if it fails each time.
func again(ctx context.Context, try func() error) (failed []string, err error) {
	for len(failed) < tries {
		err := try()
		switch {
		case err == nil:
			return failed, nil
		case ctx.Err() != nil:
			return failed, context.Cause(ctx)
		}
		failed = append(failed, err.Error())
	}
	return failed, fmt.Errorf("failed %d times: %q", tries, failed)
}

// submit runs a job with a program to its end, and returns what it printed.
func (p *player) submit(ctx context.Context, spec jobs.Spec, program string) (job jobs.Status, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit+runLimit+time.Minute)
	defer cancel()
	input := transfer.Input{Path: filepath.Join(p.programs, program), Name: program}
	if spec.Inputs, err = api.Push(ctx, p.node.Client, []transfer.Input{input}, nil); err != nil {
		return job, "", err
	}
	id, err := p.node.Client.Submit(ctx, spec)
	if err != nil {
		return job, "", err
	}
	for version := uint64(0); !job.State.Final(); {
		if job, version, err = p.node.Client.Await(ctx, string(id), version); err != nil {
			return job, "", err
		}
	}
	wrote := make([]string, spec.Max) // by rank, of which each may write a line in pieces
	err = p.node.Client.Output(ctx, string(id), api.OutputQuery{Rank: -1}, func(o jobs.Output) error {
		wrote[o.Rank] += string(o.Data)
		return nil
	})
	text = strings.Join(wrote, "")
	if err == nil && job.State != jobs.Completed {
		err = fmt.Errorf("%s: %s: %.300s", job.State, job.Reason, text)
	}
	return job, text, err
}

// says is how a program tells what it found, and its time.
var says = regexp.MustCompile(`(?m)^\w+: (.*) on [0-9]+ ranks: ([0-9.]+) s, verified$`)

// said returns what a program found, and its seconds.
func said(text string) (result string, seconds float64, err error) {
	m := says.FindStringSubmatch(text)
	if m == nil {
		return "", 0, fmt.Errorf("it says %.200q", text)
	}
	seconds, err = strconv.ParseFloat(m[2], 64)
	return m[1], seconds, err
}

// sitesOf returns the site of each rank.
func sitesOf(job *jobs.Status) (sites []string) {
	for _, w := range job.Workers {
		site, _, _ := strings.Cut(w.Name, "-")
		sites = append(sites, site)
	}
	return sites
}

// table has programs of both MPIs say what they learn of the paper's table 1.
func (p *player) table(ctx context.Context) error {
	for _, program := range []string{"groups.mpich", "groups.openmpi"} {
		var text string
		if _, err := again(ctx, func() (err error) {
			_, text, err = p.submit(ctx, paperJob(program), program)
			return err
		}); err != nil {
			return fmt.Errorf("table 1 by %s: %w", program, err)
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		slices.Sort(lines)
		want := []string{"groups of 6 ranks: verified"}
		for rank := range 6 {
			want = append(want, fmt.Sprintf("rank %d of 6: PG%d %d of 2, PCG4:3 of 6, PCG%d:%d of 2", rank, rank/2+1, rank%2, rank/2+1, rank/2))
		}
		if !slices.Equal(lines, want) {
			return errors.New("table 1 by " + program + " is\n" + strings.Join(lines, "\n"))
		}
	}
	return nil
}
