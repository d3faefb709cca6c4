package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zorilla/jobs/work"
)

// tree makes files with the text "old".
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := realPath(t, t.TempDir())
	for _, name := range names {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The longest path counts: what is only to be read stays so below what is written to,
// and what is hidden stays hidden, however a worker turns its surroundings.
func TestShownToBeWritten(t *testing.T) {
	needLandlock(t)
	for _, basic := range []bool{false, true} {
		dir := tree(t, "data/a", "data/new/b", "scratch/c", "scratch/kept/d", "plain/c", "home/state/secret", "home/tool", "file")
		text := `cd DIR
read() { cat $1 >/dev/null && echo read $1; }
write() { echo new >> $1 && echo wrote $1; }
read data/a; write data/a; write data/x; write data/new/b; write data/new/x
read scratch/kept/d; write scratch/kept/d; write scratch/c; mkdir plain/dir && mv plain/c plain/dir/e && echo moved
rm scratch/kept/d; mv scratch/kept scratch/other && echo moved kept
write home/tool; read home/state/secret; mv home/state home/elsewhere && echo moved state; write home/new
mv home elsewhere && echo moved home; write file; ln -s DIR/home/state/secret plain/link; read plain/link`
		spec := script(t, strings.ReplaceAll(text, "DIR", dir))
		spec.Expose = []string{dir + "/data", dir + "/scratch/kept"}
		spec.Writable = []string{dir + "/data/new", dir + "/scratch", dir + "/plain", dir + "/home", dir + "/file"}
		spec.Hide = []string{dir + "/home/state"}
		_, out, stderr := run(t, Config{Basic: basic}, spec)
		want := "read data/a\nwrote data/new/b\nwrote data/new/x\nread scratch/kept/d\nwrote scratch/c\nmoved\nwrote home/tool\nwrote file\n"
		if out != want {
			t.Errorf("basic %v: got\n%s%s\nwant\n%s", basic, out, stderr, want)
		}
		for name, want := range map[string]string{
			"data/a": "old", "scratch/kept/d": "old", "home/state/secret": "old", "plain/dir/e": "old", "scratch/c": "oldnew\n", "data/new/x": "new\n", "file": "oldnew\n",
		} {
			if b, err := os.ReadFile(filepath.Join(dir, name)); string(b) != want {
				t.Errorf("basic %v: %s has %q, %v, want %q", basic, name, b, err, want)
			}
		}
	}
}

// A worker that may write cannot put a link where the owner means a directory.
func TestLinksInWhatIsWritten(t *testing.T) {
	needLandlock(t)
	for _, basic := range []bool{false, true} {
		dir := tree(t, "scratch/a/kept/d", "secret/d")
		first := script(t, fmt.Sprintf("cd %s/scratch && mv a b; mkdir -p a && ln -s %s/secret a/kept", dir, dir))
		second := script(t, fmt.Sprintf("cat %s/scratch/a/kept/d; cat %s/secret/d", dir, dir))
		for _, spec := range []*Spec{&first, &second} {
			spec.Writable, spec.Expose = []string{dir + "/scratch"}, []string{dir + "/scratch/a/kept"}
		}
		run(t, Config{Basic: basic}, first)
		if _, out, stderr := run(t, Config{Basic: basic}, second); out != "old" {
			t.Errorf("basic %v: got %q %q", basic, out, stderr)
		}
	}
}

// "/" is everything but the system directories to write, and what the job has of its own.
func TestEverythingIsShown(t *testing.T) {
	needLandlock(t)
	for _, basic := range []bool{false, true} {
		for _, write := range []bool{false, true} {
			dir := tree(t, "state/secret")
			spec := script(t, "touch /usr/zorilla-test /dev/zorilla-test /zorilla-test; ls /usr >/dev/null && echo usr; cat "+dir+"/state/secret; touch new && echo new")
			spec.Hide = []string{dir + "/state"}
			if spec.Expose = []string{"/"}; write {
				spec.Expose, spec.Writable = nil, spec.Expose
			}
			if _, out, stderr := run(t, Config{Basic: basic}, spec); out != "usr\nnew\n" {
				t.Errorf("basic %v, write %v: %q %q", basic, write, out, stderr)
			}
			for _, p := range []string{"/usr/zorilla-test", "/dev/zorilla-test", "/zorilla-test"} {
				if os.Remove(p) == nil {
					t.Errorf("basic %v, write %v: the worker has made %s", basic, write, p)
				}
			}
		}
	}
}

// Workers of a job that begin later see what is shown then; the others keep what they have.
func TestWhatIsShownChangesUnderWay(t *testing.T) {
	needNamespaces(t)
	dir := tree(t, "data/a", "go")
	if err := os.Remove(dir + "/go"); err != nil {
		t.Fatal(err)
	}
	text := "until test -e DIR/gate/go; do sleep 0.01; done; cat DIR/data/a"
	first, second := member(t, "job", strings.ReplaceAll(text, "DIR", dir)), member(t, "job", strings.ReplaceAll(text, "DIR", dir))
	together(t, &first, &second)
	for p := dir; p != "/tmp" && len(p) > 1 && os.Geteuid() == 0; p = filepath.Dir(p) { // for a worker that is nobody
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir+"/gate", 0o755); err != nil {
		t.Fatal(err)
	}
	first.Expose, second.Expose = []string{dir + "/gate", dir + "/data"}, []string{dir + "/gate"}
	all := startAll(t, first, second)
	if err := os.WriteFile(dir+"/gate/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"old", ""} {
		e := await(t, all[i])
		b := make([]byte, 100)
		n, _ := all[i].ReadOutput(work.Stdout, 0, b)
		if string(b[:n]) != want {
			t.Errorf("worker %d: %+v %q, want %q", i, e, b[:n], want)
		}
	}
}

// Without namespaces a link that is not shown leads to what is: so begins the Python of a
// virtual environment, and then finds nothing else of it.
func TestLinkThatIsNotShownIsNamed(t *testing.T) {
	needLandlock(t)
	link := filepath.Join(tree(t), "python")
	if err := os.Symlink("/bin/sh", link); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Root: newRoot(t), Args: []string{link, "-c", "exit 3"}, UID: -1}
	if e, _, _ := run(t, Config{Basic: true}, spec); e.Code != 3 || !strings.HasPrefix(e.Detail, "ended with 3; "+link+", which it was given, is not shown") {
		t.Errorf("got %+v", e)
	}
}

