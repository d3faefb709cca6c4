package primary

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/record"
	"zorilla/vicinity"
)

// A rank that a user moves is stopped where it is, and starts again elsewhere once that has ended it, so that
// there are never two of it. Only its end there is written down: if the origin dies before it has heard of that,
// the rank runs on, or is found to have been stopped, which nothing else is the reason for, and goes on elsewhere.

// moves are the ranks that are being stopped, and where they are to go; "" = anywhere else.
type moves map[jobs.RankAttempt]vicinity.ID

// mayMove reports why a rank cannot be moved, or whether that is under way, between two nodes. One that still waits
// may go to another node than it was to, also back to where it was.
func mayMove(r *record.Record, m jobs.Move) (under bool, err error) {
	job := r.ID.Short()
	switch {
	case r.State.Final():
		return false, fmt.Errorf("%w: job %s has ended (%s)", jobs.ErrNotRunning, job, r.State)
	case m.Rank >= r.Spec.Max:
		return false, fmt.Errorf("%w: rank %d: job %s has ranks 0 to %d", jobs.ErrRange, m.Rank, job, r.Spec.Max-1)
	case !r.Spec.Movable(m.Rank):
		return false, fmt.Errorf("%w: job %s %s", jobs.ErrRefused, job, unmovable(&r.Spec, m.Rank))
	case r.Closing():
		return false, fmt.Errorf("%w: job %s is ending", jobs.ErrRefused, job)
	}
	k, what := &r.Ranks[m.Rank], ""
	switch {
	case k.GivenBack:
		what = "was given back"
	case k.State == jobs.WorkerWanted && k.Attempt == 0:
		what = "has not started"
	case k.State == jobs.WorkerRunning:
		return false, nil
	case k.State == jobs.WorkerEnded:
		what = "has ended"
	case k.Left != "" && (m.To == "" || m.To == k.Former):
		return true, nil
	case k.Left != "" && k.State == jobs.WorkerWanted:
		return false, nil
	case k.State == jobs.WorkerPreparing, k.State == jobs.WorkerReady:
		what = "is being prepared at " + jobs.Label(k.Name, k.Node)
	default:
		what = "waits for a node already"
	}
	return false, fmt.Errorf("%w: rank %d of job %s %s", jobs.ErrNotRunning, m.Rank, job, what)
}

// unmovable says why a rank of a job cannot go on elsewhere by itself.
func unmovable(spec *jobs.Spec, rank int) string {
	switch {
	case spec.Array != nil:
		return "is an array, whose tasks begin anew at other nodes: 'zorilla drain --now' at a node has them do that"
	case spec.Replicas > 1:
		return "has copies of its ranks (--replicas), and none of them is replaced once it has started"
	case spec.Restarts(rank) == groups.RestartGroup:
		return fmt.Sprintf("starts all of the group of rank %d again, none alone: 'zorilla drain --now' at its node has that done elsewhere", rank)
	}
	return "starts again as a whole, none of its ranks alone: 'zorilla drain --now' at a node has that done elsewhere, if it has --retries"
}

// mayMoveTo reports why a rank cannot go to a node, as far as that is known of it.
func mayMoveTo(r *record.Record, m jobs.Move, about vicinity.Member, member bool) error {
	spec, k := &r.Spec, &r.Ranks[m.Rank]
	group, _ := spec.GroupOf(m.Rank)
	why := ""
	switch {
	case m.To == k.Node:
		why = "is where it runs"
	case !member:
		return fmt.Errorf("%w: node %s is no member that the job's node knows", jobs.ErrRefused, m.To.Short())
	case !spec.Suits(group, about):
		why = "does not suit it: what it needs, or --where"
	case spec.Single() && slices.Contains(r.Nodes(), m.To):
		why = "has a rank of the job, which wants one at each node"
	default:
		return nil
	}
	return fmt.Errorf("%w: rank %d: node %s %s", jobs.ErrRefused, m.Rank, jobs.Label(about.Name, m.To), why)
}

// ranks lists them in order.
func (m moves) ranks() []jobs.RankAttempt {
	return slices.SortedFunc(maps.Keys(m), func(a, b jobs.RankAttempt) int { return a.Rank - b.Rank })
}

// maxLeaving bounds how many ranks are named that are being stopped.
const maxLeaving = 3

// text names a rank that is being stopped to go on elsewhere, or is "".
func (m moves) text(r *record.Record) string {
	var parts []string
	for _, ra := range m.ranks() {
		if k := &r.Ranks[ra.Rank]; r.Owns(ra) && k.State == jobs.WorkerRunning && len(parts) < maxLeaving {
			parts = append(parts, fmt.Sprintf("%s leaves %s", r.Spec.Who(ra.Rank), jobs.Label(k.Name, k.Node)))
		}
	}
	return strings.Join(parts, "; ")
}
