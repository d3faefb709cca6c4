package mapping

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"zorilla/internal/seeds"
)

// Each format, with comments, blanks and a task without neighbours.
func TestReadMETIS(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"% a triangle and a task alone\n4 3\n2 3\n 1\t3 \n%here, too\n1 2\n\n", "[1 1 1 1] [[{1 1} {2 1}] [{0 1} {2 1}] [{0 1} {1 1}] []]"},
		{"2 1 000\n2\n1", "[1 1] [[{1 1}] [{0 1}]]"},
		{"2 1 001\n2 7\r\n1 7\r\n", "[1 1] [[{1 7}] [{0 7}]]"},
		{"2 1 1\n2 7\n1 7\n\n\n", "[1 1] [[{1 7}] [{0 7}]]"},
		{"2 1 010\n5 2\n0 1\n", "[5 0] [[{1 1}] [{0 1}]]"},
		{"3 2 011 1\n5 3 8 2 7\n4 1 7\n3 1 8\n", "[5 4 3] [[{1 7} {2 8}] [{0 7}] [{0 8}]]"},
		{"0 0\n", "[] []"},
	} {
		g, err := ReadMETIS(strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := fmt.Sprint(g.Cost, " ", g.Edges); got != c.want || g.Check() != nil {
			t.Errorf("%q: %s, want %s; %v", c.text, got, c.want, g.Check())
		}
	}
}

func TestWrongMETIS(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "the file is empty: want a line TASKS EDGES [FMT]"},
		{"\n2 1\n", `line 1: "": want TASKS EDGES [FMT]`},
		{"%\n2\n", `line 2: "2": want TASKS EDGES [FMT]`},
		{"1 2 3 4 5\n", `line 1: "1 2 3 4 5": want TASKS EDGES [FMT]`},
		{"-1 0\n", `line 1: "-1" tasks: want 0 to 100000`},
		{"100001 0\n", `line 1: "100001" tasks: want 0 to 100000`},
		{"2 2000001\n", `line 1: "2000001" edges: want 0 to 2000000`},
		{"2 1 100\n2\n1\n", `line 1: the format "100": want 000, 001 (edges have weights), 010 (tasks have costs) or 011 (both)`},
		{"2 1 0001\n2\n1\n", `line 1: the format "0001": want 000, 001 (edges have weights), 010 (tasks have costs) or 011 (both)`},
		{"2 1 010 2\n1 1 2\n1 1 1\n", `line 1: "2" weights of a task: only one is read, its cost`},
		{"2 1\n2\n", "the header says 2 tasks, the file has 1: a task without neighbours has an empty line"},
		{"2 1\n2\n1\n1\n", `line 4: "1" is beyond the 2 tasks that the header says`},
		{"2 1\n3\n1\n", `line 2: task 1: the neighbour "3": want a whole number, 1 to 2`},
		{"2 1\n0\n1\n", `line 2: task 1: the neighbour "0": want a whole number, 1 to 2`},
		{"2 1\n1.5\n1\n", `line 2: task 1: the neighbour "1.5": want a whole number, 1 to 2`},
		{"2 1\n2\n2\n", "line 3: task 2: is its own neighbour"},
		{"2 2\n2 2\n1 1\n", "line 2: task 1: has the neighbour 2 twice"},
		{"3 1\n2\n\n\n", "line 2: task 1 has the neighbour 2, which does not have it in line 3"},
		{"3 1\n\n1\n\n", "line 3: task 2 has the neighbour 1, which does not have it in line 2"},
		{"3 2\n2\n3\n2\n", "line 2: task 1 has the neighbour 2, which does not have it in line 3"},
		{"3 2\n3\n3\n2\n", "line 2: task 1 has the neighbour 3, which does not have it in line 4"},
		{"3 2\n2\n1\n1 2\n", "line 4: task 3 has the neighbour 1, which does not have it in line 2"},
		{"3 2\n\n3\n1 2\n", "line 4: task 3 has the neighbour 1, which does not have it in line 2"},
		{"2 1 001\n2 7\n1 8\n", "line 2: task 1 gives its edge to 2 the weight 7, and line 3 has 8"},
		{"2 1 001\n2\n1 8\n", `line 2: task 1: its last neighbour, "2", has no weight, which the header says`},
		{"2 1 001\n2 0\n1 0\n", `line 2: task 1: the weight of the edge to 2, "0": want a whole number, 1 to 1000000000`},
		{"2 1 010\n\n1 1\n", "line 2: task 1: has no cost, which the header says"},
		{"2 1 010\n-1 2\n1 1\n", `line 2: task 1: the cost "-1": want a whole number, 0 to 1000000000`},
		{"3 1\n2 3\n1\n1\n", "line 3: task 2: there are more than the 1 edges that the header says: each stands at both of its ends, and counts once"},
		{"3 2\n2\n1\n\n", "the header says 2 edges, the file has 1: each stands at both of its ends, and counts once"},
		{"1 0\n" + strings.Repeat(" ", maxLine) + "\n", "line 2: longer than 4 MiB"},
	} {
		if g, err := ReadMETIS(strings.NewReader(c.text)); err == nil || err.Error() != c.want || g != nil {
			t.Errorf("%.60q: %v, want %s", c.text, err, c.want)
		}
	}
}

// comments is a file of nothing else, without end.
type comments struct{}

func (comments) Read(b []byte) (int, error) {
	for i := range b {
		if b[i] = '%'; i%1000 == 999 {
			b[i] = '\n'
		}
	}
	return len(b), nil
}

