package snakemake

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"zorilla/examples/peers/crew"
	"zorilla/internal/needs"
)

// network is three nodes on this machine, which show their workers a directory with the
// workflow.
type network struct {
	t    *testing.T
	dir  string // of the workflow
	env  []string
	user *syscall.SysProcAttr
}

// start starts nodes of an ordinary user, since root's run each job as another user, who
// could not write where the others did.
func start(t *testing.T) *network {
	t.Helper()
	needs.Programs(t, "/usr/bin/snakemake", "python3")
	top := t.TempDir()
	for dir := top; strings.HasPrefix(filepath.Base(filepath.Dir(dir)), "Test"); dir = filepath.Dir(dir) {
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n := &network{t: t, dir: filepath.Join(top, "work")}
	n.env = []string{"PATH=" + top + ":/usr/bin:/bin", "HOME=" + top, "TMPDIR=" + top, "CI=true"} // Snakemake looks every ten seconds but in CI
	n.copy(n.dir)
	crew.Build(t, top, "cmd/zorilla")
	if os.Geteuid() == 0 {
		n.user = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		n.sh("/", nil, "chown -R 65534:65534 "+top)
	}
	n.env = append(n.env, crew.Nodes(t, top, n.env, n.user, "-n", "3", "--slots", "4", "--expose", n.dir+":rw"))
	return n
}

// copy makes a directory with the workflow and its profile.
func (n *network) copy(dir string) {
	n.t.Helper()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		n.t.Fatal(err)
	}
}

func (n *network) command(dir, name string, args ...string) *exec.Cmd {
	if path := filepath.Join(filepath.Dir(n.dir), name); name == "zorilla" {
		name = path
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr, cmd.Stderr = dir, n.env, n.user, os.Stderr
	return cmd
}

// sh runs a command of a shell, and returns what it says.
func (n *network) sh(dir string, user *syscall.SysProcAttr, script string) string {
	n.t.Helper()
	cmd := n.command(dir, "sh", "-c", script)
	cmd.SysProcAttr, cmd.Stderr = user, nil
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.t.Errorf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// snakemake makes a command of it, which says all in a string.
func (n *network) snakemake(dir string, said *strings.Builder, args ...string) *exec.Cmd {
	cmd := n.command(dir, "/usr/bin/snakemake", append([]string{"--profile", "profile", "--max-status-checks-per-second", "6"}, args...)...)
	cmd.Stdout, cmd.Stderr = said, said
	return cmd
}

// fails wants Snakemake to end badly, saying what matches.
func (n *network) fails(dir, want string, args ...string) {
	n.t.Helper()
	var said strings.Builder
	err := n.snakemake(dir, &said, args...).Run()
	if err == nil || !regexp.MustCompile(want).MatchString(said.String()) {
		n.t.Errorf("%v: %v, want an error and %q:\n%s", args, err, want, said.String())
	}
}

const unended = `zorilla ps --members | grep -cE "PENDING|STAGING|RUNNING|COLLECTING" || true`

func TestWorkflow(t *testing.T) {
	n := start(t)
	var said strings.Builder
	if err := n.snakemake(n.dir, &said, "--config", "parts=17").Run(); err != nil {
		t.Fatalf("%v:\n%s", err, said.String())
	}
	for _, want := range []string{"43 of 43 steps (100%) done", "threads: 2"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not in:\n%s", want, said.String())
		}
	}
	// What GNU sort makes of the same numbers, without Snakemake.
	want := n.sh("/", n.user, `for x in $(seq 17); do awk -v n=2000 -v x=$x 'BEGIN { for (; n > 0; n--) { x = x * 16807 % 2147483647; print x } }'; done | LC_ALL=C sort -n | cksum`)
	if got := n.sh(n.dir, n.user, "cat report.txt"); got != want {
		t.Errorf("the report says %q, want %q", got, want)
	}
	if left := n.sh(n.dir, n.user, "ls -d made/* sorted/* 2>/dev/null || true"); left != "" {
		t.Errorf("temporary files are left: %s", left)
	}
	if nodes := n.sh(n.dir, n.user, `zorilla ps --all --members --json | grep -o '"node": "[a-z0-9]*"' | sort -u | wc -l`); nodes != "3\n" {
		t.Errorf("%q nodes have worked, want 3", nodes)
	}
	t.Run("failing rule", func(t *testing.T) { n.broken() })
	t.Run("cancelled", func(t *testing.T) { n.cancelled() })
	t.Run("files that nodes do not share", func(t *testing.T) { n.unshared() })
}

// broken has a rule fail: what depends on it is not made.
func (n *network) broken() {
	n.fails(n.dir, `(?s)zorilla: job \S+: FAILED: .*Error in rule make.*part 1 cannot be made|part 1 cannot be made.*FAILED`,
		"--forceall", "--config", "parts=2", "broken=1", "--show-failed-logs")
	n.sh(n.dir, n.user, "grep -q 'part 1 cannot be made' logs/make-1.log && test ! -e sorted/1.txt")
}

// cancelled interrupts Snakemake while jobs run.
func (n *network) cancelled() {
	var said strings.Builder
	cmd := n.snakemake(n.dir, &said, "--forceall", "--config", "parts=2", "wait=7003")
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.sh(n.dir, n.user, `until [ $(zorilla ps | grep -c "sort.*RUNNING") = 2 ]; do sleep 0.1; done`)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		n.t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		n.t.Errorf("it ended well:\n%s", said.String())
	}
	n.sh(n.dir, n.user, `until [ $(`+unended+`) = 0 ]; do sleep 0.1; done; zorilla ps --all --members | grep -c "sort.*CANCELLED" | grep -x 2`)
}

// unshared has directories that nodes do not show, or that are not the same there.
func (n *network) unshared() {
	other := filepath.Join(filepath.Dir(n.dir), "other")
	n.copy(other)
	n.sh("/", nil, fmt.Sprintf("chown -R --reference=%s %s", n.dir, other))
	n.fails(other, `zorilla: no node shows workers \S+/other: share it, and say at each node: zorilla owner set expose\+=`, "--config", "parts=1")
	if left := n.sh(other, n.user, unended); left != "0\n" {
		n.t.Errorf("%s jobs are left", left)
	}
	for _, c := range []struct{ dir, says string }{
		{n.dir, "is not the directory of this workflow here: nodes that show it must share it"},
		{n.dir + "/shut", "cannot be written by user"},
	} {
		check := n.sh(n.dir, n.user, "mkdir -p shut/.snakemake && chmod 500 shut/.snakemake; sed -n '/^CHECK/,/^\"\"\"/p' profile/submit.py | sed '1d;$d'")
		if got := n.sh(n.dir, n.user, "(sh -c '"+strings.ReplaceAll(check, "'", `'\''`)+"' sh "+c.dir+" "+n.dir+"/no-such-script 1; test $? = 1) 2>&1"); !strings.Contains(got, c.says) {
			n.t.Errorf("it says %q, want %q", got, c.says)
		}
	}
}
