package transfer_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"zorilla/internal/seeds"
	"zorilla/transfer"
)

// sent brings inputs to a new directory, as a worker gets them.
func sent(t *testing.T, args ...string) (map[string]string, transfer.Manifest) {
	t.Helper()
	inputs, err := transfer.ExpandInputs(args)
	if err != nil {
		t.Fatal(err)
	}
	s := transfer.NewMemStore(0)
	m, err := transfer.Ingest(t.Context(), s, inputs)
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	h, err := transfer.SaveManifest(s, m)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = transfer.LoadManifest(s, h); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	for range 2 { // the second time over the first
		if err := m.Write(t.Context(), s, to); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
	}
	return read(t, to), m
}

func TestLinksThatStayInsideAreKept(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"system/python*": "interpreter", "in/venv/lib/site/m.py": "module", "in/other/file": "o",
		"in/venv/lib64": "->lib", "in/venv/bin/python": "->" + dir + "/system/python",
		"in/venv/bin/python3": "->python", "in/venv/bin/python3.1": "->./python3",
		"in/venv/abs": "->" + dir + "/in/venv/lib", "in/venv/bin/deep": "->" + dir + "/in/venv/lib64/site/m.py",
		"in/venv/lib/site/up": "->../../bin", "in/venv/top": "->.", "in/venv/gone": "->lib/not/there", "in/venv/loop": "->loop",
		"in/venv/strange": "->lib64/../bin//python", "in/venv/other": "->../other", "in/venv/other2": "->../other/file",
	})
	t.Chdir(filepath.Join(dir, "in"))
	venv := map[string]string{
		"lib/site/m.py": "module", "lib64": "->lib", "bin/python*": "interpreter", "bin/python3": "->python", "bin/python3.1": "->python3",
		"abs": "->lib", "bin/deep": "->../lib/site/m.py", "lib/site/up": "->../../bin", "top": "->.", "gone": "->lib/not/there", "loop": "->loop",
		"strange": "->bin/python",
	}
	for _, c := range []struct {
		args, at, other string
	}{
		{"venv other", "venv/", "other"},
		{"venv:env other:o/t", "env/", "o/t"},
		{"venv:. other:t", "", "t"},
		{".", "venv/", "other"},
		{"other:a/b venv:a/c", "a/c/", "a/b"},
	} {
		want := map[string]string{c.other + "/file": "o"}
		for name, content := range venv {
			want[c.at+name] = content
		}
		rel, _ := filepath.Rel("/"+c.at, "/"+c.other)
		want[c.at+"other"], want[c.at+"other2"] = "->"+rel, "->"+rel+"/file"
		args := strings.Fields(c.args)
		if c.args == "." {
			args = []string{".:."}
		}
		got, _ := sent(t, args...)
		sameTree(t, got, want)
		if t.Failed() {
			t.Fatalf("inputs %s", c.args)
		}
	}
	// An input that is a link is what it leads to, and what leads there finds it.
	got, _ := sent(t, "venv/other:x", "venv/other2:y/z")
	sameTree(t, got, map[string]string{"x/file": "o", "y/z": "o"})
}

func TestHashesCoverLinks(t *testing.T) {
	hash := func(target string) transfer.Hash {
		m := transfer.Manifest{Entries: []transfer.Entry{file("a"), file("b"), {Path: "l", Link: target}}}
		h, err := transfer.SaveManifest(transfer.NewMemStore(0), m)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if hash("a") == hash("b") {
		t.Error("where a link leads is not in the hash of the tree")
	}
}

func TestLinksThatCannotBeSentAreNamed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"data/d/x": "x", "a/l": "->../data/d", "b/l": "->" + dir + "/gone/x", "c/l": "->../gone", "e/l": "->../data/ring", "data/ring": "->ring",
		"f/l": "->new\nline", "g/l": "->d/x", "g/d": "->../data/d", "h/l": "->d/../../..", "h/d": "->sub/sub", "h/sub/sub/": "", "i/l/x": "x", "j/l": "->k", "j/k/": "",
	})
	t.Chdir(dir)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"a":         "input a/l: is a symbolic link to a directory that is not sent: send it too, with -i " + real + "/data/d, or remove the link",
		"a:.":       "input a/l: is a symbolic link to a directory",
		"b":         "input b/l: is a symbolic link to " + dir + "/gone/x, which does not exist: remove it",
		"c":         "input c/l: is a symbolic link to ../gone, which does not exist: remove it",
		"e":         "input e/l: too many levels of symbolic links",
		"f":         "input f/l: link holds a control character",
		"g":         "input g/d: is a symbolic link to a directory",
		"h":         "input h/l: is a symbolic link to a directory that is not sent: send it too, with -i " + real + ", or",
		"j i/l:j/l": "input i/l/x would be j/l/x, below the symbolic link j/l: give one another name with PATH:NAME",
	} {
		_, err := ingest(t, strings.Fields(args)...)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
	// The way out is one.
	got, _ := sent(t, "a", real+"/data/d")
	sameTree(t, got, map[string]string{"a/l": "->../d", "d/x": "x"})
}

