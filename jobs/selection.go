package jobs

import (
	"cmp"
	"slices"
	"strings"
)

// Selection says which jobs of a long list somebody wants to see.
type Selection struct {
	// Text is the beginning of an ID, or some of a name or command, in any case; "" = all.
	Text   string
	States []State // none = all

	// Of those that have ended, the last first:
	Skip  int // so many
	Limit int // at most so many after them
}

// Selected is a part of a list, and what the list has.
type Selected struct {
	Active []Summary // all that are wanted and have not ended, those with workers first, then the newest
	Ended  []Summary // some of those that have, the last first
	Found  int       // how many that have ended are wanted

	// Of all jobs, wanted or not:
	Waiting int
	Running int // those with workers
	Over    int
}

// Wants reports whether a job is one of those. Title is its name, and its command.
func (q *Selection) Wants(id ID, state State, title ...string) bool {
	if len(q.States) > 0 && !slices.Contains(q.States, state) {
		return false
	}
	if q.Text == "" {
		return true
	}
	text := strings.ToLower(q.Text)
	if strings.HasPrefix(string(id), text) {
		return true
	}
	return strings.Contains(strings.ToLower(strings.Join(title, " ")), text)
}

// WantsSummary is Wants.
func (q *Selection) WantsSummary(s *Summary) bool {
	return q.Wants(s.ID, s.State, append([]string{s.Name}, s.Args...)...)
}

// Add counts a job, and puts it where it belongs if it is wanted.
func (d *Selected) Add(q *Selection, s Summary) {
	wanted := q.WantsSummary(&s)
	switch {
	case s.State.Final():
		d.Over++
		if wanted {
			d.Found++
			d.Ended = append(d.Ended, s)
		}
		return
	case s.State == Pending:
		d.Waiting++
	default:
		d.Running++
	}
	if wanted {
		d.Active = append(d.Active, s)
	}
}

// Sort puts both lists in order.
func (d *Selected) Sort() {
	slices.SortFunc(d.Active, func(a, b Summary) int {
		if (a.State == Pending) != (b.State == Pending) {
			if a.State == Pending {
				return 1
			}
			return -1
		}
		return cmp.Or(b.Submitted.Compare(a.Submitted), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(d.Ended, func(a, b Summary) int {
		return cmp.Or(b.Ended.Compare(a.Ended), cmp.Compare(a.ID, b.ID))
	})
}
