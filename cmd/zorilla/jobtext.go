package main

import (
	"fmt"
	"slices"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

// endLine says in one line how a job ended.
func endLine(st jobs.Status) string {
	line := fmt.Sprintf("job %s %s, exit code %d", st.ID.Short(), st.State, st.ExitCode)
	if st.Reason != "" {
		line += ": " + st.Reason
	}
	return line
}

// noticeText says that the programs of a job which is being cancelled have time, if they have.
func noticeText(st *jobs.Status) string {
	if _, notice := st.Spec.Notice(); notice > 0 && st.Spec.Array == nil {
		return fmt.Sprintf(": its programs have up to %v from now (--signal)", notice)
	}
	return ""
}

// running reports how many workers run.
func running(st jobs.Status) int {
	n := 0
	for _, w := range st.Workers {
		if w.State == jobs.WorkerRunning {
			n++
		}
	}
	return n
}

// tally sums up the tasks of an array: "980/1000 done, 3 failed, 8 running".
func tally(a *jobs.ArrayStatus) string {
	s := fmt.Sprintf("%d/%d done", a.Done, a.Tasks)
	if a.Failed > 0 {
		s += fmt.Sprintf(", %d failed", a.Failed)
	}
	if a.Running > 0 {
		s += fmt.Sprintf(", %d running", a.Running)
	}
	return s
}

func nodeName(id, name string) string {
	switch {
	case id == "":
		return "-"
	case name == "":
		return id
	}
	return fmt.Sprintf("%s (%s)", name, id)
}

// hasTaskFiles reports whether a job's tasks may have left files.
func hasTaskFiles(st jobs.Status) bool {
	return st.Array != nil && st.Array.Done > 0 && len(st.Spec.Outputs) > 0
}

// hasOutput returns an error if the job will never have output of the rank, or
// of the task of an array.
func hasOutput(st jobs.Status, rank int) error {
	if st.Spec.Array == nil {
		return hasRank(st, rank)
	}
	numbers := work.NumberTasks(st.Spec.Array.Tasks)
	if _, ok := numbers.Place(rank); !ok && rank >= 0 {
		return fmt.Errorf("job %s has no task %d", st.ID.Short(), rank)
	}
	return nil
}

// hasRank returns an error if the job will never have the rank.
func hasRank(st jobs.Status, rank int) error {
	if rank >= st.Spec.Max {
		return fmt.Errorf("job %s has no rank %d", st.ID.Short(), rank)
	}
	return nil
}

// onlyRank leaves out what is about other ranks, if rank is not -1.
func onlyRank(st jobs.Status, rank int) (jobs.Status, error) {
	if rank < 0 {
		return st, nil
	}
	if st.Spec.Array != nil {
		return st, fmt.Errorf("job %s has tasks, not ranks: 'zorilla tasks --from %d --limit 1 %s' shows one", st.ID.Short(), rank, st.ID.Short())
	}
	st.Workers = slices.DeleteFunc(slices.Clone(st.Workers), func(w jobs.WorkerStatus) bool { return w.Rank != rank })
	st.Outputs = slices.DeleteFunc(slices.Clone(st.Outputs), func(o jobs.RankOutput) bool { return o.Rank != rank })
	if len(st.Workers) == 0 {
		return st, fmt.Errorf("job %s has no rank %d", st.ID.Short(), rank)
	}
	return st, nil
}
