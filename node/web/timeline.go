package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/vicinity"
)

// Limits of the picture of who ran where.
const (
	timelineSpan   = time.Hour
	maxTimeJobs    = 40 // half of them may have ended
	maxTimeNodes   = 60
	maxLanes       = 8 // jobs above each other at one node
	laneHeight     = 12
	timelineWidth  = 1000
	timelineLeast  = 3 // width of what was short
	timelineMargin = 4
)

// timelineView is the last hour of jobs, node by node.
type timelineView struct {
	Build string    `json:"build"`
	Now   string    `json:"now"`
	None  bool      `json:"none"`
	Rows  []timeRow `json:"rows"`
	Jobs  string    `json:"jobs"`
	Note  string    `json:"note"`
}

// timeRow is one node.
type timeRow struct {
	Key    string    `json:"key"`
	Name   string    `json:"name"`
	Href   string    `json:"href"`
	Height int       `json:"height"`
	Box    string    `json:"box"`
	Bars   []timeBar `json:"bars"`
	More   string    `json:"more"` // jobs that found no place
}

// timeBar is a job at one node.
type timeBar struct {
	Key   string  `json:"key"`
	Href  string  `json:"href"`
	Title string  `json:"title"`
	Tone  string  `json:"tone"`
	X     float64 `json:"x"`
	Width float64 `json:"width"`
	Y     int     `json:"y"`
}

// blankTimeline are the empty rows that the browser copies.
var blankTimeline = struct {
	Row timeRow
	Bar timeBar
}{Row: timeRow{Box: "0 0 1 1"}}

// stay is how long a job had workers at a node.
type stay struct {
	st       *jobs.Status
	from, to time.Time
	ranks    int
}

// ranWhere returns the picture of a moment ago, or, if it is to be of now and something has
// changed, waits for the next look.
func (s *views) ranWhere(ctx context.Context, now bool) (timelineView, error) {
	for came := time.Now(); ; {
		news := s.service.Changes() // before the look, so that no change is missed
		old, due, ok := s.hour.recent(liveLook, news, came)
		switch {
		case !ok:
			from := time.Now()
			v, err := s.timeline(ctx, from)
			s.hour.done(v, from, news, err == nil && ctx.Err() == nil) // else jobs are missing that were not asked for
			return v, err
		case old == nil:
			if !sleep(ctx, due) {
				return timelineView{}, ctx.Err()
			}
		case !now || due == 0 || !sleep(ctx, due):
			return old.(timelineView), nil
		}
	}
}

// timeline looks at the jobs that this node knows: those that are active, and those that
// ended last.
func (s *views) timeline(ctx context.Context, now time.Time) (timelineView, error) {
	list, err := s.service.Select(ctx, jobs.Selection{Limit: maxTimeJobs / 2})
	if err != nil {
		return timelineView{}, fmt.Errorf("ask for the jobs: %w", err)
	}
	v := timelineView{Build: s.build, Now: iso(now)}
	at, names := map[vicinity.ID][]stay{}, map[vicinity.ID]string{}
	shown := append(list.Active[:min(len(list.Active), maxTimeJobs/2)], list.Ended...)
	for i := range shown {
		st, err := s.service.Job(ctx, string(shown[i].ID))
		if err != nil || !st.Ended.IsZero() && now.Sub(st.Ended) > timelineSpan {
			continue // it was forgotten, its origin is away, or it is too long ago
		}
		for id, stay := range stays(&st, now, names) {
			at[id] = append(at[id], stay)
		}
	}
	for id, list := range at {
		v.Rows = append(v.Rows, drawStays(id, names[id], list, now))
	}
	slices.SortFunc(v.Rows, func(a, b timeRow) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Href, b.Href)) })
	if more := len(v.Rows) - maxTimeNodes; more > 0 {
		v.Rows, v.Note = v.Rows[:maxTimeNodes], plural(more, "more node is", "more nodes are")+" not shown. "
	}
	v.None = len(v.Rows) == 0
	v.Jobs = plural(len(shown), "job", "jobs")
	if left := list.Waiting + list.Running + list.Over - len(shown); left > 0 {
		v.Note += "The youngest active jobs, and those that ended last, are drawn."
	}
	return v, nil
}

