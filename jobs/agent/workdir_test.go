package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// A directory in which there is anything that is not a worker's of this node is
// refused, and nothing in it changes.
func TestWorkDirectoriesOfOthersAreRefused(t *testing.T) {
	me, other := vicinity.ID("z"+strings.Repeat("a", 26)), vicinity.ID("z"+strings.Repeat("b", 26))
	name := "aaaaa@" + string(other) + "-0-1"
	for what, c := range map[string]struct {
		make func(dir string) error
		want string // "" = it is good
	}{
		"nothing":           {func(dir string) error { return os.Remove(dir) }, ""},
		"an own worker":     {func(dir string) error { return process.MakeRoot(filepath.Join(dir, name), string(me)) }, ""},
		"a half-made one":   {func(dir string) error { return os.Mkdir(filepath.Join(dir, name), 0o755) }, ""},
		"another's worker":  {func(dir string) error { return process.MakeRoot(filepath.Join(dir, name), string(other)) }, name},
		"a file":            {func(dir string) error { return os.WriteFile(filepath.Join(dir, "data.csv"), nil, 0o644) }, "data.csv"},
		"a directory":       {func(dir string) error { return os.Mkdir(filepath.Join(dir, "thesis"), 0o755) }, "thesis"},
		"another's by name": {func(dir string) error { return os.MkdirAll(filepath.Join(dir, name, "x"), 0o755) }, name},
		"a link": {func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".far"), os.Symlink(dir+".far", dir))
		}, "is a symbolic link"},
		"no directory": {func(dir string) error { return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o644)) }, "not a directory"},
		"many": {func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "1"), 0o755), os.Mkdir(filepath.Join(dir, "2"), 0o755), os.Mkdir(filepath.Join(dir, "3"), 0o755), os.Mkdir(filepath.Join(dir, "4"), 0o755))
		}, "1 more"},
	} {
		dir := filepath.Join(t.TempDir(), "work")
		if err := errors.Join(os.Mkdir(dir, 0o755), c.make(dir)); err != nil {
			t.Fatal(err)
		}
		switch err := agent.CheckWork(dir, me); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--work") || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: got %v, want one line with %q and --work", what, err, c.want)
		}
	}
}

// A node whose state was copied while it worked does not lose its worker to the
// copy, which removes its own files alone.
func TestCopiedWorkIsNotAdopted(t *testing.T) {
	bubble(t, 1, 1, func(t *testing.T, g *grid) {
		n := g.node(0)
		g.submit(0, jobs.Spec{Args: ticking(1000), Min: 1, Max: 1})
		time.Sleep(5 * time.Second)
		roots, err := filepath.Glob(filepath.Join(n.dir, "work", "*"))
		if err != nil || len(roots) != 1 {
			t.Fatal(roots, err)
		}
		n.crash()
		notes := filepath.Join(roots[0], "entries")
		if err := os.Rename(notes, notes+".away"); err != nil {
			t.Fatal(err)
		}
		if err := agent.CheckWork(filepath.Join(n.dir, "work"), n.self.ID); err == nil {
			t.Error("a directory without a mark was taken for the node's own")
		}
		if err := os.Rename(notes+".away", notes); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.CopyFS(roots[0]+".copy", os.DirFS(roots[0])), os.RemoveAll(roots[0]), os.Rename(roots[0]+".copy", roots[0])); err != nil {
			t.Fatal(err)
		}
		n.start()
		if busy := n.service.Busy(); busy != 0 || n.runner.Running() != 1 {
			t.Errorf("%d slots are used by a copy, %d workers run", busy, n.runner.Running())
		}
		if _, err := os.Stat(roots[0]); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the copy is still there: %v", err)
		}
		n.runner.Kill()
	})
}
