package jobfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"zorilla/jobs/placement/mapping"
)

// taskReader reads the tables of tasks and edges.
type taskReader struct {
	*File
	graph  *mapping.Graph
	names  []string       // of each task, "" = it has none
	number map[string]int // of each name
	edges  map[[2]int]int // in which line each stands, the smaller end first
}

// graph reads what the tables say of tasks, if there are any.
func (f *File) graph(tables map[string]any) error {
	tasks, found := tables[taskKey]
	edges, joined := tables[edgeKey]
	switch {
	case !found && !joined:
		return nil
	case !found:
		return f.wrongAt(f.at.key(edgeKey), "there are no tasks: want [[%s]], one for each rank", taskKey)
	case f.has(graphOption):
		return f.wrongAt(f.at.key(taskKey), "graph stands in line %d: want it or [[%s]]", f.at.key(graphOption).line, taskKey)
	}
	r := &taskReader{File: f, graph: mapping.NewGraph(0), number: map[string]int{}, edges: map[[2]int]int{}}
	if err := f.eachTable(tasks, taskKey, r.task); err != nil {
		return err
	}
	for i, name := range r.names {
		if name == "" && len(r.number) > 0 {
			return f.wrong([]string{taskKey, strconv.Itoa(i)}, "the task has no name, and others have: name all of them, or none")
		}
	}
	if joined {
		if err := f.eachTable(edges, edgeKey, r.edge); err != nil {
			return err
		}
	}
	f.Graph = mapping.List(r.graph)
	if len(r.number) > 0 {
		f.Graph.Names = r.names
	}
	if _, err := f.Graph.Graph(); err != nil {
		return f.wrongAt(f.at.key(taskKey), "%w", err)
	}
	return nil
}

const graphOption = "graph"

// task reads a table of a task.
func (r *taskReader) task(i int, table map[string]any) error {
	name, cost := "", int64(1)
	err := r.table([]string{taskKey, strconv.Itoa(i)}, table, map[string]reader{
		"name": func(path []string, value any, text string) error {
			if err := r.text(&name)(path, value, text); err != nil {
				return err
			}
			if text := mapping.CheckTaskName(name); text != "" {
				return r.wrong(path, "task %.40q: %s", name, text)
			}
			if _, taken := r.number[name]; taken {
				return r.wrong(path, "two tasks are called %s", name)
			}
			r.number[name] = i
			return nil
		},
		"cost": r.weight(&cost),
	})
	r.graph.Cost, r.graph.Edges = append(r.graph.Cost, float64(cost)), append(r.graph.Edges, nil)
	r.names = append(r.names, name)
	return err
}

// edge reads a table of an edge.
func (r *taskReader) edge(i int, table map[string]any) error {
	var ends []int
	weight, at := int64(1), []string{edgeKey, strconv.Itoa(i)}
	err := r.table(at, table, map[string]reader{
		"between": func(path []string, value any, _ string) (err error) {
			ends, err = r.ends(path, value)
			return err
		},
		"weight": r.weight(&weight),
	})
	switch {
	case err != nil:
		return err
	case ends == nil:
		return r.wrong(at, "between is missing, the two tasks of the edge")
	}
	r.graph.Join(ends[0], ends[1], float64(weight))
	return nil
}

// weight reads a cost or a weight.
func (r *taskReader) weight(to *int64) reader {
	return func(path []string, value any, text string) error {
		n, _ := value.(int64) // 0 is none either
		if wrong := mapping.CheckWeight(n); wrong != "" {
			return r.badly(path, text, errors.New(wrong))
		}
		*to = n
		return nil
	}
}

// ends reads the two tasks of an edge.
func (r *taskReader) ends(path []string, value any) (ends []int, err error) {
	list, ok := value.([]any)
	if !ok || len(list) != 2 {
		return nil, r.wrong(path, `between: want two tasks, as in ["a", "b"], or [0, 1] by their numbers`)
	}
	for n, v := range list {
		at, task := append(path[:len(path):len(path)], strconv.Itoa(n)), 0
		switch v := v.(type) {
		case string:
			if task, ok = r.number[v]; !ok {
				return nil, r.wrong(at, "there is no task %.40q%s", v, meant(v, r.names))
			}
		case int64:
			if v < 0 || v >= int64(len(r.names)) {
				return nil, r.wrong(at, "there is no task %d: they are 0 to %d", v, len(r.names)-1)
			}
			task = int(v)
		default:
			return nil, r.wrong(at, "between: want the name of a task, or its number")
		}
		ends = append(ends, task)
	}
	edge := [2]int{min(ends[0], ends[1]), max(ends[0], ends[1])}
	switch before, twice := r.edges[edge]; {
	case ends[0] == ends[1]:
		return nil, r.wrong(path, "an edge is between two tasks, not of one with itself")
	case twice:
		return nil, r.wrong(path, "the edge stands in line %d, too", before)
	}
	r.edges[edge] = r.at.key(path...).line
	return ends, nil
}

// Graph returns the part of a job file that is about tasks; nil = none.
func Graph(g *mapping.Listed) string {
	if g == nil {
		return ""
	}
	var b strings.Builder
	for i := range g.Tasks {
		fmt.Fprintf(&b, "\n[[%s]]\n", taskKey)
		if len(g.Names) > 0 {
			fmt.Fprintf(&b, "name = %s\n", quote(g.Names[i]))
		}
		if len(g.Costs) > 0 && g.Costs[i] != 1 {
			fmt.Fprintf(&b, "cost = %d\n", g.Costs[i])
		}
	}
	for i := range len(g.Edges) / 2 {
		ends := g.Edges[2*i : 2*i+2]
		if len(g.Names) > 0 {
			fmt.Fprintf(&b, "\n[[%s]]\nbetween = %s\n", edgeKey, list([]string{g.Names[ends[0]], g.Names[ends[1]]}))
		} else {
			fmt.Fprintf(&b, "\n[[%s]]\nbetween = [%d, %d]\n", edgeKey, ends[0], ends[1])
		}
		if len(g.Volumes) > 0 && g.Volumes[i] != 1 {
			fmt.Fprintf(&b, "weight = %d\n", g.Volumes[i])
		}
	}
	return b.String()
}
