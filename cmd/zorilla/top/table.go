package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"zorilla/cmd/zorilla/columns"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/usage"
)

// column is one of a list. Where there is no room for all, those that are worth least go.
type column struct {
	title string
	worth int
	least int // columns of the terminal; it is cut to that before another column goes
	most  int
	cell  func(*row) string
}

// stateTitle is the heading of states, which have colours.
const stateTitle = "STATE"

// maxMeasured is how many rows have a say in how wide columns are, beside those that are seen.
const maxMeasured = 200

// tableOf lays out the rows that are seen, below their headings. Columns are as wide as the
// first rows want them, too, so that they do not change where one scrolls.
func (s *screen) tableOf(cols []column, rows []row, l list) (lines []string) {
	texts := make([][]string, len(rows))
	widths := make([]int, len(cols))
	for j, c := range cols {
		widths[j] = len(c.title)
	}
	for i := range rows {
		if i >= maxMeasured && (i < l.first || i >= l.first+s.listRows()) {
			continue
		}
		for j, c := range cols {
			cell := columns.Clean(c.cell(&rows[i]))
			if cell == "" {
				cell = columns.None
			}
			texts[i] = append(texts[i], cell)
			widths[j] = min(max(widths[j], columns.Width(cell)), max(c.most, len(c.title)))
		}
	}
	fit(cols, widths, s.width-1)
	line := func(cell func(j int) string, plain bool) string {
		var b strings.Builder
		for j, w := range widths {
			if w == 0 {
				continue
			}
			text := columns.Cut(cell(j), w)
			blanks := strings.Repeat(" ", w-columns.Width(text))
			if cols[j].title == stateTitle && s.colour && !plain {
				text = columns.Paint(text)
			}
			b.WriteString("  " + text + blanks)
		}
		return strings.TrimRight(b.String()[1:], " ")
	}
	lines = append(lines, s.dim(line(func(j int) string { return cols[j].title }, true)))
	for i := l.first; i < min(len(rows), l.first+s.listRows()); i++ {
		text := line(func(j int) string { return texts[i][j] }, i == l.at)
		if i == l.at {
			text = s.reverse(text + strings.Repeat(" ", max(0, s.width-ansi.StringWidth(text))))
		}
		lines = append(lines, text)
	}
	return lines
}

// fit makes columns narrower, or leaves them out, until they have room.
func fit(cols []column, widths []int, room int) {
	total := func() (n int) {
		for _, w := range widths {
			if w > 0 {
				n += w + 2
			}
		}
		return n - 2
	}
	for {
		over := total() - room
		if over <= 0 {
			return
		}
		// First what can be cut is cut, from what is worth least.
		order := make([]int, 0, len(cols))
		for j := range cols {
			if widths[j] > 0 {
				order = append(order, j)
			}
		}
		if len(order) < 2 {
			return
		}
		slices.SortStableFunc(order, func(a, b int) int { return cols[a].worth - cols[b].worth })
		spare := 0
		for _, j := range order {
			spare += max(0, widths[j]-max(cols[j].least, len(cols[j].title)))
		}
		if spare < over {
			widths[order[0]] = 0
			continue
		}
		for _, j := range order {
			cut := min(over, max(0, widths[j]-max(cols[j].least, len(cols[j].title))))
			widths[j], over = widths[j]-cut, over-cut
		}
		return
	}
}

