package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"zorilla/node"
)

func versionCommand(con *console) *cli.Command {
	return command(cli.Command{
		Name:      "version",
		Usage:     "print the version of this program",
		UsageText: "zorilla version [--json]",
		Flags:     []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if c.Bool("json") {
				return con.printJSON(map[string]string{"release": release(), "go": runtime.Version(), "platform": platform})
			}
			_, err := fmt.Fprintf(con.stdout, "zorilla %s %s %s\n", release(), runtime.Version(), platform)
			return err
		},
	})
}

// release names the version and, if known, the commit that it was built from.
func release() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return node.Release
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = " " + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return node.Release + revision + dirty
}
