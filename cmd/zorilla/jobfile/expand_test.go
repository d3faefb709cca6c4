package jobfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// A command line gets what its file says, but for what was typed, wherever that stands.
func TestExpand(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"job.toml":    "command = ['prog', 'x']\nn = 4\nmem = '1G'\ninput = ['a', 'b=c']\n[env]\nA = '1'\n",
		"bare.toml":   "mem = '1G'\n",
		"groups.toml": two,
		"array.toml":  "command = ['prog']\narray = '1-3'\n[[group]]\nname = 'a'\nn = 1\n",
		"other.toml":  "command = ['prog']\nlabel = true\n",
		"twice.toml":  "n = 1\nc = 1\nslots = 2\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("dir.toml", 0o700); err != nil {
		t.Fatal(err)
	}
	cmd, other := &cli.Command{Flags: flags()}, &cli.Command{Flags: []cli.Flag{&cli.BoolFlag{Name: "l", Aliases: []string{"label"}}}}
	for line, want := range map[string]string{
		"prog job.toml":                   "prog job.toml",
		"-n 2 -- prog job.toml":           "-n 2 -- prog job.toml",
		"-n job.toml":                     "-n job.toml",
		"- job.toml":                      "- job.toml",
		"":                                "",
		".toml":                           ".toml",
		"job.toml":                        "-n=4 --mem=1G -i=a -i=b=c -e=A=1 -- prog x",
		"-- job.toml":                     "-n=4 --mem=1G -i=a -i=b=c -e=A=1 -- prog x",
		"-np 2 job.toml --mem 2G":         "-i=a -i=b=c -e=A=1 -np 2 --mem 2G -- prog x",
		"--input d --mpi job.toml -e A=2": "-n=4 --mem=1G --input=a --input=b=c -e=A=1 --input d --mpi -e A=2 -- prog x",
		"job.toml -n=3 -- -y job.toml":    "--mem=1G -i=a -i=b=c -e=A=1 -n=3 -- prog x -y job.toml",
		"job.toml --":                     "-n=4 --mem=1G -i=a -i=b=c -e=A=1 -- prog x",
		"job.toml -a 1-3":                 "--mem=1G -i=a -i=b=c -e=A=1 -a 1-3 -- prog x",
		"--each-line f job.toml":          "--mem=1G -i=a -i=b=c -e=A=1 --each-line f -- prog x",
		"bare.toml -- prog y":             "--mem=1G -- prog y",
		"groups.toml":                     "-n=4..4 -- x",
		"groups.toml -n 3":                "-n 3 -- x",
		"groups.toml -a 1-3":              "-a 1-3 -- x",
		"array.toml":                      "-a=1-3 -- prog",
		"other.toml":                      "-- prog",
		"bare.toml":                       "bare.toml:1:1: no command",
		"job.toml y":                      `unexpected argument "y" after job file job.toml`,
		"missing.toml":                    "job file missing.toml: no such file or directory",
		"dir.toml":                        "job file dir.toml: it is no regular file",
		"twice.toml":                      "twice.toml:3:1: slots is what stands in line 2 as c",
		"--unknown job.toml":              "-n=4 --mem=1G -i=a -i=b=c -e=A=1 --unknown -- prog x", // whoever parses it says so
	} {
		got, f, err := Expand(cmd, other, append([]string{"zorilla", "run"}, strings.Fields(line)...))
		text := strings.Join(got[min(2, len(got)):], " ")
		if err != nil {
			text = err.Error()
		}
		expands := err == nil && want != line
		if !strings.HasPrefix(text, want) || err == nil && text != want || (f != nil) != expands {
			t.Errorf("%q:\n got %s, %v\nwant %s", line, text, f != nil, want)
		}
	}
}

// What is wrong is told by where it stands in the file, unless it was typed.
func TestBlame(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = "command = ['./prog']\nn = 4\ninput = ['a', 'b']\nmem = '1G'\nenv = {A = '1', B = '2'}\n[[group]]\nname = 'sea'\nn = 2\nslots = 3\ncommand = ['./sea']\n"
	path := filepath.Join("job.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct{ typed, text, want string }{
		{"", "-n 4: too many", "job.toml:2:5: n 4: too many"},
		{"", "invalid job: -n 4: too many", "job.toml:2:5: n 4: too many"},
		{"-n 4", "-n 4: too many", "-n 4: too many"},
		{"", "--np and --mem", "job.toml:2:5: n and --mem"},
		{"", "no --memory", "no --memory"},
		{"", "the-n 4", "the-n 4"},
		{"", "input b: no such file", "job.toml:3:15: input b: no such file"},
		{"", "-i b: nothing", "job.toml:3:15: input b: nothing"},
		{"-i c", "input c: no such file", "input c: no such file"},
		{"-i c", "input a: no such file", "job.toml:3:10: input a: no such file"},
		{"", "environment variable B: odd", "job.toml:5:21: environment variable B: odd"},
		{"", "environment variable \"B\": odd", "job.toml:5:12: environment variable \"B\": odd"},
		{"", "group sea: slots 3: too many", "job.toml:9:9: group sea: slots 3: too many"},
		{"", "group sea: it is odd", "job.toml:6:3: group sea: it is odd"},
		{"", "group ice: it is odd", "group ice: it is odd"},
		{"", "groups: too many", "job.toml:6:3: groups: too many"},
		{"", "command ./prog does not exist", "job.toml:1:12: command ./prog does not exist"},
		{"", "command ./sea does not exist", "job.toml:10:12: command ./sea does not exist"},
		{"", "command ./ice does not exist", "command ./ice does not exist"},
		{"", "something else", "something else"},
	} {
		_, f, err := Expand(&cli.Command{Flags: flags()}, &cli.Command{}, append([]string{"zorilla", "run", path}, strings.Fields(e.typed)...))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Blame(e.text); got != e.want {
			t.Errorf("%q, %q:\n got %s\nwant %s", e.typed, e.text, got, e.want)
		}
	}
}
