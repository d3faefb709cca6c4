// Package zorilla_test keeps the shape of the whole module: which package may
// import which, that every package explains itself, and that files stay small
// enough to read.
package zorilla_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "zorilla"

// never lists what the command must not link, with the reason.
var never = map[string]string{
	"testing":                     "tests stay out of the program",
	"zorilla/testnet":             "the emulated network is for tests",
	"github.com/chromedp":         "the browser is for tests",
	"gonum.org":                   "figures are drawn by experiments",
	"github.com/rogpeppe":         "scripts are for tests",
	"github.com/cockroachdb":      "conversations are for tests",
	"honnef.co":                   "staticcheck is a tool",
	"github.com/stretchr/testify": "tests stay out of the program",
}

type pkg struct {
	ImportPath   string
	Dir          string
	Imports      []string
	TestImports  []string
	XTestImports []string
	GoFiles      []string
	Deps         []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,GoFiles,Deps", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if len(list) < 10 {
		t.Fatalf("go list names only %d packages", len(list))
	}
	return list
}

// TestFloors wants each package on a floor, above what it imports, and each floor to name folders
// with packages.
func TestFloors(t *testing.T) {
	floors := floorsOf(t)
	empty := maps.Clone(floors)
	for _, p := range packages(t) {
		if p.ImportPath == module {
			continue
		}
		own, ok := floorOf(floors, p.ImportPath)
		if !ok {
			t.Errorf("%s has no floor: add it to those of ARCHITECTURE.md", p.ImportPath)
		}
		for dir := strings.TrimPrefix(p.ImportPath, module+"/"); dir != "."; dir = filepath.Dir(dir) {
			delete(empty, dir)
		}
		for _, imp := range p.Imports {
			if f, ok := floorOf(floors, imp); ok && strings.HasPrefix(imp, module+"/") && f >= own {
				t.Errorf("%s (floor %d) imports %s (floor %d)", p.ImportPath, own, imp, f)
			}
		}
		if p.ImportPath != module+"/cmd/zorilla" {
			continue
		}
		for _, dep := range p.Deps {
			for prefix, why := range never {
				if dep == prefix || strings.HasPrefix(dep, prefix+"/") {
					t.Errorf("the command links %s: %s", dep, why)
				}
			}
		}
	}
	for dir := range empty {
		t.Errorf("ARCHITECTURE.md has %s on floor %d, which has no package", dir, floors[dir])
	}
}

// words is all of the module that whoever imports package jobs gets with it: it has types and their
// bounds, and none of what starts, confines or measures processes.
var words = []string{"vicinity", "flood", "transfer", "jobs/placement", "jobs/placement/topology", "jobs/placement/mapping", "jobs/groups", "jobs/hours", "jobs/mounts",
	"jobs/timing", "jobs/work", "jobs/internal/where", "internal/codec", "internal/sanitize", "internal/units", "internal/uplink", "internal/atomicfile", "internal/reserved"}

func TestJobsAreWordsOnly(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath != module+"/jobs" {
			continue
		}
		for _, dep := range p.Deps {
			if name, own := strings.CutPrefix(dep, module+"/"); own && !slices.Contains(words, name) {
				t.Errorf("package jobs needs %s: move what it needs of that to a package of words", name)
			}
		}
	}
}

// TestPackageComments wants exactly one package comment in each package, which says what it is: no
// other list does.
func TestPackageComments(t *testing.T) {
	for _, p := range packages(t) {
		var with []string
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc == nil {
				continue
			}
			with = append(with, name)
			if text := f.Doc.Text(); f.Name.Name != "main" && !strings.HasPrefix(text, "Package "+f.Name.Name+" ") {
				t.Errorf("%s: its comment is to begin with \"Package %s \", not %.40q", p.ImportPath, f.Name.Name, text)
			}
		}
		if len(p.GoFiles) > 0 && len(with) != 1 {
			t.Errorf("%s has %d package comments %v, want one", p.ImportPath, len(with), with)
		}
	}
}

