package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/config"
	"zorilla/cmd/zorilla/jobfile"
	"zorilla/internal/seeds"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/placement/mapping"
	nodes "zorilla/node"
	"zorilla/node/api"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// askedFor is what a command line asks for.
type askedFor struct {
	spec    jobs.Spec
	inputs  []transfer.Input
	printed string // as a job file
}

// ask reads a command line as run, submit and check do.
func ask(args ...string) (a askedFor, err error) {
	app := newApp(&console{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}, nil)
	app.Command(args[0]).Action = func(c *cli.Context) error {
		r, err := requestOf(c, c.Args().Slice(), strings.NewReader(""))
		if err != nil {
			return err
		}
		defer r.close()
		a.spec, a.inputs = r.spec, r.inputs
		var b bytes.Buffer
		c.App.Writer = &b
		err = printFile(c, r)
		a.printed = b.String()
		return err
	}
	words, file, err := ofFiles(app, optionsFirst(app, append([]string{"zorilla"}, args...)))
	if err != nil {
		return a, err
	}
	app.Metadata = map[string]any{jobFileName: file}
	return a, app.Run(words)
}

// optionsOfJobs are the options that run and submit have, each once.
func optionsOfJobs() (list []cli.Flag) {
	app := newApp(&console{}, nil)
	for _, name := range []string{"run", "submit"} {
		for _, f := range app.Command(name).VisibleFlags() {
			first := config.Names(f)[0]
			if known := func(g cli.Flag) bool { return config.Names(g)[0] == first }; first != "help" && !slices.ContainsFunc(list, known) {
				list = append(list, f)
			}
		}
	}
	return list
}

// Every option can stand in a job file by each of its names, means there what it means at the command line, and is
// on the page.
func TestEveryOptionHasAKey(t *testing.T) {
	page, err := os.ReadFile("../../docs/job-files.md")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "job.toml")
	for _, f := range optionsOfJobs() {
		names := config.Names(f)
		if names[0] == "trust-script" || names[0] == "print-file" {
			if !strings.Contains(string(page), "`--"+names[0]+"`") {
				t.Errorf("docs/job-files.md does not tell of --%s", names[0])
			}
			continue
		}
		for _, own := range jobfile.OwnKeys() {
			if slices.Contains(names, own) {
				t.Errorf("--%s is called as something else in a job file", own)
			}
		}
		key := config.Longest(f)
		if names[0] == "n" {
			key = "n"
		}
		if !regexp.MustCompile("(?m)^\\| (`[a-z-]+`, )*`"+key+"`(, `[a-z-]+`)* \\|").Match(page) || len(key) == 1 && key != "n" {
			t.Errorf("docs/job-files.md has no row for %s", key)
		}
		value, typed := `"7"`, "=7"
		switch f.(type) {
		case *cli.BoolFlag:
			value, typed = "true", "=true"
		case *cli.IntFlag, *cli.Float64Flag:
			value = "7"
		}
		for _, name := range names {
			if err := os.WriteFile(path, fmt.Appendf(nil, "command = ['x']\n%s = %s\n", name, value), 0o600); err != nil {
				t.Fatal(err)
			}
			option := "--" + names[0]
			if got, want := valueOf(t, f, "--trust-script", path), valueOf(t, f, option+typed, "x"); got != want || want == "" {
				t.Errorf("%s is %q, want %q as if it were typed", name, got, want)
			}
		}
	}
}

// valueOf returns what an option is in a command line of a command that has it, "" if it is not set.
func valueOf(t *testing.T, f cli.Flag, words ...string) (value string) {
	app := newApp(&console{}, nil)
	first := config.Names(f)[0]
	command := "run"
	if !slices.ContainsFunc(app.Command("run").Flags, func(g cli.Flag) bool { return config.Names(g)[0] == first }) {
		command = "submit"
	}
	app.Command(command).Action = func(c *cli.Context) error {
		if c.IsSet(first) {
			if value = fmt.Sprint(c.Value(first)); config.Repeatable(f) {
				value = fmt.Sprint(c.StringSlice(first))
			}
		}
		return nil
	}
	args, _, err := ofFiles(app, append([]string{"zorilla", command}, words...))
	if err == nil {
		err = app.Run(args)
	}
	if err != nil {
		t.Errorf("%q: %v", words, err)
	}
	return value
}

