package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/cmd/zorilla/completion"
	"zorilla/cmd/zorilla/jobfile"
	"zorilla/cmd/zorilla/man"
	"zorilla/cmd/zorilla/script"
	"zorilla/jobs"
	"zorilla/node"
	"zorilla/node/api"
)

// newApp makes the command line: of all files only this one knows every command.
func newApp(con *console, start startNode) *cli.App {
	app := &cli.App{
		Name:      "zorilla",
		HelpName:  "zorilla",
		Usage:     "run parallel programs on the machines around you, without a head node",
		UsageText: "zorilla COMMAND [options] [arguments]",
		Description: `zorilla node                      starts a node and prints how others join
zorilla run -n 8 -- ./prog data   runs from any of them
'zorilla COMMAND --help' has examples.`,
		Version:                   release(),
		Reader:                    con.stdin,
		Writer:                    con.stdout,
		ErrWriter:                 con.stderr,
		DisableSliceFlagSeparator: true, // commas are part of patterns and values
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              onUsageError,
		HideVersion:               true, // it is as that of the command
		Flags: []cli.Flag{&cli.BoolFlag{Name: "version", Aliases: []string{"v"},
			Usage: "print the version", DisableDefaultText: true}, cli.HelpFlag},
		Action: func(c *cli.Context) error {
			if c.Bool("version") {
				return con.printVersion(false)
			}
			if c.Args().Present() {
				return unknownCommand(c, c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			runCommand(con), submitCommand(con), checkCommand(con), attachCommand(con),
			execCommand(con), rshCommand(con), allocCommand(con), leadCommand(),
			psCommand(con), statusCommand(con), logsCommand(con), waitCommand(con),
			getCommand(con), lsCommand(con), cancelCommand(con), resizeCommand(con), moveCommand(con), checkpointCommand(con),
			rmCommand(con), explainCommand(con), tasksCommand(con), rerunCommand(con),
			nodeCommand(con, start), nodesCommand(con), topCommand(con),
			rttCommand(con), doctorCommand(con), drainCommand(con), inviteCommand(con), webCommand(con), devCommand(con),
			ownerCommand(con), pauseCommand(con), resumeCommand(con), cacheCommand(con),
			completionCommand(), completeCommand(con), configCommand(con), manCommand(), versionCommand(con), helpCommand(),
		},
	}
	for _, cmd := range app.Commands {
		con.withFiles(cmd)
	}
	return app
}

// optionsFirst moves options that follow a job to the front, where the parser
// wants them: people add --json at the end of a line. Commands that take
// another command as their argument are left alone: its options are not ours.
func optionsFirst(app *cli.App, args []string) []string {
	if len(args) < 3 || completion.TakesProgram[args[1]] || args[1] == leadName || args[1] == completion.Command {
		return args
	}
	cmd := app.Command(args[1])
	if cmd == nil {
		return args
	}
	valued := map[string]bool{}
	for _, f := range cmd.Flags {
		_, isBool := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			valued[name] = !isBool
		}
	}
	var options, rest []string
	for i := 2; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			rest = append(rest, args[i:]...)
			i = len(args)
		case len(arg) < 2 || arg[0] != '-':
			rest = append(rest, arg)
		default:
			options = append(options, arg)
			if valued[strings.TrimLeft(arg, "-")] && i+1 < len(args) {
				i++
				options = append(options, args[i])
			}
		}
	}
	return slices.Concat(args[:2], options, rest)
}

// ofFiles adds what a job file says, and the options that a job's script has for its submission.
func ofFiles(app *cli.App, args []string) ([]string, *jobfile.File, error) {
	other := map[string]string{"run": "submit", "submit": "run", checkName: "submit"}
	if len(args) < 3 || other[args[1]] == "" {
		return args, nil, nil
	}
	own, others := app.Command(args[1]), app.Command(other[args[1]])
	merged, file, err := jobfile.Expand(own, others, args)
	if err == nil {
		merged, err = script.Merge(own, others, merged)
	}
	if err != nil {
		err = &usageError{"zorilla " + args[1], err.Error()}
	}
	return merged, file, err
}

