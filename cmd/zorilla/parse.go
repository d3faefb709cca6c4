package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/suggest"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/placement/mapping"
	"zorilla/jobs/timing"
	"zorilla/jobs/work"
)

// parseSize reads the size that an option has.
func parseSize(flag, s string) (int64, error) {
	n, err := units.ParseBytes(s)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", flag, s, err)
	}
	return n, nil
}

// maxOutput returns how many bytes a worker may write to standard output and error together; 0 = no
// limit. Unlike other sizes, one without a unit is fine: a limit of a few bytes makes sense.
func maxOutput(s string) (int64, error) {
	switch s {
	case "":
		return jobs.DefaultMaxOutput, nil
	case "none":
		return 0, nil
	}
	n, err := parseSize("--max-output", s)
	if err != nil {
		err = fmt.Errorf("%w, or none", err)
	}
	return n, err
}

// noBytes refuses a number without a unit of which others mean mebibytes.
func noBytes(flag, s string, n int64) error {
	if n < 1<<20 && strings.Trim(s, "0123456789") == "" {
		return fmt.Errorf("%s %s: that is %s bytes: did you mean %sM?", flag, s, s, s)
	}
	return nil
}

// checkZone refuses to take a moment for one of a zone that Go does not know: it would count as UTC.
func checkZone(flag, s string) error {
	zone := strings.TrimPrefix(os.Getenv("TZ"), ":")
	if zone == "" || filepath.IsAbs(zone) {
		return nil
	}
	if _, err := time.LoadLocation(zone); err != nil {
		return fmt.Errorf("%s %s: TZ=%s is not among this machine's time zones, so that it is not known which moment that is: "+
			"add the difference from UTC, as in %s",
			flag, s, zone, "2006-01-02T15:04:05+01:00")
	}
	return nil
}

// latest is how far ahead a moment may be.
const latest = 366 * 24 * time.Hour

// moment reads a date, or a time of one, in the zone of now if it names none.
func moment(s string, now time.Time) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// readTimes reads when a job begins and ends, and after how long it has its start promised.
func readTimes(c *cli.Context, spec *jobs.Spec, now time.Time) error {
	for flag, at := range map[string]*time.Time{"begin": &spec.Search.Begin, "deadline": &spec.Search.Deadline} {
		if s := c.String(flag); s != "" {
			t, err := until(suggest.Dashes(flag), s, now)
			if err != nil {
				return err
			}
			*at = t.UTC().Truncate(time.Second) // as its journal keeps it
		}
	}
	if at := spec.Search.Deadline; !at.IsZero() && now.Add(time.Duration(spec.Walltime)).After(at) {
		return fmt.Errorf("--deadline %s: that is sooner than -t %v from now", c.String("deadline"), spec.Walltime)
	}
	switch s := c.String("book-after"); s {
	case "":
	case "never":
		spec.Search.BookAfter = timing.BookNever
	case "0", "0s":
		spec.Search.BookAfter = timing.BookAtOnce
	default:
		wait, err := parseTime("--book-after", s)
		if err != nil {
			return err
		}
		spec.Search.After(wait)
	}
	return nil
}

// until reads a time to come that an option has: when it is, perhaps as the next time of that hour,
// or how long there is until then.
func until(flag, s string, now time.Time) (time.Time, error) {
	t, ok := moment(s, now)
	clock, err := time.Parse("15:04", s)
	if err != nil {
		clock, err = time.Parse("15:04:05", s)
	}
	if err == nil {
		day := func(n int) time.Time {
			return time.Date(now.Year(), now.Month(), now.Day()+n, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
		}
		if t, ok = day(0), true; !t.After(now) {
			t = day(1)
		}
	}
	if _, exact := time.Parse(time.RFC3339, s); ok && exact != nil {
		if err := checkZone(flag, s); err != nil {
			return t, err
		}
	}
	switch {
	case ok && t.Before(now):
		return t, fmt.Errorf("%s %s: that is over", flag, s)
	case ok:
		return t, nil
	}
	left, err := units.ParseSpan(s)
	if err == nil && left > latest {
		return time.Time{}, fmt.Errorf("%s %s: a number is how many seconds there are until then, at most %d: write a moment as 2006-01-02 15:04",
			flag, s, latest/time.Second)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("%s %s: %w, or a moment such as 22:00 or 2006-01-02 15:04", flag, s, err)
	}
	return now.Add(left), nil
}

// since reads a time of the past that an option has: how long ago it is, or when it was, in the
// zone of now if it names none.
func since(flag, s string, now time.Time) (time.Time, error) {
	if t, ok := moment(s, now); ok {
		return t, nil
	}
	ago, err := units.ParseSpan(s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s %s: %w, or a moment such as 2006-01-02 15:04", flag, s, err)
	}
	return now.Add(-ago), nil
}

// parseTime reads the length of time that an option has.
func parseTime(flag, s string) (time.Duration, error) {
	d, err := units.ParseSpan(s)
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", flag, s, err)
	}
	return d, nil
}

