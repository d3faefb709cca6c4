package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/jobfile"
	"zorilla/cmd/zorilla/plan"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
)

const checkName = "check"

// jobFileName is under what the command line has the job file of the command.
const jobFileName = "job file"

// jobFile returns the job file of a command line; nil = it has none.
func jobFile(c *cli.Context) *jobfile.File {
	f, _ := c.App.Metadata[jobFileName].(*jobfile.File)
	return f
}

// blameFile says of a mistake where it stands, if it is in a job file.
func blameFile(f *jobfile.File, err error) error {
	if f == nil || err == nil {
		return err
	}
	u, coded := (*usageError)(nil), (*codedError)(nil)
	switch text := f.Blame(err.Error()); {
	case errors.As(err, &u):
		return &usageError{u.command, text}
	case errors.As(err, &coded), errors.Is(err, jobs.ErrInvalid), errors.Is(err, api.ErrInvalid):
		return &blamedError{err, text}
	}
	return err
}

// printFile prints the job file of a command line.
func printFile(c *cli.Context, r *request) error {
	file := jobFile(c)
	if file == nil {
		file = &jobfile.File{}
	}
	_, err := io.WriteString(c.App.Writer, jobfile.Print(c, c.Args().Slice(), &file.Topology, file.Graph))
	return err
}

func checkCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      checkName,
		Category:  groupJobs,
		Usage:     "check a job file, and print which nodes could take its workers",
		UsageText: "zorilla check FILE.toml [options] [-- ARGUMENT...]",
		Description: `
Says in one line what is wrong with the file, and where, and ends with 2; or ends with 0.
NODES is how many members of the network fulfil what the job, or a group of it, wants of
nodes, and ROOM for how many workers these have room now, as far as they tell. Of a job
with groups it also says on which nodes these would run now, or which constraint is in the
way: distances are those that the node knows, or estimates. If no node is running only
the file is checked. Nothing is submitted.

zorilla check job.toml
zorilla check job.toml -n 16 --print-file    # as a job file with the options in force`,
		Flags:  append(append(jobFlags(), arrayFlags()...), followFlags()...),
		Action: func(c *cli.Context) error { return checkAction(con, c) },
	})
}

func checkAction(con *console, c *cli.Context) error {
	file := jobFile(c)
	if file == nil {
		return usage(c, "%v", jobfile.ErrNone)
	}
	r, err := requestOf(c, c.Args().Slice(), con.stdin)
	if err != nil {
		return err
	}
	defer r.close()
	want := wanted(c, -1)
	if err := want.Check(&r.spec); err != nil {
		return usage(c, "%v", err)
	}
	if err := followable(c, &r.spec); err != nil {
		return err
	}
	if c.Bool(jobfile.PrintOption) {
		return printFile(c, r)
	}
	r.hint(con, true)
	for _, text := range file.Warnings() {
		con.say("warning: %s", text)
	}
	var nodes []api.NodeInfo
	err = with(c, func(client *api.Client) (err error) {
		nodes, err = client.Survey(c.Context)
		return err
	})
	if err != nil {
		con.say("%s is right; only the file was checked: %v", file.Path, err)
		return nil
	}
	rows := [][]string{{"GROUP", "WORKERS", "NODES", "ROOM"}}
	for _, t := range takersOf(&r.spec, nodes) {
		rows = append(rows, t.row(len(nodes)))
		if t.nodes == 0 {
			con.say("warning: %s: no node of the network fulfils what it wants", t.who())
		}
	}
	if err := con.printTable(rows); err != nil || len(r.spec.Groups) == 0 {
		return err
	}
	for i, line := range plan.Of(&r.spec, nodes) {
		if i == 0 {
			line = "\n" + line
		}
		if _, err := fmt.Fprintln(con.stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// takers is who could take the workers of a group, or of a job without groups.
type takers struct {
	group    string // "" = the job
	min, max int
	nodes    int // that ever can
	free     int // of these, that have room now
	room     int // for so many workers
	silent   int // of nodes, that do not tell what room they have
}

func takersOf(s *jobs.Spec, nodes []api.NodeInfo) (list []takers) {
	if len(s.Groups) == 0 {
		return []takers{takersOfOne(s, -1, takers{min: s.Least(), max: s.Workers()}, nodes)}
	}
	for i, g := range s.Groups {
		list = append(list, takersOfOne(s, i, takers{group: g.Name, min: g.Min, max: g.Max}, nodes))
	}
	return list
}

func takersOfOne(s *jobs.Spec, group int, t takers, nodes []api.NodeInfo) takers {
	needs := jobs.Needs{Slots: s.Slots, Memory: s.Memory, GPUs: s.GPUs}
	if group >= 0 {
		needs = s.NeedsOf(group)
	}
	for _, n := range nodes {
		if !s.Suits(group, n.Member) {
			continue
		}
		t.nodes++
		if n.Told.IsZero() {
			t.silent++
			continue
		}
		room := (n.Slots - n.Busy) / needs.Slots
		if needs.Memory > 0 {
			room = min(room, int(n.Memory/needs.Memory))
		}
		if needs.GPUs > 0 {
			room = min(room, n.GPUs/needs.GPUs)
		}
		if n.State == "" && room > 0 {
			t.free++
			t.room += room
		}
	}
	return t
}

func (t takers) who() string {
	if t.group == "" {
		return "the job"
	}
	return "group " + t.group
}

func (t takers) row(members int) []string {
	workers := fmt.Sprint(t.min)
	if t.max != t.min {
		workers = fmt.Sprintf("%d..%d", t.min, t.max)
	}
	room := fmt.Sprintf("%s at %s", units.Count(t.room, "worker", "workers"), units.Count(t.free, "node", "nodes"))
	if t.silent > 0 {
		room += fmt.Sprintf(", not known of %d", t.silent)
	}
	group := t.group
	if strings.TrimSpace(group) == "" {
		group = "-"
	}
	return []string{group, workers, fmt.Sprintf("%d of %d", t.nodes, members), room}
}
