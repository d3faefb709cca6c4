package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/internal/sanitize"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/described"
	"zorilla/jobs/work"
	"zorilla/node/api"
)

func statusCommand(con *console) *cli.Command {
	return clientCommand(cli.Command{
		Name:      "status",
		Category:  groupJobs,
		Usage:     "show one job: state, reason, workers, what they used, warnings",
		UsageText: "zorilla status [options] JOB[:RANK]",
		Description: `
zorilla status last
zorilla status --json k7f3q | jq .exit_code`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"},
				Usage: "also print what each worker read from disks and wrote to them, and each round of the search"},
			&cli.BoolFlag{Name: "utc", Usage: "print times in UTC, not in your time zone"}, jsonFlag(),
		},
		Action: askRank(func(c *cli.Context, client *api.Client, job string, rank int) error {
			st, err := client.Job(c.Context, job)
			if err != nil {
				return err
			}
			if st, err = onlyRank(st, rank); err != nil {
				return err
			}
			if c.Bool("json") {
				return con.printJSON(whole(st))
			}
			now := time.Now()
			if c.Bool("utc") {
				now = now.UTC()
			}
			return con.printStatus(st, now, c.Bool("verbose"))
		}),
	})
}

// printStatus prints what is known of a job, with times in the zone of now. More of it is what
// workers read and wrote, and the rounds of the search.
func (con *console) printStatus(st jobs.Status, now time.Time, more bool) error {
	if err := con.printTable(facts(st, now)); err != nil {
		return err
	}
	if len(st.Workers) > 0 {
		if err := con.section(workerTable(st, more)); err != nil {
			return err
		}
	}
	if rows := checkpointTable(st, now); len(rows) > 1 {
		if err := con.section(rows); err != nil {
			return err
		}
	}
	if err := printNotes(con.stdout, st); err != nil || !more || len(st.Rounds) == 0 {
		return err
	}
	return con.section(roundTable(st.Rounds, st.Submitted))
}

// printNotes prints what went wrong in a job, a line each.
func printNotes(w io.Writer, st jobs.Status) error {
	var notes []string
	for _, d := range st.AllDamage() {
		notes = append(notes, "damaged: "+d)
	}
	for _, w := range st.Warnings {
		notes = append(notes, "warning: "+w)
	}
	for i, n := range notes {
		lead := ""
		if i == 0 {
			lead = "\n"
		}
		if _, err := fmt.Fprintf(w, "%s%s\n", lead, columns.Clean(n)); err != nil {
			return err
		}
	}
	return nil
}

func facts(st jobs.Status, now time.Time) [][]string {
	rows := [][]string{{"job", st.ID.Short()}}
	add := func(key, format string, args ...any) {
		rows = append(rows, []string{key, fmt.Sprintf(format, args...)})
	}
	if st.Spec.Name != "" {
		add("name", "%s", st.Spec.Name)
	}
	add("command", "%s", columns.Cut(strings.Join(st.Spec.Command(), " "), 200))
	add("state", "%s", st.State)
	if st.LastKnown {
		add("note", "last known: its origin cannot be reached")
	}
	if st.Reason != "" {
		add("reason", "%s", st.Reason)
	}
	if st.State.Final() {
		add("exit code", "%d", st.ExitCode)
	}
	if gone := st.Gone(); gone != nil {
		add("note", "its output and files were forgotten %s", stamp(st.Forgotten, now))
	}
	add("origin", "%s", st.Origin.Short())
	if st.Array != nil {
		add("tasks", "%s", tally(st.Array))
	}
	add("workers", "%s", wish(st.Spec))
	if st.Asked > 0 {
		add("asked for", "%s, while it runs", count(st.Asked, "worker"))
	}
	add("submitted", "%s", stamp(st.Submitted, now))
	addTimes(add, &st, now)
	if !st.Started.IsZero() {
		add("started", "%s, after %s", stamp(st.Started, now), units.Span(st.Started.Sub(st.Submitted)))
	}
	for _, f := range described.Groups(&st) {
		add(f.Key, "%s", f.Value)
	}
	if text := described.Spares(&st); text != "" {
		add("spares", "%s", text)
	}
	if st.Worst != nil {
		add("worst pair", "%s", st.Worst)
	}
	if !st.Ended.IsZero() {
		ended := stamp(st.Ended, now)
		if !st.Started.IsZero() {
			ended += ", ran for " + units.Span(st.Ended.Sub(st.Started))
		}
		add("ended", "%s", ended)
	}
	if st.Spec.OnEnd != "" {
		add("on end", "%s (%s)", columns.Cut(st.Spec.OnEnd, 100), st.CommandAtEnd())
	}
	switch cpu, peak := used(st.Workers); {
	case peak > 0:
		add("used", "%s of processor time, at most %s of memory by a worker", seconds(cpu), units.Bytes(peak))
	case cpu > 0:
		add("used", "%s of processor time", seconds(cpu))
	}
	if st.Staged.Total > 0 {
		add("inputs", "%s, of which nodes fetched %s and had %s", units.Bytes(st.Staged.Total), units.Bytes(st.Staged.Fetched), units.Bytes(st.Staged.Cached))
	}
	return append(rows, results(st)...)
}

