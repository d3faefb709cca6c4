package suggest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// files makes files in a directory of their own, which is the current one then; those that
// end in ! are executable.
func files(t *testing.T, names ...string) (dir string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, name := range names {
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, "!") {
			mode = 0o755
		}
		name = strings.TrimSuffix(name, "!")
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestExpanded(t *testing.T) {
	files(t, "g/a.csv", "g/b.csv", "g/x", "g/y", "g/run.csv!", "p.csv", "q.csv", "part-1", "part-2", "prog!")
	for args, want := range map[string]string{
		"-i g/a.csv g/b.csv -- find .":      "g/b.csv stands where the command should: if the shell has expanded a pattern before it, quote it, as in -i 'g/*.csv'",
		"-i g/a.csv g/b.csv find .":         "-i 'g/*.csv'",
		"-i p.csv q.csv find .":             "-i '*.csv'",
		"-i g/x g/y -- cat":                 "-i 'g/*'",
		"-i g/x g/y cat":                    "", // it may be meant
		"-o part-1 part-2 -- prog":          "-o '*'",
		"-i g/a.csv g/run.csv g/b.csv":      "", // is executable
		"-i g/a.csv q.csv -- cat":           "",
		"-i g/a.csv -- find .":              "",
		"-i g/a.csv g/nosuch.csv -- find .": "",
		"q.csv -- find":                     "",
	} {
		j := Job{Args: strings.Fields(args)}
		for len(j.Args) > 1 && (j.Args[0] == "-i" || j.Args[0] == "-o") {
			if j.Args[0] == "-i" {
				j.Inputs = append(j.Inputs, j.Args[1])
			} else {
				j.Outputs = append(j.Outputs, j.Args[1])
			}
			j.Args = j.Args[2:]
		}
		if j.Args[0] == "--" {
			j.Args = j.Args[1:]
		}
		if got := Expanded(j); (got == "") != (want == "") || !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

func TestCommand(t *testing.T) {
	files(t, "pi.py!", "plain.py", "sh!", "dir/x")
	for name, want := range map[string]string{
		"pi.py":    "pi.py is looked up on the worker's machine: ./pi.py sends along the file that is here",
		"plain.py": "plain.py is looked up on the worker's machine: ./plain.py sends along the file that is here, once it is executable (chmod +x plain.py)",
		"sh":       "", // there is another one
		"dir":      "",
		"./pi.py":  "",
		"nosuch":   "",
		"echo hi":  `"echo hi" is looked for as a program of that name: write its words apart, or sh -c "echo hi"`,
	} {
		if got := Command(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestTime(t *testing.T) {
	for text, want := range map[string]string{"": "", "90m": "", "1:00:00": "", "90": "-t 90 is 90 seconds: -t 90m is as many minutes, which Slurm and PBS mean by it"} {
		if got := Time(text); got != want {
			t.Errorf("%s: got %q", text, got)
		}
	}
}

func TestColumns(t *testing.T) {
	for args, want := range map[string]bool{"echo {}": false, "echo {1} {2}": true, "echo x{2}": true, "awk {print}": false, "echo {12}": false} {
		if got := Columns(strings.Fields(args)); (got != "") != want {
			t.Errorf("%s: got %q", args, got)
		}
	}
}

func TestEnvironments(t *testing.T) {
	dir := files(t, "other/bin/activate")
	for name, activate := range map[string]string{"made": "VIRTUAL_ENV=" + dir + "/made\n", "moved": "VIRTUAL_ENV=$(cd .. && pwd)\n"} {
		if err := errors.Join(os.MkdirAll(name+"/bin", 0o755), os.WriteFile(name+"/pyvenv.cfg", []byte("home = /usr/bin\n"), 0o644), os.WriteFile(name+"/bin/activate", []byte(activate), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	got := Environments(Job{Inputs: []string{"made", "moved", "other", "none"}})
	if len(got) != 1 || !strings.HasPrefix(got[0], "made is a virtual environment made for "+dir+"/made") || !strings.Contains(got[0], "made/bin/python") {
		t.Errorf("got %q", got)
	}
}

func TestInTheWay(t *testing.T) {
	files(t, "part-0", "part-1", "part-2", "part-3", "sub/log", "dir/x")
	for outputs, want := range map[string]string{
		"part-*": "part-0, part-1, part-2 and 1 more exist already: output files of these names are not fetched after the job, unless with --force",
		"**/log": "sub/log exists already: output files of these names are not fetched after the job, unless with --force",
		"dir":    "", "none*": "",
	} {
		if got := strings.Join(InTheWay(Job{Outputs: []string{outputs}}, "."), "\n"); got != want {
			t.Errorf("%s: got %q, want %q", outputs, got, want)
		}
	}
}

func TestNotSent(t *testing.T) {
	dir := files(t, "pi.py", "data/a", "data/b", "conf.yml", "out-1", "1", "2", "3", "4")
	for args, want := range map[string][]string{
		"python3 pi.py":                    {"pi.py is a file here and is not sent along: -i pi.py does that"},
		"python3 ./pi.py ./pi.py":          {"./pi.py is a file here and is not sent along: -i ./pi.py does that"},
		"prog -v --config=conf.yml nosuch": {"conf.yml is a file here and is not sent along: -i conf.yml does that"},
		"cat data/b":                       {"data/b is a file here and is not sent along: -i data/b does that"},
		"ls data/ data/a":                  nil, // part of it is sent
		"touch out-1":                      nil,
		"find . .. / -name x":              nil,
		"cat " + dir + "/pi.py":            nil, // the node tells of those
		"pi.py":                            nil, // is the command
		"cat 1 2 3 4": {"1 is a file here and is not sent along: -i 1 does that",
			"2 is a file here and is not sent along: -i 2 does that", "3 is a file here and is not sent along: -i 3 does that"},
	} {
		if got := NotSent(Job{Args: strings.Fields(args), Outputs: []string{"out-*", "["}, Sent: []string{"./data/a"}}); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
	if got := NotSent(Job{Args: []string{"cat", "data/b"}, Sent: []string{"data"}}); got != nil {
		t.Errorf("in a directory that is sent: got %q", got)
	}
}

func TestOwnCopy(t *testing.T) {
	dir := files(t, "pi.py", "sub/x")
	if got := OwnCopy(dir + "/pi.py"); got != "an absolute path is one of the worker's machine: ./pi.py sends along the file that is here" {
		t.Errorf("got %q", got)
	}
	t.Chdir("sub")
	if got := OwnCopy(dir + "/pi.py"); !strings.Contains(got, ": ../pi.py sends") {
		t.Errorf("from below: got %q", got)
	}
	for _, command := range []string{"/bin/sh", "/usr/bin/env", dir, dir + "/nosuch", "pi.py", "../pi.py"} {
		if got := OwnCopy(command); got != "" {
			t.Errorf("%s: got %q", command, got)
		}
	}
}