// choices are values of options as they are typed, by first name. Those that are about the command that submits, and
// not about the job, have none.
func choices() map[string][]string {
	later, latest := time.Now().Add(24*time.Hour).Format("2006-01-02 15:04"), time.Now().Add(96*time.Hour).Format("2006-01-02 15:04")
	return map[string][]string{
		"n": {"3", "2..16"}, "c": {"1", "2"}, "mem": {"200M", "1.5G"}, "disk": {"1G"}, "max-output": {"none", "1M", "200"}, "gpus": {"1"},
		"where": {`site == "a\b"`, "mem >= 8G && slots > 1"}, "mount": {"/data", "/scratch:rw"}, "net": {"host", "job", "none"}, "mpi": {"true", "false"},
		"share-work": {"true"}, "t": {"10m", "600", "1-00:00:01"}, "i": {"in", "in:there", "i*"}, "o": {"out-*", "a,b", ".hidden"},
		"e": {"A=1", "A=2", "B.c=x=y \"'\\ é", "HOME", "E="}, "key": {"k-1"}, "J": {"a name", "007"}, "priority": {"-3", "5"}, "strategy": {"spread", "nearest"},
		"max-rtt": {"5ms"}, "one-per-node": {"true"}, "spares": {"1", "50%"},
		"graph": {"grid:2x2", "ring.graph"}, "replicas": {"2"}, "d": {"afterok:k7f3q,afterany:abcde"}, "begin": {later}, "deadline": {latest}, "book-after": {"0s", "1h", "never"}, "retries": {"3"}, "kill-on-bad-exit": {"true", "false"}, "max-fails": {"2"},
		"lost-after": {"2s"}, "checkpoint-far": {"true"},
		"launcher": {"mpirun"}, "signal": {"USR1", "sigterm@5s", "10@1m"}, "signal-on-change": {"USR1", "sigusr2"}, "on-end": {"echo $ZORILLA_JOB_STATE | tee \"x\""}, "search": {"adaptive", "paper"}, "radius": {"2"},
		"flood-wait": {"2s"}, "flood-factor": {"1.5", "2"}, "give-up": {"never", "1h"}, "stdin": {"none"}, "a": {"1-9:2,12%3"}, "each-line": {"lines"},
	}
}

// A job that is printed is the same when it is read.
func TestCommandLinesArePrinted(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("HOME", "/home/ada")
	for name, text := range map[string]string{
		"ring.graph": "3 3\n2 3\n1 3\n1 2\n", "in": "x", "lines": "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\n", "prog": "#!/bin/sh\n", "job.sh": "#!/bin/sh\n#ZORILLA -e S=1 -o log -n 5\n"} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	values := choices()
	var flags []cli.Flag
	for _, f := range append(jobFlags(), arrayFlags()...) {
		if first := config.Names(f)[0]; !jobfile.TypedOnly(first) {
			if flags = append(flags, f); values[first] == nil {
				t.Fatalf("no value of --%s is tried", first)
			}
		}
	}
	const wanted = 600
	tried, right := 0, 0
	from, to := seeds.Range(t, 20*wanted)
	for seed := from; seed <= to && right < wanted; seed++ {
		tried++
		args := randomLine(rand.New(rand.NewPCG(seed, 0)), flags, values)
		want, err := ask(args...)
		if err != nil { // some do not go together
			continue
		}
		right++
		if err := os.WriteFile("printed.toml", []byte(want.printed), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ask(args[0], "printed.toml", "--trust-script")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %s\nzorilla %q\n%s\n%v\ngot  %+v\nwant %+v", seed, seeds.Again(t, seed), args, want.printed, err, got, want)
		}
	}
	if right < wanted && to-from+1 > wanted {
		t.Errorf("only %d of %d lines were right", right, tried)
	}
}

