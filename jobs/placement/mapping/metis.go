package mapping

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A graph is bounded, so that a file of others costs little.
const (
	MaxTasks  = 100_000
	MaxEdges  = 2_000_000
	maxWeight = 1_000_000_000 // sums of weights stay exact
	maxLine   = 4 << 20       // bytes: a task that is everybody's neighbour has less than half
	maxBytes  = 128 << 20     // a graph of MaxEdges with the largest weights has less
)

// ReadMETIS reads a graph in the format of METIS (its manual, section 4.1.1): a line "TASKS EDGES [FMT]", then
// one line for each task, from 1, with its neighbours, each edge at both of its ends. FMT 001 has the
// weight of the edge after each neighbour, 010 the cost of the task before them, 011 both; 000 neither, and all are 1.
// Lines that begin with % are comments; an empty line is a task without neighbours. Weights are whole, from 1,
// costs from 0. An error is one line, and names that of the file.
func ReadMETIS(r io.Reader) (*Graph, error) {
	file := &io.LimitedReader{R: r, N: maxBytes + 1}
	m := &metis{Scanner: bufio.NewScanner(file), left: file}
	m.Buffer(make([]byte, 0, 64<<10), maxLine)
	if err := m.header(); err != nil {
		return nil, err
	}
	for i := range m.tasks {
		if !m.next() {
			return nil, m.ended(fmt.Errorf("the header says %d tasks, the file has %d: a task without neighbours has an empty line", m.tasks, i))
		}
		if err := m.task(i); err != nil {
			return nil, fmt.Errorf("line %d: task %d: %w", m.line, i+1, err)
		}
	}
	for m.next() {
		if strings.TrimSpace(m.Text()) != "" {
			return nil, fmt.Errorf("line %d: %.40q is beyond the %d tasks that the header says", m.line, m.Text(), m.tasks)
		}
	}
	if err := m.ended(nil); err != nil {
		return nil, err
	}
	return m.whole()
}

// metis reads a file.
type metis struct {
	*bufio.Scanner
	left         *io.LimitedReader
	line         int // that was read last
	tasks, edges int // as the header says
	costs        bool
	weights      bool

	g     Graph
	lines []int // of each task
	ends  int   // of edges, that were read
}

// next goes to the next line that is no comment.
func (m *metis) next() bool {
	for m.Scan() {
		m.line++
		if !strings.HasPrefix(strings.TrimLeft(m.Text(), " \t"), "%") {
			return true
		}
	}
	return false
}

// ended returns why there is no line more, or what is wrong if the file has ended.
func (m *metis) ended(wrong error) error {
	switch err := m.Err(); {
	case m.left.N <= 0:
		return fmt.Errorf("the file is larger than %d MiB, more than any graph of %d edges: is it one?", maxBytes>>20, MaxEdges)
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d: longer than %d MiB", m.line+1, maxLine>>20)
	case err != nil:
		return fmt.Errorf("line %d: %w", m.line+1, err)
	}
	return wrong
}

func (m *metis) header() error {
	if !m.next() {
		return m.ended(errors.New("the file is empty: want a line TASKS EDGES [FMT]"))
	}
	fields := strings.Fields(m.Text())
	if len(fields) < 2 || len(fields) > 4 {
		return fmt.Errorf("line %d: %.40q: want TASKS EDGES [FMT]", m.line, m.Text())
	}
	for i, to := range []*int{&m.tasks, &m.edges} {
		most := []int{MaxTasks, MaxEdges}[i]
		n, err := strconv.Atoi(fields[i])
		if err != nil || n < 0 || n > most {
			return fmt.Errorf("line %d: %.20q %s: want 0 to %d", m.line, fields[i], []string{"tasks", "edges"}[i], most)
		}
		*to = n
	}
	if len(fields) > 2 {
		switch code := strings.TrimLeft(fields[2], "0"); {
		case len(fields[2]) > 3:
			return m.format(fields[2])
		case code == "": // neither
		case code == "1":
			m.weights = true
		case code == "10":
			m.costs = true
		case code == "11":
			m.weights, m.costs = true, true
		default:
			return m.format(fields[2])
		}
	}
	if len(fields) == 4 && fields[3] != "1" {
		return fmt.Errorf("line %d: %.20q weights of a task: only one is read, its cost", m.line, fields[3])
	}
	return nil
}

func (m *metis) format(text string) error {
	return fmt.Errorf("line %d: the format %.20q: want 000, 001 (edges have weights), 010 (tasks have costs) or 011 (both)", m.line, text)
}