// bar draws a part of a whole.
func bar(part, whole, width int) string {
	full := 0
	if whole > 0 {
		full = max(0, min(width, part*width/whole))
	}
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// jobColumns are those of jobs.
func (s *screen) jobColumns() []column {
	now := s.now.at
	return []column{
		{"ID", 9, 11, 30, func(r *row) string { return r.id }},
		{"NAME", 8, 12, 40, func(r *row) string { return columns.Title(r.job.Name, r.job.Args) }},
		{stateTitle, 9, 10, 10, func(r *row) string { return string(r.job.State) }},
		{"WORKERS", 7, 13, 22, func(r *row) string { return columns.Workers(*r.job) }},
		{"PROGRESS", 6, 11, 11, func(r *row) string { return progress(r.job) }},
		{"TIME", 7, 8, 8, func(r *row) string { return ran(r.job, now) }},
		{"EXIT", 5, 4, 4, func(r *row) string { return columns.Exit(*r.job) }},
		{"AGE", 3, 4, 8, func(r *row) string { return columns.Age(*r.job, now) }},
		{"ORIGIN", 4, 5, 20, func(r *row) string { return s.nodeName(r.job) }},
		{"REASON", 2, 20, 300, func(r *row) string { return columns.Why(*r.job) }},
	}
}

// nodeName is what the origin of a job is called.
func (s *screen) nodeName(st *jobs.Summary) string {
	return cmp.Or(s.names[st.Origin], st.Origin.Short())
}

// progress reports how much of a job is done, as far as it has parts that end.
func progress(st *jobs.Summary) string {
	done, all := st.Count.Ended, max(st.Wanted, st.Count.All)
	if st.Array != nil {
		done, all = st.Array.Done, st.Array.Tasks
	}
	if st.State.Final() || all <= 0 || done == 0 && st.Array == nil {
		return ""
	}
	return fmt.Sprintf("%s %3d%%", bar(done, all, 6), max(0, min(100, done*100/all)))
}

// ran is how long a job has run, or, in brackets, waits.
func ran(st *jobs.Summary, now time.Time) string {
	switch {
	case st.Started.IsZero() && st.State.Final(), st.Submitted.IsZero():
		return ""
	case st.Started.IsZero():
		return "(" + units.Span(max(0, now.Sub(st.Submitted))) + ")"
	case !st.Ended.IsZero():
		return units.Span(max(0, st.Ended.Sub(st.Started)))
	}
	return units.Span(max(0, now.Sub(st.Started)))
}

// nodeColumns are those of nodes.
func (s *screen) nodeColumns() []column {
	return []column{
		{"NAME", 9, 10, 30, func(r *row) string { return r.node.Name }},
		{"ID", 8, 5, 8, func(r *row) string { return r.id }},
		{"SITE", 5, 6, 20, func(r *row) string { return r.node.Site }},
		{stateTitle, 7, 8, 8, func(r *row) string { return columns.State(r.node) }},
		{"BUSY", 9, 5, 11, func(r *row) string { return columns.Busy(r.node) }},
		{"", 4, 8, 8, func(r *row) string {
			if !r.node.Loaded() {
				return ""
			}
			return bar(r.node.Busy, r.node.Slots, 8)
		}},
		{"LOAD", 7, 5, 8, func(r *row) string {
			if r.node.Lately == nil {
				return ""
			}
			return fmt.Sprintf("%.2f", r.node.Lately.Load)
		}},
		{"MEMORY", 7, 11, 22, func(r *row) string { return memory(r.node) }},
		{"RTT", 6, 6, 9, func(r *row) string {
			if r.node.Self {
				return ""
			}
			return columns.RTT(time.Duration(r.node.RTT))
		}},
		{"GPUS", 2, 4, 4, func(r *row) string { return strconv.Itoa(r.node.GPUs) }},
		{"LAST HOUR", 3, 12, usage.Minutes, func(r *row) string { return hour(r.node) }},
		{"ADDRESS", 1, 10, 40, func(r *row) string { return strings.Join(r.node.Addrs, " ") }},
	}
}

// memory is how much of a machine's is in use.
func memory(n *api.NodeInfo) string {
	if n.Lately == nil || n.Lately.Free <= 0 || n.Lately.Free > n.Memory {
		return "? of " + units.Bytes(n.Memory)
	}
	used, all := units.Bytes(n.Memory-n.Lately.Free), units.Bytes(n.Memory)
	if number, unit, _ := strings.Cut(used, " "); strings.HasSuffix(all, " "+unit) {
		used = number
	}
	return used + " of " + all
}

// hour draws how busy a node was in each minute of the last hour, the newest at the right end.
func hour(n *api.NodeInfo) string {
	if !n.Lately.Sound() {
		return ""
	}
	shades := []rune(" ▁▂▃▄▅▆▇█")
	line := []rune(strings.Repeat("·", usage.Minutes))
	for i, b := range n.Lately.Busy {
		level := (int(b)*(len(shades)-1) + 199) / 200
		line[usage.Minutes-len(n.Lately.Busy)+i] = shades[min(level, len(shades)-1)]
	}
	return string(line)
}

// nodeDetail is what one line tells of a node.
func nodeDetail(n *api.NodeInfo) (parts []string) {
	if n.Why != "" {
		parts = append(parts, n.Why)
	}
	parts = append(parts, n.Platform, strings.Join(n.Addrs, " "))
	for _, name := range slices.Sorted(maps.Keys(n.Labels)) {
		parts = append(parts, name+"="+n.Labels[name])
	}
	return parts
}

// aboutNode is all that is known of a node, in lines.
func (s *screen) aboutNode(n *api.NodeInfo) (lines []string) {
	speeds := columns.Speeds(n.Speeds)
	for _, f := range [][2]string{
		{"id", string(n.ID)}, {"name", n.Name}, {"site", n.Site}, {"state", columns.StateAndCause(n)},
		{"slots busy", columns.Busy(n)}, {"gpus", n.GPUText()}, {"memory", memory(n)},
		{"clock", speeds[0]}, {"power", speeds[1]}, {"network", speeds[2]}, {"platform", n.Platform},
		{"addresses", strings.Join(n.Addrs, " ")}, {"cluster", n.Cluster}, {"enforces", strings.Join(n.Enforces, ", ")}, {"last hour", hour(n)},
	} {
		if f[1] != "" && f[1] != columns.None {
			lines = append(lines, fmt.Sprintf(" %-11s %s", f[0], columns.Clean(f[1])))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Labels)) {
		lines = append(lines, fmt.Sprintf(" %-11s %s", "label", columns.Clean(name+"="+n.Labels[name])))
	}
	return lines
}
