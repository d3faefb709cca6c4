package pages

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"zorilla/internal/needs"
)

// page is what there is to say of a page beside its commands.
type page struct {
	given  string            // what it takes for granted: typed before
	not    map[string]string // commands that are not typed: why
	as     map[string]string // what is typed instead of a command
	says   map[string]string // what a command prints, as an expression
	inside []string          // commands that are typed in rank 0 of the job JOB
	so     []string          // what is true in the end: commands that do not fail
}

// script is what is typed of a block.
type script struct {
	at    string // page and line
	text  string
	nodes []Command // that it starts, beside those of README.md
	wants []string
}

// TestPages types all commands that pages show, in their order and in one directory, as
// somebody does who begins with the page, at three nodes of its own which are real processes. A block
// is a script that ends with its first command that fails. What is not typed is listed,
// with the reason.
func TestPages(t *testing.T) {
	needs.Programs(t, "make", "gcc", "mpicc.mpich", "mpicc.openmpi", "mpirun.openmpi", "mpiexec.hydra", "parallel", "curl", "rsync", "python3", "f2py3", "pamscale", "pnmtojpeg", "/usr/lib/python3/dist-packages/h5py/_debian_h5py_mpi")
	others := maps.Clone(listed)
	checkout := build(t)
	for _, path := range paths(t) {
		name := strings.TrimPrefix(path, "../../")
		blocks, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		p := listed[name]
		delete(others, name)
		scripts := p.scripts(t, name, blocks)
		if len(scripts) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := start(t, checkout)
			if err := os.CopyFS(n.work, os.DirFS("testdata/files")); err != nil {
				t.Fatal(err)
			}
			n.mustType(p.given)
			for _, s := range scripts {
				n.run(s)
			}
			for _, text := range p.so {
				n.run(script{at: name + ", in the end", text: text})
			}
		})
	}
	for name := range others {
		t.Errorf("%s is no page: do not list it", name)
	}
}

// elsewhere are the pages whose commands are shown by other tests: what --help says, and what
// makes each row happen.
var elsewhere = []string{"reference.md", "exit-codes.md"}

// paths are the pages.
func paths(t *testing.T) []string {
	t.Helper()
	all := []string{"../../README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../examples/README.md", "../../examples/*/README.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(found), err)
		}
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(path string) bool { return slices.Contains(elsewhere, filepath.Base(path)) })
}

// scripts are what is typed of a page. What is listed of it must be there.
func (p page) scripts(t *testing.T, name string, blocks []Block) (scripts []script) {
	t.Helper()
	shown := map[string]bool{}
	for _, b := range blocks {
		for _, c := range b.Commands {
			shown[c.Text] = true
		}
		if s := p.script(b); s.text != "" || s.nodes != nil {
			s.at = fmt.Sprintf("%s:%d", name, b.Line)
			scripts = append(scripts, s)
		}
	}
	for _, texts := range []iter.Seq[string]{maps.Keys(p.not), maps.Keys(p.as), maps.Keys(p.says), slices.Values(p.inside)} {
		for text := range texts {
			if !shown[text] {
				t.Errorf("%s does not show %s: do not list it", name, text)
			}
		}
	}
	return scripts
}

// script is what is typed of a block.
func (p page) script(b Block) (s script) {
	var lines []string
	inside := false
	for _, c := range b.Commands {
		if p.not[c.Text] != "" || c.Host != "" { // those of hosts have started the nodes
			continue
		}
		if strings.HasPrefix(c.Text+" ", "zorilla node ") {
			s.nodes = append(s.nodes, c)
			continue
		}
		if want, ok := p.says[c.Text]; ok {
			s.wants = append(s.wants, want)
		}
		inside = inside || slices.Contains(p.inside, c.Text)
		if as, ok := p.as[c.Text]; ok {
			c.Text = as
		}
		lines = append(lines, c.Text)
	}
	s.text = strings.Join(lines, "\n")
	if inside { // addresses of the pages are those of the second and the third machine
		text := strings.NewReplacer("'", `'\''`, "10.0.0.7", "127.0.0.2", "10.0.0.8", "127.0.0.3").Replace(s.text)
		s.text = "zorilla exec JOB bash -eux -o pipefail -c '" + text + "'"
	}
	return s
}

// run types a script, and wants it to succeed.
func (n *network) run(s script) {
	n.t.Helper()
	for _, c := range s.nodes {
		n.node(c)()
	}
	defer n.given(s.text)()
	out, said, err := n.types(s.text, "-x")
	if err != nil {
		state, _, _ := n.types("zorilla ps; zorilla explain last") // what there is of it
		n.t.Errorf("%s: %v:\n%s%s%s", s.at, err, out, said, state)
	}
	for _, want := range s.wants {
		if !regexp.MustCompile("(?m)" + want).MatchString(out) {
			n.t.Errorf("%s: %q is not in:\n%s%s", s.at, want, out, said)
		}
	}
}

var (
	aJob    = regexp.MustCompile(`\bJOB\b`)
	running = regexp.MustCompile(`\b(exec|cancel|resize|move)\b.*\bJOB\b`)
	ofTasks = regexp.MustCompile(`\b(tasks|rerun)\b`)
)

// given submits a job that is called JOB, where a script is about one: it runs, or has ended
// where that will do. It returns what ends it.
func (n *network) given(script string) (end func()) {
	n.t.Helper()
	switch {
	case !aJob.MatchString(script):
		return func() {}
	case running.MatchString(script):
		n.mustType(`zorilla submit -J JOB -n 2..6 --strategy spread -- sh -c 'mkdir results; echo begun | tee log; exec sleep inf'
			for rank in 0 1 2 3; do until zorilla logs JOB:$rank | grep -q begun; do sleep 0.05; done; done`)
	case ofTasks.MatchString(script):
		n.mustType(`zorilla submit -J JOB -a 1-4 -- false; zorilla wait JOB || true`)
	default:
		n.mustType(`zorilla submit -J JOB -n 4 -o result -- sh -c 'echo done | tee result'; zorilla wait JOB`)
	}
	return func() {
		n.mustType(`zorilla cancel JOB || true; zorilla wait JOB || true; zorilla rm JOB || true`)
	}
}
