package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/script"
	"zorilla/cmd/zorilla/suggest"
	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/mounts"
	"zorilla/transfer"
)

// jobFlags describe a job; run and submit share them.
func jobFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "n", Aliases: []string{"np"}, Value: "1", DefaultText: "1",
			Usage: "workers: `N` (all or nothing), or MIN..MAX to start with MIN and grow"},
		&cli.IntFlag{Name: "c", Aliases: []string{"slots"}, Value: 1, Usage: "`SLOTS` (cores) for each worker"},
		&cli.StringFlag{Name: "mem", Usage: "memory limit of each worker: `SIZE` such as 200M or 2G"},
		&cli.StringFlag{Name: "disk", Usage: "disk space for the files of each worker, and its limit: `SIZE`"},
		&cli.StringFlag{Name: "max-output", DefaultText: "10G",
			Usage: "end the job, of an array the task, when a worker has written more than `SIZE` to standard output and error; none = no limit"},
		&cli.IntFlag{Name: "gpus", Usage: "`N` GPUs of its own for each worker"},
		&cli.StringFlag{Name: "where", Usage: "only nodes for which `EXPR` is true, as in 'mem >= 8G && site == \"delft\"'"},
		&cli.StringSliceFlag{Name: "mount", Usage: "only nodes that show workers `PATH[:ro|:rw]`; the own node shows any, to read (repeatable)"},
		&cli.StringFlag{Name: "net", DefaultText: "host",
			Usage: "`WHAT` workers can reach: host, job (each other, and their nodes) or none (each other on the same node)"},
		&cli.BoolFlag{Name: "mpi", Usage: "the workers are the ranks of an MPI program, of MPICH or Open MPI, which needs no mpirun"},
		&cli.BoolFlag{Name: "share-work", Usage: "the ranks at a node have one work directory together, as MPI I/O needs it; of a job with -n N"},
		&cli.StringFlag{Name: "t", Aliases: []string{"time"}, Usage: "walltime: `TIME` such as 10m, 1h30m, HH:MM:SS or seconds"},
		&cli.StringSliceFlag{Name: "i", Aliases: []string{"input"},
			Usage: "input `PATH[:NAME]`: file, directory or pattern; " +
				"a file of 1 MiB or more is read when nodes need it, and must not change before (repeatable)"},
		&cli.StringSliceFlag{Name: "o", Aliases: []string{"output"}, Usage: "bring back files that match `GLOB` (repeatable)"},
		&cli.StringSliceFlag{Name: "e", Aliases: []string{"env"}, Usage: "set `K=V` in the job's environment, or copy K from yours (repeatable)"},
		&cli.StringFlag{Name: "key",
			Usage: "`KEY` of this submission, made up if not given: submitted again with it, and the same options, it is the same job"},
		&cli.StringFlag{Name: "J", Aliases: []string{"name"}, Usage: "`NAME` of the job"},
		&cli.IntFlag{Name: "priority", Usage: "`P` from -100 to 100, higher goes first"},
		&cli.StringFlag{Name: "strategy", DefaultText: "nearest",
			Usage: "`HOW` to choose among offers: nearest, spread, concentrate, compact, bandwidth or maheve"},
		&cli.StringFlag{Name: "graph",
			Usage: "what ranks tell each other, for --strategy maheve: `GRAPH` such as grid:8x8, ring:64 or a file in the format of METIS"},
		&cli.StringFlag{Name: "max-rtt", Usage: "no two nodes of the job are farther apart than `TIME`, such as 5ms"},
		&cli.BoolFlag{Name: "one-per-node", Usage: "no two workers of the job are at one node"},
		&cli.StringFlag{Name: "spares", DefaultText: "none; 10% with --strategy maheve",
			Usage: "keep room for `N` more workers, or for N% of them, where ranks go on that are lost with their nodes"},
		&cli.IntFlag{Name: "replicas", DefaultText: "1", Usage: "run each rank `R` times, on different nodes; the first copy to end with 0 counts"},
		&cli.StringFlag{Name: "d", Aliases: []string{"dependency"}, Usage: "start after other jobs: `KIND:JOB[,…]` with afterok, afterany or afternotok"},
		&cli.StringFlag{Name: "begin", DefaultText: "at once",
			Usage: "look for workers from `TIME` on: such as 2h from now, at 22:00, or at '2006-01-02 15:04'"},
		&cli.StringFlag{Name: "deadline", DefaultText: "none",
			Usage: "have ended by `TIME`, as of --begin, or be ended: it is not started if -t does not fit before"},
		&cli.StringFlag{Name: "book-after", DefaultText: "10m; never for workers that need one slot, one by one",
			Usage: "have nodes promise a start once it has waited for `TIME`: 0s to do so at once, or never"},
		&cli.IntFlag{Name: "retries", Usage: "try a rank that fails again, up to `K` times; a rigid job as a whole, also if it loses a node"},
		&cli.BoolFlag{Name: "kill-on-bad-exit", DefaultText: "of a rigid job only", Usage: "stop the job when a rank has failed; =false: the others go on"},
		&cli.IntFlag{Name: "max-fails", DefaultText: "no limit", Usage: "stop the job when more than `N` ranks have failed"},
		&cli.StringFlag{Name: "lost-after", DefaultText: "10s",
			Usage: "count a node that has been silent for `TIME`, 2s to 1h, as lost, with its ranks"},
		&cli.BoolFlag{Name: "checkpoint-far", Usage: "one of the nodes that keep a rank's checkpoint is in another cluster than the rank"},
		&cli.StringFlag{Name: "launcher", Usage: "rank 0 alone runs the command, in which `WHAT` finds the other ranks' hosts: mpirun, mpiexec or parallel"},
		&cli.StringFlag{Name: "signal",
			Usage: "send `SIG[@TIME]`, such as USR1@60s, to processes that handle it so long before -t, cancel or drain ends them"},
		&cli.StringFlag{Name: "signal-on-change",
			Usage: "send `SIG` to processes that handle it when the host file has changed: HUP, INT, USR1, USR2, URG or WINCH"},
		&cli.StringFlag{Name: "on-end",
			Usage: "when the job has ended its node runs `CMD` by sh, as its own user and outside of the sandbox, with a summary on standard input"},
		&cli.StringFlag{Name: "search", DefaultText: "adaptive", Usage: "`HOW` to look for workers: adaptive or paper"},
		&cli.IntFlag{Name: "radius", DefaultText: "by the number of workers", Usage: "links that the first flood travels: `N` from 1 to 32"},
		&cli.StringFlag{Name: "flood-wait", DefaultText: "1s", Usage: "`TIME` after the first flood before the next"},
		&cli.Float64Flag{Name: "flood-factor", DefaultText: "2", Usage: "each wait is `F` times the one before"},
		&cli.StringFlag{Name: "give-up", DefaultText: "10m, if no member can ever run it",
			Usage: "end the job with 125 if it has not started after `TIME`, or never"},
		&cli.StringFlag{Name: "stdin", DefaultText: "run forwards its own", Usage: "standard input of rank 0: `FILE`, or none"},
	}
}

