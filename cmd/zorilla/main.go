package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/config"
	"zorilla/cmd/zorilla/help"
	"zorilla/jobs"
	"zorilla/jobs/process"
	"zorilla/node/api"
)

func main() {
	process.Main()
	os.Exit(program(runNode))
}

// program is run with what this process has; start is what the node command does.
func program(start startNode) int {
	config.DropEmpty()
	cli.HelpPrinter = help.Print
	con := &console{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, places: config.Usual()}
	return run(context.Background(), con, start, ownArgs())
}

// shellName is what the program is called where one word has to be enough for rsh.
const shellName = "zorilla-rsh"

// run is the whole command line but for the process around it.
func run(ctx context.Context, con *console, start startNode, args []string) int {
	if filepath.Base(args[0]) == shellName {
		args = slices.Concat([]string{"zorilla", "rsh"}, args[1:])
	}
	app := newApp(con, start)
	args, file, err := ofFiles(app, optionsFirst(app, args))
	if err == nil {
		app.Metadata = map[string]any{jobFileName: file}
		err = blameFile(file, app.RunContext(ctx, args))
	}
	if err == nil {
		return 0
	}
	if code := exitCode(0); errors.As(err, &code) {
		return int(code)
	}
	con.say("%s", firstLine(err.Error()))
	if u := (*usageError)(nil); errors.As(err, &u) {
		fmt.Fprintf(con.stderr, "try '%s --help'\n", u.command)
		return exitUsage
	}
	if errors.Is(err, jobs.ErrInvalid) || errors.Is(err, api.ErrInvalid) {
		return exitUsage
	}
	if code := (*codedError)(nil); errors.As(err, &code) {
		return code.code
	}
	return exitFailure
}
