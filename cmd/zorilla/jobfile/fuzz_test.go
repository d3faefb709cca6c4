package jobfile

import (
	"reflect"
	"strings"
	"testing"
)

// FuzzParse reads any text as a job file: a mistake has its place, and what is right is the same when it is printed.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		two, "command = ['x', \"\\u00e9\"]\nn = 1\nenv = {A = 1, 'b c' = '2'}\n", "[env]\nA.b = 1\n", "group = [{name = 'a', n = 1, env.B = 'c'}]\n[[link]]\nname = 'l'\ngroups = ['a',]\n",
		two + "slots = '2..8'\nmem = '4G..64G'\ndisk = '..1T'\ngpus = 1\nclock = '2.4GHz'\npower = '800..'\nwhere = 'true'\nunsplit = 'prefer 10m'\n[group.env]\nX = ''\n",
		two + "clusters = '2 prefer 1h'\nrestart = 'rank'\n[[link]]\nname = 'l'\ngroups = ['sea', 'air']\nrtt = '1ms..lan'\nbandwidth = '1Gbit..'\n[utility]\nsatisfaction = 1e3\n",
		pair + "cost = 2\n[[edge]]\nbetween = ['sea', 'air']\nweight = 3\n", "edge = [{between = [0, 1]}]\n[[task]]\n[[task]]\ncost = 7\n",
		"[[group.x]]\n[[group]]\n", "group.name = 'x'\n", "a = 1979-05-27T07:32:00Z\n", "[[link]]\n[link.x]\n", "'' = 1\n", "input = [[1], {a = 1}]\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("job.toml", []byte(text), flags())
		if err != nil {
			if !strings.HasPrefix(err.Error(), "job.toml:") || strings.HasPrefix(err.Error(), "job.toml:0") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		printed := Topology(&file.Topology) + Graph(file.Graph)
		again, err := Parse("job.toml", []byte(printed), flags())
		if err != nil || !reflect.DeepEqual(again.Topology, file.Topology) || !reflect.DeepEqual(again.Graph, file.Graph) {
			t.Fatalf("%q: %v\n%s\ngot  %+v\nwant %+v", text, err, printed, again, file)
		}
		for _, s := range file.options {
			if len(s.at) != len(s.values) {
				t.Fatalf("%q: %s has %d values and %d places", text, s.key, len(s.values), len(s.at))
			}
		}
		file.Blame("-n 3: want")
		file.Blame("group sea: slots 3: want")
		file.Tells("")
	})
}
