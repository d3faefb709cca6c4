// Package selector finds the jobs that a command line names: by name, by state, by age.
package selector

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// Service is what is asked of a node.
type Service interface {
	Job(ctx context.Context, job string) (jobs.Status, error)
	Summaries(ctx context.Context, all bool) ([]jobs.Summary, error)
}

// random is how many characters a job's ID has before the "@": with all of them
// it wins over a name.
const random = len("k7f3q")

// Find returns a name that a node understands for the job that somebody means:
// an ID is as it was; else, if one job that the node knows has that name, or
// one of those that have not ended, it is the ID of that job. Of several that have ended it is the
// youngest, and the note says so. A name wins over
// the beginning of an ID that is shorter than all of its random characters. What
// nobody is called is returned as it was, for the node to say what is wrong.
func Find(ctx context.Context, s Service, ref string) (job, note string, err error) {
	if ref == "" || ref == "last" || len(ref) > random && ref[random] == '@' {
		return ref, "", nil
	}
	if len(ref) >= random && jobs.ID(ref[:random]).At(anyNode).Valid() {
		if st, err := s.Job(ctx, ref); err == nil {
			return string(st.ID), "", nil
		}
	}
	list, err := s.Summaries(ctx, false)
	if err != nil {
		return "", "", err
	}
	list = Called(list, ref)
	active := Active(list)
	if len(active) > 0 {
		list = active
	}
	switch {
	case len(list) == 0:
		return ref, "", nil
	case len(list) == 1:
		return string(list[0].ID), "", nil
	case len(active) == 0:
		last := slices.MaxFunc(list, func(a, b jobs.Summary) int { return a.Submitted.Compare(b.Submitted) })
		return string(last.ID), fmt.Sprintf("%d jobs that have ended are called %q: the last one is meant, %s", len(list), ref, last.ID.Short()), nil
	}
	return "", "", fmt.Errorf("job %q is %w: %s: write the ID of one", ref, api.ErrAmbiguous, listNamesakes(list))
}

// anyNode makes a whole ID of random characters.
var anyNode = vicinity.ID("z" + strings.Repeat("a", 26))

// Called returns the jobs that have the name.
func Called(list []jobs.Summary, name string) []jobs.Summary {
	return only(list, func(st jobs.Summary) bool { return st.Name == name })
}

// Active returns the jobs that have not ended.
func Active(list []jobs.Summary) []jobs.Summary {
	return only(list, func(st jobs.Summary) bool { return !st.State.Final() })
}

// From returns the jobs that were submitted at the node.
func From(list []jobs.Summary, origin vicinity.ID) []jobs.Summary {
	return only(list, func(st jobs.Summary) bool { return st.Origin == origin })
}

func only(list []jobs.Summary, good func(jobs.Summary) bool) []jobs.Summary {
	return slices.DeleteFunc(slices.Clone(list), func(st jobs.Summary) bool { return !good(st) })
}

// maxListed is how many jobs an error names.
const maxListed = 8

// listNamesakes lists jobs that have the same name.
func listNamesakes(list []jobs.Summary) string {
	text := fmt.Sprintf("%d jobs are called so:", len(list))
	for i, id := range jobs.DistinctOf(list, func(st jobs.Summary) jobs.ID { return st.ID })[:min(len(list), maxListed)] {
		text += fmt.Sprintf(" %s (%s),", id, list[i].State)
	}
	text = strings.TrimSuffix(text, ",")
	if more := len(list) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
