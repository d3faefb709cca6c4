package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"zorilla/jobs"
	"zorilla/testnet/hosts/lab"
)

// The kinds of runs.
const (
	undisturbed = "undisturbed"
	kept        = "checkpoints"
	lostAll     = "nothing" // is kept: losses, without checkpoints
)

// lostAfter is the job's patience with silent nodes, the least that there is.
const lostAfter = "2s"

// trial is a run of the program.
type trial struct {
	Kind      string
	Round     int
	Seed      uint64
	Solved    bool    // within the limit
	Seconds   float64 // from the job's start to its end, or to the limit
	Done      float64 // until each rank had said once that it has its part of the solution
	Kills     []loss
	Attempts  int // of all ranks, beyond the first of each
	Resumed   int // of these went on from a checkpoint, as status tells
	WentOn    int // and as they say themselves, unless they died with that word
	Iteration int // the one that the slowest rank had told of last
	Residual  float64
	Wrong     float64 // by how much the solution is, compared with that of a direct method
	Why       string  // it is not solved, or not right
}

// loss is the death of a host.
type loss struct {
	At              float64 // seconds after the start of the job
	Host, Successor string
	Ranks           []lostRank // that were there
}

type lostRank struct {
	Rank, Attempt int
	Back          float64 // seconds until the next attempt ran; 0 = it did not
}

// play is the script of the lab: one run.
func play(ctx context.Context, o *options) error {
	dir, err := lab.Enter()
	if err != nil {
		return err
	}
	plan, err := lab.PlanOf(network)
	if err != nil {
		return err
	}
	f, err := newFleet(ctx, dir, plan, o)
	if err != nil {
		return err
	}
	r := &runner{o: o, fleet: f, trial: trial{Kind: o.kind, Seed: o.seed}, words: map[int]words{}}
	if err := r.run(ctx, filepath.Join(dir, "tmp", "out")); err != nil {
		return err
	}
	t := &r.trial
	fmt.Fprintf(os.Stderr, "%s: solved %t in %.1f s, %d losses, %d more attempts, %d resumed; %s\n",
		t.Kind, t.Solved, t.Seconds, len(t.Kills), t.Attempts, t.Resumed, t.Why)
	return lab.Tell(r.trial)
}

// runner plays one run.
type runner struct {
	o     *options
	fleet *fleet
	trial trial

	mu    sync.Mutex
	begun time.Time           // the start of the job
	where []jobs.WorkerStatus // what runs
	words map[int]words       // by rank
}

// words is what a rank has said.
type words struct {
	iteration int
	done      bool
}

// run runs the job, kills hosts under it, and looks at what it brings.
func (r *runner) run(ctx context.Context, out string) error {
	if err := os.Mkdir(out, 0o700); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cmd, wait, err := r.submit(ctx, out)
	if err != nil {
		return err
	}
	job, err := r.started(ctx)
	if err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	bounded, cancel := context.WithDeadline(ctx, r.begun.Add(r.o.limit))
	defer cancel()
	var troubles sync.WaitGroup
	var trouble error
	if r.o.kind != undisturbed {
		troubles.Go(func() { trouble = r.trouble(bounded) })
	}
	ended := make(chan error, 1)
	go func() { ended <- wait() }()
	job, watched := r.watch(bounded, string(job.ID))
	cancel()
	troubles.Wait()
	if !job.State.Final() {
		r.trial.Seconds = r.o.limit.Seconds()
		r.trial.Why = fmt.Sprintf("not within %v", r.o.limit)
		if !errors.Is(watched, context.DeadlineExceeded) {
			r.trial.Why = watched.Error()
		}
		stop()
		<-ended
		return trouble
	}
	r.trial.Seconds = job.Ended.Sub(job.Started).Seconds()
	r.trial.Solved = job.State == jobs.Completed
	if err := <-ended; err != nil || !r.trial.Solved {
		r.trial.Solved, r.trial.Why = false, fmt.Sprintf("%s: %s: %v", job.State, job.Reason, err)
		return trouble
	}
	r.check(ctx, out)
	return trouble
}

