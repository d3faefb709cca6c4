package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
)

func psCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "ps",
		Category:  groupJobs,
		Usage:     "list the jobs that the node originates or works for",
		UsageText: "zorilla ps [options]",
		Description: `
Of jobs that were submitted here and have ended the youngest 1000 are listed, after
all that have not. KEPT is how much of their results is kept, see zorilla rm.

zorilla ps --all                  # ask every member
zorilla ps --queue                # what waits for room at this node, first come first
zorilla ps --json | jq '.[].id'   # all that is known of each, which takes longer`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "ask every member of the network"},
			&cli.BoolFlag{Name: "queue", Aliases: []string{"q"}, Usage: "list the jobs, of all nodes, that wait for room at this one, in order"},
			jsonFlag(),
		},
		Action: askNode(func(c *cli.Context, client *api.Client) error {
			if c.Bool("queue") {
				if c.Bool("all") {
					return usage(c, "--queue is about one node: leave out --all")
				}
				return printQueue(con, c, client)
			}
			if c.Bool("json") {
				return printStatuses(con, c, client)
			}
			list, err := client.Summaries(c.Context, c.Bool("all"))
			if err != nil {
				return err
			}
			return con.printTable(jobTable(list, time.Now()))
		}),
	})
}

// printStatuses prints all that is known of the jobs, which takes longer than a list.
func printStatuses(con *console, c *cli.Context, client *api.Client) error {
	list, err := client.Jobs(c.Context, c.Bool("all"))
	if err != nil {
		return err
	}
	for i := range list {
		list[i] = whole(list[i])
	}
	return con.printJSON(list)
}

func printQueue(con *console, c *cli.Context, client *api.Client) error {
	queue, err := client.Queue(c.Context)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return con.printJSON(queue)
	}
	now := time.Now()
	rows := [][]string{{"JOB", "ORIGIN", "PRIORITY", "WANTED", "EACH", "SINCE", "EXPIRES", "REASON"}}
	names := shortIDs(queue, func(w jobs.Waiting) jobs.ID { return w.Job })
	for i, w := range queue {
		reason := w.Reason
		if reason == "" {
			reason = "offered"
		}
		rows = append(rows, []string{
			names[i], w.Origin.Short(), strconv.Itoa(w.Priority), strconv.Itoa(w.Wanted), each(w),
			units.Span(now.Sub(w.Since)) + " ago", "in " + units.Span(w.Expires.Sub(now)), reason,
		})
	}
	return con.printTable(rows)
}

// shortIDs names the jobs of a listing.
func shortIDs[T any](list []T, of func(T) jobs.ID) []string {
	ids := make([]jobs.ID, len(list))
	for i, e := range list {
		ids[i] = of(e)
	}
	return jobs.Distinct(ids)
}

// each tells what one worker needs.
func each(w jobs.Waiting) string {
	text := count(w.Slots, "slot")
	if w.Memory > 0 {
		text += ", " + units.Bytes(w.Memory)
	}
	if w.Disk > 0 {
		text += ", " + units.Bytes(w.Disk) + " of disk"
	}
	if w.GPUs > 0 {
		text += ", " + count(w.GPUs, "GPU")
	}
	return text
}

// age tells how long ago a job was submitted.
func age(st jobs.Summary, now time.Time) string {
	if st.Submitted.IsZero() { // the journal lost it
		return "-"
	}
	return units.Span(now.Sub(st.Submitted))
}

func jobTable(list []jobs.Summary, now time.Time) [][]string {
	rows := [][]string{{"ID", "NAME", "STATE", "RANKS", "ORIGIN", "AGE", "KEPT", "REASON"}}
	names := shortIDs(list, func(st jobs.Summary) jobs.ID { return st.ID })
	for i, st := range list {
		reason := st.Reason
		if reason == "" && st.Damage != "" {
			reason = "damaged: " + st.Damage
		}
		if st.LastKnown {
			reason = strings.TrimSuffix("last known: "+reason, ": ")
		}
		rows = append(rows, []string{
			names[i], short(title(jobs.Spec{Name: st.Name, Args: st.Args}), 24), string(st.State), ranks(st), st.Origin.Short(), age(st, now), kept(st), short(reason, 60),
		})
	}
	return rows
}

// kept tells how much is kept of the results of a job at its origin.
func kept(st jobs.Summary) string {
	switch {
	case !st.Forgotten.IsZero():
		return "forgotten"
	case st.LastKnown:
		return "-"
	}
	return units.Bytes(st.Size)
}

// ranks tells how many workers a job has and wants: "6", "3 of 6", "3 of 2-16".
func ranks(st jobs.Summary) string {
	if st.Array != nil {
		return fmt.Sprintf("%d/%d tasks", st.Array.Done, st.Array.Tasks)
	}
	want := strconv.Itoa(st.Wanted)
	if !st.Rigid {
		want = fmt.Sprintf("%d-%d", st.Min, st.Max)
	}
	have := st.Count.All - st.Count.Stuck
	if st.Brief || st.Rigid && (have == st.Wanted || st.State.Final()) {
		return want
	}
	return fmt.Sprintf("%d of %s", have, want)
}
