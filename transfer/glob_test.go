package transfer_test

import (
	"slices"
	"strings"
	"testing"

	"zorilla/transfer"
)

func TestGlobOfAnyDepth(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"deep/t.txt": "1", "deep/a/m.txt": "2", "deep/a/b/c.txt": "3", "deep/a/b/c.dat": "4", "other/x.txt": "5", "deep/sub.txt/inner": "6"})
	t.Chdir(dir)
	for glob, want := range map[string]string{
		"deep/**/*.txt":   "deep/a/b/c.txt deep/a/m.txt deep/sub.txt deep/t.txt",
		"**/c.*":          "deep/a/b/c.dat deep/a/b/c.txt",
		"d*/**/b":         "deep/a/b",
		"*/**/x.txt":      "other/x.txt",
		"other/**":        "other/x.txt",
		"none/**":         "",
		"deep/t.txt/**":   "",
		"deep/*/m.txt":    "deep/a/m.txt",
		dir + "/**/x.txt": dir + "/other/x.txt",
	} {
		got, err := transfer.Glob(glob)
		slices.Sort(got)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v, want %s", glob, got, err, want)
		}
	}
	if _, err := transfer.Glob("**/["); err == nil {
		t.Error("a malformed pattern is one")
	}
	in, err := transfer.ExpandInputs([]string{"deep/**/*.txt"})
	if err != nil || len(in) != 4 {
		t.Errorf("%+v, %v", in, err)
	}
}

// A pattern of somebody else takes no more time for having many such elements.
func TestPatternOfManyDepths(t *testing.T) {
	glob := strings.Repeat("**/a/", 200) + "b" // with an exponential search the test would not end
	if transfer.MatchOutput([]string{glob}, strings.Repeat("a/", 300)+"c") {
		t.Error("it takes what it does not name")
	}
	if !transfer.MatchOutput([]string{glob}, strings.Repeat("a/", 300)+"b") {
		t.Error("it does not take what it names")
	}
}

func TestLeadsThrough(t *testing.T) {
	for _, c := range []struct {
		glob, dir string
		want      bool
	}{
		{"out/x", "out", true}, {"out", "out", false}, {"out", "in", false}, {"*/x", "out", true}, {"**/x", "out", true}, {"**/x", "out/deeper", true},
		{"out/**", "out", true}, {"a/**/b", "out", false}, {"out/*/x", "out/a", true}, {"out/*/x", "out/a/x", false},
	} {
		if got := transfer.LeadsThrough(c.glob, c.dir); got != c.want {
			t.Errorf("%s through %s: %v", c.glob, c.dir, got)
		}
	}
}
