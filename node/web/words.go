package web

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/described"
	"zorilla/node/api"
)

// Characters of names, and of longer texts, that are shown.
const (
	nameLimit = 40
	textLimit = 300
)

type counter struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func nodeName(n api.NodeInfo) string { return cmp.Or(label(n.Name, nameLimit), n.ID.Short()) }

func siteName(site string) string { return cmp.Or(label(site, nameLimit), "no site") }

func jobName(s *jobs.Spec) string {
	return cmp.Or(label(s.Name, nameLimit), label(command(s, nameLimit), nameLimit), "job")
}

// command writes a job's command as it could be typed.
func command(s *jobs.Spec, limit int) string {
	var b strings.Builder
	for i, a := range s.Command() {
		if i > 0 {
			b.WriteByte(' ')
		}
		if a == "" || strings.ContainsAny(a, " \t\n\"'\\$&|;<>()*?[]{}#~`") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		if b.WriteString(a); b.Len() > 4*limit {
			break
		}
	}
	return label(b.String(), limit)
}

func stateName(s jobs.State) string { return label(string(s), 20) }

// stateTone is the class of colour of a state; a state this node does not know
// gets a neutral one.
func stateTone(s jobs.State) string {
	switch s {
	case jobs.Pending, jobs.Staging, jobs.Running, jobs.Collecting, jobs.Completed, jobs.Failed, jobs.Cancelled, jobs.Timeout, jobs.NodeFail:
		return strings.ToLower(string(s))
	}
	return "cancelled"
}

// progress counts a job's workers: how many are where they should be by now,
// of how many there are or may be.
func progress(st *jobs.Summary) string {
	ended, active := st.Count.Ended, st.Count.Active
	all := max(st.Count.All, st.Min)
	switch {
	case st.State.Final() || st.State == jobs.Collecting:
		return fmt.Sprintf("%d/%d ended", ended, all)
	case st.Rigid || ended > 0:
		return fmt.Sprintf("%d/%d", active+ended, all)
	default:
		return fmt.Sprintf("%d of %d–%d", active, st.Min, st.Max)
	}
}

// groupOf is the cluster of a node, or its site as long as no cluster is found.
func groupOf(n api.NodeInfo) string { return cmp.Or(n.Cluster, n.Site) }

// attemptText says which attempt of its rank a worker is, where, what it began with, and what is kept of it.
func attemptText(spec *jobs.Spec, w *jobs.WorkerStatus) string {
	var parts []string
	if place := described.Place(spec, w); place != "" && spec.Clustered() {
		parts = append(parts, "cluster "+label(place, textLimit))
	}
	if w.Attempt > 1 {
		parts = append(parts, strings.TrimSuffix("attempt "+strconv.Itoa(w.Attempt)+", since "+label(w.Retried, textLimit), ", since "))
	}
	if w.Resumed > 0 {
		parts = append(parts, "from checkpoint "+strconv.Itoa(w.Resumed))
	}
	if c := w.Checkpoint; c != nil {
		parts = append(parts, fmt.Sprintf("checkpoint %d (%s) is at %s", c.Number, units.Bytes(c.Bytes), label(w.KeptAt(), textLimit)))
	}
	return strings.Join(parts, "; ")
}