// What is not shown is named, and not told from what is not there.
func TestWhatIsNotShownIsNamed(t *testing.T) {
	needLandlock(t)
	dir := tree(t, "tool", "data")
	if err := os.Chmod(dir+"/tool", 0o755); err != nil {
		t.Fatal(err)
	}
	given := func(path string, basic bool) string {
		if !basic && strings.HasPrefix(path, "/tmp/") {
			return "; " + path + ", which it was given, is a path in a /tmp of the job's own"
		}
		return "; " + path + ", which it was given, is not shown to workers on this node: its owner can expose it, or the job can ask for it (--mount)"
	}
	const words = " is not shown to workers on this node: its owner can expose it, or the job can ask for it (--mount)"
	for name, c := range map[string]struct {
		args   []string
		script string // Root/work/prog
		code   int
		detail string
		given  string
	}{
		"command":           {args: []string{dir + "/tool"}, code: 127, detail: dir + "/tool:" + words},
		"command, missing":  {args: []string{dir + "/none"}, code: 127, detail: dir + "/none:" + words},
		"interpreter":       {args: []string{"./prog"}, script: "#!" + dir + "/tool -x\n", code: 126, detail: `./prog: its interpreter "` + dir + `/tool"` + words},
		"its own":           {args: []string{"./prog"}, script: "#!/usr/bin/no-such-thing\n", code: 126, detail: `./prog: its interpreter "/usr/bin/no-such-thing" does not exist on this node`},
		"argument":          {args: []string{"cat", "x", dir + "/data"}, code: 1, detail: "ended with 1", given: dir + "/data"},
		"argument, missing": {args: []string{"cat", dir + "/none"}, code: 1, detail: "ended with 1", given: dir + "/none"},
		"option":            {args: []string{"ls", "--ignore=" + dir + "/none", "x"}, code: 2, detail: "ended with 2", given: dir + "/none"},
		"well":              {args: []string{"echo", dir + "/data"}},
		"elsewhere":         {args: []string{"cat", "/home/none/data"}, code: 1, detail: "ended with 1", given: "/home/none/data"},
		"shown":             {args: []string{"cat", "/etc/no-such-file"}, code: 1},
	} {
		for _, basic := range []bool{false, true} {
			spec := Spec{Root: newRoot(t), Args: c.args, UID: -1}
			if c.script != "" {
				if err := os.WriteFile(filepath.Join(spec.Root, workDir, "prog"), []byte(c.script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			detail := c.detail
			if c.given != "" {
				detail += given(c.given, basic)
			}
			if e, _, _ := run(t, Config{Basic: basic}, spec); e.Code != c.code || e.Detail != detail {
				t.Errorf("%s, basic %v: got %+v, want %d %q", name, basic, e, c.code, detail)
			}
		}
	}
}

// Links in directories that are shown anyway are shown as they are, and the memory of a
// directory that is the machine's is not a worker's.
func TestShownTwice(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		s := spec("none")
		s.Args = []string{"/bin/sh", "-c", "cat < /etc/passwd > /dev/null && sleep 0.3 && echo fine"}
		s.Expose = append(s.Expose, "/bin/sh", "/usr/bin/awk", "/tmp")
		s.Memory = 64 << 20
		if e, out, stderr := run(t, cfg, s); e.Code != 0 || out != "fine\n" {
			t.Errorf("%+v %q %q", e, out, stderr)
		}
	})
}

// A shared library that is not there is named, in what a rank comes to and in the standard
// error of tasks, the first of them.
func TestLibraryThatIsMissingIsNamed(t *testing.T) {
	program, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	program = bytes.ReplaceAll(program, []byte("libc.so.6\x00"), []byte("libx.so.6\x00"))
	const words = "; libx.so.6, a shared library that it needs, was not found: what is outside the system directories is not shown to workers on this node: " +
		"its owner can expose it, or the job can ask for it (--mount)"
	for _, tasks := range []int{0, maxHints + 2} {
		spec := Spec{Root: newRoot(t), Args: []string{"./prog"}, UID: -1}
		if err := os.WriteFile(filepath.Join(spec.Root, workDir, "prog"), program, 0o755); err != nil {
			t.Fatal(err)
		}
		if tasks == 0 {
			if e, _, stderr := run(t, Config{}, spec); e.Code != codeNotFound || e.Detail != "ended with 127"+words {
				t.Errorf("%+v %q", e, stderr)
			}
			continue
		}
		spec.Tasks = &TaskSpec{IDs: []work.TaskIDs{{First: 1, Last: tasks, Step: 1}}}
		w := start(t, Config{}, spec)
		w.Tasks().Add(0, []TaskRange{{0, tasks}}, true)
		e, stderr := await(t, w), output(t, w, work.Stderr)
		if e.Code != 0 || strings.Count(stderr, words+"\n") != maxHints || !strings.Contains(stderr, "\nzorilla: task 2 ended with 127"+words) {
			t.Errorf("%+v %q", e, stderr)
		}
	}
}

// So is a path that a task was given.
func TestPathOfATaskIsNamed(t *testing.T) {
	needLandlock(t)
	spec := Spec{Root: newRoot(t), Args: []string{"cat", "/home/none/data"}, UID: -1, Tasks: &TaskSpec{IDs: []work.TaskIDs{{First: 7, Last: 7, Step: 1}}}}
	w := start(t, Config{}, spec)
	w.Tasks().Add(0, []TaskRange{{0, 1}}, true)
	e, stderr := await(t, w), output(t, w, work.Stderr)
	if e.Code != 0 || !strings.HasSuffix(stderr, "\nzorilla: task 7 ended with 1; /home/none/data, which it was given, is not shown to workers on this node: its owner can expose it, or the job can ask for it (--mount)\n") {
		t.Errorf("%+v %q", e, stderr)
	}
	results, err := w.Tasks().Results(0, 10)
	if err != nil || len(results) != 1 || results[0].Stderr != int64(len(stderr)) {
		t.Errorf("%+v, %v: want all %d bytes of standard error to be the task's", results, err, len(stderr))
	}
}