// randomLine is a command line with some options.
func randomLine(r *rand.Rand, flags []cli.Flag, values map[string][]string) []string {
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	args := []string{pick([]string{"run", "submit"})}
	for _, f := range flags {
		names := config.Names(f)
		for range 1 + r.IntN(3) {
			if v := pick(values[names[0]]); r.IntN(10) == 0 {
				name := names[0]
				if !config.Repeatable(f) { // the parser takes one name of each
					name = pick(names)
				}
				args = append(args, "--"+name+"="+v)
			}
			if !config.Repeatable(f) {
				break
			}
		}
	}
	args = append(args, "--", pick([]string{"true", "./prog", "job.sh", "./job.sh", "a b"}))
	for range r.IntN(3) {
		args = append(args, pick([]string{"x", "--n", "", "a \"b\" 'c' \\", "é\n\t\x01\x7f", "{}"}))
	}
	return args
}

// The examples are right, and are the same when they are printed and read.
func TestExamplesOfJobFiles(t *testing.T) {
	t.Chdir("../..")
	found, err := filepath.Glob("examples/jobs/*.toml")
	if err != nil || len(found) < 5 {
		t.Fatal(found, err)
	}
	printed := filepath.Join(t.TempDir(), "printed.toml")
	for _, path := range found {
		want, err := ask("check", path)
		if err != nil {
			t.Error(err)
			continue
		}
		if err := os.WriteFile(printed, []byte(want.printed), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ask("check", printed); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n%s\ngot  %+v\nwant %+v", path, err, want.printed, got, want)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), path) {
			t.Errorf("%s does not say how it is run", path)
		}
	}
}

// Commands of groups are sent along as that of the job is, each once.
func TestCommandsOfGroupsAreSent(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"prog": "#!/bin/sh\n", "job.toml": "[[group]]\nname = 'a'\nn = 1\ncommand = ['./prog']\n[[group]]\nname = 'b'\nn = 1\ncommand = ['./x/../prog', 'y']\n[[group]]\nname = 'c'\nn = 1\ncommand = ['./prog', 'z']\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("x", 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := ask("run", "job.toml")
	if err != nil {
		t.Fatal(err)
	}
	if want := []transfer.Input{{Path: "./prog"}, {Path: "./x/../prog"}}; !reflect.DeepEqual(got.inputs, want) {
		t.Errorf("inputs %+v, want %+v", got.inputs, want)
	}
	if g := got.spec.Groups; len(got.spec.Args) > 0 || g[1].Args[0] != "./prog" || g[2].Args[1] != "z" {
		t.Errorf("%+v", got.spec)
	}
}

// What is typed of a graph wins over the tasks of a file, and these over what its script says.
func TestTasksOfJobFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	const tasks = "[[task]]\nname = \"a\"\n\n[[task]]\nname = \"b\"\ncost = 5\n\n[[edge]]\nbetween = [\"a\", \"b\"]\nweight = 3\n"
	for name, text := range map[string]string{
		"job.toml": "strategy = \"maheve\"\ncommand = [\"job.sh\"]\n\n" + tasks, "job.sh": "#!/bin/sh\n#ZORILLA --graph ring:4 -n 4\n"} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := mapping.Listed{Tasks: 2, Names: []string{"a", "b"}, Costs: []int64{1, 5}, Edges: []int{0, 1}, Volumes: []int64{3}}
	got, err := ask("run", "job.toml")
	if err != nil || !reflect.DeepEqual(*got.spec.Graph, want) || got.spec.Min != 2 || got.spec.Max != 2 {
		t.Errorf("%+v %v", got.spec, err)
	}
	if !strings.HasSuffix(got.printed, "\n"+tasks) || strings.Contains(got.printed, "graph = ") || strings.Contains(got.printed, "\nn = ") {
		t.Errorf("it is printed as\n%s", got.printed)
	}
	got, err = ask("run", "job.toml", "--graph", "ring:3", "-n", "3")
	if err != nil || got.spec.Graph.Name != "ring:3" || strings.Contains(got.printed, "task") || !strings.Contains(got.printed, `graph = "ring:3"`) {
		t.Errorf("%+v %v\n%s", got.spec, err, got.printed)
	}
}

