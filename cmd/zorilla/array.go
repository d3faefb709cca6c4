package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/process"
	"zorilla/node/api"
	"zorilla/transfer"
)

// arrayFlags make a job an array.
func arrayFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "a", Aliases: []string{"array"}, Usage: "run the command for each of `TASKS`, such as 1-10000%50 (at most 50 at once) or 1-9:2,12; its number is in ZORILLA_TASK_ID"},
		&cli.StringFlag{Name: "each-line", Usage: "run the command for each line of `FILE` (- is standard input), which takes the place of {} or comes last"},
	}
}

// arrayOf makes an array of the job if the command line says so.
func (sh *shell) arrayOf(c *cli.Context, spec *jobs.Spec, inputs *[]transfer.Input) error {
	tasks, lines := c.String("a"), c.String("each-line")
	switch {
	case tasks == "" && lines == "":
		return nil
	case c.IsSet("n"):
		return errors.New("-n: an array has as many workers as are found: -a 1-100%8 has at most 8 at once")
	case c.String("stdin") != "" && c.String("stdin") != "none":
		return errors.New("--stdin: tasks of an array have no standard input: use --each-line")
	}
	spec.Array = &jobs.Array{}
	atOnce, err := 0, error(nil)
	if tasks != "" {
		if spec.Array.Tasks, atOnce, err = jobs.ParseArray(tasks); err != nil {
			return err
		}
	}
	if lines != "" {
		path, n, err := sh.lines(lines)
		if err != nil {
			return fmt.Errorf("--each-line: %w", err)
		}
		if tasks == "" {
			spec.Array.Tasks = []process.TaskIDs{{First: 1, Last: n, Step: 1}}
		}
		for _, r := range spec.Array.Tasks {
			if r.First < 1 || r.Last > n {
				return fmt.Errorf("-a %s: --each-line %s has lines 1 to %d", tasks, lines, n)
			}
		}
		spec.Array.Lines = true
		*inputs = append(*inputs, transfer.Input{Path: path, Name: jobs.ArrayLines})
	}
	spec.Min, spec.Max = 1, jobs.ArrayWorkers(spec.Array.Count(), atOnce)
	return nil
}

// lines returns where the lines of --each-line are, and how many. Those of the
// standard input ("-") are kept in a file without a name until the command ends.
func (sh *shell) lines(name string) (path string, n int, err error) {
	path = name
	if name == "-" {
		if sh.kept, err = os.CreateTemp("", "zorilla-lines-"); err != nil {
			return "", 0, err
		}
		if err := os.Remove(sh.kept.Name()); err != nil {
			return "", 0, err
		}
		if _, err := io.Copy(sh.kept, sh.stdin); err != nil {
			return "", 0, fmt.Errorf("read standard input: %w", err)
		}
		path = fmt.Sprintf("/proc/self/fd/%d", sh.kept.Fd())
	}
	if n, err = countLines(path); err == nil && n == 0 {
		err = fmt.Errorf("%s has no lines", name)
	}
	return path, n, err
}

// countLines counts the lines of a file; the last one need not end.
func countLines(path string) (n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	open := false
	for r := bufio.NewReader(f); ; {
		piece, err := r.ReadSlice('\n')
		switch {
		case err == nil:
			n, open = n+1, false
			continue
		case err != io.EOF && err != bufio.ErrBufferFull:
			return 0, err
		}
		if open = open || len(piece) > 0; err == bufio.ErrBufferFull {
			continue
		}
		if open {
			n++
		}
		return n, nil
	}
}

// tally sums up the tasks of an array: "980/1000 done, 3 failed, 8 running".
func tally(a *jobs.ArrayStatus) string {
	s := fmt.Sprintf("%d/%d done", a.Done, a.Tasks)
	if a.Failed > 0 {
		s += fmt.Sprintf(", %d failed", a.Failed)
	}
	if a.Running > 0 {
		s += fmt.Sprintf(", %d running", a.Running)
	}
	return s
}

// hasTaskFiles reports whether a job's tasks may have left files.
func hasTaskFiles(st jobs.Status) bool {
	return st.Array != nil && st.Array.Done > 0 && len(st.Spec.Outputs) > 0
}

// taskEnded returns how the task of an array ended, once it has.
func taskEnded(ctx context.Context, l *lifeline, st jobs.Status, task int) (line string, code int, ended bool, err error) {
	numbers := process.NumberTasks(st.Spec.Array.Tasks)
	place, _ := numbers.Place(task)
	var page jobs.TaskPage
	err = l.try(ctx, func() (err error) {
		page, err = l.service.Tasks(ctx, string(st.ID), jobs.TaskQuery{From: place, Limit: 1})
		return err
	})
	switch {
	case err != nil:
		return "", 0, false, err
	case len(page.Tasks) == 1 && page.Tasks[0].Done:
		code = page.Tasks[0].Code
		return fmt.Sprintf("task %d of job %s ended with %d", task, st.ID.Short(), code), code, true, nil
	}
	return fmt.Sprintf("task %d was not done: %s", task, endLine(st)), max(st.ExitCode, 1), st.State.Final(), nil
}

// hasOutput returns an error if the job will never have output of the rank, or
// of the task of an array.
func hasOutput(st jobs.Status, rank int) error {
	if st.Spec.Array == nil {
		return hasRank(st, rank)
	}
	numbers := process.NumberTasks(st.Spec.Array.Tasks)
	if _, ok := numbers.Place(rank); !ok && rank >= 0 {
		return fmt.Errorf("job %s has no task %d", st.ID.Short(), rank)
	}
	return nil
}

