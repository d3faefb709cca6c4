package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/described"
)

// Limits of the lists of jobs. Whatever there is, all of it is on one of their pages.
const (
	activeRows = 50
	endedRows  = 20
	maxSearch  = 64 // characters
	maxSkip    = 10_000_000
)

// stateChoices are what the list can be narrowed down to.
var stateChoices = []struct {
	value, text string
	states      []jobs.State
}{
	{"", "Any state", nil},
	{"active", "Active", []jobs.State{jobs.Staging, jobs.Running, jobs.Collecting}},
	{"waiting", "Waiting", []jobs.State{jobs.Pending}},
	{"completed", "Completed", []jobs.State{jobs.Completed}},
	{"failed", "Failed", []jobs.State{jobs.Failed, jobs.Timeout, jobs.NodeFail}},
	{"cancelled", "Cancelled", []jobs.State{jobs.Cancelled}},
}

// listQuery is what a request wants to see of the jobs.
type listQuery struct {
	text   string
	state  int // index of stateChoices
	active int // how many active ones come before the page
	ended  int // the same of those that have ended
}

// readQuery reads it from an address. What makes no sense is left out.
func readQuery(r *http.Request) (q listQuery) {
	form := r.URL.Query()
	q.text = strings.TrimSpace(form.Get("q"))
	if text := []rune(strings.ToValidUTF8(q.text, "")); len(text) > maxSearch {
		q.text = string(text[:maxSearch])
	} else {
		q.text = string(text)
	}
	for i, c := range stateChoices {
		if c.value == form.Get("state") {
			q.state = i
		}
	}
	for name, n := range map[string]*int{"active": &q.active, "ended": &q.ended} {
		if v, err := strconv.Atoi(form.Get(name)); err == nil && v > 0 && v <= maxSkip {
			*n = v
		}
	}
	return q
}

func (q listQuery) selection() jobs.Selection {
	return jobs.Selection{Text: q.text, States: stateChoices[q.state].states, Skip: q.ended, Limit: endedRows}
}

// narrow reports whether something may be left out.
func (q listQuery) narrow() bool { return q.text != "" || q.state != 0 }

// href is the address of the same list at other pages of it.
func (q listQuery) href(active, ended int, place string) string {
	form := url.Values{}
	if q.text != "" {
		form.Set("q", q.text)
	}
	if q.state != 0 {
		form.Set("state", stateChoices[q.state].value)
	}
	if active > 0 {
		form.Set("active", strconv.Itoa(active))
	}
	if ended > 0 {
		form.Set("ended", strconv.Itoa(ended))
	}
	return "?" + form.Encode() + "#" + place
}

// jobsView is the jobs as the first page lists them: a page of those that have not ended, all
// of which are on it unless there are very many, and a page of those that have.
type jobsView struct {
	Count  string   `json:"count"`
	Idle   bool     `json:"idle"` // no job at all
	None   bool     `json:"none"` // none that is searched for
	Note   string   `json:"note"`
	Active []jobRow `json:"active"`
	Pages  pager    `json:"pages"` // of the active ones
	Ended  []jobRow `json:"ended"`
	Sum    string   `json:"sum"` // how many have ended
	Last   string   `json:"last"`
	Tone   string   `json:"tone"` // of the one that ended last
	Past   pager    `json:"past"` // of those that have ended

	// Of the form, which stays as its user leaves it:
	Text    string        `json:"-"`
	Choices []stateChoice `json:"-"`
	Narrow  bool          `json:"-"`
	Open    bool          `json:"-"` // those that have ended are not folded away
}

type stateChoice struct {
	Value, Text string
	Chosen      bool
}

// pager leads to other pages of a list; "" = there is none.
type pager struct {
	Before string `json:"before"`
	After  string `json:"after"`
	Where  string `json:"where"`
}

type jobRow struct {
	Key     string `json:"key"`
	Short   string `json:"short"`
	Href    string `json:"href"`
	Name    string `json:"name"`
	Command string `json:"command"`
	State   string `json:"state"`
	Tone    string `json:"tone"`
	Reason  string `json:"reason"`
	Workers string `json:"workers"`
	Exit    string `json:"exit"`
	When    stamp  `json:"when"`
	Took    period `json:"took"`
}

