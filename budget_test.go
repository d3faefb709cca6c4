package zorilla_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Budgets are for what is larger than a file or a function, which have limits in arch_test.go.
// None of them is an aim: each says what a reader gains.
const (
	// A reader who wants to know what a type does reads its whole list on two pages, and can still
	// say which state is whose. What counts is in actions.
	maxActions = 50
	// A reader can say for each field who writes it, and sees all of them at once.
	maxFields = 25
	// A reader can write another implementation, or one for a test, in an afternoon.
	maxInterface = 12
	// A reader finds the file by its name in a listing. Tests do not count.
	maxFiles = 25
	// Files that use each other's names, directly or through others, can only be understood
	// together: a reader holds no more of them in mind.
	maxCircle = 12
)

// excused lists who is over a budget, with how much it has. A figure here may only fall.
var excused = map[string]int{
	"jobs.Spec fields":              27, // each is an option of submit
	"jobs/process files":            29, // the node's side and the supervisor's share their messages
	"jobs/process.Worker interface": 18, // what it reads and writes, which is a role, and all that is done with it: nothing is left to be asked at run time
	"cmd/zorilla files":             45, // one for each command
	"node/web.jobView fields":       28, // what a page shows of a job
	"node/api.Service interface":    31, // its roles together, all that a client can ask: nothing is left to be asked at run time
	"transfer.PinStore interface":   25, // its roles together: a store that embeds another one is to lose none

	"cmd/zorilla.console actions":           87, // each command has a function that takes it
	"jobs/process/workertest.suite actions": 66, // each is a test
	"node/api/apitest.Fake actions":         62, // all of node/api.Service, and what a test sets
}

// figure is what was counted, and the budget for it.
type figure struct{ n, budget int }

// figures has what was counted by its name, such as "jobs.Spec fields".
type figures map[string]figure

func TestBudgets(t *testing.T) {
	got := figures{}
	for _, p := range typedPackages(t) {
		p.measure(strings.TrimPrefix(p.path, module+"/"), got)
	}
	for what, f := range got {
		switch most, ok := excused[what]; {
		case !ok && f.n > f.budget:
			t.Errorf("%s: %d, the budget is %d: cut it", what, f.n, f.budget)
		case ok && f.n > most:
			t.Errorf("%s: %d, the table says %d: it may only fall", what, f.n, most)
		case ok && f.n <= f.budget:
			t.Errorf("%s: %d, the budget is %d: remove it from the table", what, f.n, f.budget)
		case ok && f.n < most:
			t.Errorf("%s: %d, the table says %d: lower the table", what, f.n, most)
		}
	}
	for what := range excused {
		if _, ok := got[what]; !ok {
			t.Errorf("%s: not in the program: remove it from the table", what)
		}
	}
}

// typed is a package as the type checker sees it.
type typed struct {
	path  string
	files []*ast.File
	fset  *token.FileSet
	info  *types.Info
	types *types.Package
}

// typedPackages checks all packages of the module.
func typedPackages(t *testing.T) (list []*typed) {
	sources(t) // so that the cache of go test sees a new file
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
		DepOnly                 bool
	}
	exports := map[string]string{}
	var own []entry
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var e entry
		if err := dec.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if exports[e.ImportPath] = e.Export; !e.DepOnly && len(e.GoFiles) > 0 && strings.HasPrefix(e.ImportPath, module+"/") {
			own = append(own, e)
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, e := range own {
		p := &typed{path: e.ImportPath, fset: fset, info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}}
		for _, name := range e.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(e.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			p.files = append(p.files, f)
		}
		if p.types, err = (&types.Config{Importer: imports}).Check(e.ImportPath, fset, p.files, p.info); err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if len(list) < 10 {
		t.Fatalf("only %d packages", len(list))
	}
	return list
}

