package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/selector"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/session/workerapi"
	"zorilla/node/api"
	"zorilla/vicinity"
)

func cancelCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "cancel",
		Category:  groupJobs,
		Usage:     "end jobs",
		UsageText: "zorilla cancel [options] JOB...",
		Description: `
Programs get SIGTERM, and SIGKILL 5 s later; before that their --signal, and the time that
comes with it. What they print meanwhile is kept, and so are the output files (-o), as at
the walltime: cancel waits for that, up to 15 s longer than programs have notice. With
--discard jobs end at once, without what has not come from their workers yet. A job that has
ended already is no error. --name and --all are about jobs that were submitted at this node,
and print the IDs of those that they ended.

zorilla cancel last && zorilla get last
zorilla cancel --name train       # all that were submitted with -J train`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "end all jobs that are called `NAME`"},
			&cli.BoolFlag{Name: "all", Usage: "end all jobs"},
			&cli.BoolFlag{Name: "discard", Usage: "end jobs at once, without their last output and files"},
			jsonFlag(),
		},
		Action: func(c *cli.Context) error {
			e := ender{con: con, discard: c.Bool("discard")}
			switch many := c.IsSet("name") || c.Bool("all"); {
			case !many && c.Bool("json"):
				return usage(c, "--json is about the jobs that --name or --all mean")
			case !many:
				return askEachJob(e.end, e.await)(c)
			case c.Args().Present() || c.IsSet("name") && c.Bool("all"):
				return usage(c, "give jobs, --name or --all: one of them")
			}
			return askNode(func(c *cli.Context, client *api.Client) error { return e.endMany(c, client) })(c)
		},
	})
}

// jobsEndWithin is how long cancel waits for jobs to end: their programs have 5 s, after their notice.
const jobsEndWithin = 15 * time.Second

// ender ends jobs.
type ender struct {
	con     *console
	discard bool
	jobs    []string // that are to end by themselves
}

// end ends a job.
func (e *ender) end(client *api.Client, ctx context.Context, job string) error {
	err := client.Cancel(ctx, job, e.discard)
	if err == nil && !e.discard {
		e.jobs = append(e.jobs, job)
	}
	return err
}

// await waits until the jobs have ended, but not for ever.
func (e *ender) await(client *api.Client, ctx context.Context) {
	began := time.Now()
	for _, job := range e.jobs {
		e.awaitOne(client, ctx, job, began)
	}
}

func (e *ender) awaitOne(client *api.Client, ctx context.Context, job string, began time.Time) {
	within, since := jobsEndWithin, uint64(0)
	for {
		ctx, cancel := context.WithDeadline(ctx, began.Add(within))
		st, version, err := client.Await(ctx, job, since)
		cancel()
		switch {
		case errors.Is(err, api.ErrNotFound) || err == nil && st.State.Final():
			return
		case err != nil:
			e.con.say("job %s has not ended yet: 'zorilla wait %s' waits for it, 'zorilla cancel --discard %s' ends it at once", job, job, job)
			return
		}
		if text := noticeText(&st); since == 0 && text != "" {
			_, notice := st.Spec.Notice()
			within += notice
			e.con.say("job %s%s: 'zorilla cancel --discard %s' ends it at once", job, text, job)
		}
		since = version
	}
}

// endMany ends the jobs of this node that --name or --all mean.
func (e *ender) endMany(c *cli.Context, client *api.Client) error {
	con := e.con
	self, err := client.Node(c.Context)
	if err != nil {
		return err
	}
	list, err := client.Summaries(c.Context, false)
	if err != nil {
		return err
	}
	list = selector.From(list, self.ID)
	if c.IsSet("name") {
		if list = selector.Called(list, c.String("name")); len(list) == 0 {
			return fmt.Errorf("cancel: no job that was submitted at this node is called %q", c.String("name"))
		}
	}
	list = selector.Active(list)
	names := jobs.DistinctOf(list, func(st jobs.Summary) jobs.ID { return st.ID })
	var all error
	ended := []cancelled{}
	for i, st := range list {
		err := e.end(client, c.Context, string(st.ID))
		switch {
		case err != nil:
		case c.Bool("json"):
			ended = append(ended, cancelled{st.ID})
		default:
			_, err = fmt.Fprintln(con.stdout, names[i])
		}
		if err != nil {
			all = errors.Join(all, fmt.Errorf("cancel: %w", err))
		}
	}
	e.await(client, c.Context)
	if c.Bool("json") {
		all = errors.Join(all, con.printJSON(ended))
	}
	return all
}

// cancelled is what cancel --json tells of a job that it has ended.
type cancelled struct {
	ID jobs.ID `json:"id"`
}

func resizeCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "resize",
		Category:  groupJobs,
		Usage:     "give a job of -n MIN..MAX more or fewer workers while it runs",
		UsageText: "zorilla resize [options] JOB [N]\n   zorilla resize [options] [N]     inside a job",
		Description: `
N is MIN to MAX. More are looked for as at the start. If there are to be fewer, the
highest ranks go, or those that --release names: they get their --signal, SIGTERM, after
5 s SIGKILL. They are no failure, and their output and files are kept. Without N a rank that
--release names goes and no other comes; with neither it prints how many there are. The
latest request counts.

zorilla resize last 4
zorilla resize --release $ZORILLA_RANK      in a rank that has nothing to do`,
		Flags: []cli.Flag{
			&cli.IntSliceFlag{Name: "release", Usage: "the `RANK` that goes first (repeatable)"},
			jsonFlag(),
		},
		Action: func(c *cli.Context) error {
			size, err := askSize(c)
			switch {
			case err != nil:
				return err
			case c.Bool("json"):
				return con.printJSON(size)
			}
			_, err = fmt.Fprintf(con.stdout, "wanted %d of %d to %d workers, there are %d\n", size.Wanted, size.Min, size.Max, size.Have)
			return err
		},
	})
}

