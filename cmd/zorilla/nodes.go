package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/cmd/zorilla/offers"
	"zorilla/internal/units"
	"zorilla/node/api"
)

func nodesCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "nodes",
		Category:  groupNet,
		Usage:     "list the members of the network, the nearest first",
		UsageText: "zorilla nodes [options]",
		Description: `
RTT is the round trip from the node that is asked; MIB/S how fast files were sent
to a node and from there, as far as is known from transfers of the last hour (">":
that fast at least, something else was sent too); LINK marks the neighbours
that it floods to; BUSY, of the nearest 64, how many of the slots are in use,
and how old that is if a node does not answer now; CLUSTER which nodes are near
to each other, as found from round trips; STATE which nodes are draining or
paused by their owners, outside hours, cannot start workers ("broken", with the
cause), or are reached by TCP alone ("no UDP") or with small packets only, if any.

zorilla nodes --wide              with GPUs, clock, power, network, labels,
                                  platform and addresses
zorilla nodes --offers            what they offer, in the words of job files:
                                  nodes of a cluster that are alike together
zorilla nodes --clusters          nodes, slots, mean power and latencies of each
                                  cluster, and hd: how unlike the nodes are
zorilla nodes -v                  and what the node that is asked has counted,
                                  ! where bad messages came in the last ten minutes
zorilla nodes --json | jq '.[].name'`,
		Flags: []cli.Flag{
			jsonFlag(),
			&cli.BoolFlag{Name: "wide", Aliases: []string{"w"}, Usage: "print all columns, and names in full"},
			&cli.BoolFlag{Name: "offers", Usage: "print what the nodes offer, like ones of a cluster together, as TOML"},
			&cli.BoolFlag{Name: "clusters", Usage: "print the clusters: nodes, slots, power and latencies, and how unlike the nodes are"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print the counters of the node that is asked, too"},
		},
		Action: askNode(func(c *cli.Context, client *api.Client) error {
			switch {
			case c.Bool("offers") && (c.Bool("json") || c.Bool("wide") || c.Bool("verbose")):
				return usage(c, "--offers goes with neither --json, --wide nor --verbose")
			case c.Bool("clusters") && (c.Bool("offers") || c.Bool("wide") || c.Bool("verbose")):
				return usage(c, "--clusters goes with neither --offers, --wide nor --verbose")
			}
			nodes, err := client.Survey(c.Context)
			if err != nil {
				return err
			}
			if c.Bool("offers") {
				return offers.Write(con.stdout, nodes)
			}
			if c.Bool("clusters") {
				all := offers.ByCluster(nodes)
				if c.Bool("json") {
					return con.printJSON(&all)
				}
				return errors.Join(con.printTable(all.Table()), all.WriteText(con.stdout))
			}
			if c.Bool("json") {
				for i := range nodes {
					if !c.Bool("verbose") {
						nodes[i].Traffic = nil
					}
				}
				return con.printJSON(nodes)
			}
			if err := con.printTable(nodeTable(nodes, c.Bool("wide"))); err != nil || !c.Bool("verbose") {
				return err
			}
			if len(nodes) == 0 {
				return errors.New("the node does not tell of itself")
			}
			return printTraffic(con, nodes[0].Traffic)
		}),
	})
}

// Widths of names in a table of at most 100 columns.
const (
	nameWidth  = 20
	labelWidth = 14
)

func nodeTable(nodes []api.NodeInfo, wide bool) [][]string {
	head := []string{"ID", "NAME", "SITE", "RTT", "MIB/S", "LINK", "BUSY", "CLUSTER", "MEMORY"}
	if wide {
		head = append(head, "CLOCK", "POWER", "NETWORK", "GPUS", "LABELS", "PLATFORM", "ADDRESS")
	}
	states := slices.ContainsFunc(nodes, func(n api.NodeInfo) bool { return n.State != "" || n.Way != api.Way{} })
	if states {
		head = append(head, "STATE")
	}
	rows := [][]string{head}
	named := clusterNames(nodes)
	for _, n := range nodes {
		link := n.Neighbour
		if n.Self {
			link = "self"
		}
		busy := columns.Busy(&n)
		// By the clock of the node that was asked, which may be another machine.
		if age := nodes[0].Told.Sub(n.Told); n.Loaded() && age >= oldLoad {
			busy += ", " + units.Span(age) + " ago"
		}
		row := []string{
			n.ID.Short(), n.Name, n.Site, columns.RTT(time.Duration(n.RTT)), speeds(n.Bandwidth), link, busy, named[n.Cluster], units.Bytes(n.Memory),
		}
		if wide {
			row = append(row, columns.Speeds(n.Speeds)...)
			row = append(row, n.GPUText(), labels(n.Labels), n.Platform, strings.Join(n.Addrs, " "))
		} else {
			row[1], row[2], row[7] = columns.Cut(n.Name, nameWidth), columns.Cut(n.Site, labelWidth), columns.Cut(row[7], labelWidth)
		}
		if states {
			row = append(row, columns.StateAndCause(&n))
		}
		for i := range row {
			if strings.TrimSpace(row[i]) == "" {
				row[i] = "-"
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// speeds reports how fast files went to a node, and came from it.
func speeds(b api.Bandwidth) string {
	if b == (api.Bandwidth{}) {
		return "-"
	}
	one := func(s api.Speed) string {
		switch {
		case s.Rate == 0:
			return "-"
		case s.Least:
			return ">" + units.Rate(s.Rate)
		}
		return units.Rate(s.Rate)
	}
	return one(b.To) + "/" + one(b.From)
}

// oldLoad is the age from which on it is told: a node waits so long for answers.
const oldLoad = 3 * time.Second

// clusterNames returns the names of clusters that say something. One that is
// named after a member, for want of a site, says nothing if everybody is in it
// or nobody else: at each node it has another name.
func clusterNames(nodes []api.NodeInfo) map[string]string {
	size, site := map[string]int{}, map[string]bool{}
	for _, n := range nodes {
		size[n.Cluster]++
		site[n.Site] = true
	}
	delete(size, "")
	names := map[string]string{}
	for name, members := range size {
		if site[name] || !strings.HasPrefix(name, "near ") || len(size) > 1 && members > 1 {
			names[name] = name
		}
	}
	return names
}

// printTraffic writes counters by group, each with what it counts. Bad messages
// that have come in the last ten minutes are marked.
func printTraffic(con *console, traffic api.Traffic) error {
	width := 0
	for _, c := range traffic {
		width = max(width, utf8.RuneCountInString(c.Name))
	}
	group := ""
	for _, c := range traffic {
		if c.Group != group {
			group = c.Group
			if _, err := fmt.Fprintf(con.stdout, "\n%s\n", columns.Clean(group)); err != nil {
				return err
			}
		}
		mark := " "
		if c.Bad && c.Recent > 0 {
			mark = "!"
		}
		line := fmt.Sprintf("  %-*s %10d %s %s", width, columns.Clean(c.Name), c.Value, mark, columns.Clean(c.Help))
		if _, err := io.WriteString(con.stdout, strings.TrimRight(line, " ")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// labels writes labels in the order of their names.
func labels(l map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(l)) {
		parts = append(parts, fmt.Sprintf("%s=%s", k, l[k]))
	}
	return strings.Join(parts, ",")
}
