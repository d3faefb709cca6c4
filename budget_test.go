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

// Budgets: what is not limited is where code grows. Files and functions have limits
// of their own; these are for what comes above them.
const (
	maxMethods   = 40 // of a type
	maxFields    = 25 // of a struct
	maxInterface = 12 // methods that an interface asks for
	maxFiles     = 25 // of a package, without tests
	maxCircle    = 12 // files of a package that use each other's names, directly or around a corner
)

// excused lists who is over a budget, with how much it has. The number may only
// fall: when it does, write the new one here.
var excused = map[string]int{
	"jobs.Spec fields":              27, // each is an option of submit
	"jobs/process files":            29, // the node's side and the supervisor's share their messages
	"jobs/process.Worker interface": 18, // what it reads and writes, which is a role, and all that is done with it: nothing is left to be asked at run time
	"cmd/zorilla files":             45, // one for each command
	"node/web.jobView fields":       28, // what a page shows of a job
	"node/api.Service interface":    31, // its roles together, all that a client can ask: nothing is left to be asked at run time
	"transfer.PinStore interface":   25, // its roles together: a store that embeds another one is to lose none
}

// measured is what a package is measured by.
type measured struct {
	pkg string // its path below the module
	got map[string]int
}

func (m *measured) note(what string, n, most int) {
	if n > most {
		m.got[m.pkg+what] = n
	}
}

func TestBudgets(t *testing.T) {
	got := map[string]int{}
	for _, p := range typedPackages(t) {
		p.measure(&measured{strings.TrimPrefix(p.path, module+"/"), got})
	}
	for what, n := range got {
		switch most, ok := excused[what]; {
		case !ok:
			t.Errorf("%s: %d, which is over its budget: cut it", what, n)
		case n > most:
			t.Errorf("%s: %d, had %d: it may only fall", what, n, most)
		}
	}
	for what, most := range excused {
		if n := got[what]; n < most {
			t.Errorf("%s: %d, had %d: write that down", what, n, most)
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

func (p *typed) measure(m *measured) {
	m.note(" files", len(p.files), maxFiles)
	m.note(" circle", p.circle(), maxCircle)
	scope := p.types.Scope()
	for _, name := range scope.Names() {
		named, ok := scope.Lookup(name).Type().(*types.Named)
		if _, isType := scope.Lookup(name).(*types.TypeName); !ok || !isType {
			continue
		}
		m.note("."+name+" methods", named.NumMethods(), maxMethods)
		switch u := named.Underlying().(type) {
		case *types.Struct:
			m.note("."+name+" fields", u.NumFields(), maxFields)
		case *types.Interface:
			m.note("."+name+" interface", u.NumMethods(), maxInterface)
		}
	}
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
