package mapping

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of a Listed: each status of its job has it.
const (
	MaxListedTasks = 4096
	MaxListedEdges = 32768
	maxTaskName    = 32
)

// Listed is a graph as a job has it, in little room: one by its name (Named), or a list. Rank r does task r.
type Listed struct {
	Name    string   `json:"name,omitempty"`
	Tasks   int      `json:"tasks,omitempty"`
	Names   []string `json:"names,omitempty"`   // of each task, as people call it (CheckTaskName); none = they have none
	Costs   []int64  `json:"costs,omitempty"`   // of each task; none = 1 each
	Edges   []int    `json:"edges,omitempty"`   // the two ends of each, the smaller first
	Volumes []int64  `json:"volumes,omitempty"` // of each edge; none = 1 each
}

// CheckTaskName returns what is wrong with the name of a task, "" = nothing.
func CheckTaskName(name string) string {
	if name == "" || len(name) > maxTaskName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || name[0] < 'a' {
		return fmt.Sprintf("want a small letter, and up to %d of a-z, 0-9 and - after it", maxTaskName-1)
	}
	return ""
}

// CheckWeight returns what is wrong with the cost of a task or the volume of an edge that a person gives, "" = nothing.
func CheckWeight(n int64) string {
	if n < 1 || n > maxWeight {
		return fmt.Sprintf("want a whole number, 1 to %d", maxWeight)
	}
	return ""
}

// List is a graph as a job has it. Its costs and volumes are whole numbers.
func List(m *Graph) *Listed {
	g := &Listed{Tasks: len(m.Cost)}
	for i, cost := range m.Cost {
		g.Costs = append(g.Costs, int64(cost))
		for _, e := range m.Edges[i] {
			if e.To > i {
				g.Edges, g.Volumes = append(g.Edges, i, e.To), append(g.Volumes, int64(e.Volume))
			}
		}
	}
	one := func(n int64) bool { return n != 1 }
	if !slices.ContainsFunc(g.Costs, one) {
		g.Costs = nil
	}
	if !slices.ContainsFunc(g.Volumes, one) {
		g.Volumes = nil
	}
	return g
}

// Graph returns the graph itself; an error says what is wrong with it.
func (g *Listed) Graph() (*Graph, error) {
	if g.Name != "" {
		m, err := Named(g.Name)
		switch {
		case err != nil:
			return nil, err
		case g.Tasks != 0 || len(g.Names)+len(g.Costs)+len(g.Edges)+len(g.Volumes) > 0:
			return nil, fmt.Errorf("graph %.40q has a name, and tasks or edges of its own: want one of them", g.Name)
		case len(m.Cost) > MaxListedTasks:
			return nil, tooLarge(len(m.Cost), 0)
		}
		return m, nil
	}
	edges := len(g.Edges) / 2
	switch {
	case g.Tasks < 1 || g.Tasks > MaxListedTasks || edges > MaxListedEdges:
		return nil, tooLarge(g.Tasks, edges)
	case len(g.Costs) != 0 && len(g.Costs) != g.Tasks, len(g.Edges)%2 != 0, len(g.Volumes) != 0 && len(g.Volumes) != edges:
		return nil, fmt.Errorf("graph of %d tasks and %d edges: costs of %d, volumes of %d", g.Tasks, edges, len(g.Costs), len(g.Volumes))
	case len(g.Names) != 0 && len(g.Names) != g.Tasks:
		return nil, fmt.Errorf("graph of %d tasks: names of %d", g.Tasks, len(g.Names))
	}
	named := make(map[string]bool, len(g.Names))
	for _, name := range g.Names {
		if text := CheckTaskName(name); text != "" {
			return nil, fmt.Errorf("task %.40q: %s", name, text)
		}
		if named[name] {
			return nil, fmt.Errorf("two tasks are called %s", name)
		}
		named[name] = true
	}
	m := NewGraph(g.Tasks)
	for i, cost := range g.Costs {
		m.Cost[i] = float64(cost)
	}
	for i := range edges {
		a, b, volume := g.Edges[2*i], g.Edges[2*i+1], int64(1)
		if a < 0 || b <= a || b >= g.Tasks {
			return nil, fmt.Errorf("graph: an edge of the tasks %d and %d: there are %d, from 0", a, b, g.Tasks)
		}
		if len(g.Volumes) > 0 {
			volume = g.Volumes[i]
		}
		m.Join(a, b, float64(volume))
	}
	return m, m.Check()
}

func tooLarge(tasks, edges int) error {
	return fmt.Errorf("graph of %d tasks and %d edges: want 1 to %d tasks and up to %d edges", tasks, edges, MaxListedTasks, MaxListedEdges)
}