// The page has job files that are right, and the words of distances with their figures.
func TestPageOfJobFiles(t *testing.T) {
	page, err := os.ReadFile("../../docs/job-files.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(page, -1)
	for _, m := range texts {
		if _, err := jobfile.Parse("docs/job-files.md", m[1], optionsOfJobs()); err != nil {
			t.Error(err)
		}
	}
	if len(texts) < 2 {
		t.Errorf("%d job files", len(texts))
	}
	for _, w := range jobfile.Words() {
		if row := fmt.Sprintf("| `\"%s\"` | %v", w.Name, w.RTT); !strings.Contains(string(page), row) {
			t.Errorf("the page lacks %s", row)
		}
	}
}

// What check prints of each group: who ever can take its workers, and who has room now.
func TestTakersOfGroups(t *testing.T) {
	told := func(n api.NodeInfo) api.NodeInfo { n.Told = time.Now(); return n }
	node := func(slots, busy, gpus int, memory int64) api.NodeInfo {
		return api.NodeInfo{Member: vicinity.Member{Slots: slots, Memory: memory << 30, GPUs: gpus, Version: nodes.ProtocolVersion}, Busy: busy}
	}
	paused := told(node(16, 0, 0, 64))
	paused.State = "paused"
	network := []api.NodeInfo{told(node(8, 2, 0, 16)), told(node(8, 8, 0, 16)), told(node(4, 0, 1, 2)), node(8, 0, 4, 16), paused}
	for _, e := range []struct {
		about string
		needs groups.Group
		want  string
	}{
		{"what the job takes", groups.Group{}, "a|2..4|5 of 5|10 workers at 2 nodes, not known of 1"},
		{"slots", groups.Group{Slots: groups.Range{Min: 3}}, "a|2..4|5 of 5|3 workers at 2 nodes, not known of 1"},
		{"memory", groups.Group{Memory: groups.Range{Min: 4 << 30}}, "a|2..4|4 of 5|4 workers at 1 node, not known of 1"},
		{"GPUs", groups.Group{GPUs: groups.Range{Min: 1}}, "a|2..4|2 of 5|1 worker at 1 node, not known of 1"},
		{"a small node", groups.Group{Slots: groups.Range{Max: 4}}, "a|2..4|1 of 5|4 workers at 1 node"},
		{"none", groups.Group{Slots: groups.Range{Min: 17}}, "a|2..4|0 of 5|0 workers at 0 nodes"},
	} {
		g := e.needs
		g.Name, g.Min, g.Max = "a", 2, 4
		s := jobs.Spec{Slots: 1, Min: 2, Max: 4, Topology: groups.Topology{Groups: []groups.Group{g}}}
		if got := strings.Join(takersOf(&s, network)[0].row(len(network)), "|"); got != e.want {
			t.Errorf("%s: got %s, want %s", e.about, got, e.want)
		}
	}
	s := jobs.Spec{Slots: 2, Min: 3, Max: 3, Replicas: 2}
	if got := strings.Join(takersOf(&s, network)[0].row(len(network)), "|"); got != "-|6|5 of 5|5 workers at 2 nodes, not known of 1" {
		t.Errorf("a job without groups: %s", got)
	}
}
