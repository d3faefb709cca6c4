package main

import (
	"fmt"
	"os/exec"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/node/api"
)

func webCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "web",
		Category:  groupNet,
		Usage:     "print the address of the node's page",
		UsageText: "zorilla web [options]",
		Description: `
The address holds the token that the page wants. Who has it sees all that the page
shows, and may end jobs, submit them again, and pause or drain the node; with
--read-only only the former.

zorilla web --open`,
		Flags: []cli.Flag{
			jsonFlag(),
			&cli.BoolFlag{Name: "read-only", Usage: "an address that shows all, and with which nothing can be changed"},
			&cli.BoolFlag{Name: "open", Usage: "open it in a browser"},
		},
		Action: askNode(func(c *cli.Context, client *api.Client) error {
			url, err := client.Web(c.Context, c.Bool("read-only"))
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return con.printJSON(map[string]string{"url": url})
			}
			if _, err := fmt.Fprintln(con.stdout, columns.Clean(url)); err != nil || !c.Bool("open") {
				return err
			}
			if err := exec.Command("xdg-open", url).Run(); err != nil {
				return fmt.Errorf("open a browser: %w: copy the address into one", err)
			}
			return nil
		}),
	})
}
