package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
)

func explainCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "explain",
		Category:  groupJobs,
		Usage:     "tell why a job waits, or ended as it did",
		UsageText: "zorilla explain [options] JOB",
		Description: `
Shows which nodes were asked, what they offered and why they declined, or what
became of what they offered.

zorilla explain last`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "also print each round of the search"}, jsonFlag(),
		},
		Action: askJob(func(c *cli.Context, client *api.Client, job string) error {
			e, err := client.Explain(c.Context, job)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				if e.Nodes == nil {
					e.Nodes = []jobs.NodeAnswer{}
				}
				if e.Rounds == nil {
					e.Rounds = []jobs.Round{}
				}
				if e.Declined == nil {
					e.Declined = map[string]int{}
				}
				return con.printJSON(e)
			}
			return printExplanation(con, e, time.Now(), c.Bool("verbose"))
		}),
	})
}

func printExplanation(con *console, e jobs.Explanation, now time.Time, rounds bool) error {
	rows := [][]string{{"job", e.ID.Short()}, {"state", string(e.State)}, {"why", e.Summary}}
	if e.Wanted > 0 && !e.State.Final() {
		noun := "worker"
		if e.Spares {
			noun = "spare"
		}
		rows = append(rows, []string{"wanted", count(e.Wanted, "more "+noun)})
	}
	rows = append(rows, []string{"asked", askedLine(e)})
	switch {
	case e.Since.IsZero():
	case !e.Until.IsZero():
		rows = append(rows, []string{"waited", units.Span(e.Until.Sub(e.Since))})
	case !e.State.Final():
		rows = append(rows, []string{"waiting", units.Span(now.Sub(e.Since))})
	}
	if e.Next.After(now) && !e.State.Final() {
		rows = append(rows, []string{"next flood", "in " + units.Span(e.Next.Sub(now))})
	}
	if err := con.printTable(rows); err != nil {
		return err
	}
	if len(e.Nodes) > 0 {
		table := [][]string{{"NODE", "RTT", "HOPS", "OFFERED", "REASON", "ANSWERED"}}
		for _, n := range e.Nodes {
			table = append(table, []string{nodeName(n.Node.Short(), n.Name), columns.RTT(time.Duration(n.RTT)),
				strconv.Itoa(n.Hops), strconv.Itoa(n.Offered), n.Why(), answered(n, now)})
		}
		if err := con.section(table); err != nil {
			return err
		}
	}
	if len(e.Rounds) == 0 || !rounds {
		return nil
	}
	return con.section(roundTable(e.Rounds, e.Rounds[0].At))
}

// answered reports when a node has answered.
func answered(n jobs.NodeAnswer, now time.Time) string {
	if n.At.IsZero() {
		return "-"
	}
	return units.Span(now.Sub(n.At)) + " ago"
}

// askedLine sums up the answers: "12 nodes: 3 offered, 7 busy, 2 no memory".
func askedLine(e jobs.Explanation) string {
	parts := []string{fmt.Sprintf("%d offered", e.Offered)}
	reasons := slices.SortedFunc(maps.Keys(e.Declined), func(a, b string) int {
		if d := e.Declined[b] - e.Declined[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, r := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s", e.Declined[r], r))
	}
	return count(e.Asked, "node") + ": " + strings.Join(parts, ", ")
}
