package selector

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"zorilla/jobs"
)

// Recent is how many of the jobs that have ended are listed if nobody asks for more.
const Recent = 10

// Selection says which jobs of a listing are wanted. Its zero value is those that
// have not ended.
type Selection struct {
	States []jobs.State // nil = any
	Name   string       // a pattern of path.Match; "" = any
	Since  time.Time    // submitted then or later
	Ended  int          // of those that have ended the last so many; negative = all
	Limit  int          // the first so many of what is left; 0 = all
}

// Of returns where in the list the wanted jobs are, in its order.
func (s Selection) Of(list []jobs.Summary) (at []int) {
	var ended []int
	for i := range list {
		if s.wants(&list[i]) {
			at = append(at, i)
			if list[i].State.Final() {
				ended = append(ended, i)
			}
		}
	}
	if s.Ended >= 0 && len(ended) > s.Ended {
		slices.SortStableFunc(ended, func(a, b int) int { return over(&list[b]).Compare(over(&list[a])) })
		late := ended[:s.Ended]
		at = slices.DeleteFunc(at, func(i int) bool { return list[i].State.Final() && !slices.Contains(late, i) })
	}
	if s.Limit > 0 {
		at = at[:min(s.Limit, len(at))]
	}
	return at
}

func (s Selection) wants(st *jobs.Summary) bool {
	if s.Name != "" {
		if ok, err := path.Match(s.Name, st.Name); err != nil || !ok && st.Name != s.Name {
			return false
		}
	}
	return (s.States == nil || slices.Contains(s.States, st.State)) && !st.Submitted.Before(s.Since)
}

// over is when a job ended, as far as that is known.
func over(st *jobs.Summary) time.Time {
	if st.Ended.IsZero() {
		return st.Submitted
	}
	return st.Ended
}

// allStates are the states of jobs as people write them.
var allStates = []jobs.State{jobs.Pending, jobs.Staging, jobs.Running, jobs.Collecting,
	jobs.Completed, jobs.Failed, jobs.Cancelled, jobs.Timeout, jobs.NodeFail}

// ParseStates reads states with commas between them; "active" and "ended" are
// several.
func ParseStates(text string) (states []jobs.State, err error) {
	for _, word := range strings.Split(text, ",") {
		n := len(states)
		for _, s := range allStates {
			if strings.EqualFold(word, string(s)) || strings.EqualFold(word, "active") && !s.Final() || strings.EqualFold(word, "ended") && s.Final() {
				states = append(states, s)
			}
		}
		if len(states) == n {
			return nil, fmt.Errorf("%q is no state of a job: want active, ended, or some of %s", word, strings.Join(StateWords()[2:], ","))
		}
	}
	return states, nil
}

// StateWords are what ParseStates understands: first the two that are several states.
func StateWords() []string {
	words := []string{"active", "ended"}
	for _, s := range allStates {
		words = append(words, strings.ToLower(string(s)))
	}
	return words
}

// Words splits a list of words with commas between them, which have to be some of
// those that there are.
func Words(text string, known []string) ([]string, error) {
	words := strings.Split(text, ",")
	for i, w := range words {
		words[i] = strings.ToLower(strings.TrimSpace(w))
		if !slices.Contains(known, words[i]) {
			return nil, fmt.Errorf("%q is no column: want some of %s", cmp.Or(w, text), strings.Join(known, ","))
		}
	}
	return words, nil
}
