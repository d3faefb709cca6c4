package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
)

func tasksCommand(con *console) *cli.Command {
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
		Action: askJob(func(c *cli.Context, client *api.Client, job string) error {
			q := jobs.TaskQuery{Failed: c.Bool("failed"), Limit: c.Int("limit")}
			id, numbers, err := arrayJob(c.Context, client, job)
			if err != nil {
				return err
			}
			if c.IsSet("from") {
				var ok bool
				if q.From, ok = numbers.Place(c.Int("from")); !ok {
					return fmt.Errorf("job %s has no task %d", id.Short(), c.Int("from"))
				}
			}
			if q.Limit < 0 {
				return usage(c, "--limit %d: want a number from 0", q.Limit)
			}
			list, next, err := api.AllTasks(c.Context, client, string(id), q)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				err = con.printJSON(list)
			} else {
				err = con.printTable(taskTable(list))
			}
			if next > 0 {
				con.say("there are more: go on with --from %d", numbers.ID(next))
			}
			return err
		}),
	})
}

// arrayJob returns the whole ID of an array, and the numbers of its tasks.
func arrayJob(ctx context.Context, s api.Service, job string) (jobs.ID, work.TaskNumbers, error) {
	st, err := s.Job(ctx, job)
	if err == nil {
		err = st.Gone()
	}
	if err != nil {
		return "", work.TaskNumbers{}, err
	}
	if st.Spec.Array == nil {
		return "", work.TaskNumbers{}, fmt.Errorf("job %s has no tasks: it is not an array", st.ID.Short())
	}
	return st.ID, work.NumberTasks(st.Spec.Array.Tasks), nil
}

func taskTable(list []jobs.TaskStatus) [][]string {
	rows := [][]string{{"TASK", "STATE", "EXIT", "TRIES", "RANK", "NODE", "TIME", "STDOUT", "STDERR", "FILES"}}
	for _, t := range list {
		row := []string{strconv.Itoa(t.ID), cmp.Or(string(t.State), columns.None), "-", strconv.Itoa(t.Tries),
			"-", "-", "-", units.Bytes(t.Stdout), units.Bytes(t.Stderr), units.Bytes(t.Files)}
		if t.Done {
			row[2], row[4], row[6] = strconv.Itoa(t.Code), strconv.Itoa(t.Rank), time.Duration(t.Took).Round(time.Millisecond).String()
			row[5] = nodeName(string(t.Node.Short()), "")
		}
		rows = append(rows, row)
	}
	return rows
}
