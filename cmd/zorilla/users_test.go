package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zorilla/internal/needs"
	"zorilla/jobs"
)

// whoami is shell code that tells who a worker is, and goes on when the gate is open.
func (g gate) whoami() string { return `echo $(id -u) $(id -g) $USER $LOGNAME; ` + g.wait() }

// users returns whom the ranks of a job are, in order.
func (n *realNode) users(t *testing.T, job string, ranks int) []string {
	t.Helper()
	n.job(t, job, "running", allWrite(ranks))
	var all []string
	for rank := range ranks {
		all = append(all, n.says(t, "logs", fmt.Sprintf("%s:%d", job, rank)))
	}
	return all
}

// Under a node of root each job has a user of its own: another one than other jobs,
// those of other nodes too, and than those that a node which was killed has left.
func TestJobsHaveUsersOfTheirOwn(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	g := newGate(t)
	options := []string{"--slots", "4", "--expose", g.dir, "--node-limit", "10m"}
	net := realNet(t, 2, options...)
	submit := func(number int, at string, options ...string) string {
		return net.nodes[number].says(t, append(append([]string{"submit", "--where", `name == "` + at + `"`}, options...), "sh", "-c", g.whoami())...)
	}
	pair, other, away := submit(1, "node1", "-n", "2"), submit(1, "node1"), submit(1, "node2")
	ids := net.nodes[1].users(t, pair, 2)
	if f := strings.Fields(ids[0]); len(f) != 4 || f[0] != f[1] || len(f[0]) != 10 || f[2] != "zorilla" || f[3] != "zorilla" || ids[1] != ids[0] {
		t.Errorf("two workers of a job are %q", ids)
	}
	seen := map[string]string{ids[0]: pair}
	differs := func(job string) {
		t.Helper()
		id := net.nodes[1].users(t, job, 1)[0]
		if seen[id] != "" {
			t.Errorf("%s and %s are both %s", job, seen[id], id)
		}
		seen[id] = job
	}
	differs(other)
	differs(away)

	roots, err := filepath.Glob(filepath.Join(net.nodes[1].state, "work", "*"))
	if err != nil || len(roots) != 3 {
		t.Fatalf("%q, %v", roots, err)
	}
	for _, root := range roots {
		for path, mode := range map[string]os.FileMode{root: 0o710, root + "/work": 0o700, root + "/tmp": 0o700, net.nodes[1].state: 0o711} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm()&^mode != 0 {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}

	net.nodes[1].ends(t, syscall.SIGKILL)
	if _, err := net.start(3, nodeEnv(), options); err != nil {
		t.Fatal(err)
	}
	late := net.nodes[3].says(t, "submit", "--where", `name == "node3"`, "sh", "-c", g.whoami())
	if id := net.nodes[3].users(t, late, 1)[0]; seen[id] != "" {
		t.Errorf("another node's job is %s, as is that of a node that was killed", id)
	}
	net.again(t, 1, options...)
	net.nodes[1].job(t, pair, "running", allRun(2))
	differs(submit(1, "node1"))
	g.open(t)
	for _, job := range []string{pair, other, away} {
		net.nodes[1].job(t, job, "completed", inState(jobs.Completed))
	}
	net.nodes[1].empty(t)
}

// The owner may name the numbers, or one user for all.
func TestUsersThatTheOwnerNames(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	for named, want := range map[string]string{
		"nobody":                "65534 65534 nobody nobody",
		"2000300000-2000300001": "2000300000 2000300000 zorilla zorilla",
		"root":                  "0 0 root root",
	} {
		net := realNet(t, 1, "--slots", "1", "--run-as", named)
		for range 2 {
			got := net.nodes[1].says(t, "run", "-q", "sh", "-c", "echo $(id -u) $(id -g) $USER $LOGNAME")
			if got != want && (named[0] != '2' || got != "2000300001 2000300001 zorilla zorilla") {
				t.Errorf("--run-as %s: %q, want %q", named, got, want)
			}
		}
		net.stop()
	}
}

func TestUsersThatAreRefused(t *testing.T) {
	needs.Root(t)
	for named, want := range map[string]string{
		"nosuchuser":            "--run-as nosuchuser: no such user",
		"5-1":                   `--run-as: "5-1": want FIRST-LAST`,
		"61000-62000":           "--run-as: users 61000-62000: 61184-65519 are the system's",
		"1-1000":                "--run-as: users 1-1000: some are those of",
		"1000000-5000000000":    "want FIRST-LAST",
		"2147483000-2147483647": "",
	} {
		_, _, err := workerUsers(named)
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", named, err)
		}
	}
}