func (sh *shell) tasksCommand() *cli.Command {
	return clientCommand(cli.Command{
		Name:      "tasks",
		Category:  groupJobs,
		Usage:     "list the tasks of an array",
		UsageText: "zorilla tasks [options] JOB",
		Description: `
zorilla tasks --failed last
zorilla tasks --from 50001 --limit 100 k7f3q
zorilla tasks --limit 0 --json k7f3q | jq '.[] | select(.took > 60) | .id'`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "failed", Usage: "only those that have failed"},
			&cli.IntFlag{Name: "from", DefaultText: "the first", Usage: "begin with task `N`"},
			&cli.IntFlag{Name: "limit", Value: 1000, Usage: "list `N` tasks at most; 0 = all"},
			jsonFlag(),
		},
		Action: func(c *cli.Context) error {
			job, err := wholeJob(c)
			if err != nil {
				return err
			}
			client, err := sh.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			q := jobs.TaskQuery{Failed: c.Bool("failed"), Limit: c.Int("limit")}
			var numbers process.TaskNumbers
			if job, numbers, err = arrayJob(c.Context, client, job); err != nil {
				return err
			}
			if c.IsSet("from") {
				var ok bool
				if q.From, ok = numbers.Place(c.Int("from")); !ok {
					return fmt.Errorf("job %s has no task %d", jobs.ID(job).Short(), c.Int("from"))
				}
			}
			if q.Limit < 0 {
				return usage(c, "--limit %d: want a number from 0", q.Limit)
			}
			list, next, err := api.AllTasks(c.Context, client, job, q)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				err = sh.printJSON(list)
			} else {
				err = sh.printTable(taskTable(list))
			}
			if next > 0 {
				sh.say("there are more: go on with --from %d", numbers.ID(next))
			}
			return err
		},
	})
}

// arrayJob returns the whole ID of an array, and the numbers of its tasks.
func arrayJob(ctx context.Context, s api.Service, job string) (string, process.TaskNumbers, error) {
	st, err := s.Job(ctx, job)
	if err == nil {
		err = st.Gone()
	}
	if err != nil {
		return job, process.TaskNumbers{}, err
	}
	if st.Spec.Array == nil {
		return job, process.TaskNumbers{}, fmt.Errorf("job %s has no tasks: it is not an array", st.ID.Short())
	}
	return string(st.ID), process.NumberTasks(st.Spec.Array.Tasks), nil
}

func taskTable(list []jobs.TaskStatus) [][]string {
	rows := [][]string{{"TASK", "EXIT", "TRIES", "RANK", "NODE", "TIME", "STDOUT", "STDERR", "FILES"}}
	for _, t := range list {
		row := []string{strconv.Itoa(t.ID), "-", strconv.Itoa(t.Tries), "-", "-", "-", units.Bytes(t.Stdout), units.Bytes(t.Stderr), units.Bytes(t.Files)}
		if t.Done {
			row[1], row[3], row[5] = strconv.Itoa(t.Code), strconv.Itoa(t.Rank), time.Duration(t.Took).Round(time.Millisecond).String()
			row[4] = nodeName(string(t.Node.Short()), "")
		}
		rows = append(rows, row)
	}
	return rows
}

func (sh *shell) rerunCommand() *cli.Command {
	return clientCommand(cli.Command{
		Name:      "rerun",
		Category:  groupJobs,
		Usage:     "submit a job again, or the failed tasks of an array, and print the new ID",
		UsageText: "zorilla rerun [options] JOB",
		Description: `
The new job has the options and the inputs of the old one, as they were then. What
came on standard input is not kept: a job that read some cannot be submitted again.

zorilla rerun --failed last`,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "failed", Usage: "only the tasks that have failed"}},
		Action: func(c *cli.Context) error {
			job, err := wholeJob(c)
			if err != nil {
				return err
			}
			client, err := sh.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			spec, err := again(c.Context, client, job, c.Bool("failed"))
			if err != nil {
				return err
			}
			id, err := sh.submit(c.Context, client, spec, nil)
			if err == nil {
				_, err = fmt.Fprintln(sh.stdout, id.Short())
			}
			return err
		},
	})
}

// again returns the spec of a job that is run again.
func again(ctx context.Context, s api.Service, job string, failed bool) (jobs.Spec, error) {
	st, err := s.Job(ctx, job)
	spec := st.Spec
	switch {
	case err != nil:
		return spec, err
	case st.Gone() != nil:
		return spec, st.Gone()
	case spec.Stdin && st.StdinBytes > 0:
		return spec, fmt.Errorf("job %s read standard input, which is not kept: start it again with 'zorilla run'", st.ID.Short())
	}
	spec.After, spec.Stdin, spec.Key = nil, false, ""
	if !failed {
		return spec, nil
	}
	list, _, err := api.AllTasks(ctx, s, string(st.ID), jobs.TaskQuery{Failed: true})
	if err != nil {
		return spec, err
	}
	if len(list) == 0 {
		return spec, fmt.Errorf("job %s has no failed tasks", st.ID.Short())
	}
	ids := make([]int, len(list))
	for i, t := range list {
		ids[i] = t.ID
	}
	spec.Array = &jobs.Array{Tasks: jobs.TaskRuns(ids), Lines: spec.Array.Lines}
	spec.Max = min(spec.Max, len(ids))
	return spec, nil
}
