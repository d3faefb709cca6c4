package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
)

func intoFlag() cli.Flag {
	return &cli.StringFlag{Name: "into", Value: ".", Usage: "`DIR` for output files; %r in it stands for the rank, %t for the task of an array"}
}

func forceFlag() cli.Flag {
	return &cli.BoolFlag{Name: "force", Usage: "replace files that are in the way of output files"}
}

// wanted is what the options of a command say of output files.
func wanted(c *cli.Context, rank int) api.Wanted {
	return api.Wanted{Rank: rank, Into: c.String("into"), Force: c.Bool("force")}
}

// hindered tells what would be in the way of a job's output files.
func hindered(c *cli.Context, spec *jobs.Spec) error {
	way := api.KnownObstacles(spec, wanted(c, -1))
	switch {
	case len(way) == 0:
		return nil
	case way.Replaceable():
		return usage(c, "not submitted: %v: --force replaces files, --into DIR takes another directory for output files", way)
	}
	return usage(c, "not submitted: %v: --into DIR takes another directory for output files", way)
}

// pull fetches outputs and tells what Merge had to say.
func (sh *shell) pull(ctx context.Context, s api.Service, st jobs.Status, want api.Wanted) error {
	got, err := api.Pull(ctx, s, st, want)
	for _, w := range got.Warnings {
		sh.say("warning: %s", strings.ReplaceAll(w, "\n", " "))
	}
	job := st.ID.Short()
	if want.Rank >= 0 {
		job = fmt.Sprintf("%s:%d", job, want.Rank)
	}
	way := transfer.ObstacleError(nil)
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &way):
		return fmt.Errorf("%w: 'zorilla get %s' tries again", err, job)
	case way.Replaceable():
		return fmt.Errorf("%w: 'zorilla get --force %s' replaces files, 'zorilla get --into DIR %s' takes another directory", err, job, job)
	}
	return fmt.Errorf("%w: 'zorilla get --into DIR %s' takes another directory", err, job)
}
