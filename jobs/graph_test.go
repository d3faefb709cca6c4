package jobs

import (
	"errors"
	"strings"
	"testing"

	"zorilla/jobs/placement/mapping"
)

func TestJobsWithGraphs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Spec)
		bad    string
	}{
		"by name":         {func(*Spec) {}, ""},
		"of a file":       {func(s *Spec) { s.Graph = &mapping.Listed{Tasks: 4, Edges: []int{0, 1, 2, 3}} }, ""},
		"no graph":        {func(s *Spec) { s.Graph = nil }, "want --graph"},
		"no strategy":     {func(s *Spec) { s.Strategy = "" }, "only --strategy maheve looks at it"},
		"another number":  {func(s *Spec) { s.Max = 5 }, "-n 4..5: the graph has 4 tasks"},
		"replicas":        {func(s *Spec) { s.Replicas = 2 }, "goes with no array"},
		"a shared file":   {func(s *Spec) { s.ShareWork = true }, "--share-work"},
		"paper":           {func(s *Spec) { s.Search.Mode = SearchPaper }, "want --search adaptive"},
		"no such name":    {func(s *Spec) { s.Graph.Name = "star:4" }, "graph \"star:4\": want grid"},
		"too many":        {func(s *Spec) { s.Graph.Name = "ring:5000" }, "want 1 to 4096 tasks"},
		"too many edges":  {func(s *Spec) { s.Graph = &mapping.Listed{Tasks: 4, Edges: make([]int, 2*mapping.MaxListedEdges+2)} }, "up to 32768 edges"},
		"name and edges":  {func(s *Spec) { s.Graph.Edges = []int{0, 1} }, "want one of them"},
		"half an edge":    {func(s *Spec) { s.Graph = &mapping.Listed{Tasks: 4, Edges: []int{0, 1, 2}} }, "costs of 0"},
		"an edge outside": {func(s *Spec) { s.Graph = &mapping.Listed{Tasks: 4, Edges: []int{0, 4}} }, "there are 4, from 0"},
		"named tasks":     {func(s *Spec) { s.Graph = &mapping.Listed{Tasks: 4, Names: []string{"a", "b", "c", "d-1"}} }, ""},
		"too few names":   {func(s *Spec) { s.Graph = &mapping.Listed{Tasks: 4, Names: []string{"a", "b", "c"}} }, "names of 3"},
		"a name twice":    {func(s *Spec) { s.Graph = &mapping.Listed{Tasks: 4, Names: []string{"a", "b", "c", "a"}} }, "two tasks are called a"},
		"a bad name":      {func(s *Spec) { s.Graph = &mapping.Listed{Tasks: 4, Names: []string{"a", "b", "c", "d\n"}} }, "task \"d\\n\": want"},
		"names of a grid": {func(s *Spec) { s.Graph.Names = []string{"a", "b", "c", "d"} }, "want one of them"},
		"an edge twice":   {func(s *Spec) { s.Graph = &mapping.Listed{Tasks: 4, Edges: []int{0, 1, 0, 1}} }, "twice"},
	} {
		s := Spec{Args: []string{"prog"}, Min: 4, Max: 4, Slots: 1, Strategy: "maheve", Placing: Placing{Graph: &mapping.Listed{Name: "grid:2x2"}}}
		c.change(&s)
		switch err := s.Validate(); {
		case c.bad == "" && (err != nil || !s.Single() || s.Rigid() || !s.FixedSize() || !s.Replaces() || s.Condition() != "version >= 9"):
			t.Errorf("%s: %v, nodes must fulfil %q", name, err, s.Condition())
		case c.bad != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.bad)):
			t.Errorf("%s: %v", name, err)
		}
	}
}
