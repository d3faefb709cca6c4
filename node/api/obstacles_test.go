package api_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
	"zorilla/transfer"
)

// put writes a file of a user.
func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, dir string) (list []string) {
	t.Helper()
	for _, name := range files(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, name+"="+string(b))
	}
	return list
}

// What is in the way is named, all of it, and nothing is written.
func TestPullWritesAllOrNothing(t *testing.T) {
	f := apitest.New()
	st := results(t, f, []string{"*"}, []string{"a=0", "d/b=deep", "same=s", "x=0"}, []string{"a=1", "same=s"})
	dir := t.TempDir()
	pull := func(into string, force bool) error {
		_, err := api.Pull(t.Context(), f, st, api.Wanted{Rank: -1, Into: filepath.Join(dir, into), Force: force})
		return err
	}
	mine := []string{"flat/a.1=mine", "flat/d=mine, no directory", "flat/same=s", "r1/same=other"}
	for _, file := range mine {
		name, content, _ := strings.Cut(file, "=")
		put(t, filepath.Join(dir, name), content)
	}
	var way transfer.ObstacleError
	err := pull("flat", false)
	if !errors.As(err, &way) || len(way) != 2 || way.Replaceable() || !strings.HasSuffix(way[0].Path, "flat/a.1") || !strings.HasSuffix(way[1].Path, "flat/d") {
		t.Errorf("got %v, want a.1 and d", err)
	}
	// With all of the plan: also the directories of other ranks stay as they are.
	if err := pull("r%r", false); !errors.As(err, &way) || len(way) != 1 || !way.Replaceable() || !strings.HasSuffix(err.Error(), "r1/same exists") {
		t.Errorf("got %v, want r1/same", err)
	}
	if err := pull("flat", true); !errors.As(err, &way) || len(way) != 1 {
		t.Errorf("by force: got %v, want d", err)
	}
	if got := contents(t, dir); !slices.Equal(got, mine) {
		t.Fatalf("%v", got)
	}
	if err := os.Remove(filepath.Join(dir, "flat/d")); err != nil {
		t.Fatal(err)
	}
	if err := pull("flat", true); err != nil {
		t.Error(err)
	}
	// What it has written itself is in nobody's way, without force.
	if err := os.Remove(filepath.Join(dir, "flat/x")); err != nil {
		t.Fatal(err)
	}
	if err := pull("flat", false); err != nil {
		t.Error(err)
	}
	want := []string{"flat/a.0=0", "flat/a.1=1", "flat/d/b=deep", "flat/same=s", "flat/x=0", "r1/same=other"}
	if got := contents(t, dir); !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestKnownObstacles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"log", "many.2", "sub/file", "r/1/log", "file", "task-7", "own.9"} {
		put(t, filepath.Join(dir, name), "mine")
	}
	tasks := &jobs.Array{Tasks: []work.TaskIDs{{First: 5, Last: 9, Step: 2}}}
	for _, c := range []struct {
		name string
		spec jobs.Spec
		into string
		want string // paths below dir
	}{
		{"a name", jobs.Spec{Max: 1, Outputs: []string{"log"}}, "", "log"},
		{"not here", jobs.Spec{Max: 1, Outputs: []string{"log"}}, "new/dir", ""},
		{"may be a directory", jobs.Spec{Max: 1, Outputs: []string{"sub"}}, "", ""},
		{"where ranks differ", jobs.Spec{Max: 3, Outputs: []string{"many"}}, "", "many.2"},
		{"of fewer ranks", jobs.Spec{Max: 2, Outputs: []string{"many"}}, "", ""},
		{"a rank's own directory", jobs.Spec{Max: 2, Outputs: []string{"log"}}, "r/%r", "r/1/log"},
		{"a directory that is none", jobs.Spec{Max: 2, Outputs: []string{"x*"}}, "file/%r", "file"},
		{"below a file", jobs.Spec{Max: 1, Outputs: []string{"file/x"}}, "", "file"},
		{"patterns are not known", jobs.Spec{Max: 1, Outputs: []string{"l*"}}, "", ""},
		{"a task's name", jobs.Spec{Max: 2, Array: tasks, Outputs: []string{"task-%t"}}, "", "task-7"},
		{"a task's file", jobs.Spec{Max: 2, Array: tasks, Outputs: []string{"own"}}, "", "own.9"},
		{"nothing to write", jobs.Spec{Max: 1}, "file", ""},
	} {
		var got []string
		for _, o := range api.KnownObstacles(&c.spec, api.Wanted{Rank: -1, Into: filepath.Join(dir, c.into)}) {
			name, _ := filepath.Rel(dir, o.Path)
			got = append(got, name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v, want %s", c.name, got, c.want)
		}
		forced := api.KnownObstacles(&c.spec, api.Wanted{Rank: -1, Into: filepath.Join(dir, c.into), Force: true})
		if (len(forced) > 0) != (c.want == "file") {
			t.Errorf("%s: by force: %v", c.name, forced)
		}
	}
}

func TestDirectoriesThatCannotBeWrittenToAreKnown(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	spec, into := jobs.Spec{Max: 1, Outputs: []string{"log*"}}, filepath.Join(dir, "to", "be", "made")
	if unix.Access(dir, unix.W_OK) == nil {
		t.Skip("this user may write everywhere")
	}
	way := api.KnownObstacles(&spec, api.Wanted{Rank: -1, Into: into})
	if len(way) != 1 || way.Replaceable() || !strings.Contains(way.Error(), " cannot be written to: ") {
		t.Errorf("got %v", way)
	}
}