// mess makes a tree full of links: to what is there and what is not, below and
// beside it, through each other.
func mess(t *testing.T, rnd *rand.Rand, top string) {
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	dirs := []string{filepath.Join(top, "in")}
	for range 5 {
		d := filepath.Join(pick(dirs...), pick("a", "b", "c"))
		if err := errors.Join(os.MkdirAll(d, 0o755), os.WriteFile(filepath.Join(d, pick("f", "g")), []byte(d), 0o644)); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, d)
	}
	write(t, top, map[string]string{"out/f": "outside", "out/a/f": "outside too"})
	for range 1 + rnd.IntN(6) {
		to := []string{pick(".", "..", "a", "../..", "b", pick(dirs...), pick(dirs...), filepath.Join(top, "out"))}
		for range rnd.IntN(4) {
			to = append(to, pick("..", ".", "a", "b", "c", "f", "l", "m", ""))
		}
		for len(to) > 1 && (to[len(to)-1] == "" || to[len(to)-1] == ".") {
			to = to[:len(to)-1] // of a file it asks that it be a directory, which no clean target can
		}
		at := filepath.Join(pick(dirs...), pick("l", "m", "b"))
		if err := os.Symlink(strings.Join(to, "/"), at); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
}

// looks tells what is behind a path: "" if nothing is.
func looks(at string) string {
	info, err := os.Stat(at)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return "directory"
	}
	b, err := os.ReadFile(at)
	return fmt.Sprint("file ", string(b), err)
}

// Random links are sent so that every path shows the same here and there, and
// none leads out; or one that leads out to a directory, or to nothing, is named.
func TestRandomLinks(t *testing.T) {
	kept, refused := 0, 0
	from, most := seeds.Range(t, 200)
	for seed := from; seed <= most; seed++ {
		rnd := rand.New(rand.NewPCG(seed, 2))
		top, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		mess(t, rnd, top)
		in, to := filepath.Join(top, "in"), filepath.Join(top, "to")
		s := transfer.NewMemStore(0)
		m, err := transfer.Ingest(t.Context(), s, []transfer.Input{{Path: in, Name: []string{".", "x", "x/y"}[rnd.IntN(3)]}})
		if err != nil {
			refused++
			checkRefusal(t, in, err)
		} else {
			if err := m.Write(t.Context(), s, to); err != nil {
				t.Errorf("write: %v", err)
			}
			kept += checkCopy(t, in, to, m)
		}
		if t.Failed() {
			t.Fatalf("the same again: %s", seeds.Again(t, seed))
		}
	}
	if most-from > 100 && (kept < 60 || refused < 30) {
		t.Errorf("%d links were kept and %d trees refused: too few to tell", kept, refused)
	}
}

// checkRefusal sees that the link which the error names is one that cannot be sent.
func checkRefusal(t *testing.T, in string, err error) {
	name, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "input "), ": ")
	real, e := filepath.EvalSymlinks(name)
	inside := e == nil && (real == in || strings.HasPrefix(real, in+"/"))
	if !strings.HasPrefix(name, in+"/") || strings.Contains(err.Error(), "\n") || inside || e == nil && looks(real) != "directory" {
		t.Errorf("refused: %v, though it leads to %q, %v", err, real, e)
	}
}