// task reads the line of a task.
func (m *metis) task(i int) error {
	cost, edges := 1.0, []Edge(nil)
	fields := strings.Fields(m.Text())
	if m.costs {
		if len(fields) == 0 {
			return errors.New("has no cost, which the header says")
		}
		n, err := whole(fields[0], 0, maxWeight)
		if err != nil {
			return fmt.Errorf("the cost %w", err)
		}
		cost, fields = float64(n), fields[1:]
	}
	each := 1
	if m.weights {
		each = 2
	}
	if len(fields)%each != 0 {
		return fmt.Errorf("its last neighbour, %.20q, has no weight, which the header says", fields[len(fields)-1])
	}
	if m.ends += len(fields) / each; m.ends > 2*m.edges {
		return fmt.Errorf("there are more than the %d edges that the header says: each stands at both of its ends, and counts once", m.edges)
	}
	for ; len(fields) > 0; fields = fields[each:] {
		to, err := whole(fields[0], 1, m.tasks)
		if err != nil {
			return fmt.Errorf("the neighbour %w", err)
		}
		if to == i+1 {
			return errors.New("is its own neighbour")
		}
		e := Edge{To: to - 1, Volume: 1}
		if m.weights {
			n, err := whole(fields[1], 1, maxWeight)
			if err != nil {
				return fmt.Errorf("the weight of the edge to %d, %w", to, err)
			}
			e.Volume = float64(n)
		}
		edges = append(edges, e)
	}
	slices.SortFunc(edges, func(a, b Edge) int { return cmp.Compare(a.To, b.To) })
	for k := range edges {
		if k > 0 && edges[k].To == edges[k-1].To {
			return fmt.Errorf("has the neighbour %d twice", edges[k].To+1)
		}
	}
	m.g.Cost, m.g.Edges, m.lines = append(m.g.Cost, cost), append(m.g.Edges, edges), append(m.lines, m.line)
	return nil
}

// whole returns a whole number in a range.
func whole(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%.20q: want a whole number, %d to %d", text, least, most)
	}
	return n, nil
}

// whole returns the graph if each edge stands at both of its ends, and their number is that of the header.
func (m *metis) whole() (*Graph, error) {
	seen := make([]int, m.tasks) // how many edges of each task were met from their other ends, the lowest first
	for i := range m.tasks {
		for _, e := range m.g.Edges[i] {
			back := m.g.Edges[e.To]
			if k := seen[e.To]; k == len(back) || back[k].To > i {
				return nil, fmt.Errorf("line %d: task %d has the neighbour %d, which does not have it in line %d", m.lines[i], i+1, e.To+1, m.lines[e.To])
			} else if back[k].To < i {
				return nil, fmt.Errorf("line %d: task %d has the neighbour %d, which does not have it in line %d",
					m.lines[e.To], e.To+1, back[k].To+1, m.lines[back[k].To])
			} else if back[k].Volume != e.Volume {
				return nil, fmt.Errorf("line %d: task %d gives its edge to %d the weight %v, and line %d has %v",
					m.lines[i], i+1, e.To+1, e.Volume, m.lines[e.To], back[k].Volume)
			}
			seen[e.To]++
		}
	}
	if m.ends != 2*m.edges {
		return nil, fmt.Errorf("the header says %d edges, the file has %d: each stands at both of its ends, and counts once", m.edges, m.ends/2)
	}
	return &m.g, nil
}

// WriteMETIS writes a graph as ReadMETIS reads it. Costs and weights must be whole.
func WriteMETIS(w io.Writer, g *Graph) error {
	if err := g.Check(); err != nil {
		return err
	}
	ends, costs, weights := 0, false, false
	for i, cost := range g.Cost {
		if cost != math.Trunc(cost) || cost > maxWeight {
			return fmt.Errorf("task %d costs %v: the format has whole numbers to %d", i, cost, maxWeight)
		}
		costs = costs || cost != 1
		for _, e := range g.Edges[i] {
			if e.Volume != math.Trunc(e.Volume) || e.Volume > maxWeight {
				return fmt.Errorf("tasks %d and %d tell each other %v: the format has whole numbers to %d", i, e.To, e.Volume, maxWeight)
			}
			weights = weights || e.Volume != 1
			ends++
		}
	}
	if len(g.Cost) > MaxTasks || ends/2 > MaxEdges {
		return fmt.Errorf("%d tasks and %d edges: at most %d and %d are read again", len(g.Cost), ends/2, MaxTasks, MaxEdges)
	}
	out := bufio.NewWriter(w)
	digit := map[bool]byte{false: '0', true: '1'}
	fmt.Fprintf(out, "%d %d 0%c%c\n", len(g.Cost), ends/2, digit[costs], digit[weights])
	for i, cost := range g.Cost {
		var line []byte
		if costs {
			line = append(strconv.AppendInt(line, int64(cost), 10), ' ')
		}
		for _, e := range g.Edges[i] {
			line = append(strconv.AppendInt(line, int64(e.To)+1, 10), ' ')
			if weights {
				line = append(strconv.AppendInt(line, int64(e.Volume), 10), ' ')
			}
		}
		if len(line) > 0 {
			line = line[:len(line)-1]
		}
		out.Write(append(line, '\n'))
	}
	return out.Flush()
}