// request is a job of the command line, whose inputs are still to be pushed.
type request struct {
	spec   jobs.Spec
	inputs []transfer.Input
	typed  suggest.Job
	lines  *os.File // of --each-line, if they came on standard input; has no name
	told   []string // what is to be said before it is submitted
}

// close lets go of the lines.
func (r *request) close() {
	if r.lines != nil {
		_ = r.lines.Close() // was only read from
	}
}

// requestOf reads a command line, with what its job file says of groups; stdin may have the lines of an array.
func requestOf(c *cli.Context, args []string, stdin io.Reader) (r *request, err error) {
	r = &request{spec: jobs.Spec{
		Key: c.String("key"), Name: c.String("J"), Args: args, Outputs: c.StringSlice("o"),
		Slots: c.Int("c"), Priority: c.Int("priority"), Strategy: c.String("strategy"),
		Access:  jobs.Access{Net: c.String("net"), MPI: c.Bool("mpi"), ShareWork: c.Bool("share-work")},
		Placing: jobs.Placing{OnePerNode: c.Bool("one-per-node")},
		GPUs:    c.Int("gpus"), Where: c.String("where"), Replicas: c.Int("replicas"),
		Notices: jobs.Notices{Signal: c.String("signal"), OnEnd: c.String("on-end"),
			SignalOnChange: strings.TrimPrefix(strings.ToUpper(c.String("signal-on-change")), "SIG")},
		Search:  jobs.Search{Mode: c.String("search"), Radius: c.Int("radius"), Factor: c.Float64("flood-factor")},
		Failing: jobs.Failing{Retries: c.Int("retries"), MaxFails: c.Int("max-fails"), CheckpointFar: c.Bool("checkpoint-far")},
	}}
	file := jobFile(c)
	if file != nil {
		r.spec.Topology, r.spec.Graph = file.Topology, file.Graph
	}
	if err := readOptions(c, &r.spec); err != nil {
		return nil, usage(c, "%v", err)
	}
	if len(args) == 0 { // of its groups
		args = r.spec.Groups[0].Args
	}
	own, err := script.Read(args[0])
	if err != nil {
		return nil, usage(c, "%v", err)
	}
	r.typed = suggest.Job{Args: args, Inputs: c.StringSlice("i"), Outputs: c.StringSlice("o"), Time: c.String("t")}
	if err := r.readInputs(c, own != nil); err != nil {
		return nil, err
	}
	if r.useScript(own); own != nil && r.spec.OnEnd != "" && own.Says("on-end", r.spec.OnEnd) { // whoever wrote the script may have meant ill
		r.told = append(r.told, fmt.Sprintf("when it has ended this node runs, outside of the sandbox, as %s says: %s", own.Path, r.spec.OnEnd))
	}
	if file != nil {
		r.told = append(r.told, file.Tells(r.spec.OnEnd)...)
	}
	if err := r.makeArray(c, stdin); err != nil {
		return nil, usage(c, "%v", err)
	}
	if err := r.stageCommands(); err != nil {
		return nil, err
	}
	if err := launch(&r.spec, c.String("launcher")); err != nil {
		return nil, usage(c, "--launcher %v", err)
	}
	known := r.spec
	known.After = nil // their jobs may be named in short
	if err := known.Validate(); err != nil {
		return nil, usage(c, "%v", err)
	}
	return r, nil
}