// What is in the way is told in the same order each time.
func TestKnownObstaclesHaveAnOrder(t *testing.T) {
	dir := t.TempDir()
	for _, rank := range "01234567" {
		put(t, filepath.Join(dir, string(rank), "log"), "mine")
	}
	way := api.KnownObstacles(&jobs.Spec{Min: 8, Max: 8, Outputs: []string{"log"}}, api.Wanted{Rank: -1, Into: filepath.Join(dir, "%r")})
	if len(way) != 8 || !slices.IsSortedFunc(way, func(a, b transfer.Obstacle) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("got %v", way)
	}
}

// No file of a job gets where programs outside of the sandbox look, by any way: hidden names need
// a pattern with the dot, and where one has it they are refused, with and without --force.
func TestNothingIsWrittenWhereUsersProgramsLook(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Chdir(home)
	put(t, filepath.Join(home, "state/identity.key"), "key")
	evil := []string{".bash_login=id", ".config/zorilla/config.toml=[job]", "sub/.ssh/rc=id", ".ssh/authorized_keys=key", "fine=f"}
	for name, c := range map[string]struct {
		globs, files []string
		into         string
		want         string // what is written
	}{
		"wildcards":         {[]string{"*", "**"}, evil, ".", "fine=f"},
		"a named file":      {[]string{"*", ".bash_login"}, evil, ".", ""},
		"a named directory": {[]string{".config"}, evil[1:2], ".", ""},
		"all dots":          {[]string{".*"}, []string{".ssh/authorized_keys=key"}, ".", ""},
		"into":              {[]string{"*"}, []string{"authorized_keys=key"}, ".ssh", ""},
		"into deeper":       {[]string{"*"}, []string{"a=key"}, ".config/zorilla/x", ""},
		"a node's state":    {[]string{"*"}, []string{"state/secret=mine"}, ".", ""},
		"programs":          {[]string{"*"}, []string{"bin/ls=evil"}, ".", ""},
	} {
		for _, force := range []bool{false, true} {
			f := apitest.New()
			st := results(t, f, c.globs, c.files)
			_, err := api.Pull(t.Context(), f, st, api.Wanted{Rank: -1, Into: c.into, Force: force})
			var way transfer.ObstacleError
			if (err == nil) != (c.want != "") || err != nil && (!errors.As(err, &way) || way.Replaceable() || !strings.Contains(err.Error(), "is never written")) {
				t.Errorf("%s: %v", name, err)
			}
			if got := strings.Join(contents(t, home), " "); got != strings.TrimSpace(c.want+" state/identity.key=key") {
				t.Errorf("%s: there is %s", name, got)
			}
			_ = os.Remove(filepath.Join(home, "fine"))

			p := api.NewPartial(&snapshots{Fake: f, now: st.Outputs[0]}, api.Wanted{Rank: -1, Into: c.into, Force: force})
			err = p.Update(t.Context(), &st, 0)
			for _, line := range contents(t, home) {
				if at, _, _ := strings.Cut(line, "="); at != "state/identity.key" && at != "fine.0.part" {
					t.Errorf("%s: while it runs %s is written, %v", name, at, err)
				}
			}
			p.Remove()
			if way := api.KnownObstacles(&jobs.Spec{Min: 1, Max: 1, Outputs: []string{c.into + "/a"}}, api.Wanted{Into: "."}); (len(way) > 0) != (c.into != ".") {
				t.Errorf("%s: before it is submitted: %v", name, way)
			}
		}
	}
	// Patterns of others are not the user's words.
	f := apitest.New()
	wild := results(t, f, []string{".hydra", "fine"}, []string{".hydra/x=1", "fine=f"})
	for _, c := range []struct {
		only []string
		want string
	}{{nil, "fine=f"}, {[]string{"*"}, "fine=f"}, {[]string{".hydra"}, ".hydra/x=1"}} {
		into := t.TempDir()
		got, err := api.Pull(t.Context(), f, wild, api.Wanted{Rank: -1, Into: into, Foreign: true, Only: c.only})
		if text := strings.Join(contents(t, into), " "); err != nil || text != c.want || (len(got.Warnings) > 0) != (c.only == nil) {
			t.Errorf("only %q: %s, %q, %v", c.only, text, got.Warnings, err)
		}
	}
}

// Files that grow are not written through links either.
func TestPartialFilesAndLinks(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "real/x"), "mine")
	if err := os.Symlink("real", filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	f := apitest.New()
	st := results(t, f, []string{"d"}, []string{"d/x=new"})
	err := api.NewPartial(&snapshots{Fake: f, now: st.Outputs[0]}, api.Wanted{Rank: -1, Into: dir, Force: true}).Update(t.Context(), &st, 0)
	if _, there := os.Lstat(filepath.Join(dir, "real/x.part")); err == nil || there == nil {
		t.Errorf("%v, %v", err, there)
	}
}

// A job without outputs is submitted without a look at the home directories of all users, which
// takes longer than all else before its submission.
func TestNoOutputsNeedNoLook(t *testing.T) {
	spec := &jobs.Spec{Args: []string{"hostname"}, Min: 1, Max: 100}
	if n := testing.AllocsPerRun(1, func() {
		if way := api.KnownObstacles(spec, api.Wanted{Into: "."}); len(way) > 0 {
			t.Errorf("without outputs: %v", way)
		}
	}); n > 1000 {
		t.Errorf("it took %.0f allocations", n)
	}
}