// askSize asks for what the command line of resize says.
func askSize(c *cli.Context) (size jobs.Size, err error) {
	args, path := c.Args().Slice(), os.Getenv(workerapi.Variable)
	q, job := jobs.Resize{Release: c.IntSlice("release")}, os.Getenv("ZORILLA_JOB_ID")
	inside := len(args) == 0 || len(args) == 1 && job != ""
	if !inside {
		job, args = args[0], args[1:]
	}
	if len(args) > 1 {
		return size, usage(c, "unexpected argument %q", args[1])
	}
	if len(args) == 1 {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 1 {
			return size, usage(c, "%s: want a number of workers", args[0])
		}
		q.Workers = n
	}
	if err := q.Check(); err != nil {
		return size, usage(c, "%v", err)
	}
	switch {
	case !inside:
		err = withJob(c, job, func(client *api.Client, job string) (err error) {
			size, err = client.Resize(c.Context, job, q)
			return err
		})
	case path == "" && job == "":
		return size, usage(c, whichJob+"; only inside a job it need not be named")
	case path == "":
		err = errors.New(noSocket)
	default:
		err = workerapi.Resize(c.Context, path, q.Workers, q.Release, &size)
	}
	if err != nil {
		err = fmt.Errorf("resize: %w", err)
	}
	return size, err
}

func moveCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "move",
		Category:  groupJobs,
		Usage:     "have ranks of a job go on at other nodes",
		UsageText: "zorilla move [options] JOB:RANK... [NODE]",
		Description: `
The program of the rank gets SIGTERM, after 5 s SIGKILL. Then it starts again, with its
newest checkpoint ('zorilla checkpoint --help'), at NODE, or without NODE near where it
was, but not there. If NODE has no room the rank goes to a node near it, with a warning.
No retry is used up. Only ranks that start again alone can be moved: those of a job of
-n MIN..MAX or --strategy maheve, and of groups with restart = "rank". Several ranks are
named as in JOB:0-3,7: all of them go, or none if one cannot.

zorilla move last:3             rank 3 leaves its node
zorilla move last:0-3,7 node7   five ranks go to node7`,
		Action: func(c *cli.Context) error {
			job, q, err := whatMoves(c)
			if err != nil {
				return err
			}
			return withJob(c, job, func(client *api.Client, job string) error {
				size, err := client.Resize(c.Context, job, q)
				switch {
				case err != nil:
					return fmt.Errorf("move: %w", err)
				case size.Moving != len(q.Move):
					return errors.New("move: the node where the job was submitted is of an earlier version, which moves no ranks")
				}
				_, err = fmt.Fprintf(con.stdout, "%s to another node\n", units.Count(len(q.Move), "rank goes", "ranks go"))
				return err
			})
		},
	})
}

// whatMoves reads which ranks of which job are to go, and where to.
func whatMoves(c *cli.Context) (job string, q jobs.Resize, err error) {
	to := ""
	for i, arg := range c.Args().Slice() {
		name, ranks, err := splitRanks(c, arg)
		switch {
		case err != nil:
			return "", q, err
		case ranks != nil && (i == 0 || name == job) && to == "":
			job = name
			for _, rank := range ranks {
				if slices.ContainsFunc(q.Move, func(m jobs.Move) bool { return m.Rank == rank }) {
					return "", q, usage(c, "%.60s: rank %d is there twice", arg, rank)
				}
				q.Move = append(q.Move, jobs.Move{Rank: rank})
			}
		case ranks != nil && to == "":
			return "", q, usage(c, "%s: want ranks of one job, %s", arg, job)
		case i > 0 && ranks == nil && to == "":
			to = arg
		case i == 0:
			return "", q, usage(c, "%s: want JOB:RANK: which of its ranks?", arg)
		default:
			return "", q, usage(c, "unexpected argument %q behind the node", arg)
		}
	}
	switch {
	case job == "":
		return "", q, usage(c, "which rank? name it as JOB:RANK")
	case to != "":
		if err := api.CheckNode(to); err != nil {
			return "", q, err
		}
	}
	for i := range q.Move {
		q.Move[i].To = vicinity.ID(to)
	}
	if err := q.Check(); err != nil {
		return "", q, usage(c, "%v", err)
	}
	return job, q, nil
}

func rmCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "rm",
		Category:  groupJobs,
		Usage:     "forget jobs that have ended, with their output and files",
		UsageText: "zorilla rm [options] JOB...",
		Description: `
Only at the node where the job was submitted. It keeps results by itself for a week
('zorilla node --keep-for') and as long as there is room (--keep-outputs), those
that were not fetched for at least a day; ID, state and exit code ten times as long.

zorilla rm last`,
		Action: askEachJob((*api.Client).Remove, nil),
	})
}
