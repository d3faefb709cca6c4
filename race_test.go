package zorilla_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unraced lists the packages that .ci/run never tests with the race detector.
const unraced = ".ci/unraced"

// concurrent are packages by which goroutines begin, or for which there would be no need
// without them.
var concurrent = []string{"net", "net/http", "net/http/httptest", "os/exec", "sync", "sync/atomic", "testing/synctest"}

// A package has no concurrency if no file of it, and none of its tests, starts a goroutine, has
// a channel, or imports what is for that; and none of its tests is parallel. The race detector
// finds nothing there, and takes long: .ci/full looks all the same, since what such a
// package imports might start one. UPDATE_UNRACED=1 writes the list.
func TestPackagesWithoutConcurrency(t *testing.T) {
	why := map[string]string{}
	for _, path := range sources(t) {
		dir := "./" + filepath.ToSlash(filepath.Dir(path))
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if reason := concurrency(f); reason != "" || why[dir] == "" {
			why[dir] = reason
		}
	}
	var want []string
	for dir, reason := range why {
		if tests, _ := filepath.Glob(filepath.Join(dir, "*_test.go")); reason == "" && len(tests) > 0 {
			want = append(want, dir)
		}
	}
	slices.Sort(want)
	text := strings.Join(want, "\n") + "\n"
	if os.Getenv("UPDATE_UNRACED") != "" {
		if err := os.WriteFile(unraced, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(unraced)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range strings.Fields(string(got)) {
		if !slices.Contains(want, dir) {
			t.Errorf("%s lists %s, which has concurrency: %s", unraced, dir, why[dir])
		}
	}
	if string(got) != text && !t.Failed() {
		t.Errorf("%s is not what it must be: UPDATE_UNRACED=1 go test -run %s . writes it", unraced, t.Name())
	}
	if len(want) < 20 || len(want) > len(why)/2 {
		t.Errorf("%d of %d packages have no concurrency: %q", len(want), len(why), want)
	}
}

// concurrency returns what in a file has to do with several goroutines, or "".
func concurrency(f *ast.File) (reason string) {
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if slices.Contains(concurrent, path) || strings.HasPrefix(path, "golang.org/x/sync/") {
			return "it imports " + path
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			reason = "it starts a goroutine"
		case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
			reason = "it has a channel"
		case *ast.SelectorExpr:
			if n.Sel.Name == "Parallel" || n.Sel.Name == "AfterFunc" {
				reason = "it calls " + n.Sel.Name
			}
		}
		return reason == ""
	})
	return reason
}
