package main

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/cmd/zorilla/selector"
	"zorilla/cmd/zorilla/suggest"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/described"
	"zorilla/node/api"
)

func psCommand(con *console) *cli.Command {
	return clientCommandAt("state-dir", cli.Command{
		Name:      "ps",
		Category:  groupJobs,
		Usage:     "list the jobs that the node originates or works for",
		UsageText: "zorilla ps [options]",
		Description: `
All that have not ended, and the last ten that have; --all lists more of these, up to
1000 that were submitted here, and so do --state, --name, --since and -n. KEPT is how
much of their results is kept, see zorilla rm.

zorilla ps --state failed,timeout --since 24h
zorilla ps --state active --members        # of every member's
zorilla ps -q --state ended --name 'train-*' | xargs -r zorilla rm
zorilla ps --format id,exit,ended,name
zorilla ps --queue                # what waits for room at this node, first come first
zorilla ps --json | jq '.[].id'   # all that is known of each, which takes longer`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "also all that have ended"},
			&cli.StringFlag{Name: "state", Usage: "only jobs in one of the states `STATE[,…]`, such as running,failed; active and ended are several"},
			&cli.StringFlag{Name: "name", Usage: "only jobs whose name is `NAME`, or matches that pattern"},
			&cli.StringFlag{Name: "since", Usage: "only jobs submitted within `TIME`, such as 2h, or since then, as in 2006-01-02"},
			&cli.IntFlag{Name: "n", Aliases: []string{"limit"}, DefaultText: "all", Usage: "only the first `N` of the list"},
			&cli.BoolFlag{Name: "q", Aliases: []string{"quiet"}, Usage: "print IDs alone"},
			&cli.StringFlag{Name: "format", Usage: "`COLUMN[,…]` to print: " + strings.Join(columnNames(), ", ")},
			&cli.BoolFlag{Name: "no-header", Usage: "leave out the heading"},
			&cli.BoolFlag{Name: "members", Usage: "ask every member of the network"},
			&cli.BoolFlag{Name: "queue", Usage: "list the jobs, of all nodes, that wait for room at this one, in order, and what it has promised them"},
			jsonFlag(),
		},
		Action: askNode(func(c *cli.Context, client *api.Client) error { return psAction(con, c, client) }),
	})
}

func psAction(con *console, c *cli.Context, client *api.Client) error {
	now := time.Now()
	want, err := selection(c, now)
	if err != nil {
		return usage(c, "%v", err)
	}
	columns, err := selector.Words(c.String("format"), columnNames())
	switch {
	case !c.IsSet("format"):
		columns = jobColumns
	case err != nil:
		return usage(c, "--format: %v", err)
	}
	if c.Bool("queue") {
		return printQueue(con, c, client)
	}
	if c.Bool("json") {
		return printStatuses(con, c, client, want)
	}
	list, err := client.Summaries(c.Context, c.Bool("members"))
	if err != nil {
		return err
	}
	at := want.Of(list)
	hidden := len(list) - len(at)
	for i, j := range at {
		list[i] = list[j]
	}
	list = list[:len(at)]
	rows := jobTable(list, now, columns...)
	switch {
	case c.Bool("q"):
		for _, id := range jobs.DistinctOf(list, func(st jobs.Summary) jobs.ID { return st.ID }) {
			if _, err := fmt.Fprintln(con.stdout, id); err != nil {
				return err
			}
		}
		return nil
	case c.Bool("no-header"):
		rows = rows[1:]
	}
	err = con.printTable(rows)
	if err == nil && hidden > 0 && want.Ended == selector.Recent && onTerminal(con.stdout) {
		con.say("%d more have ended: 'zorilla ps -a' lists them", hidden)
	}
	return err
}

// listOptions choose jobs of the list.
var listOptions = []string{"all", "state", "name", "since", "n", "format", "q", "no-header", "members"}

// selection is what the options of ps want to see.
func selection(c *cli.Context, now time.Time) (s selector.Selection, err error) {
	s = selector.Selection{Ended: selector.Recent, Name: c.String("name"), Limit: c.Int("n")}
	for _, option := range listOptions {
		if c.IsSet(option) && c.Bool("queue") {
			return s, fmt.Errorf("--queue lists all that waits at one node: leave out %s", suggest.Dashes(option))
		}
	}
	for _, option := range listOptions[:5] {
		if c.IsSet(option) {
			s.Ended = -1
		}
	}
	if c.IsSet("n") && s.Limit < 1 {
		return s, fmt.Errorf("-n %d: want 1 or more", s.Limit)
	}
	if text := c.String("since"); text != "" {
		if s.Since, err = since("--since", text, now); err != nil {
			return s, err
		}
	}
	if text := c.String("state"); c.IsSet("state") {
		s.States, err = selector.ParseStates(text)
		if err != nil && strings.Contains(text, "/") {
			err = fmt.Errorf("%w; --state-dir names the state directory", err)
		}
	}
	if err == nil {
		_, err = path.Match(s.Name, "")
	}
	return s, err
}

