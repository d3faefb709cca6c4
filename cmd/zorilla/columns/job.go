package columns

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
)

// Title is the name of a job, or else its command.
func Title(name string, args []string) string {
	if name != "" || len(args) == 0 {
		return name
	}
	return strings.Join(append([]string{path.Base(args[0])}, args[1:]...), " ")
}

// Workers reports how many workers a job has and wants: "6", "3 of 6", "3 of 2-16".
func Workers(st jobs.Summary) string {
	if st.Array != nil {
		return fmt.Sprintf("%d/%d tasks", st.Array.Done, st.Array.Tasks)
	}
	want := strconv.Itoa(st.Wanted)
	if !st.Rigid {
		want = fmt.Sprintf("%d-%d", st.Min, st.Max)
	}
	have := st.Count.All - st.Count.Stuck
	if st.Brief || st.Rigid && (have == st.Wanted || st.State.Final()) {
		return want
	}
	return fmt.Sprintf("%d of %s", have, want)
}

// Exit is the exit code of a job that has ended.
func Exit(st jobs.Summary) string {
	if !st.State.Final() {
		return None
	}
	return strconv.Itoa(st.ExitCode)
}

// Age reports how long ago a job was submitted.
func Age(st jobs.Summary, now time.Time) string {
	if st.Submitted.IsZero() { // the journal lost it
		return None
	}
	return units.Span(now.Sub(st.Submitted))
}

// Kept reports how much is kept of the results of a job at its origin.
func Kept(st jobs.Summary) string {
	switch {
	case !st.Forgotten.IsZero():
		return "forgotten"
	case st.LastKnown:
		return None
	}
	return units.Bytes(st.Size)
}

// Why reports why a job is as it is; "" = nothing is to be said.
func Why(st jobs.Summary) string {
	reason := st.Reason
	if reason == "" && st.Damage != "" {
		reason = "damaged: " + st.Damage
	}
	if st.LastKnown {
		reason = strings.TrimSuffix("last known: "+reason, ": ")
	}
	return reason
}