// results are the facts about what of a job is kept beside its output.
func results(st jobs.Status) (rows [][]string) {
	if st.Array != nil && st.Array.Filed > 0 {
		rows = append(rows, []string{"outputs", "files of " + count(st.Array.Filed, "task")})
	}
	if len(st.Outputs) > 0 {
		files, size := 0, int64(0)
		for _, o := range st.Outputs {
			files, size = files+o.Files, size+o.Bytes
		}
		rows = append(rows, []string{"outputs", fmt.Sprintf("%s, %s, from %s", count(files, "file"), units.Bytes(size), count(len(st.Outputs), "rank"))})
	}
	if len(st.Earlier) > 0 {
		rows = append(rows, []string{"attempts", fmt.Sprintf("what earlier ones printed is kept (%s): 'zorilla logs --attempt %d %s'",
			sanitize.Numbers(st.Earlier), st.Earlier[0], st.ID.Short())})
	}
	return rows
}

// used sums up what the workers that have ended took of processors, in seconds, and returns the
// most memory that one of them had.
func used(workers []jobs.WorkerStatus) (cpu float64, peak int64) {
	for _, w := range workers {
		if w.Exit != nil {
			cpu += w.Exit.CPU
			peak = max(peak, w.Exit.Peak)
		}
	}
	return cpu, peak
}

// seconds writes a time of processors, which may be much less than a second.
func seconds(s float64) string {
	if s < 100 {
		return fmt.Sprintf("%.2fs", s)
	}
	return units.Span(time.Duration(s * float64(time.Second)))
}

// wish reports what a job asked for.
func wish(spec jobs.Spec) string {
	s := strconv.Itoa(spec.Max)
	if spec.Min != spec.Max {
		s = fmt.Sprintf("%d to %d", spec.Min, spec.Max)
	}
	if spec.Replicas > 1 {
		s += fmt.Sprintf(" in %d copies", spec.Replicas)
	}
	if len(spec.Groups) > 0 {
		s += " in " + count(len(spec.Groups), "group")
	} else {
		s += fmt.Sprintf(", %s each", count(spec.Slots, "slot"))
	}
	if spec.Memory > 0 {
		s += ", " + units.Bytes(spec.Memory) + " each"
	}
	if spec.MaxOutput > 0 && spec.MaxOutput != jobs.DefaultMaxOutput {
		s += ", with at most " + units.Bytes(spec.MaxOutput) + " of output each"
	}
	if spec.Walltime > 0 {
		s += ", for at most " + spec.Walltime.String()
	}
	if sig, notice := spec.Notice(); sig > 0 {
		s += fmt.Sprintf(", with %s %v before the end", jobs.SignalName(sig), notice)
	}
	if spec.LostAfter > 0 {
		s += ", without nodes that are silent for " + spec.LostAfter.String()
	}
	if spec.CheckpointFar {
		s += ", with checkpoints in two clusters"
	}
	if spec.Strategy != "" {
		s += ", " + spec.Strategy
	}
	if spec.Spares > 0 {
		s += ", with " + count(spec.Spares, "spare")
	}
	if spec.MaxRTT > 0 {
		s += ", within " + time.Duration(spec.MaxRTT).String() + " of each other"
	}
	if spec.Graph != nil {
		s += ", by a graph of " + count(spec.Max, "task")
	}
	if spec.Single() {
		s += ", one at a node"
	}
	switch spec.Net {
	case jobs.NetNone:
		s += ", without a network"
	case jobs.NetJob:
		s += ", that reach each other's nodes alone"
	}
	if spec.MPI {
		s += ", ranks of an MPI program"
	}
	if spec.ShareWork {
		s += ", with one work directory at each node"
	}
	if len(spec.Mounts) > 0 {
		s += ", with " + strings.Join(spec.Mounts, ", ")
	}
	return s
}

// stamp writes a time in the zone of now.
func stamp(t, now time.Time) string {
	if t.IsZero() { // the journal lost it
		return "not known"
	}
	return fmt.Sprintf("%s (%s ago)", t.In(now.Location()).Format(time.RFC3339), units.Span(now.Sub(t)))
}

// addTimes adds when the job is to begin and end.
func addTimes(add func(key, format string, args ...any), st *jobs.Status, now time.Time) {
	show := func(t time.Time) string { return t.In(now.Location()).Format(time.RFC3339) }
	if at := st.Spec.Search.Begin; st.Started.IsZero() && !at.IsZero() {
		add("begins", "at %s", show(at))
	}
	if p := st.Promised; p != nil {
		add("promised", "%s at %s from %s on", count(p.Workers, "worker"), count(len(p.Nodes), "node"), show(p.At))
	}
	if at := st.Spec.Search.Deadline; !at.IsZero() && st.Ended.IsZero() {
		add("deadline", "%s", show(at))
	}
}

