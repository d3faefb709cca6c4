package jobfile

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"zorilla/internal/codec"
	"zorilla/internal/seeds"
	"zorilla/jobs/groups"
	"zorilla/jobs/placement/mapping"
)

// flags are some as those of run.
func flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "n", Aliases: []string{"np"}}, &cli.IntFlag{Name: "c", Aliases: []string{"slots"}}, &cli.StringFlag{Name: "mem"},
		&cli.StringSliceFlag{Name: "i", Aliases: []string{"input"}}, &cli.StringSliceFlag{Name: "e", Aliases: []string{"env"}}, &cli.BoolFlag{Name: "mpi"},
		&cli.StringFlag{Name: "a", Aliases: []string{"array"}}, &cli.StringFlag{Name: "each-line"}, &cli.StringFlag{Name: "on-end"},
		&cli.Float64Flag{Name: "flood-factor"}, &cli.BoolFlag{Name: PrintOption}, &cli.BoolFlag{Name: "trust-script"}, &cli.BoolFlag{Name: "parsable", Hidden: true},
		&cli.StringFlag{Name: "graph"},
	}
}

const two = "command = ['x']\n[[group]]\nname = 'sea'\nn = 2\n[[group]]\nname = 'air'\nn = 2\n"

const pair = "command = ['x']\n[[task]]\nname = 'sea'\n[[task]]\nname = 'air'\n"

