package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
)

func getCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "get",
		Category:  groupJobs,
		Usage:     "fetch the output files of a job or of one rank",
		UsageText: "zorilla get [options] JOB[:RANK] [PATTERN...]",
		Description: `
All ranks share the directory; files of the same name that differ are kept as
NAME.RANK. With %r in --into every rank has a directory of its own. Files of an
array come as NAME.TASK, or with %t in a directory of each task; those of one task,
JOB:N, keep their names. If a file with other content is in the way nothing is
fetched, unless --force replaces it; files that are there already are not fetched
again. PATTERNs name files as those of -o do: others are left. Files of a job that was
submitted at another node come to a directory of their own, NAME-ID, unless --into names
one; of hidden ones those that a PATTERN with the dot names.

zorilla get last
zorilla get --into 'out/%r' k7f3q
zorilla get k7f3q:3
zorilla get last 'frames/*.png' log
zorilla get --now --force last log             # while the job runs`,
		Flags: []cli.Flag{intoFlag(), forceFlag(), progressFlag(),
			&cli.BoolFlag{Name: "now", Usage: "also of ranks that still run, as far as they are written"}},
		Action: askFiles(func(c *cli.Context, client *api.Client, job string, want api.Wanted) error {
			if err := con.showProgress(c); err != nil {
				return err
			}
			rank := want.Rank
			st, err := client.Job(c.Context, job)
			if err != nil {
				return err
			}
			if err := st.Gone(); err != nil {
				return err
			}
			if st.Spec.Array != nil {
				err = hasOutput(st, rank)
			} else {
				st, err = onlyRank(st, rank)
			}
			if err != nil {
				return err
			}
			if c.Bool("now") {
				if st, err = withRunning(c, client, st, want); err != nil {
					return err
				}
			}
			if some, err := con.sayFiles(&st, c.Bool("now")); !some {
				return err
			}
			only := want.Only
			if want, err = wantedOf(c, client, &st, rank); err != nil {
				return err
			}
			want.Only = only
			line := &lifeline{service: client, job: st.ID, tell: con.say}
			if err := fetch(c.Context, con, line, st, want, nil); err != nil {
				return err
			}
			if st.Broken != "" { // there may have been more, or other ones
				return fmt.Errorf("job %s is %w: its journal: %s", st.ID.Short(), jobs.ErrDamaged, st.Broken)
			}
			return nil
		}),
	})
}

func lsCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "ls",
		Category:  groupJobs,
		Usage:     "list the output files of a job, or of one rank or task",
		UsageText: "zorilla ls [options] JOB[:RANK] [PATTERN...]",
		Description: `
Those that get would fetch, of ranks that have ended. With --now also of ranks that
run, as large as they are now; PATTERNS may name any of their files then. All that is
in the directory of such a rank: zorilla exec JOB:RANK ls -l
Of an array the first 200 files of the tasks that have ended, or those of one, JOB:TASK.

zorilla ls last
zorilla ls --now last:3 '*.ckpt'`,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "now", Usage: "also of ranks that still run, as far as they are written"}, jsonFlag()},
		Action: askFiles(func(c *cli.Context, client *api.Client, job string, want api.Wanted) error {
			st, err := client.Job(c.Context, job)
			if err == nil {
				err = st.Gone()
			}
			if err == nil && st.Spec.Array != nil {
				return con.listTasks(c, client, st, want)
			}
			if err == nil {
				st, err = onlyRank(st, want.Rank)
			}
			if err == nil && c.Bool("now") {
				st, err = withRunning(c, client, st, want)
			}
			if err != nil {
				return err
			}
			switch id := st.ID.Short(); {
			case len(st.Outputs) > 0:
			case len(st.Spec.Outputs) == 0:
				con.say("job %s was started without -o, and has left no files", id)
			case st.State.Final() || c.Bool("now"):
				con.say("job %s has made no output files", id)
			default:
				con.say("job %s is %s, no rank has ended yet: --now lists what is there", id, st.State)
			}
			trees, err := api.Files(c.Context, client, st, want)
			if err != nil {
				return err
			}
			return con.printFiles(trees, c.Bool("json"))
		}),
	})
}

// listedFile is what ls tells of a file.
type listedFile struct {
	Rank int    `json:"rank"`
	Mode string `json:"mode"`
	Size int64  `json:"size"`
	Path string `json:"path"`
}

func (con *console) printFiles(trees []api.RankTree, asJSON bool) error {
	files := []listedFile{}
	rows := [][]string{{"RANK", "MODE", "SIZE", "NAME"}}
	for _, t := range trees {
		for i := range t.Manifest.Entries {
			e := &t.Manifest.Entries[i]
			f := listedFile{t.Rank, e.FileMode().String(), e.Size, e.Path}
			files = append(files, f)
			rows = append(rows, []string{strconv.Itoa(f.Rank), f.Mode, units.Bytes(f.Size), f.Path})
		}
	}
	if asJSON {
		return con.printJSON(files)
	}
	return con.printTable(rows)
}

// maxTaskRows is how many files of tasks ls lists: each list is read from the first on.
const maxTaskRows = 200

// taskFile is what ls tells of a file of a task.
type taskFile struct {
	Task int    `json:"task"`
	Mode string `json:"mode,omitempty"` // "" = not known
	Size int64  `json:"size"`
	Path string `json:"path"`
}

