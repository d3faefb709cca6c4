package mapping

import (
	"fmt"
	"strconv"
	"strings"
)

// Named returns a graph by its name: grid:8x8 or grid:4x4x4, whose tasks have the neighbours beside them
// and none over an edge, numbered row by row, or ring:64. All costs and volumes are 1.
func Named(name string) (*Graph, error) {
	kind, text, _ := strings.Cut(name, ":")
	parts := strings.Split(text, "x")
	tasks, sides := 1, make([]int, len(parts))
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 1 || n > MaxTasks/tasks || strings.HasPrefix(p, "+") {
			return nil, unnamed(name)
		}
		sides[i], tasks = n, tasks*n
	}
	switch {
	case kind == "ring" && len(sides) == 1 && tasks >= 3:
		return ring(tasks), nil
	case kind == "grid" && len(sides) >= 2 && len(sides) <= 3:
		return grid(tasks, sides), nil
	}
	return nil, unnamed(name)
}

func unnamed(name string) error {
	return fmt.Errorf("graph %.40q: want grid:ROWSxCOLUMNS, grid:AxBxC or ring:TASKS (3 or more), of at most %d tasks", name, MaxTasks)
}

func ring(n int) *Graph {
	g := NewGraph(n)
	for i := range n {
		g.Join(i, (i+1)%n, 1)
	}
	return g
}

func grid(tasks int, sides []int) *Graph {
	g := NewGraph(tasks)
	step := tasks // between a task and the next one along a side
	for _, side := range sides {
		step /= side
		for i := range tasks {
			if i/step%side+1 < side {
				g.Join(i, i+step, 1)
			}
		}
	}
	return g
}
