package bench

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"zorilla/testnet/chart"
)

const (
	groupsWorkers = 8
	groupsLimit   = 30 * time.Second
)

// BenchmarkGroups is what the start of a job with four groups, and links inside and between them, takes
// beside that of a gang of as many workers, on three idle hosts of one network, at nodes of root with all
// of the wall. In the lab of testnet/hosts. It needs root.
func BenchmarkGroups(b *testing.B) {
	if os.Geteuid() != 0 {
		leaveOut(b, "it needs root")
	}
	if !inLab(b, twoLans, "BenchmarkGroups", "-out="+*out, "-rounds="+strconv.Itoa(*rounds)) {
		return
	}
	err := chart.Keep(*out, func(r *chart.Results) error {
		s := &starts{hosts: enter(b, twoLans), tallies: map[string]*tally{}}
		s.describe(r)
		s.root = s.nodes(site, 0)
		s.groups(b, r)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// groups runs both kinds of jobs in turn, and writes how long they take.
func (s *starts) groups(b *testing.B, r *chart.Results) {
	text := "command = [\"hostname\"]\n"
	var names string
	for i := range 4 {
		text += fmt.Sprintf("[[group]]\nname = \"g%[1]d\"\nn = %[2]d\n[[link]]\nname = \"in-g%[1]d\"\ngroups = [\"g%[1]d\"]\nrtt = \"20ms\"\n", i, groupsWorkers/4)
		names += fmt.Sprintf("%q,", fmt.Sprintf("g%d", i))
	}
	text += "[[link]]\nname = \"all\"\ngroups = [" + names + "]\nrtt = \"1s\"\n"
	file := s.write("groups.toml", text, 0o644)
	all := []rival{
		{"one-group", func() (time.Duration, error) {
			return s.launchWithin(groupsLimit, s.root("run", "-q", "--stdin", "none", "-n", strconv.Itoa(groupsWorkers), "--", "hostname"), groupsWorkers)
		}},
		{"four-groups", func() (time.Duration, error) {
			return s.launchWithin(groupsLimit, s.root("run", "-q", "--stdin", "none", file), groupsWorkers)
		}},
	}
	b.Run("start", func(b *testing.B) {
		for _, v := range all {
			if _, err := v.run(); err != nil {
				b.Fatalf("%s: %v", v.name, err)
			}
		}
		times := compete(b, *rounds, all...)
		fmt.Fprintf(r, "\n%d workers of hostname, start to end; medians of %d rounds or more, in turn:\n\n| | ms | of one group |\n|---|---|---|\n", groupsWorkers, *rounds)
		for i, t := range times {
			fmt.Fprintf(r, "| %s | %.0f | %.2f (aim 1.5) |\n", all[i].name, float64(median(t))/1e6, float64(median(t))/float64(median(times[0])))
		}
	})
	fmt.Fprintf(r, "\nLoad at the end: %s.\n", load())
}
