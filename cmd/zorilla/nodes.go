package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/node/api"
)

func (sh *shell) nodesCommand() *cli.Command {
	return clientCommand(cli.Command{
		Name:      "nodes",
		Category:  groupNet,
		Usage:     "list the members of the network, the nearest first",
		UsageText: "zorilla nodes [options]",
		Description: `
RTT is the measured round trip from the node that is asked; LINK tells the
neighbours that it floods to.

zorilla nodes --json | jq '.[].name'`,
		Flags: []cli.Flag{jsonFlag()},
		Action: sh.ask(func(c *cli.Context, client *api.Client) error {
			nodes, err := client.Nodes(c.Context)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return sh.printJSON(nodes)
			}
			return sh.printTable(nodeTable(nodes))
		}),
	})
}

func nodeTable(nodes []api.NodeInfo) [][]string {
	rows := [][]string{{"ID", "NAME", "SITE", "RTT", "LINK", "SLOTS", "MEMORY", "PLATFORM", "ADDRESS"}}
	for _, n := range nodes {
		link := n.Neighbour
		if n.Self {
			link = "self"
		}
		address := ""
		if len(n.Addrs) > 0 {
			address = n.Addrs[0]
		}
		row := []string{
			n.ID.Short(), n.Name, n.Site, rtt(time.Duration(n.RTT)), link,
			strconv.Itoa(n.Slots), byteCount(n.Memory), n.Platform, address,
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