// Whatever is wrong is told with its line and column.
func TestMistakes(t *testing.T) {
	for _, e := range []struct{ text, want string }{
		{"", ""}, {two, ""},
		{"command = ['x'\n", "1:15: array is incomplete"},
		{"n = 1\nn = 2\n", "2:1: "},
		{"comand = ['x']\n", "1:1: unknown key comand: did you mean command?"},
		{"\n  walltime = '1h'\n", "2:3: unknown key walltime"},
		{"ntasks = 4\n", "1:1: unknown key ntasks: did you mean n?"},
		{"cpus = 4\n", "1:1: unknown key cpus: did you mean slots?"},
		{"groups = 4\n", "1:1: unknown key groups: did you mean group?"},
		{"parsable = true\n", "1:1: unknown key parsable"},
		{"print-file = true\n", "1:1: print-file is no part of a job: type it"},
		{"np = 2\nn = 3\n", "2:1: n is what stands in line 1 as np"},
		{"mem = ['2G']\n", "1:1: mem: want one value, not a list"},
		{"mpi = 'yes'\n", "1:7: mpi: want true or false"},
		{"slots = '2'\n", "1:9: slots: want a whole number"},
		{"slots = 2.5\n", "1:9: slots: want a whole number"},
		{"mem = true\n", `1:7: mem: want text in quotation marks, as in "text"`},
		{"input = [1, true]\n", `1:1: input: want a list such as ["a", "b"], or one value`},
		{"input = []\n", "1:1: input: the list is empty: leave the option out"},
		{"command = 'x y'\n", `1:11: command: want a list such as ["./prog", "arg"], or ["sh", "-c", "..."] for a line of a shell`},
		{"command = ['x', 3]\n", "1:1: command: want a list"},
		{"command = []\n", "1:1: command: it is empty"},
		{"[env]\nA = true\n", "2:5: A: want text in quotation marks"},
		{"[env]\n'A=B' = 'c'\n", `2:1: "A=B" is no name of a variable`},
		{"group = 3\n", "1:1: want [[group]], one for each group"},
		{"group = [3]\n", "1:1: want [[group]], one for each group"},
		{"[group]\nname = 'a'\n", "1:2: want [[group]], one for each group"},
		{"link = [{name = 'l', groups = ['a']}]\n", "1:32: there is no group \"a\""},
		{"[[group]]\nn = 2\n", "1:3: the group has no name"},
		{"[[group]]\nname = 'a'\n", "1:3: group a: n is missing, the number of its workers"},
		{"[[group]]\nname = 'a b'\nn = 2\n", `2:8: group "a b": want 1 to 32 letters`},
		{two + "[[group]]\nname = 'sea'\nn = 1\n", "9:8: two groups are called sea"},
		{two + "nodes = 3\n", "8:1: unknown key nodes: did you mean n?"},
		{two + "cpus = 3\n", "8:1: unknown key cpus: did you mean slots?"},
		{two + "memory = '3G'\n", "8:1: unknown key memory: did you mean mem?"},
		{two + "hosts = 3\n", "8:1: unknown key hosts\n"},
		{"[[group]]\nname = 'a'\nn = '3..2'\n", "3:5: n 3..2: want N or MIN..MAX"},
		{"[[group]]\nname = 'a'\nn = true\n", "3:5: n: want N or MIN..MAX"},
		{"[[group]]\nname = 'a'\nn = [1]\n", "3:1: n: want one value, not a list"},
		{two + "slots = '8..2'\n", "8:9: slots 8..2: the first is larger than the second: want MIN..MAX"},
		{two + "slots = 0\n", "8:9: slots 0: want a number from 1 on"},
		{two + "slots = ''\n", "8:9: slots: want a number from 1 on"},
		{two + "slots = '..'\n", "8:9: slots ..: want a number from 1 on"},
		{two + "mem = '4GHz'\n", "8:7: mem 4GHz: want a size such as 200M or 2G, or a range such as 4G..64G"},
		{two + "mem = 2000\n", "8:7: mem 2000: that is 2000 bytes: did you mean 2000M?"},
		{two + "mem = '64G..4G'\n", "8:7: mem 64G..4G: the first is larger"},
		{two + "clock = '2GB'\n", "8:9: clock 2GB: want a clock such as 2.4GHz"},
		{two + "clock = '0.5MHz'\n", "8:9: clock 0.5MHz: want a clock"},
		{two + "clock = '1e3'\n", "8:9: clock 1e3: want a clock"},
		{two + "power = '1000W'\n", "8:9: power 1000W: want a number"},
		{two + "gpus = 1.5\n", "8:8: gpus: want a number"},
		{two + "where = 3\n", "8:9: where: want text in quotation marks"},
		{two + "where = ''\n", "8:9: where: it is empty: leave it out"},
		{two + "homogeneous = 'mem'\n", `8:15: group air: homogeneous "mem": want clock or power`},
		{two + "restart = 'node'\n", `8:11: group air: restart "node": want rank, group or job`},
		{two + "unsplit = 'yes'\n", `8:11: unsplit: want true, or "prefer 10m"`},
		{two + "unsplit = 'prefer ten'\n", "8:11: prefer ten: want a time"},
		{two + "unsplit = 'prefer 9000h'\n", "8:11: group air: prefer 9000h0m0s: want up to"},
		{two + "unsplit = true\nclusters = 2\n", "9:12: unsplit is clusters = 1: give one of them"},
		{two + "clusters = 2\nunsplit = true\n", "9:11: unsplit is clusters = 1: give one of them"},
		{two + "clusters = 0\n", "8:12: clusters 0: want how many at most"},
		{two + "clusters = '2 prefer x'\n", "8:12: prefer x: want a time"},
		{two + "env = ['A=1']\n", "8:1: env: want one value, not a list"},
		{two + "env = 'A=1'\n", "8:7: env: want a table"},
		{two + "[group.env]\nA = [1]\n", "9:1: A: want text in quotation marks"},
		{two + "[group.nev]\nA = 1\n", "8:8: unknown key nev: did you mean env?"},
		{two + "[[link]]\ngroups = ['sea']\n", "8:3: the link has no name"},
		{two + "[[link]]\nname = 'l'\n", "8:3: link l: groups is missing"},
		{two + "[[link]]\nname = 'l'\ngroups = ['sea', 'ari']\n", `10:18: there is no group "ari": did you mean air?`},
		{two + "[[link]]\nname = 'l'\ngroups = ['sea', 'sea']\n", "10:18: group sea is named twice"},
		{two + "[[link]]\nname = 'l'\ngroups = ['sea']\n[[link]]\nname = 'l'\ngroups = ['air']\n", "12:8: two links are called l"},
		{two + "[[link]]\nname = 'l'\ngroups = ['sea']\n[[link]]\nname = 'm'\ngroups = ['sea']\n", "11:3: links l and m: both are of the same groups"},
		{two + "[[link]]\nname = 'l'\ngroups = ['sea']\nrtt = 5\n", "11:7: rtt 5: want a time such as 5ms, a range such as 1ms..10ms, or one of same-host, lan, site, country"},
		{two + "[[link]]\nname = 'l'\ngroups = ['sea']\nrtt = 'wan'\n", "11:7: rtt wan: want a time"},
		{two + "[[link]]\nname = 'l'\ngroups = ['sea']\nrtt = '5ms..1ms'\n", "11:7: rtt 5ms..1ms: the first is larger"},
		{two + "[[link]]\nname = 'l'\ngroups = ['sea']\nrtt = '20s'\n", "11:7: rtt 20s: want a time"},
		{two + "[[link]]\nname = 'l'\ngroups = ['sea']\nbandwidth = '1G'\n", "11:13: bandwidth 1G: want a bandwidth such as 100Mbit or 1Gbit"},
		{two + "[[link]]\nname = 'l'\ngroups = ['sea']\nlatency = '1ms'\n", "11:1: unknown key latency"},
		{"utility = 3\n", "1:11: want [utility], with weights below it"},
		{pair + "[[edge]]\nbetween = ['sea', 'air']\n", ""},
		{"graph = 'ring:3'\n[[task]]\n", "2:3: graph stands in line 1: want it or [[task]]"},
		{"task = 3\n", "1:1: want [[task]], one for each task"},
		{"[task]\nname = 'a'\n", "1:2: want [[task]], one for each task"},
		{"task = []\n", "1:1: graph of 0 tasks and 0 edges: want 1 to 4096 tasks"},
		{"edge = [{between = [0, 1]}]\n", "1:1: there are no tasks: want [[task]], one for each rank"},
		{pair + "[[task]]\ncost = 2\n", "6:3: the task has no name, and others have: name all of them, or none"},
		{pair + "[[task]]\nname = 'sea'\n", "7:8: two tasks are called sea"},
		{pair + "[[task]]\nname = 'Sea'\n", `7:8: task "Sea": want a small letter, and up to 31 of a-z, 0-9 and - after it`},
		{pair + "[[task]]\nname = '1st'\n", `7:8: task "1st": want a small letter`},
		{pair + "[[task]]\nname = 3\n", "7:8: name: want text in quotation marks"},
		{pair + "costs = 3\n", "6:1: unknown key costs: did you mean cost?"},
		{pair + "cost = 0\n", "6:8: cost 0: want a whole number, 1 to 1000000000"},
		{pair + "cost = 1.5\n", "6:8: cost: want a whole number"},
		{pair + "cost = '5'\n", "6:8: cost 5: want a whole number"},
		{pair + "[[edge]]\nweight = 2\n", "6:3: between is missing, the two tasks of the edge"},
		{pair + "[[edge]]\nbetween = 'sea'\n", `7:11: between: want two tasks, as in ["a", "b"], or [0, 1] by their numbers`},
		{pair + "[[edge]]\nbetween = ['sea']\n", "7:1: between: want two tasks"},
		{pair + "[[edge]]\nbetween = ['sea', 'ari']\n", `7:19: there is no task "ari": did you mean air?`},
		{pair + "[[edge]]\nbetween = ['sea', 2]\n", "7:19: there is no task 2: they are 0 to 1"},
		{pair + "[[edge]]\nbetween = [-1, 0]\n", "7:12: there is no task -1: they are 0 to 1"},
		{pair + "[[edge]]\nbetween = ['sea', true]\n", "7:19: between: want the name of a task, or its number"},
		{pair + "[[edge]]\nbetween = ['sea', 0]\n", "7:1: an edge is between two tasks, not of one with itself"},
		{pair + "[[edge]]\nbetween = ['sea', 'air']\n[[edge]]\nbetween = [1, 0]\n", "9:1: the edge stands in line 7, too"},
		{pair + "[[edge]]\nbetween = ['sea', 'air']\nweight = 1000000001\n", "8:10: weight 1000000001: want a whole number, 1 to 1000000000"},
		{strings.Repeat("[[task]]\n", 4097), "1:3: graph of 4097 tasks and 0 edges: want 1 to 4096 tasks"},
		{"[utility]\nsatisfaction = 1\n", "1:2: links and utility want groups"},
		{two + "[utility]\nsatisfaction = '1'\n", "9:16: satisfaction: want a weight, such as 1 or 0.1"},
		{two + "[utility]\nutilisation = -1\n", "9:15: utilisation -1: want 0 to 1000000"},
		{two + "[utility]\nutilization = 1\n", "9:1: unknown key utilization: did you mean utilisation?"},
	} {
		_, err := Parse("job.toml", []byte(e.text), flags())
		if got := fmt.Sprint(err) + "\n"; e.want == "" && err != nil || e.want != "" && !strings.HasPrefix(got, "job.toml:"+e.want) {
			t.Errorf("%q:\n got %s want %s", e.text, got, e.want)
		}
	}
}