// submit starts zorilla run at the origin. Its output is read as it comes.
func (r *runner) submit(ctx context.Context, out string) (cmd *exec.Cmd, wait func() error, err error) {
	o := r.o
	host := r.fleet.origin.Name
	args := []string{"host", host, "zorilla", "run", "-q", "--stdin", "none", "-n", fmt.Sprintf("%d..%d", o.min, r.ranks()),
		"--retries", "99", "--strategy", "spread", "--lost-after", lostAfter, "-o", "slab-*", "--into", out}
	args = append(args, "--", "./async", "-n", strconv.Itoa(o.n), "-planes", "1", "-pause", o.pause.String())
	if o.kind == kept {
		args = append(args, "-checkpoint", o.checkpoint.String())
	}
	cmd = exec.CommandContext(ctx, "lab", args...)
	cmd.Dir, cmd.WaitDelay = lab.Programs(), 5*time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		r.listen(pipe)
	}()
	return cmd, func() error {
		<-read
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%w: %.500s", err, strings.TrimSpace(stderr.String()))
		}
		return nil
	}, nil
}

var (
	said   = regexp.MustCompile(`^rank (\d+): (?:iteration|done after) (\d+)`)
	wentOn = regexp.MustCompile(`^rank \d+: goes on from checkpoint \d+ in iteration [1-9]`)
)

// listen reads what ranks say, until they say nothing more.
func (r *runner) listen(from io.Reader) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		if wentOn.MatchString(lines.Text()) {
			r.mu.Lock()
			r.trial.WentOn++
			r.mu.Unlock()
		}
		m := said.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		rank, _ := strconv.Atoi(m[1]) // it is a number
		w := words{done: strings.Contains(lines.Text(), "done after")}
		w.iteration, _ = strconv.Atoi(m[2]) // likewise
		r.mu.Lock()
		w.done = w.done || r.words[rank].done
		r.words[rank] = w
		if r.trial.Done == 0 && w.done && r.allDone() {
			r.trial.Done = time.Since(r.begun).Seconds()
		}
		r.mu.Unlock()
	}
}

// allDone reports whether each rank has said so once. The lock is held.
func (r *runner) allDone() bool {
	for _, w := range r.words {
		if !w.done {
			return false
		}
	}
	return len(r.words) == r.ranks()
}

// ranks is how many ranks the job has at most: one for each host.
func (r *runner) ranks() int { return r.o.hosts * len(r.fleet.plan.Sites) }

// started waits until the job has started.
func (r *runner) started(ctx context.Context) (job jobs.Status, err error) {
	_, err = lab.Until(ctx, time.Minute, "the job has started", func(ctx context.Context) string {
		all, err := r.fleet.origin.Submitted(ctx)
		switch {
		case err != nil:
			return err.Error()
		case len(all) == 0:
			return "there is none"
		case all[0].Started.IsZero():
			return all[0].Reason
		}
		job = all[0]
		return ""
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = job.Started
	return job, err
}

// watch follows the job to its end, and counts attempts.
func (r *runner) watch(ctx context.Context, id string) (job jobs.Status, err error) {
	resumed := map[[2]int]bool{} // rank and attempt
	for version := uint64(0); !job.State.Final() && err == nil; {
		var next jobs.Status
		if next, version, err = r.fleet.origin.Client.Await(ctx, id, version); err != nil {
			break
		}
		job = next
		var where []jobs.WorkerStatus
		r.trial.Attempts = 0
		for _, w := range job.Workers {
			r.trial.Attempts += w.Attempt - 1
			if w.Resumed > 0 {
				resumed[[2]int{w.Rank, w.Attempt}] = true
			}
			if w.State == jobs.WorkerRunning {
				where = append(where, w)
			}
		}
		r.locate(where)
	}
	r.trial.Resumed = len(resumed)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, w := range r.words {
		if i == 0 || w.iteration < r.trial.Iteration {
			r.trial.Iteration = w.iteration
		}
	}
	return job, err
}

var checked = regexp.MustCompile(`residual (\S+), wrong by (\S+)\n`)

// check compares the files that the job has brought with the direct solution.
func (r *runner) check(ctx context.Context, out string) {
	files, err := filepath.Glob(filepath.Join(out, "slab-*"))
	if err == nil {
		var text []byte
		args := append([]string{"-check", "-n", strconv.Itoa(r.o.n)}, files...)
		text, err = exec.CommandContext(ctx, filepath.Join(lab.Programs(), "async"), args...).CombinedOutput()
		if m := checked.FindSubmatch(text); m != nil {
			r.trial.Residual, _ = strconv.ParseFloat(string(m[1]), 64) // it prints numbers
			r.trial.Wrong, _ = strconv.ParseFloat(string(m[2]), 64)    // likewise
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(text)))
		}
	}
	if want := r.ranks(); err == nil && len(files) != want {
		err = fmt.Errorf("%d files: want %d", len(files), want)
	}
	if err != nil {
		r.trial.Why = err.Error()
	}
}