func completionCommand() *cli.Command {
	return command(cli.Command{
		Name:      "completion",
		Usage:     "print what makes a shell complete commands, options, jobs and nodes",
		UsageText: "zorilla completion bash|zsh|fish",
		Description: `
source <(zorilla completion bash)        # in ~/.bashrc; of zsh in ~/.zshrc, after compinit
zorilla completion fish >~/.config/fish/completions/zorilla.fish`,
		Action: func(c *cli.Context) error {
			script, ok := completion.Scripts[c.Args().First()]
			if !ok || c.NArg() != 1 {
				return usage(c, "which shell? want bash, zsh or fish")
			}
			_, err := io.WriteString(c.App.Writer, script)
			return err
		},
	})
}

func manCommand() *cli.Command {
	return command(cli.Command{
		Name:      "man",
		Usage:     "print the manual page of all commands, or of one",
		UsageText: "zorilla man [COMMAND]",
		Description: `
zorilla man | man -l -
zorilla man >/usr/local/share/man/man1/zorilla.1`,
		Action: func(c *cli.Context) error {
			var cmd *cli.Command
			if c.Args().Present() {
				if cmd = c.App.Command(c.Args().First()); cmd == nil || c.NArg() > 1 {
					return usage(c, "want one command: 'zorilla help' lists them")
				}
			}
			_, err := io.WriteString(c.App.Writer, man.Page(c.App, cmd))
			return err
		},
	})
}

// helpCommand takes the place of that of the parser, which does not look for what was meant.
func helpCommand() *cli.Command {
	return command(cli.Command{
		Name:      "help",
		Usage:     "list the commands, or print the help of one",
		UsageText: "zorilla help [COMMAND]",
		Action: func(c *cli.Context) error {
			switch name := c.Args().First(); {
			case c.NArg() == 0:
				return cli.ShowAppHelp(c)
			case c.NArg() > 1:
				return usage(c, "want one command: 'zorilla help' lists them")
			case c.App.Command(name) == nil:
				return unknownCommand(c, name)
			default:
				return cli.ShowCommandHelp(c, name)
			}
		},
	})
}

// completeCommand tells a shell how a line may go on.
func completeCommand(con *console) *cli.Command {
	return command(cli.Command{
		Name: completion.Command, Hidden: true, SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			ctx, cancel := context.WithTimeout(c.Context, 2*time.Second)
			defer cancel()
			for _, found := range completion.Of(c.App, asked{ctx, words, con, c.App}, words) {
				if _, err := fmt.Fprintf(con.stdout, "%s\t%s\n", found.Word, columns.Clean(found.Help)); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// asked is what the node of a line knows, as far as it can be asked.
type asked struct {
	ctx   context.Context
	words []string
	con   *console
	app   *cli.App
}

// Jobs implements completion.Network.
func (a asked) Jobs() (list []jobs.Summary) {
	a.ask(func(client *api.Client) { list, _ = client.Summaries(a.ctx, false) })
	return list
}

// Nodes implements completion.Network.
func (a asked) Nodes() (list []api.NodeInfo) {
	a.ask(func(client *api.Client) { list, _ = client.Nodes(a.ctx) })
	return list
}

// ask calls do with the node. A shell has no place for errors.
func (a asked) ask(do func(*api.Client)) {
	node, state := completion.Address(a.words)
	if node == "" && state == "" && len(a.words) > 0 {
		if files, err := a.con.config(a.app); err == nil {
			node, state = files.Node(a.app.Command(a.words[0]))
		}
	}
	if client, err := nodeAt(node, state); err == nil {
		defer client.Close()
		do(client)
	}
}

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
			return con.printVersion(c.Bool("json"))
		},
	})
}

func (con *console) printVersion(asJSON bool) error {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if asJSON {
		return con.printJSON(map[string]string{"release": release(), "go": runtime.Version(), "platform": platform})
	}
	_, err := fmt.Fprintf(con.stdout, "zorilla %s %s %s\n", release(), runtime.Version(), platform)
	return err
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
