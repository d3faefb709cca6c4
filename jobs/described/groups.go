// Package described writes for people what a job with groups or a task graph wants and has, for the command line
// and the page.
package described

import (
	"fmt"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/placement/topology"
	"zorilla/vicinity"
)

// Fact is a line of a list of facts.
type Fact struct{ Key, Value string }

// Groups describes the groups of a job and its links, a fact each; none of a job without groups.
func Groups(st *jobs.Status) (list []Fact) {
	for i := range st.Spec.Groups {
		list = append(list, Fact{"group " + st.Spec.Groups[i].Name, group(st, i)})
	}
	for i := range st.Spec.Links {
		list = append(list, Fact{"link " + st.Spec.Links[i].Name, link(st, &st.Spec.Links[i])})
	}
	return list
}

func group(st *jobs.Status, i int) string {
	g := &st.Spec.Groups[i]
	asked := jobs.GroupStatus{Min: g.Min, Max: g.Max}
	if i < len(st.Groups) {
		asked = st.Groups[i]
	}
	wants := workers(asked.Min, asked.Max)
	if asked.Workers > 0 && asked.Min != asked.Max {
		wants = fmt.Sprintf("%d of %s", asked.Workers, wants)
	}
	parts := []string{wants}
	needs := st.Spec.NeedsOf(i)
	parts = append(parts, units.Count(needs.Slots, "slot", "slots")+" each")
	if needs.Memory > 0 {
		parts = append(parts, units.Bytes(needs.Memory)+" each")
	}
	if needs.GPUs > 0 {
		parts = append(parts, units.Count(needs.GPUs, "GPU", "GPUs")+" each")
	}
	switch {
	case g.Clusters == 1:
		parts = append(parts, "in one cluster")
	case g.Clusters > 1:
		parts = append(parts, fmt.Sprintf("in at most %d clusters", g.Clusters))
	}
	if g.Prefer > 0 {
		parts[len(parts)-1] += fmt.Sprintf(" if that is possible within %v", time.Duration(g.Prefer))
	}
	if g.Homogeneous != "" {
		parts = append(parts, "with alike "+g.Homogeneous)
	}
	switch g.Restart {
	case groups.RestartRank:
		parts = append(parts, "a lost rank starts again by itself")
	case groups.RestartGroup:
		parts = append(parts, "a lost rank starts the group again")
	}
	if n := nodes(st, i); n > 0 {
		parts = append(parts, "on "+units.Count(n, "node", "nodes"))
	}
	return strings.Join(parts, ", ")
}

func workers(least, most int) string {
	if least == most {
		return units.Count(least, "worker", "workers")
	}
	return fmt.Sprintf("%d to %d workers", least, most)
}

// nodes counts those that a group has workers on.
func nodes(st *jobs.Status, group int) int {
	seen := map[vicinity.ID]bool{}
	for _, w := range st.Workers {
		if g, _ := st.Spec.GroupOf(w.Rank); g == group && w.Node != "" {
			seen[w.Node] = true
		}
	}
	return len(seen)
}

func link(st *jobs.Status, l *groups.Link) string {
	parts := []string{strings.Join(l.Groups, ", ")}
	switch low, high := time.Duration(l.MinRTT), time.Duration(l.MaxRTT); {
	case high == topology.OneHost:
		parts = append(parts, "on one node")
	case low > 0 || high > 0:
		parts = append(parts, bounds(low > 0, high > 0, low.String(), high.String())+" apart")
	}
	if b := l.Bandwidth; b.Min > 0 || b.Max > 0 {
		parts = append(parts, bounds(b.Min > 0, b.Max > 0, units.Bandwidth(b.Min), units.Bandwidth(b.Max)))
	}
	text := strings.Join(parts, ": ")
	if st.Worst == nil {
		return text
	}
	for i := range st.Worst.Links {
		if p := &st.Worst.Links[i]; p.Link == l.Name {
			text += "; worst pair " + p.WorstPair.String()
		}
	}
	return text
}

func bounds(from, to bool, low, high string) string {
	switch {
	case !from:
		return "at most " + high
	case !to:
		return "at least " + low
	}
	return low + " to " + high
}

// Place says in which cluster the node of a worker is, and why it is there if the worker was lost elsewhere; "" = neither
// is known.
func Place(spec *jobs.Spec, w *jobs.WorkerStatus) string {
	if w.Replaced == nil {
		return w.Cluster
	}
	why, from := "", w.Replaced.From.Short()
	switch {
	case w.Replaced.From == w.Node:
		why = "the node that it left"
	case w.Replaced.Same:
		why = "the same cluster as " + from + ", which it left"
	case w.Replaced.RTT <= 0:
		why = "any free node"
	case spec.Mapped():
		why = fmt.Sprintf("the best cluster, %v from %s", rounded(w.Replaced.RTT), from)
	default:
		why = fmt.Sprintf("the nearest node, %v from %s", rounded(w.Replaced.RTT), from)
	}
	return strings.TrimPrefix(w.Cluster+": "+why, ": ")
}

// rounded is a round trip without digits that mean nothing.
func rounded(d codec.Duration) time.Duration { return time.Duration(d).Round(100 * time.Microsecond) }

// Rank names a rank of a job: its number, and its group and number in that, or its task.
func Rank(spec *jobs.Spec, rank int) string {
	group, number := spec.GroupOf(rank)
	if task := spec.TaskName(rank); task != "" {
		return fmt.Sprintf("%d (%s)", rank, task)
	}
	if group < 0 {
		return fmt.Sprint(rank)
	}
	return fmt.Sprintf("%d (%s %d)", rank, spec.Groups[group].Name, number)
}