func (p *typed) measure(pkg string, got figures) {
	got[pkg+" files"] = figure{len(p.files), maxFiles}
	got[pkg+" circle"] = figure{p.circle(), maxCircle}
	actions := p.actions()
	for _, t := range p.named() {
		name := pkg + "." + t.Obj().Name()
		got[name+" actions"] = figure{actions[t], maxActions}
		switch u := t.Underlying().(type) {
		case *types.Struct:
			got[name+" fields"] = figure{u.NumFields(), maxFields}
		case *types.Interface:
			got[name+" interface"] = figure{u.NumMethods(), maxInterface}
		}
	}
}

// named returns the types that the package declares.
func (p *typed) named() (list []*types.Named) {
	scope := p.types.Scope()
	for _, name := range scope.Names() {
		if t, ok := scope.Lookup(name).(*types.TypeName); ok && !t.IsAlias() {
			list = append(list, t.Type().(*types.Named))
		}
	}
	return list
}

// actions counts what can be done with each type of the package, wherever it is written: its
// methods, the functions whose first or second parameter is a pointer to it, and the methods and
// functions of each type that is nothing but a pointer to it.
func (p *typed) actions() map[*types.Named]int {
	n := map[*types.Named]int{}
	for _, t := range p.named() {
		n[p.behind(t)] += t.NumMethods()
	}
	scope := p.types.Scope()
	for _, name := range scope.Names() {
		f, ok := scope.Lookup(name).(*types.Func)
		if !ok {
			continue
		}
		params, counted := f.Signature().Params(), map[*types.Named]bool{}
		for i := range min(2, params.Len()) {
			if t := p.handle(params.At(i).Type()); t != nil && !counted[t] {
				n[t]++
				counted[t] = true
			}
		}
	}
	return n
}

// handle returns the type of the package that a value of this type points to, itself or as the
// only field of a struct, or nil.
func (p *typed) handle(t types.Type) *types.Named {
	if to := p.pointee(t); to != nil {
		return p.behind(to)
	}
	if named, ok := types.Unalias(t).(*types.Named); ok && named.Obj().Pkg() == p.types {
		if to := p.behind(named.Origin()); to != named.Origin() {
			return to
		}
	}
	return nil
}

// behind returns the type that a type of the package is nothing but a pointer to, or the type
// itself.
func (p *typed) behind(t *types.Named) *types.Named {
	for seen := map[*types.Named]bool{}; !seen[t]; { // a type may point to itself
		seen[t] = true
		if s, ok := t.Underlying().(*types.Struct); ok && s.NumFields() == 1 {
			if to := p.pointee(s.Field(0).Type()); to != nil {
				t = to
			}
		}
	}
	return t
}

// pointee returns the type of the package that a type is a pointer to, or nil.
func (p *typed) pointee(t types.Type) *types.Named {
	to, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return nil
	}
	named, ok := types.Unalias(to.Elem()).(*types.Named)
	if !ok || named.Obj().Pkg() != p.types {
		return nil
	}
	return named.Origin()
}

// circle returns the size of the largest set of files each of which uses all others,
// directly or around a corner.
func (p *typed) circle() (largest int) {
	reach := map[string]map[string]bool{} // files that a file uses
	for id, obj := range p.info.Uses {
		if obj.Pkg() != p.types || !obj.Pos().IsValid() {
			continue
		}
		from, to := p.fset.File(id.Pos()).Name(), p.fset.File(obj.Pos()).Name()
		if reach[from] == nil {
			reach[from] = map[string]bool{}
		}
		reach[from][to] = true
	}
	for via := range reach { // Warshall's closure
		for from := range reach {
			if reach[from][via] {
				for to := range reach[via] {
					reach[from][to] = true
				}
			}
		}
	}
	for a := range reach {
		n := 0
		for b := range reach {
			if a != b && reach[a][b] && reach[b][a] {
				n++
			}
		}
		if n > 0 {
			largest = max(largest, n+1)
		}
	}
	return largest
}