// workerTable lists the workers; disks reports what each read from disks, and wrote to them.
func workerTable(st jobs.Status, disks bool) [][]string {
	rows := [][]string{{"RANK", "NODE", "CLUSTER", "RTT", "STATE", "ATTEMPT", "EXIT", "CPU", "MEMORY", "READ", "WRITTEN", "STDOUT", "STDERR", "DETAIL"}}
	for _, w := range st.Workers {
		attempt, rank := columns.None, described.Rank(&st.Spec, w.Rank)
		if w.Attempt > 0 {
			attempt = strconv.Itoa(w.Attempt)
		}
		if st.Spec.Replicas > 1 {
			rank += " copy " + strconv.Itoa(w.Replica)
		}
		e := endOf(w.Exit)
		switch {
		case w.Won:
			e.detail = "counts"
		case e.detail == "" && w.State != jobs.WorkerEnded:
			e.detail = w.Retried
		}
		if w.Resumed > 0 && w.State != jobs.WorkerEnded {
			e.detail = strings.TrimSuffix(fmt.Sprintf("from checkpoint %d; %s", w.Resumed, e.detail), "; ")
		}
		rows = append(rows, []string{
			rank, nodeName(string(w.Node.Short()), w.Name), cmp.Or(columns.Cut(described.Place(&st.Spec, &w), 60), columns.None),
			columns.RTT(time.Duration(w.RTT)), string(w.State), attempt, e.code,
			e.cpu, e.peak, e.read, e.written, units.Bytes(w.Stdout), units.Bytes(w.Stderr), columns.Cut(e.detail, 60),
		})
	}
	if cluster := slices.Index(rows[0], "CLUSTER"); !st.Spec.Clustered() {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], cluster, cluster+1)
		}
	}
	if !disks {
		read, stdout := slices.Index(rows[0], "READ"), slices.Index(rows[0], "STDOUT")
		for i := range rows {
			rows[i] = slices.Delete(rows[i], read, stdout)
		}
	}
	return rows
}

// checkpointTable lists the newest checkpoint of each rank.
func checkpointTable(st jobs.Status, now time.Time) [][]string {
	rows := [][]string{{"RANK", "CHECKPOINT", "EPOCH", "AGE", "FILES", "SIZE", "NODES THAT KEEP IT"}}
	for _, w := range st.Workers {
		c := w.Checkpoint
		if c == nil {
			continue
		}
		text := w.KeptAt()
		if c.Short != "" {
			text += ": " + c.Short
		}
		rows = append(rows, []string{described.Rank(&st.Spec, w.Rank), strconv.Itoa(c.Number), strconv.FormatInt(c.Epoch, 10), units.Span(now.Sub(c.At)),
			strconv.Itoa(c.Files), units.Bytes(c.Bytes), columns.Cut(text, 200)})
	}
	return rows
}

// endCells is what a table tells of the end of a worker.
type endCells struct{ code, cpu, peak, read, written, detail string }

func endOf(e *work.Exit) endCells {
	c := endCells{columns.None, columns.None, columns.None, columns.None, columns.None, ""}
	if e == nil {
		return c
	}
	c.code, c.detail = strconv.Itoa(e.Code), e.Detail
	if e.CPU > 0 { // else nobody saw it
		c.cpu = seconds(e.CPU)
	}
	if e.Peak > 0 {
		c.peak = units.Bytes(e.Peak)
	}
	if e.Counted {
		c.read, c.written = units.Bytes(e.Read), units.Bytes(e.Written)
	}
	if c.detail == "" && e.Code != 0 {
		c.detail = string(e.Cause)
	}
	return c
}

func roundTable(rounds []jobs.Round, since time.Time) [][]string {
	rows := [][]string{{"ROUND", "AT", "RADIUS", "HOPS", "WANTED", "REACHED", "OFFERS", "WORKERS", "DECLINES", "MESSAGES", "DUPLICATES", "EXTENDED", "WAIT"}}
	for _, r := range rounds {
		row := []string{strconv.Itoa(r.Number), "+" + r.At.Sub(since).Round(10*time.Millisecond).String()}
		for _, n := range []int{r.Radius, r.Hops, r.Wanted, r.Reached, r.Offers, r.Workers, r.Declines, r.Messages, r.Duplicates, r.Extended} {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, append(row, time.Duration(r.Wait).Round(10*time.Millisecond).String()))
	}
	return rows
}

// whole makes absent lists of a status empty ones, for programs that read it.
func whole(st jobs.Status) jobs.Status {
	if st.Workers == nil {
		st.Workers = []jobs.WorkerStatus{}
	}
	if st.Rounds == nil {
		st.Rounds = []jobs.Round{}
	}
	return st
}