// What the page says of each key is what it means.
func TestKeys(t *testing.T) {
	f, err := Parse("job.toml", []byte(`
command = ["./sim"]
[[group]]
name = "sea"
command = ["./sea", "a b"]
n = "8..10"
slots = "2..8"
mem = "4G..64G"
disk = "..1T"
gpus = 1
clock = "2GHz..3000MHz"
power = "800..1200"
where = "true"
homogeneous = "clock"
unsplit = "prefer 10m"
restart = "group"
env = {A = "1", "B.c" = 2}
[[group]]
name = "air"
n = 8
clusters = "2 prefer 1h30m"
clock = 2400
mem = "4G"
[[group]]
name = "ice"
n = "3"
unsplit = true
[group.env]
C = "d"
[[link]]
name = "all"
groups = ["sea", "air", "ice"]
rtt = "country"
bandwidth = "100Mbit..1Gbit"
[[link]]
name = "two"
groups = ["sea", "air"]
rtt = "1ms..10ms"
bandwidth = 40
[[link]]
name = "one"
groups = ["ice"]
rtt = "same-host"
[utility]
satisfaction = 1
utilisation = 0.1
`), flags())
	if err != nil {
		t.Fatal(err)
	}
	ms := func(n int) codec.Duration { return codec.Duration(time.Duration(n) * time.Millisecond) }
	want := groups.Topology{
		Groups: []groups.Group{
			{Name: "sea", Args: []string{"./sea", "a b"}, Env: map[string]string{"A": "1", "B.c": "2"}, Min: 8, Max: 10,
				Slots: groups.Range{Min: 2, Max: 8}, Memory: groups.Range{Min: 4 << 30, Max: 64 << 30}, Disk: groups.Range{Max: 1 << 40}, GPUs: groups.Range{Min: 1},
				Clock: groups.Range{Min: 2000, Max: 3000}, Power: groups.Range{Min: 800, Max: 1200}, Where: "true", Homogeneous: groups.Clock,
				Clusters: 1, Prefer: codec.Duration(10 * time.Minute), Restart: groups.RestartGroup},
			{Name: "air", Min: 8, Max: 8, Clusters: 2, Prefer: codec.Duration(90 * time.Minute), Clock: groups.Range{Min: 2400}, Memory: groups.Range{Min: 4 << 30}},
			{Name: "ice", Min: 3, Max: 3, Clusters: 1, Env: map[string]string{"C": "d"}},
		},
		Links: []groups.Link{
			{Name: "all", Groups: []string{"sea", "air", "ice"}, MaxRTT: ms(30), Bandwidth: groups.Range{Min: 100, Max: 1000}},
			{Name: "two", Groups: []string{"sea", "air"}, MinRTT: ms(1), MaxRTT: ms(10), Bandwidth: groups.Range{Min: 40}},
			{Name: "one", Groups: []string{"ice"}, MaxRTT: 1},
		},
		Utility: groups.Utility{Satisfaction: 1, Utilisation: 0.1},
	}
	if !reflect.DeepEqual(f.Topology, want) {
		t.Errorf("got  %+v\nwant %+v", f.Topology, want)
	}
	warnings := f.Warnings()
	if len(warnings) != 1 || warnings[0] != "job.toml:38:7: link two: rtt 1ms..10ms forbids nodes that are nearer than 1ms, and two workers at one node" {
		t.Errorf("warnings %q", warnings)
	}
}