func TestFilesThatDoNotEnd(t *testing.T) {
	_, err := ReadMETIS(io.MultiReader(strings.NewReader("1 0\n"), comments{}))
	if want := "the file is larger than 128 MiB, more than any graph of 2000000 edges: is it one?"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	why := errors.New("broken")
	for _, text := range []string{"", "2 1\n2\n", "2 1\n2\n1\n"} {
		if _, err := ReadMETIS(io.MultiReader(strings.NewReader(text), iotest.ErrReader(why))); !errors.Is(err, why) {
			t.Errorf("after %q: %v", text, err)
		}
	}
}

func TestWriteMETIS(t *testing.T) {
	g := worked()
	var b bytes.Buffer
	if err := WriteMETIS(&b, g); err != nil {
		t.Fatal(err)
	}
	if want := "6 6 010\n4 2 3 4 5\n1 1 3\n1 1 2\n8 1\n2 1 6\n6 5\n"; b.String() != want {
		t.Errorf("wrote %q, want %q", b.String(), want)
	}
	g.Cost[0] = 0.5
	if err := WriteMETIS(io.Discard, g); err == nil || err.Error() != "task 0 costs 0.5: the format has whole numbers to 1000000000" {
		t.Error(err)
	}
	g.Cost[0], g.Edges[4][1].Volume, g.Edges[5][0].Volume = 1, 2.5, 2.5
	if err := WriteMETIS(io.Discard, g); err == nil || err.Error() != "tasks 4 and 5 tell each other 2.5: the format has whole numbers to 1000000000" {
		t.Error(err)
	}
	if err := WriteMETIS(io.Discard, NewGraph(MaxTasks+1)); err == nil {
		t.Error("more tasks than are read are written")
	}
	g.Edges[5] = nil
	if err := WriteMETIS(io.Discard, g); err == nil {
		t.Error("an edge with one end is written")
	}
}

// sorted returns a graph as it is read: neighbours in order.
func sorted(g *Graph) string {
	for i := range g.Edges {
		slices.SortFunc(g.Edges[i], func(a, b Edge) int { return a.To - b.To })
	}
	return fmt.Sprint(g.Cost, g.Edges)
}

func TestWrittenGraphsAreReadAgain(t *testing.T) {
	from, to := seeds.Range(t, 300)
	for seed := from; seed <= to; seed++ {
		rnd := rand.New(rand.NewPCG(seed, 85))
		g, _, _ := drawn(rnd, rnd.IntN(20))
		for i := range g.Cost {
			if seed%4 < 2 {
				g.Cost[i] = 1
			}
			for k := range g.Edges[i] {
				if seed%2 == 0 {
					g.Edges[i][k].Volume = 1
				}
			}
		}
		var b bytes.Buffer
		err := WriteMETIS(&b, g)
		read, err2 := ReadMETIS(&b)
		if err != nil || err2 != nil || sorted(read) != sorted(g) {
			t.Fatalf("seed %d: %v, %v: %s", seed, err, err2, seeds.Again(t, seed))
		}
	}
}

func TestNamed(t *testing.T) {
	for _, c := range []struct {
		name         string
		tasks, edges int
		of           int // a task, and its neighbours
		neighbours   []int
	}{
		{"grid:8x8", 64, 112, 9, []int{1, 8, 10, 17}},
		{"grid:2x3", 6, 7, 2, []int{1, 5}},
		{"grid:4x4x4", 64, 144, 21, []int{5, 17, 20, 22, 25, 37}},
		{"grid:1x1", 1, 0, 0, nil},
		{"ring:64", 64, 64, 0, []int{1, 63}},
		{"ring:100000", 100_000, 100_000, 99_999, []int{0, 99_998}},
	} {
		g, err := Named(c.name)
		if err != nil {
			t.Error(err)
			continue
		}
		ends := 0
		for i := range g.Edges {
			ends += len(g.Edges[i])
		}
		var neighbours []int
		for _, e := range g.Edges[c.of] {
			neighbours = append(neighbours, e.To)
		}
		slices.Sort(neighbours)
		if len(g.Cost) != c.tasks || ends != 2*c.edges || !slices.Equal(neighbours, c.neighbours) || g.Check() != nil {
			t.Errorf("%s: %d tasks, %d edges, %v beside %d, %v", c.name, len(g.Cost), ends/2, neighbours, c.of, g.Check())
		}
	}
	for _, name := range []string{"", "ring", "ring:", "ring:2", "ring:3x3", "ring:+3", "ring:100001", "grid:8", "grid:8x", "grid:0x8", "grid:1x2x3x4", "grid:-8x-8",
		"grid:4294967296x4294967296", "tree:8", "grid:1000x1000"} {
		if _, err := Named(name); err == nil || !strings.Contains(err.Error(), "want grid:ROWSxCOLUMNS") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Whatever is read is a graph, and read again when it is written.
func FuzzReadMETIS(f *testing.F) {
	for _, text := range []string{"", "2 1\n2\n1\n", "% one\n3 2 011\n5 3 8 2 7\n4 1 7\n3 1 8\n", "2 1 1\n2 7\n1 8\n", "1 0 10\n\n", "3 3\n2 3\n1 3\n1 2\n\n", "99999 0\n", "2 1 11 1\n0 2 1\n1 1 1\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := ReadMETIS(bytes.NewReader(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is more than a line", err)
			}
			return
		}
		if err := g.Check(); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteMETIS(&b, g); err != nil {
			t.Fatal(err)
		}
		again, err := ReadMETIS(&b)
		if err != nil || sorted(again) != sorted(g) {
			t.Errorf("another graph is read again: %v", err)
		}
	})
}