// printStatuses prints all that is known of the jobs, which takes longer than a list.
func printStatuses(con *console, c *cli.Context, client *api.Client, want selector.Selection) error {
	list, err := client.Jobs(c.Context, c.Bool("members"))
	if err != nil {
		return err
	}
	short := make([]jobs.Summary, len(list))
	for i := range list {
		short[i] = list[i].Summary()
	}
	wanted := []jobs.Status{}
	for _, i := range want.Of(short) {
		wanted = append(wanted, whole(list[i]))
	}
	return con.printJSON(wanted)
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
	names := jobs.DistinctOf(queue, func(w jobs.Waiting) jobs.ID { return w.Job })
	for i, w := range queue {
		since, expires := columns.None, columns.None
		if !w.Since.IsZero() {
			since, expires = units.Span(now.Sub(w.Since))+" ago", "in "+units.Span(w.Expires.Sub(now))
		}
		rows = append(rows, []string{
			names[i], w.Origin.Short(), strconv.Itoa(w.Priority), strconv.Itoa(w.Wanted), each(w),
			since, expires, described.Waiting(&w, now.Location()),
		})
	}
	return con.printTable(rows)
}

// each reports what one worker needs.
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

// column is one of those that ps can print.
type column struct {
	name string
	cell func(st jobs.Summary, now time.Time) string
}

// jobColumns are printed if nobody asks for others.
var jobColumns = []string{"id", "name", "state", "ranks", "origin", "age", "kept", "reason"}

// psColumns are all that there are. The ID depends on which other jobs are listed.
var psColumns = []column{
	{"id", func(st jobs.Summary, _ time.Time) string { return st.ID.Short() }},
	{"name", func(st jobs.Summary, _ time.Time) string {
		return columns.Cut(columns.Title(st.Name, st.Args), 24)
	}},
	{"state", func(st jobs.Summary, _ time.Time) string { return string(st.State) }},
	{"ranks", func(st jobs.Summary, _ time.Time) string { return columns.Workers(st) }},
	{"origin", func(st jobs.Summary, _ time.Time) string { return st.Origin.Short() }},
	{"age", columns.Age},
	{"kept", func(st jobs.Summary, _ time.Time) string { return columns.Kept(st) }},
	{"reason", func(st jobs.Summary, _ time.Time) string { return columns.Cut(columns.Why(st), 60) }},
	{"exit", func(st jobs.Summary, _ time.Time) string { return columns.Exit(st) }},
	{"submitted", func(st jobs.Summary, now time.Time) string { return clock(st.Submitted, now) }},
	{"started", func(st jobs.Summary, now time.Time) string { return clock(st.Started, now) }},
	{"ended", func(st jobs.Summary, now time.Time) string { return clock(st.Ended, now) }},
	{"command", func(st jobs.Summary, _ time.Time) string { return strings.Join(st.Args, " ") }},
	{"whole-id", func(st jobs.Summary, _ time.Time) string { return string(st.ID) }},
}

func columnNames() (names []string) {
	for _, col := range psColumns {
		names = append(names, col.name)
	}
	return names
}

// clock is a time in the zone of now.
func clock(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.In(now.Location()).Format(time.RFC3339)
}

// jobTable lists jobs, with the heading.
func jobTable(list []jobs.Summary, now time.Time, wanted ...string) [][]string {
	rows := make([][]string, 1+len(list))
	ids := jobs.DistinctOf(list, func(st jobs.Summary) jobs.ID { return st.ID })
	for _, name := range wanted {
		rows[0] = append(rows[0], strings.ToUpper(name))
		col := psColumns[slices.IndexFunc(psColumns, func(c column) bool { return c.name == name })]
		for i, st := range list {
			cell := ids[i]
			if name != "id" {
				cell = col.cell(st, now)
			}
			rows[1+i] = append(rows[1+i], cell)
		}
	}
	return rows
}