func describeJobs(d *jobs.Selected, q listQuery, now time.Time) jobsView {
	v := jobsView{
		Count: countStates(d), Idle: d.Waiting+d.Running+d.Over == 0, None: len(d.Active)+d.Found == 0, Text: q.text, Narrow: q.narrow(),
		Open: q.narrow() || q.ended > 0 || len(d.Active) == 0, Sum: plural(d.Found, "job has", "jobs have") + " ended",
	}
	v.None = v.None && !v.Idle
	for i, c := range stateChoices {
		v.Choices = append(v.Choices, stateChoice{c.value, c.text, i == q.state})
	}
	from := min(q.active, len(d.Active))
	active := d.Active[from:]
	for i := range active[:min(len(active), activeRows)] {
		v.Active = append(v.Active, describeJob(&active[i], now))
	}
	for i := range d.Ended[:min(len(d.Ended), endedRows)] {
		v.Ended = append(v.Ended, describeJob(&d.Ended[i], now))
	}
	v.Pages = beside(from, len(v.Active), len(d.Active), activeRows, func(n int) string { return q.href(n, q.ended, "jobs") })
	v.Past = beside(q.ended, len(v.Ended), d.Found, endedRows, func(n int) string { return q.href(q.active, n, "ended") })
	if len(v.Ended) > 0 && q.ended == 0 {
		v.Last, v.Tone = v.Ended[0].Name+" "+strings.ToLower(v.Ended[0].State), v.Ended[0].Tone
	}
	return v
}

// beside leads from a page of a list to those beside it.
func beside(from, shown, all, size int, href func(int) string) (p pager) {
	if from > 0 {
		p.Before = href(max(0, from-size))
	}
	if from+shown < all && shown > 0 {
		p.After = href(from + shown)
	}
	if p.Before != "" || p.After != "" {
		p.Where = fmt.Sprintf("%s to %s of %s", count(int64(min(from+1, all))), count(int64(from+shown)), count(int64(all)))
	}
	return p
}

// countStates sums a list up.
func countStates(d *jobs.Selected) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{d.Running, "active"}, {d.Waiting, "waiting"}, {d.Over, "ended"}} {
		if p.n > 0 {
			parts = append(parts, count(int64(p.n))+" "+p.what)
		}
	}
	return strings.Join(parts, ", ")
}

func describeJob(st *jobs.Summary, now time.Time) jobRow {
	spec := jobs.Spec{Name: st.Name, Args: st.Args}
	v := jobRow{
		Key: label(string(st.ID), nameLimit), Short: label(st.ID.Short(), nameLimit),
		Href: "/jobs/" + label(string(st.ID), nameLimit), Name: jobName(&spec), Command: command(&spec, 120),
		State: stateName(st.State), Tone: stateTone(st.State), Reason: label(st.Reason, textLimit), Workers: progress(st),
		When: since(cmp.Or(st.Ended, st.Submitted), now), Took: between(st.Started, st.Ended, now),
	}
	if a := st.Array; a != nil {
		v.Workers = fmt.Sprintf("%d/%d tasks", a.Done, a.Tasks)
	}
	if v.Command == v.Name {
		v.Command = ""
	}
	if st.State.Final() && st.State != jobs.Completed {
		v.Exit = "exit " + strconv.Itoa(st.ExitCode)
	}
	return v
}

// maxQueueRows bounds the queue on the page; zorilla ps --queue lists all.
const maxQueueRows = 50

// queueRow is a job, of any node, that waits for room at this one.
type queueRow struct {
	Key      string `json:"key"`
	Short    string `json:"short"`
	Href     string `json:"href"`
	Wants    string `json:"wants"`
	Priority string `json:"priority"` // "" if it is the usual one
	Reason   string `json:"reason"`
	When     stamp  `json:"when"`
}

// describeQueue reports the first ones in order, and how many more there are.
func describeQueue(list []jobs.Waiting, now time.Time) (rows []queueRow, note string) {
	for i := range list[:min(len(list), maxQueueRows)] {
		w := &list[i]
		id := label(string(w.Job), nameLimit)
		row := queueRow{
			Key: id, Short: label(w.Job.Short(), nameLimit), Href: "/jobs/" + id, When: since(w.Since, now),
			Reason: label(described.Waiting(w, time.UTC), textLimit),
			Wants:  plural(w.Wanted, "worker", "workers") + " of " + needs(w),
		}
		if w.Priority != 0 {
			row.Priority = fmt.Sprintf("priority %d", w.Priority)
		}
		rows = append(rows, row)
	}
	if more := len(list) - maxQueueRows; more > 0 {
		note = plural(more, "more job waits", "more jobs wait") + ": zorilla ps --queue lists all."
	}
	return rows, note
}

// needs reports what each worker takes.
func needs(w *jobs.Waiting) string {
	text := plural(w.Slots, "slot", "slots")
	if w.Memory > 0 {
		text += ", " + units.Bytes(w.Memory)
	}
	if w.Disk > 0 {
		text += ", " + units.Bytes(w.Disk) + " of disk"
	}
	if w.GPUs > 0 {
		text += ", " + plural(w.GPUs, "GPU", "GPUs")
	}
	return text
}