// Tasks and edges are a graph, the same as that of a file.
func TestTasks(t *testing.T) {
	for _, e := range []struct {
		text string
		want mapping.Listed
	}{
		{"[[task]]\nname = 'source'\ncost = 5\n[[edge]]\nbetween = ['sink', 'source']\nweight = 3\n[[task]]\nname = 'sink'\n[[task]]\nname = 'x-2'\n[[edge]]\nbetween = ['sink', 2]\n",
			mapping.Listed{Tasks: 3, Names: []string{"source", "sink", "x-2"}, Costs: []int64{5, 1, 1}, Edges: []int{0, 1, 1, 2}, Volumes: []int64{3, 1}}},
		{"task = [{}, {}, {}]\nedge = [{between = [2, 0]}]\n", mapping.Listed{Tasks: 3, Edges: []int{0, 2}}},
	} {
		f, err := Parse("job.toml", []byte(e.text), flags())
		if err != nil || !reflect.DeepEqual(*f.Graph, e.want) {
			t.Errorf("%q:\n got %+v (%v)\nwant %+v", e.text, f.Graph, err, e.want)
		}
	}
}

// A topology that is printed is the same when it is read.
func TestTopologiesArePrinted(t *testing.T) {
	from, to := seeds.Range(t, 2000)
	for seed := from; seed <= to; seed++ {
		want := randomTopology(rand.New(rand.NewPCG(seed, 0)))
		if text := want.Check(); text != "" {
			t.Fatalf("seed %d: the test itself: %s", seed, text)
		}
		text := Topology(&want)
		f, err := Parse("job.toml", []byte(text), nil)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, text, seeds.Again(t, seed))
		}
		if !reflect.DeepEqual(f.Topology, want) {
			t.Fatalf("seed %d: %s\n%s\nis   %+v\nwant %+v", seed, seeds.Again(t, seed), text, f.Topology, want)
		}
	}
}

