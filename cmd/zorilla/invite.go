package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/node/api"
)

func inviteCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "invite",
		Category:  groupNet,
		Usage:     "print the token that lets another machine join",
		UsageText: "zorilla invite [options]",
		Description: `
Who has the token can join: hand it over in private.

zorilla node --join "$(ssh other zorilla invite)"`,
		Flags: []cli.Flag{jsonFlag()},
		Action: askNode(func(c *cli.Context, client *api.Client) error {
			token, err := client.Invite(c.Context)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return con.printJSON(map[string]string{"token": token})
			}
			_, err = fmt.Fprintln(con.stdout, columns.Clean(token))
			return err
		}),
	})
}
