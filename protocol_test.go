package zorilla_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"zorilla/node/api"
)

// read returns a text file of the module.
func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// rows returns the rows of all tables of a page, without the padding of cells.
func rows(page string) []string {
	var out []string
	for line := range strings.Lines(page) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") {
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			out = append(out, "|"+strings.Join(cells, "|")+"|")
		}
	}
	return out
}

func wantRow(t *testing.T, page string, table []string, part string) {
	t.Helper()
	if !slices.ContainsFunc(table, func(row string) bool { return strings.Contains(row, part) }) {
		t.Errorf("%s has no table row with %s", page, part)
	}
}

// constants returns the values of a file's constants, by name.
func constants(t *testing.T, path string) map[string]ast.Expr {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]ast.Expr{}
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
			for i, name := range spec.Names {
				found[name.Name] = spec.Values[i]
			}
		}
		return true
	})
	return found
}

// text evaluates a constant that is a string, or strings added up.
func text(consts map[string]ast.Expr, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.Ident:
		return text(consts, consts[e.Name])
	case *ast.BinaryExpr:
		return text(consts, e.X) + text(consts, e.Y)
	}
	return ""
}

func TestProtocolNamesEveryPacketKind(t *testing.T) {
	table := rows(read(t, "PROTOCOL.md"))
	kinds := 0
	for name, value := range constants(t, "node/network.go") {
		if lit, ok := value.(*ast.BasicLit); ok && strings.HasPrefix(name, "kind") {
			kinds++
			wantRow(t, "PROTOCOL.md", table, fmt.Sprintf("|%s|`%s`|", lit.Value, name))
		}
	}
	if kinds < 3 {
		t.Errorf("node/network.go names %d packet kinds: has the table moved?", kinds)
	}
}

func TestProtocolNamesEveryPeerPath(t *testing.T) {
	table := rows(read(t, "PROTOCOL.md"))
	consts := constants(t, "jobs/internal/peer/client.go")
	paths := 0
	for name, value := range consts {
		if strings.HasPrefix(name, "Path") {
			paths++
			wantRow(t, "PROTOCOL.md", table, text(consts, value))
		}
	}
	if paths < 5 {
		t.Errorf("jobs/internal/peer/client.go names %d paths: have they moved?", paths)
	}
	files := constants(t, "transfer/exchange/handler.go")
	wantRow(t, "PROTOCOL.md", table, "|`GET "+text(files, files["BlobPath"])+"{hash}`|")
	for _, what := range []string{"state", "chunk"} {
		wantRow(t, "PROTOCOL.md", table, "|`POST "+text(files, files["TreePath"])+"{hash}/"+what+"`|")
	}
	wantRow(t, "PROTOCOL.md", table, "|`POST "+text(consts, consts["Prefix"])+"twin`|")
	peers := constants(t, "node/peers.go")
	wantRow(t, "PROTOCOL.md", table, "|`"+text(peers, peers["apiPrefix"])+"/")
}

// TestProtocolNamesEveryRoute wants each pattern that the client API and the
// page give to their ServeMux.
func TestProtocolNamesEveryRoute(t *testing.T) {
	table := rows(read(t, "PROTOCOL.md"))
	handle := regexp.MustCompile(`mux\.Handle(?:Func)?\("([^"]*)"`)
	for path, least := range map[string]int{"node/api/handler.go": 11, "node/api/peer.go": 10, "node/web/web.go": 6} {
		found := 0
		for _, m := range handle.FindAllStringSubmatch(read(t, path), -1) {
			route := m[1]
			if route == "/" {
				continue // whatever is not a route
			}
			if !strings.Contains(route, " ") { // the page answers GET and HEAD only
				route = "GET " + strings.TrimSuffix(route, "{$}")
			}
			found++
			wantRow(t, "PROTOCOL.md", table, "|`"+route+"`|")
		}
		if found < least {
			t.Errorf("%s has %d routes, want at least %d: have they moved?", path, found, least)
		}
	}
}

// TestProtocolNamesWhatPeersMayAsk wants exactly the routes of node/api/peer.go
// and the methods of api.Peer in the table of what nodes ask each other.
func TestProtocolNamesWhatPeersMayAsk(t *testing.T) {
	told := map[string]string{} // methods by their routes
	for _, row := range rows(read(t, "PROTOCOL.md")) {
		if m := regexp.MustCompile("^\\|`(\\w+) /api(/v1/[^`]*)`\\|`(\\w+)`\\|").FindStringSubmatch(row); m != nil {
			told[m[1]+" "+m[2]] = m[3]
		}
	}
	served := map[string]bool{}
	for _, m := range regexp.MustCompile(`mux\.HandleFunc\("(\w+ [^"]*)"`).FindAllStringSubmatch(read(t, "node/api/peer.go"), -1) {
		served[m[1]] = true
	}
	methods := slices.Sorted(maps.Values(told))
	var has []string
	for m := range reflect.TypeFor[api.Peer]().Methods() {
		has = append(has, m.Name)
	}
	if slices.Sort(has); !slices.Equal(methods, has) {
		t.Errorf("PROTOCOL.md lets peers ask\n%v\napi.Peer has\n%v", methods, has)
	}
	if want, is := slices.Sorted(maps.Keys(told)), slices.Sorted(maps.Keys(served)); !slices.Equal(want, is) {
		t.Errorf("PROTOCOL.md lets peers ask\n%v\nnode/api/peer.go serves\n%v", want, is)
	}
}