// randomTopology is any that is right.
func randomTopology(r *rand.Rand) (t groups.Topology) {
	some := func() bool { return r.IntN(3) == 0 }
	word := func() string {
		letters := []rune("ab\"'\\ =#[]{}\n\t\x01\x7f.é日\u202e\u0085\U000e0001,")
		var text []rune
		for range 1 + r.IntN(6) {
			text = append(text, letters[r.IntN(len(letters))])
		}
		return string(text)
	}
	env := func() map[string]string {
		env := map[string]string{}
		for range 1 + r.IntN(3) {
			env[strings.ReplaceAll(word(), "=", "_")] = word()
		}
		return env
	}
	bounds := func(unit int64) (b groups.Range) {
		if some() {
			b.Min = (1 + r.Int64N(1<<20)) * unit
		}
		if some() {
			b.Max = b.Min + (1+r.Int64N(1<<20))*unit
		} else if some() {
			b.Max = b.Min
		}
		return b
	}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	bytes := func() int64 { return []int64{1, 1 << 10, 1 << 20, 1 << 30}[r.IntN(4)] }
	for i := range 1 + r.IntN(5) {
		g := groups.Group{Name: fmt.Sprintf("g%d%s", i, pick("", "-a", "_b", ".c")), Min: 1 + r.IntN(20), Slots: bounds(1), Memory: bounds(bytes()), Disk: bounds(bytes()), GPUs: bounds(1),
			Clock: bounds(1), Power: bounds(1), Homogeneous: pick("", "", groups.Clock, groups.Power), Restart: pick("", groups.RestartRank, groups.RestartGroup, groups.RestartJob)}
		g.Max = g.Min + r.IntN(2)*r.IntN(9)
		if some() {
			g.Args = []string{word(), word()}
		}
		if some() {
			g.Env = env()
		}
		if some() {
			g.Where = word()
		}
		if g.Clusters = r.IntN(4); g.Clusters > 0 && some() {
			g.Prefer = codec.Duration([]time.Duration{time.Hour, time.Minute, time.Second, time.Nanosecond}[r.IntN(4)] * time.Duration(1+r.IntN(100)))
		}
		t.Groups = append(t.Groups, g)
	}
	// Nested sets: each has some first groups of the one before.
	for n := len(t.Groups); n > 0 && r.IntN(2) == 0; n -= 1 + r.IntN(3) {
		l := groups.Link{Name: fmt.Sprintf("l%d", n), Bandwidth: bounds(1 + 399*r.Int64N(2))}
		for _, g := range t.Groups[:n] {
			l.Groups = append(l.Groups, g.Name)
		}
		rtt := func() codec.Duration {
			return codec.Duration([]time.Duration{time.Millisecond, time.Microsecond, time.Nanosecond}[r.IntN(3)] * time.Duration(1+r.IntN(40)))
		}
		if some() {
			l.MinRTT = rtt()
		}
		if some() {
			l.MaxRTT = l.MinRTT + rtt()
		}
		if words := Words(); some() {
			l.MaxRTT = codec.Duration(words[r.IntN(len(words))].RTT)
			l.MinRTT = l.MaxRTT / codec.Duration(r.IntN(3)+1) * codec.Duration(r.IntN(2))
		}
		t.Links = append(t.Links, l)
	}
	if some() {
		t.Utility = groups.Utility{Satisfaction: float64(r.IntN(3)), Utilisation: r.Float64() * 10}
	}
	return t
}