// listTasks lists the files of tasks that have ended.
func (con *console) listTasks(c *cli.Context, client *api.Client, st jobs.Status, want api.Wanted) error {
	if c.Bool("now") {
		return usage(c, "--now is about ranks: files of a task come when it has ended")
	}
	if err := hasOutput(st, want.Rank); err != nil {
		return err
	}
	list, more, err := api.TaskFiles(c.Context, client, &st, want, maxTaskRows)
	files, rows := []taskFile{}, [][]string{{"TASK", "MODE", "SIZE", "NAME"}}
	for _, t := range list {
		f := taskFile{Task: t.Task, Size: t.Size, Path: t.Path}
		if t.Mode != 0 {
			f.Mode = t.Mode.String()
		}
		files = append(files, f)
		rows = append(rows, []string{strconv.Itoa(f.Task), cmp.Or(f.Mode, columns.None), units.Bytes(f.Size), f.Path})
	}
	id, some := st.ID.Short(), ""
	if want.Rank < 0 {
		some = fmt.Sprintf("'zorilla ls %s:TASK' lists those of one task, ", id)
	}
	switch {
	case more:
		con.say("there are more files than these %d: %s'zorilla get %s' fetches all", len(files), some, id)
	case err != nil && !errors.Is(err, jobs.ErrDamaged):
		return err
	case len(files) > 0 || err != nil:
	case len(st.Spec.Outputs) == 0:
		con.say("job %s was started without -o, and its tasks have left no files that were kept", id)
	case len(want.Only) > 0:
		return fmt.Errorf("%w %s", api.ErrNoFile, strings.Join(want.Only, " or "))
	default:
		con.say("job %s has no output files of tasks that have ended", id)
	}
	if c.Bool("json") {
		return errors.Join(con.printJSON(files), err)
	}
	return errors.Join(con.printTable(rows), err)
}

// askFiles is the action of a command about files of JOB[:RANK].
func askFiles(do func(c *cli.Context, client *api.Client, job string, want api.Wanted) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if !c.Args().Present() {
			return usage(c, whichJob)
		}
		job, rank, err := splitJob(c, c.Args().First())
		if err != nil {
			return err
		}
		want := wanted(c, rank)
		want.Only = c.Args().Tail()
		for _, glob := range want.Only {
			if err := transfer.CheckPattern(glob); err != nil {
				return usage(c, "%v", err)
			}
		}
		return withJob(c, job, func(client *api.Client, job string) error { return do(c, client, job, want) })
	}
}

// withRunning adds the files that ranks which still run have made until now. With patterns
// they may be any, without those that the job names.
func withRunning(c *cli.Context, client *api.Client, st jobs.Status, want api.Wanted) (jobs.Status, error) {
	globs := st.Spec.Outputs
	switch {
	case st.Spec.Array != nil:
		return st, usage(c, "--now is about ranks: files of a task come when it has ended")
	case st.State.Final():
		return st, nil
	}
	if len(want.Only) > 0 {
		globs = want.Only
		st.Spec.Outputs = append(slices.Clone(st.Spec.Outputs), globs...)
	}
	if len(globs) == 0 {
		return st, usage(c, "job %s was started without -o: which files? name them after the job", st.ID.Short())
	}
	for _, rank := range runningRanks(&st, want.Rank) {
		out, err := client.Snapshot(c.Context, string(st.ID), rank, globs)
		if errors.Is(err, jobs.ErrNotRunning) { // it has just ended, or is about to run again
			continue
		}
		if err != nil {
			return st, err
		}
		if !out.Manifest.IsZero() {
			st.Outputs = append(st.Outputs, out)
		}
	}
	return st, nil
}

// sayFiles says whose files are there, if not all that there will be, or why there are none.
func (con *console) sayFiles(st *jobs.Status, now bool) (some bool, err error) {
	switch {
	case !st.HasFiles():
		con.say("job %s was started without -o, and has left no files that were kept", st.ID.Short())
		return false, nil
	case len(st.Spec.Outputs) == 0:
	case st.Array != nil && st.Array.Done == 0 && !st.State.Final():
		return false, fmt.Errorf("job %s is %s, no task has ended yet: 'zorilla wait %s' waits for it", st.ID.Short(), st.State, st.ID.Short())
	case st.Array != nil && !st.State.Final():
		con.say("job %s is %s: fetching the outputs of %s that ended", st.ID.Short(), st.State, count(st.Array.Done, "task"))
	case st.Array != nil:
	case len(st.Outputs) == 0 && !st.State.Final():
		if now {
			return false, fmt.Errorf("job %s is %s, no rank has made output files yet", st.ID.Short(), st.State)
		}
		return false, fmt.Errorf("job %s is %s, no rank has ended yet: 'zorilla wait %s' waits for it, --now fetches what is there",
			st.ID.Short(), st.State, st.ID.Short())
	case len(st.Outputs) == 0:
		con.say("job %s left no output files", st.ID.Short())
	case !st.State.Final() && now:
	case !st.State.Final():
		con.say("job %s is %s: fetching the outputs of %s that ended", st.ID.Short(), st.State, count(len(st.Outputs), "rank"))
	}
	return true, nil
}