// stays reports where a job had workers, and when, as far as that is known.
func stays(st *jobs.Status, now time.Time, names map[vicinity.ID]string) map[vicinity.ID]stay {
	out := map[vicinity.ID]stay{}
	for i := range st.Workers {
		w := &st.Workers[i]
		if !w.Node.Valid() || st.Started.IsZero() {
			continue
		}
		from, to := st.Started, cmp.Or(st.Ended, now)
		if w.Exit != nil {
			from, to = cmp.Or(w.Exit.Started, from), cmp.Or(w.Exit.Ended, to)
		}
		if to.Before(from) || now.Sub(to) > timelineSpan {
			continue
		}
		s, ok := out[w.Node]
		if !ok || from.Before(s.from) {
			s.from = from
		}
		if !ok || to.After(s.to) {
			s.to = to
		}
		s.st = st
		s.ranks++
		out[w.Node] = s
		names[w.Node] = cmp.Or(label(w.Name, nameLimit), w.Node.Short())
	}
	return out
}

// drawStays puts the jobs of a node beside each other, and those of one time above each other.
func drawStays(id vicinity.ID, name string, list []stay, now time.Time) timeRow {
	slices.SortFunc(list, func(a, b stay) int { return cmp.Or(a.from.Compare(b.from), cmp.Compare(a.st.ID, b.st.ID)) })
	row := timeRow{Key: string(id), Name: name, Href: "/nodes/" + string(id)}
	x := func(t time.Time) float64 {
		return timelineWidth * min(1, max(0, 1-float64(now.Sub(t))/float64(timelineSpan)))
	}
	var ends []float64 // of the last bar in each lane
	left := 0
	for _, s := range list {
		begin := min(x(s.from), timelineWidth-timelineLeast)
		end := max(x(s.to), begin+timelineLeast)
		lane := slices.IndexFunc(ends, func(e float64) bool { return e+1 <= begin })
		switch {
		case lane >= 0:
			ends[lane] = end
		case len(ends) < maxLanes:
			lane = len(ends)
			ends = append(ends, end)
		default:
			left++
			continue
		}
		row.Bars = append(row.Bars, timeBar{
			Key: label(string(s.st.ID), nameLimit), Href: "/jobs/" + label(string(s.st.ID), nameLimit),
			Tone: stateTone(s.st.State),
			X:    num(begin), Width: num(end - begin), Y: timelineMargin + lane*laneHeight,
			Title: fmt.Sprintf("%s · %s · %s · %s",
				jobName(&s.st.Spec), stateName(s.st.State), plural(s.ranks, "worker", "workers"), span(s.to.Sub(s.from))),
		})
	}
	row.Height = 2*timelineMargin + max(1, len(ends))*laneHeight
	row.Box = fmt.Sprintf("0 0 %d %d", timelineWidth, row.Height)
	if left > 0 {
		row.More = plural(left, "more job", "more jobs") + " at the same time"
	}
	return row
}

func (h *Handler) serveTimeline(w http.ResponseWriter, r *http.Request) {
	v, err := h.views.ranWhere(r.Context(), false)
	if err != nil {
		h.pages.fail(w, err)
		return
	}
	h.pages.render(w, http.StatusOK, "timeline", page{Title: "Who ran where", Script: "node.js", View: v, Blank: blankTimeline})
}

// timeline keeps that page as it is. A look asks for many jobs: it is not done at each change.
func (h *streams) timeline(w http.ResponseWriter, r *http.Request) {
	h.live(w, r, liveLook, func(ctx context.Context) (v, timeless any, err error) {
		now, err := h.views.ranWhere(ctx, true)
		then := now
		then.Now = ""
		return now, then, err
	})
}
