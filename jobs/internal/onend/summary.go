package onend

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"zorilla/internal/sanitize"
	"zorilla/internal/units"
	"zorilla/jobs"
)

// maxFailed bounds the workers that a summary names.
const maxFailed = 20

// Variables are those by which a command knows which job has ended, and how.
func Variables(st jobs.Status) []string {
	return []string{
		"ZORILLA_JOB_ID=" + string(st.ID), "ZORILLA_JOB_NAME=" + st.Spec.Name, "ZORILLA_JOB_STATE=" + string(st.State),
		"ZORILLA_JOB_EXIT_CODE=" + strconv.Itoa(st.ExitCode), "ZORILLA_JOB_REASON=" + sanitize.OneLine(st.Reason),
	}
}

// Summary reports how a job ended, as text for a person, with the end of its output. That is
// indented: it is of whoever wrote the program, or of the machines that ran it, and programs
// such as mail take a line that begins with ~ for a command to run, and a dot for the end.
func Summary(st jobs.Status, output []byte) []byte {
	var b strings.Builder
	row := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", key, sanitize.OneLine(fmt.Sprintf(format, args...)))
	}
	row("job", "%s", st.ID.Short())
	if st.Spec.Name != "" {
		row("name", "%s", st.Spec.Name)
	}
	row("command", "%s", strings.Join(st.Spec.Command(), " "))
	row("state", "%s, exit code %d", st.State, st.ExitCode)
	if st.Reason != "" {
		row("reason", "%s", st.Reason)
	}
	row("submitted", "%s", st.Submitted.Format(time.RFC1123Z))
	if !st.Started.IsZero() {
		row("started", "%s, after %s", st.Started.Format(time.RFC1123Z), units.Span(st.Started.Sub(st.Submitted)))
		row("ended", "%s, ran for %s", st.Ended.Format(time.RFC1123Z), units.Span(st.Ended.Sub(st.Started)))
	} else {
		row("ended", "%s", st.Ended.Format(time.RFC1123Z))
	}
	if a := st.Array; a != nil {
		row("tasks", "%d of %d done, %d failed", a.Done, a.Tasks, a.Failed)
	}
	failed := 0
	for _, w := range st.Workers {
		if w.Exit == nil || w.Exit.Code == 0 {
			continue
		}
		if failed++; failed <= maxFailed {
			row("rank "+strconv.Itoa(w.Rank), "on %s ended with %d %s", jobs.Label(w.Name, w.Node), w.Exit.Code, w.Exit.Detail)
		}
	}
	if failed > maxFailed {
		row("and", "%d ranks more did not end with 0", failed-maxFailed)
	}
	if len(output) > 0 {
		fmt.Fprintf(&b, "\nThe end of what it wrote:\n\n  %s\n", strings.ReplaceAll(strings.TrimRight(string(output), "\n"), "\n", "\n  "))
	}
	return []byte(b.String())
}

// Tail keeps the last lines of what is written to it.
type Tail struct{ b []byte }

const (
	tailLines = 20
	// TailBytes is how much of what is written to a Tail can matter: the last of it.
	TailBytes = 8 << 10
)

// Write implements io.Writer.
func (t *Tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p[max(0, len(p)-TailBytes):]...)
	t.b = t.b[max(0, len(t.b)-TailBytes):]
	return len(p), nil
}

// Lines returns the last lines, made fit to be read on a terminal.
func (t *Tail) Lines() []byte {
	all := strings.Split(strings.TrimRight(string(t.b), "\n"), "\n")
	all = all[max(0, len(all)-tailLines):]
	for i, l := range all {
		all[i] = sanitize.OneLineOf(l, TailBytes)
	}
	return []byte(strings.Join(all, "\n"))
}
