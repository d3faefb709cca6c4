package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/node/api"
)

const (
	rttPings = 5
	rttShown = 8 // pings that fit on a line
)

func rttCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "rtt",
		Category:  groupNet,
		Usage:     "measure the round trip to a node, or between two nodes, now",
		UsageText: "zorilla rtt [options] NODE [NODE]",
		Description: `
A node is named by its name, by the first characters of its ID, or by self, the
node that is asked. With two nodes, the first one measures. Pings follow each
other at 0.2 s; the estimate is what network coordinates predict.

zorilla rtt node7                 from the node that is asked to node7
zorilla rtt node7 zeb2a -c 20     from node7 to zeb2a, 20 pings`,
		Flags: []cli.Flag{
			jsonFlag(),
			&cli.IntFlag{Name: "count", Aliases: []string{"c"}, Value: rttPings, Usage: "send `N` pings, at most 100"},
		},
		Action: func(c *cli.Context) error {
			from, to, err := twoNodes(c)
			if err != nil {
				return err
			}
			if n := c.Int("count"); n < 1 || n > api.MaxPings {
				return usage(c, "-c %d: want 1 to %d pings", n, api.MaxPings)
			}
			return with(c, func(client *api.Client) error {
				m, err := client.Measure(c.Context, from, to, c.Int("count"))
				if err != nil {
					return err
				}
				return printMeasurement(con, m, c.Bool("json"))
			})
		},
	})
}

func printMeasurement(con *console, m api.Measurement, asJSON bool) (err error) {
	if asJSON {
		err = con.printJSON(m)
	} else {
		err = con.printTable(rttTable(m))
	}
	if err == nil && len(m.Answered) == 0 {
		return fmt.Errorf("%s: no answer to %s", endpoint(m.To), count(m.Sent, "ping"))
	}
	return err
}

// twoNodes returns the ends that the arguments name.
func twoNodes(c *cli.Context) (from, to string, err error) {
	switch args := c.Args().Slice(); len(args) {
	case 0:
		return "", "", usage(c, "which node? name it by its name or the first characters of its ID: 'zorilla nodes' lists them")
	case 1:
		from, to = "self", args[0]
	case 2:
		from, to = args[0], args[1]
	default:
		return "", "", usage(c, "unexpected argument %q: want one node, or two", args[2])
	}
	for _, name := range []string{from, to} {
		if err := api.CheckNode(name); err != nil {
			return "", "", err
		}
	}
	return from, to, nil
}

func rttTable(m api.Measurement) [][]string {
	var pings []string
	for _, p := range m.Answered[:min(len(m.Answered), rttShown)] {
		pings = append(pings, columns.RTT(time.Duration(p)))
	}
	if len(m.Answered) > rttShown {
		pings = append(pings, "…")
	}
	return [][]string{
		{"from", endpoint(m.From)},
		{"to", endpoint(m.To)},
		{"answered", strings.TrimSpace(fmt.Sprintf("%d of %d  %s", len(m.Answered), m.Sent, strings.Join(pings, " ")))},
		{"min", columns.RTT(time.Duration(m.Min))},
		{"median", columns.RTT(time.Duration(m.Median))},
		{"estimate", columns.RTT(time.Duration(m.Estimate))},
	}
}

// endpoint names a node for people.
func endpoint(e api.Endpoint) string {
	text := e.ID.Short()
	if e.Name != "" {
		text = e.Name + " " + text
	}
	if e.Site != "" {
		text += " at " + e.Site
	}
	return text
}