// sources returns all Go files of the module.
func sources(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != "." {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// ownBuilds lists the files of tests that have a go command build something by themselves, with
// the reason.
var ownBuilds = map[string]string{
	"bench/network_test.go":        "results of benchmarks are not cached",
	"internal/built/built_test.go": "it is about the cache",
}

// The cache of go test does not see what a go command reads that a test starts: a test would be
// told to pass whatever became of the program. internal/built has it seen.
func TestProgramsOfTestsAreSeenByTheCache(t *testing.T) {
	unused := maps.Clone(ownBuilds)
	for _, path := range sources(t) {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !callsGo(call) {
				return true
			}
			if delete(unused, path); ownBuilds[path] == "" {
				t.Errorf("%s has a go command build something: use internal/built", path)
			}
			return true
		})
	}
	for path := range unused {
		t.Errorf("%s builds nothing by itself any more: take it off the list", path)
	}
}

// callsGo reports whether a call names a go command that builds something.
func callsGo(call *ast.CallExpr) bool {
	for i := range len(call.Args) - 1 {
		program, ok := call.Args[i].(*ast.BasicLit)
		command, also := call.Args[i+1].(*ast.BasicLit)
		if ok && also && program.Value == `"go"` && slices.Contains([]string{`"build"`, `"run"`, `"install"`, `"test"`}, command.Value) {
			return true
		}
	}
	return false
}

func TestFilesAndFunctionsStayReadable(t *testing.T) {
	const (
		maxFile     = 400 // a reader scrolls through it in a minute, and remembers what was at the top
		maxTestFile = 450 // the same, and a case needs more lines than what it tests
		maxFunc     = 70  // a reader sees the whole of it at once, on one screen
	)
	for _, path := range sources(t) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		limit := maxFile
		if strings.HasSuffix(path, "_test.go") {
			limit = maxTestFile
		}
		if n := bytes.Count(src, []byte("\n")); n > limit {
			t.Errorf("%s has %d lines, at most %d: is it one thing?", path, n, limit)
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			fn, ok := n.(*ast.FuncDecl)
			if ok && fn.Body != nil && !strings.HasSuffix(path, "_test.go") {
				if lines := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line; lines > maxFunc {
					t.Errorf("%s: %s has %d lines, at most %d", path, fn.Name.Name, lines, maxFunc)
				}
			}
			return true
		})
	}
}

// TestNoInitAndNoSleep refuses init functions, and tests that sleep on the real
// clock: only files that have to do with bubbles may call time.Sleep.
func TestNoInitAndNoSleep(t *testing.T) {
	initFunc := regexp.MustCompile(`(?m)^func init\(\)`)
	inBubble := regexp.MustCompile(`\b(bubble|wholeNodes|atHome)\(t`) // helpers that make one
	for _, path := range sources(t) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if initFunc.Match(src) {
			t.Errorf("%s has an init function: pass values instead", path)
		}
		if strings.HasSuffix(path, "_test.go") && bytes.Contains(src, []byte("time."+"Sleep")) && !bytes.Contains(src, []byte("synctest")) && !inBubble.Match(src) {
			t.Errorf("%s sleeps on the real clock: wait for the event itself", path)
		}
	}
}

// TestEveryDecoderIsFuzzed wants a fuzz target in each package that reads bytes
// of the network.
func TestEveryDecoderIsFuzzed(t *testing.T) {
	want := []string{"internal/codec", "vicinity", "flood", "transfer", "jobs/internal/wire", "jobs/internal/output", "jobs/internal/primary", "jobs/process", "node/trust", "node/gossip", "node/api"}
	var have []string
	for _, path := range sources(t) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "_test.go") && bytes.Contains(src, []byte("\nfunc Fuzz")) && bytes.Contains(src, []byte("f.Add(")) {
			have = append(have, filepath.Dir(path))
		}
	}
	for _, dir := range want {
		if !slices.Contains(have, dir) {
			t.Errorf("%s has no fuzz target with seeds", dir)
		}
	}
}