// dependencies reads KIND:JOB, as many as there are.
func dependencies(s string) (list []jobs.Dependency, err error) {
	if s == "" {
		return nil, nil
	}
	for _, part := range strings.Split(s, ",") {
		kind, job, found := strings.Cut(part, ":")
		if !found || job == "" || !slices.Contains([]string{"afterok", "afterany", "afternotok"}, kind) {
			return nil, fmt.Errorf("-d %s: want afterok:JOB, afterany:JOB or afternotok:JOB", part)
		}
		list = append(list, jobs.Dependency{Kind: jobs.DependencyKind(kind), Job: jobs.ID(job)})
	}
	return list, nil
}

// parseRanks reads ranks as in "2,5-7": no more than a request may name, and each once.
func parseRanks(text string) (ranks []int, err error) {
	runs, ok := work.ParseRuns(text)
	if !ok {
		return nil, errors.New("want JOB:RANK, or several ranks as in JOB:0-3,5")
	}
	for _, r := range runs {
		if r.Last >= jobs.MaxRanks {
			return nil, fmt.Errorf("rank %d: want 0 to %d", r.Last, jobs.MaxRanks-1)
		}
		if len(ranks)+r.Count() > jobs.MaxRelease {
			return nil, fmt.Errorf("more than %d ranks: name fewer at once", jobs.MaxRelease)
		}
		for rank := r.First; rank <= r.Last; rank += r.Step {
			if slices.Contains(ranks, rank) {
				return nil, fmt.Errorf("rank %d is there twice", rank)
			}
			ranks = append(ranks, rank)
		}
	}
	return ranks, nil
}

// readPlacing reads the task graph, and how many spares there are to be.
func readPlacing(c *cli.Context, spec *jobs.Spec) (err error) {
	if err = readGraph(c, spec); err != nil {
		return fmt.Errorf("--graph: %w", err)
	}
	spec.Spares, err = spares(c.String("spares"), spec)
	return err
}

// readGraph reads a task graph, a name such as grid:8x8 or a file; there is a rank for each task.
func readGraph(c *cli.Context, spec *jobs.Spec) (err error) {
	name := c.String("graph")
	if name == "" || spec.Graph != nil { // tasks of the job file go before a configuration
		return nil
	}
	if kind, _, found := strings.Cut(name, ":"); found && (kind == "grid" || kind == "ring") {
		spec.Graph = &mapping.Listed{Name: name}
	} else {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("%s: %w; want such a file, grid:ROWSxCOLUMNS or ring:TASKS", name, errors.Unwrap(err))
		}
		defer f.Close()
		m, err := mapping.ReadMETIS(f)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		spec.Graph = mapping.List(m)
	}
	m, err := spec.Graph.Graph()
	if err == nil && spec.Mapped() && !c.IsSet("n") {
		spec.Min, spec.Max = len(m.Cost), len(m.Cost)
	}
	return err
}

// spares reads how many spares a job is to have: a number, or a share of its workers.
func spares(text string, spec *jobs.Spec) (int, error) {
	if text == "" {
		if !spec.Mapped() {
			return 0, nil
		}
		text = fmt.Sprintf("%.0f%%", 100*mapping.DefaultSpares)
	}
	digits, share := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil || n < 0:
		return 0, fmt.Errorf("--spares %s: want a number of workers, or a share such as 10%%", text)
	case share && n > 100:
		return 0, fmt.Errorf("--spares %s: want at most 100%%", text)
	case share:
		n = (n*spec.Max + 99) / 100
	}
	return n, nil
}
