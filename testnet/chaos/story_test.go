package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/testnet/hosts/lab"
	"zorilla/transfer"
)

func hostNames() []string { return []string{"east-1", "east-2", "west-1", "west-2", "north-1"} }

func TestSameSeedSameStory(t *testing.T) {
	for seed := range uint64(20) {
		o := options{seed: seed, length: time.Minute, jobs: 100}
		first, second := orders(o, hostNames(), "/bin/chaos"), orders(o, hostNames(), "/bin/chaos")
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("seed %d gives two lists of jobs", seed)
		}
		if a, b := torments(o, hostNames()), torments(o, hostNames()); !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d gives two lists of torments:\n%v\n%v", seed, a, b)
		}
	}
	a, b := options{seed: 1, length: time.Minute, jobs: 100}, options{seed: 2, length: time.Minute, jobs: 100}
	if reflect.DeepEqual(torments(a, hostNames()), torments(b, hostNames())) {
		t.Error("two seeds give the same torments")
	}
}

func TestOrdersAreOfAllKindsAndAccepted(t *testing.T) {
	seen := map[string]int{}
	for _, j := range orders(options{seed: 3, length: time.Minute, jobs: 1000}, hostNames(), "/bin/chaos") {
		seen[j.kind]++
		spec := j.spec
		if j.prog.In > 0 || j.prog.Lined {
			spec.Inputs = transfer.HashOf([]byte("some"))
		}
		if err := spec.Validate(); err != nil {
			t.Errorf("job %d (%s): %v", j.number, j.kind, err)
		}
		if j.lossy != spec.Rigid() || j.after >= j.number || j.at > time.Minute || (j.depend != "") != (j.after >= 0) {
			t.Errorf("job %d: %+v", j.number, j)
		}
		if got, err := parseProgram(append(spec.Args[2:], "the line of a task")); err != nil || !reflect.DeepEqual(got, j.prog) {
			t.Errorf("job %d: the command line says %+v, %v; want %+v", j.number, got, err, j.prog)
		}
	}
	for _, k := range append(kinds(), hostile()...) {
		if seen[k.name] == 0 {
			t.Errorf("none of 1000 jobs is of kind %s", k.name)
		}
	}
}

func TestShortStoriesHaveAllHostileKinds(t *testing.T) {
	for seed := range uint64(8) {
		seen := map[string]bool{}
		for _, j := range orders(options{seed: seed, length: time.Minute, jobs: 60}, hostNames(), "/bin/chaos") {
			if j.prog.Hostile != "" {
				seen[j.kind] = true
			}
		}
		if len(seen) != len(hostile()) {
			t.Errorf("seed %d has %v", seed, seen)
		}
	}
}

func TestHostsSufferOneThingAtATime(t *testing.T) {
	seen := map[deed]int{}
	for seed := range uint64(30) {
		o := options{seed: seed, length: 2 * time.Minute}
		free, last := map[string]time.Duration{}, time.Duration(0)
		for _, k := range torments(o, hostNames()) {
			seen[k.deed]++
			if k.at < last || k.at > o.length+20*time.Second || len(k.hosts) == 0 && k.deed != deedLoss {
				t.Errorf("seed %d: %v after %v", seed, k, last)
			}
			last = k.at
			for _, h := range k.hosts {
				if k.takesAway() && k.at < free[h] {
					t.Errorf("seed %d: %v, but %s is not back before %v", seed, k, h, free[h])
				}
				if k.takesAway() {
					free[h] = k.at + k.hold
				}
			}
		}
	}
	for _, d := range []deed{deedKill, deedStumble, deedStop, deedPause, deedCut, deedCutSite, deedCrash, deedFreeze, deedLoss, deedOrphan, deedKillAll} {
		if seen[d] == 0 {
			t.Errorf("nobody suffers %q", d)
		}
	}
}

func TestHostsAreThoseOfThePlan(t *testing.T) {
	for _, o := range []options{{story: storyChance}, {story: storySixSites}} {
		plan, err := lab.PlanOf(o.plan())
		if err != nil {
			t.Fatal(err)
		}
		if names := plan.Names(); o.story == storyChance && !slices.Equal(names, hostNames()) {
			t.Errorf("the hosts are %v", names)
		}
		for i, name := range plan.Names() {
			if got := hostIn(fmt.Sprintf("node %s (zeb2a) was lost", name)); got != name || plan.SiteOf(name) < 0 || i == 0 && plan.SiteOf(name) != 0 {
				t.Errorf("%s is found as %q, at site %d", name, got, plan.SiteOf(name))
			}
		}
	}
	for reason, want := range map[string]string{
		"node east-1 (zeb2a) was lost with rank 3":                         "east-1",
		"rank 2: north-1 (zeb2a): its supervisor is gone and left no word": "north-1",
		"rank 2: the node returned a file that was not asked for":          "",
		"needed more than 4s (-t)":                                         "",
	} {
		if got := hostIn(reason); got != want {
			t.Errorf("%q names %q, want %q", reason, got, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, args := range []string{"-length 1s", "-jobs 0", "-seed x", "more", "-jobs 1000000"} {
		if _, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	o, err := parse(strings.Fields("-seed 7 -length 10m -jobs 1000 -keep here"))
	if err != nil || o.seed != 7 || o.length != 10*time.Minute || o.jobs != 1000 || !strings.HasSuffix(o.keep, "/here") {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestProcessesOfWorkers(t *testing.T) {
	all := []proc{{pid: 1}, {pid: 5, parent: 1, args: []string{"zorilla", "node"}}, {pid: 7, parent: 5}, {pid: 8, parent: 7, args: []string{launcherName}}, {pid: 9, parent: 8}}
	if got := below(all, 7); !slices.Equal(got, []int{8, 9}) {
		t.Errorf("below are %v", got)
	}
	if got := workersBelow(all, 7); !slices.Equal(got, []int{9}) {
		t.Errorf("of these workers are %v", got)
	}
	if job := jobOf("/lab/east-1/work/k7f3q@zeb2a-12-3"); job != "k7f3q@zeb2a" {
		t.Errorf("got the job %s", job)
	}
	if own := processes(); !slices.ContainsFunc(own, func(p proc) bool { return strings.HasSuffix(p.args[0], "chaos.test") }) {
		t.Errorf("this process is not among %s", fmt.Sprint(len(own)))
	}
}

func TestWhatIsLeftIsFound(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"pids/zorilla-zabcd/job-0-1", "memory/own/zorilla-zabcd", "pids/zorilla-zother/job-0-1"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := controlGroups(root, "zabcd"), filepath.Join(root, "pids/zorilla-zabcd/job-0-1"); !slices.Equal(got, []string{want}) {
		t.Errorf("groups: %q, want %s alone", got, want)
	}
	for text, want := range map[string]string{"key shmid\n": "", "key shmid\n0 7\n0 8\n": "2 of System V's shm"} {
		if err := os.WriteFile(filepath.Join(root, "shm"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := systemV(root); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
