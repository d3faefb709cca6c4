package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/doctor"
	"zorilla/node/api"
)

// doctored is how many members 'zorilla doctor' has pinged: each takes a request, and all
// of them wait together.
const doctored = 16

const doctorName = "doctor"

func doctorCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      doctorName,
		Category:  groupNet,
		Usage:     "find out what keeps the node, its network or its workers from working well",
		UsageText: "zorilla doctor [options]",
		Description: `
Looks at the node, has it and its 16 nearest members ping each other (UDP) and
connect to each other (TCP), and prints what confines workers and how much room
there is: a line for each, with the cure below it if there is something to cure.
Ends with 1 if something does not work. A member that does not answer is waited
for, ten seconds at most.`,
		Flags: []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			err := askNode(func(c *cli.Context, client *api.Client) error { return diagnose(c, con, client) })(c)
			if _, broken := con.config(c.App); broken != nil && errors.Is(err, api.ErrNoNode) { // it may stand there
				con.say("%s", firstLine(broken.Error()))
			}
			return err
		},
	})
}

func diagnose(c *cli.Context, con *console, client *api.Client) error {
	nodes, err := client.Nodes(c.Context)
	if err != nil {
		return err
	}
	_, broken := con.config(c.App)
	seen := doctor.Seen{Release: release(), Config: broken, Nodes: nodes, Ways: doctor.Ask(c.Context, client, nodes, doctored)}
	found := doctor.Examine(seen)
	if c.Bool("json") {
		err = con.printJSON(found)
	} else {
		var rows [][]string
		for _, f := range found {
			rows = append(rows, []string{string(f.Level), f.About, f.What})
			if f.Cure != "" && f.Level != doctor.OK {
				rows = append(rows, []string{"", "", "-> " + f.Cure})
			}
		}
		err = con.printTable(rows)
	}
	if err == nil && doctor.Bad(found) {
		err = exitCode(1)
	}
	return err
}
