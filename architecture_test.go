package zorilla_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// floorsOf reads the floors of ARCHITECTURE.md: a package imports only floors below its own.
// Folders that are not named have the floor of the folder above them.
func floorsOf(t *testing.T) map[string]int {
	t.Helper()
	const page, head = "ARCHITECTURE.md", "\n    floor\n"
	_, list, found := strings.Cut(read(t, page), head)
	if !found {
		t.Fatalf("%s has no floors", page)
	}
	floors, floor := map[string]int{}, 0
	for line := range strings.Lines(list) {
		names := strings.Fields(line)
		if !strings.HasPrefix(line, "    ") {
			break
		}
		if names[0] == "----" {
			continue
		}
		if n, err := strconv.Atoi(names[0]); err == nil {
			floor, names = n, names[1:]
		}
		for _, name := range names {
			if _, twice := floors[name]; twice {
				t.Errorf("%s has %s on two floors", page, name)
			}
			floors[name] = floor
		}
	}
	return floors
}

// floorOf returns the floor of a package of this module.
func floorOf(floors map[string]int, importPath string) (int, bool) {
	rel := strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
	for ; rel != "." && rel != ""; rel = filepath.Dir(rel) {
		if f, ok := floors[rel]; ok {
			return f, true
		}
	}
	return 0, false
}

// drawing is a sequence drawing of a page, one statement a line.
var (
	drawing     = regexp.MustCompile("(?s)\n```mermaid\n(.*?)\n```\n")
	participant = regexp.MustCompile(`^participant (\w+) as [\w ./()-]+$`)
	arrow       = regexp.MustCompile(`^(\w+)--?>>(\w+): ([^;#%{}]+)$`)
	block       = regexp.MustCompile(`^(loop|opt|alt|else) [\w ,./()-]+$|^end$`)
	ofCode      = regexp.MustCompile(`\b([a-z]+)((?:\.[A-Za-z]\w*)+)`)
)

// TestLifeCyclesAreDrawnWithNamesOfTheCode holds the drawings of docs/architecture to the code: a
// newcomer finds each step by its name.
func TestLifeCyclesAreDrawnWithNamesOfTheCode(t *testing.T) {
	names := declared(t)
	pages, err := filepath.Glob("docs/architecture/*.md")
	if err != nil || len(pages) < 4 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		drawings := drawing.FindAllStringSubmatch(read(t, page), -1)
		if len(drawings) != 1 {
			t.Errorf("%s has %d drawings, want one", page, len(drawings))
			continue
		}
		lines := strings.Split(drawings[0][1], "\n")
		if lines[0] != "sequenceDiagram" {
			t.Errorf("%s: a drawing is %q, want sequenceDiagram", page, lines[0])
		}
		var who []string
		for _, line := range lines[1:] {
			line = strings.TrimSpace(line)
			step := arrow.FindStringSubmatch(line)
			switch m := participant.FindStringSubmatch(line); {
			case m != nil:
				who = append(who, m[1])
			case block.MatchString(line):
			case step == nil:
				t.Errorf("%s: %q is not drawn everywhere: participant, an arrow, loop, opt, alt, else or end", page, line)
			case !slices.Contains(who, step[1]) || !slices.Contains(who, step[2]):
				t.Errorf("%s: %q is between others than %v", page, line, who)
			case !ofCode.MatchString(step[3]):
				t.Errorf("%s: %q names nothing of the code", page, line)
			}
			for _, m := range ofCode.FindAllStringSubmatch(line, -1) {
				if !names[m[0]] {
					t.Errorf("%s: %s is not in the code", page, m[0])
				}
			}
		}
	}
}

// declared returns what packages declare, by the name of the package: functions, methods, types,
// constants and variables.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, path := range sources(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		of := f.Name.Name + "."
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[of+receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					declare(names, of, s)
				}
			}
		}
	}
	return names
}

// declare notes what a declaration names, also the methods of an interface.
func declare(names map[string]bool, of string, s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, id := range s.Names {
			names[of+id.Name] = true
		}
	case *ast.TypeSpec:
		names[of+s.Name.Name] = true
		if it, ok := s.Type.(*ast.InterfaceType); ok {
			for _, m := range it.Methods.List {
				for _, id := range m.Names {
					names[of+s.Name.Name+"."+id.Name] = true
				}
			}
		}
	}
}

// receiver returns the type of a method and a dot, or "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	if g, ok := of.(*ast.IndexExpr); ok {
		of = g.X
	}
	if id, ok := of.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}