// readOptions reads the options that are more than a word or a number.
func readOptions(c *cli.Context, spec *jobs.Spec) (err error) {
	if len(spec.Args) == 0 && len(spec.Groups) == 0 { // groups have some, or the job file was refused
		return fmt.Errorf("no command: put it after the options, as in '%s -n 4 -- ./prog'", c.Command.HelpName)
	}
	if c.IsSet("kill-on-bad-exit") {
		kill := c.Bool("kill-on-bad-exit")
		spec.KillOnBadExit = &kill
	}
	if c.IsSet("radius") && spec.Search.Radius == 0 {
		return errors.New("--radius 0: want 1 to 32")
	}
	if spec.Min, spec.Max, err = units.ParseRange(c.String("n")); err != nil {
		return fmt.Errorf("-n %s: %w", c.String("n"), err)
	}
	if err = readPlacing(c, spec); err != nil {
		return err
	}
	if spec.MaxOutput, err = maxOutput(c.String("max-output")); err != nil {
		return err
	}
	for flag, size := range map[string]*int64{"mem": &spec.Memory, "disk": &spec.Disk} {
		if s := c.String(flag); s != "" {
			if *size, err = parseSize(suggest.Dashes(flag), s); err != nil {
				return err
			}
			if err := noBytes(suggest.Dashes(flag), s, *size); err != nil {
				return err
			}
		}
	}
	for flag, d := range map[string]*codec.Duration{"t": &spec.Walltime, "give-up": &spec.GiveUp, "max-rtt": &spec.MaxRTT, "flood-wait": &spec.Search.Wait,
		"lost-after": &spec.LostAfter} {
		if s := c.String(flag); s == "never" && flag == "give-up" {
			*d = codec.Duration(jobs.MaxTime)
		} else if s != "" {
			t, err := parseTime(suggest.Dashes(flag), s)
			if err != nil {
				return err
			}
			*d = codec.Duration(t)
		}
	}
	if err := readTimes(c, spec, time.Now()); err != nil {
		return err
	}
	for _, m := range c.StringSlice("mount") {
		p, err := mounts.Parse(m)
		if err != nil {
			return fmt.Errorf("--mount %s: %w", m, err)
		}
		spec.Mounts = append(spec.Mounts, p.String())
	}
	for _, flag := range []string{"e", "o", "mount"} {
		for _, s := range c.StringSlice(flag) {
			if strings.ContainsRune(s, utf8.RuneError) { // the parser has put it in place of what is none
				return fmt.Errorf("%s %q: it is not valid UTF-8, and would not arrive as it is", suggest.Dashes(flag), s)
			}
		}
	}
	if spec.After, err = dependencies(c.String("d")); err != nil {
		return err
	}
	if spec.Env, err = environment(c.StringSlice("e"), os.LookupEnv); err != nil {
		return err
	}
	return nil
}