// checkCopy compares all paths of the inputs with those of the copy, and
// returns how many links it has.
func checkCopy(t *testing.T, in, to string, m transfer.Manifest) (links int) {
	base := to
	for _, p := range []string{"x/y", "x"} { // as the inputs may be named
		if len(m.Entries) > 0 && strings.HasPrefix(m.Entries[0].Path+"/", p+"/") && looks(filepath.Join(in, p)) == "" {
			base = filepath.Join(to, p)
			break
		}
	}
	err := filepath.WalkDir(in, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(in, p)
		there := filepath.Join(base, rel)
		if a, b := looks(p), looks(there); a != b {
			t.Errorf("%s: is %q, and %q in the copy", rel, a, b)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, e := range m.Entries {
		if e.Link == "" {
			continue
		}
		links++
		if real, err := filepath.EvalSymlinks(filepath.Join(to, e.Path)); err == nil && real != to && !strings.HasPrefix(real, to+"/") {
			t.Errorf("%s -> %s leads out to %s", e.Path, e.Link, real)
		}
	}
	return links
}

// Whatever manifest Validate takes, no link that it makes leads out, and
// nothing is written outside.
func TestRandomHostileLinks(t *testing.T) {
	taken := 0
	from, most := seeds.Range(t, 2000)
	for seed := from; seed <= most; seed++ {
		rnd := rand.New(rand.NewPCG(seed, 3))
		word := func(words ...string) string {
			var b []string
			for range 1 + rnd.IntN(4) {
				b = append(b, words[rnd.IntN(len(words))])
			}
			return strings.Join(b, "/")
		}
		var list []transfer.Entry
		for range 1 + rnd.IntN(5) {
			e := transfer.Entry{Path: word("a", "b", "c", "d")}
			if rnd.IntN(4) > 0 {
				e.Link = word("a", "b", "c", "d", "..", "..", ".")
			}
			list = append(list, e)
		}
		m, err := transfer.NewManifest(list)
		if err != nil {
			continue
		}
		taken++
		top, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(top, "work")
		if err := m.Write(t.Context(), transfer.NewMemStore(0), to); err != nil {
			t.Errorf("%+v: %v", m.Entries, err)
		}
		for _, e := range m.Entries {
			if real, err := filepath.EvalSymlinks(filepath.Join(to, e.Path)); err == nil && real != to && !strings.HasPrefix(real, to+"/") {
				t.Errorf("%+v: %s leads out to %s", m.Entries, e.Path, real)
			}
		}
		if kids, _ := os.ReadDir(top); len(kids) != 1 {
			t.Errorf("%+v: %d things were made, want the tree alone", m.Entries, len(kids))
		}
		if t.Failed() {
			t.Fatalf("the same again: %s", seeds.Again(t, seed))
		}
	}
	if most-from > 1000 && taken < 200 {
		t.Errorf("%d manifests were taken: too few to tell", taken)
	}
}

func TestLinksOfInputsAreNoOutputs(t *testing.T) {
	from, s := t.TempDir(), transfer.NewMemStore(0)
	write(t, from, map[string]string{"d/f": "f", "d/l": "->f", "d/m": "->f", "l": "->d"})
	m, err := transfer.Ingest(t.Context(), s, []transfer.Input{{Path: from, Name: "."}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := m.Write(t.Context(), s, dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ globs, want, warnings string }{
		{".", "", `output pattern "." matches only unchanged inputs`},
		{"l", "", `output pattern "l" matches only unchanged inputs`},
		{"l/f", "", `output pattern "l/f" matches nothing`},
	} {
		got, warnings := collect(t, dir, &m, strings.Fields(c.globs)...)
		if len(got) > 0 || strings.Join(warnings, "|") != c.warnings {
			t.Errorf("%s: got %q, warnings %q, want %q", c.globs, got, warnings, c.warnings)
		}
	}
	// What the program has made of them is told.
	if err := errors.Join(os.Remove(filepath.Join(dir, "d/l")), os.Remove(filepath.Join(dir, "d/m"))); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"d/l": "->/etc", "d/m": "a file now", "d/n": "->f"})
	got, warnings := collect(t, dir, &m, ".")
	want := []string{`output "d/l" is a symbolic link, left out: only regular files are outputs`, `output "d/n" is a symbolic link, left out: only regular files are outputs`}
	if !reflect.DeepEqual(got, []string{"d/m"}) || !slices.Equal(warnings, want) {
		t.Errorf("got %q, warnings %q", got, warnings)
	}
}