// environment reads K=V, or K to be looked up.
func environment(args []string, lookup func(string) (string, bool)) (map[string]string, error) {
	env := map[string]string{}
	for _, arg := range args {
		k, v, found := strings.Cut(arg, "=")
		if k == "" {
			return nil, fmt.Errorf("-e %s: want NAME=VALUE or NAME", arg)
		}
		if !found {
			if v, found = lookup(k); !found {
				return nil, fmt.Errorf("-e %s: it is not set in your environment: give it a value with -e %s=VALUE", k, k)
			}
		}
		env[k] = v
	}
	return env, nil
}

// stageCommands adds the commands of the job and of its groups to the inputs.
func (r *request) stageCommands() (err error) {
	if len(r.spec.Args) > 0 {
		if r.spec.Args, err = r.stage(r.spec.Args); err != nil {
			return err
		}
	}
	r.spec.Groups = slices.Clone(r.spec.Groups)
	for i := range r.spec.Groups {
		if g := &r.spec.Groups[i]; len(g.Args) > 0 {
			if g.Args, err = r.stage(g.Args); err != nil {
				return err
			}
		}
	}
	return nil
}

// stage adds a command to the inputs if it is a relative path with a slash, and names it as the worker
// finds it.
func (r *request) stage(args []string) ([]string, error) {
	command := args[0]
	if filepath.IsAbs(command) || !strings.Contains(command, "/") {
		return args, nil
	}
	info, err := os.Stat(command)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &codedError{fmt.Errorf("command %s does not exist: a path with a slash is a file of this machine, "+
			"a bare name is looked up on the worker's",
			command), 127}
	case err != nil:
		return nil, fmt.Errorf("command: %w", err)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return nil, &codedError{fmt.Errorf("command %s is not an executable file: try chmod +x", command), 126}
	}
	in := transfer.Input{Path: command}
	switch {
	case !filepath.IsLocal(command):
		in.Name = path.Base(command)
		args = append([]string{"./" + in.Name}, args[1:]...)
	case strings.Contains(command, ".."): // what stands before it need not exist there
		args = append([]string{"./" + filepath.Clean(command)}, args[1:]...)
	}
	if !slices.Contains(r.inputs, in) { // groups may have one command
		r.inputs = append(r.inputs, in)
	}
	return args, nil
}

// hint reports a program in the current directory that a bare name does not mean, and what else
// there is to say of the job; if it is unseen how it ends, what would be said then, too.
func (r *request) hint(con *console, unseen bool) {
	commands := [][]string{r.spec.Args}
	for _, g := range r.spec.Groups {
		commands = append(commands, g.Args)
	}
	for _, args := range commands {
		if len(args) == 0 {
			continue
		}
		if text := suggest.Command(args[0]); text != "" {
			con.say("warning: %s", text)
		}
	}
	hints := suggest.Environments(r.typed)
	if r.spec.Array != nil && r.spec.Array.Lines {
		hints = append(hints, suggest.Columns(r.spec.Args))
	}
	if unseen {
		hints = append(append(hints, suggest.NotSent(r.typed)...), suggest.Time(r.typed.Time))
	}
	for _, text := range hints {
		if text != "" {
			con.say("hint: %s", text)
		}
	}
	for _, text := range r.told {
		con.say("%s", text)
	}
}

// useScript sends along a command that is a script with options of its own, however it is
// named, and has its interpreter run it where it is not found by itself.
func (r *request) useScript(s *script.Script) {
	switch {
	case s == nil || len(r.spec.Args) == 0:
	case s.Executable && !strings.Contains(s.Path, "/"):
		r.spec.Args = append([]string{"./" + s.Path}, r.spec.Args[1:]...)
	case !s.Executable || filepath.IsAbs(s.Path):
		in := transfer.Input{Path: s.Path}
		name := filepath.Clean(s.Path)
		if !filepath.IsLocal(name) {
			in.Name = filepath.Base(name)
			name = in.Name
		}
		r.inputs = append(r.inputs, in)
		r.spec.Args = slices.Concat(s.Interpreter, []string{name}, r.spec.Args[1:])
	}
}

// readInputs finds the inputs that are named.
func (r *request) readInputs(c *cli.Context, isScript bool) (err error) {
	if r.inputs, err = transfer.ExpandInputs(r.typed.Inputs); err != nil {
		return usage(c, "%v", err)
	}
	for _, in := range r.inputs {
		if _, err := os.Lstat(in.Path); errors.Is(err, fs.ErrNotExist) {
			return usage(c, "input %s: no such file or directory", in.Path)
		}
		r.typed.Sent = append(r.typed.Sent, in.Path, in.Name)
	}
	if text := suggest.Expanded(r.typed); text != "" && !isScript {
		return usage(c, "%s", text)
	}
	return nil
}
