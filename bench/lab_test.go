package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/node"
	"zorilla/node/api"
	"zorilla/testnet/hosts/lab"
)

// first is the host from which all that runs in a lab is started, and the site of the
// three hosts beside it. Those of the other site hear nothing of them.
const first, site, otherSite = "lan-1", "lan", "other"

// scene is a lab in which a benchmark plays.
type scene struct {
	plan  string
	first string // the host from which all that runs in it is started
	tools string // what .ci/tools has to install for it
}

// twoLans is where the starts of jobs are measured.
var twoLans = scene{"lans", first, "starts"}

// slots is what each host offers, to everybody's jobs: enough for a third of 100.
const slots = 34

// nobody runs the nodes of an ordinary user.
const nobody = 65534

// inLab runs this benchmark again, alone, on the first host of a lab: in namespaces that
// end with all processes in them. It reports whether this process is that, and all is
// to be done; if not, all was.
func inLab(b *testing.B, s scene, name string, options ...string) bool {
	b.Helper()
	if name, _ := os.Hostname(); lab.Inside() && name == s.first {
		return true
	}
	if lab.Inside() { // its script: no host
		b.Fatal(syscall.Exec(filepath.Join(os.Getenv(lab.Variable), "bin", "lab"), append([]string{"lab", "host", s.first}, os.Args...), os.Environ()))
	}
	ctx, stop := signal.NotifyContext(b.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	program, dir := programOf(b), scratchOf(b)
	b.Setenv("TMPDIR", dir) // so that nothing is left of what was killed
	b.Chdir("..")
	if out, err := exec.CommandContext(ctx, "bash", ".ci/tools", s.tools).CombinedOutput(); err != nil {
		leaveOut(b, strings.TrimSpace(string(out)))
	} else {
		os.Stderr.Write(out) // what was installed
	}
	stage, err := lab.Build(ctx, s.plan)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := stage.Close(); err != nil {
			b.Error(err)
		}
	}()
	options = append(options, "-test.run=^$", "-test.bench=^"+name+"$", "-test.timeout=0", "-program="+program)
	if err := stage.Play(ctx, options...); err != nil {
		b.Fatal(err)
	}
	return false
}

// leaveOut skips a benchmark and tells why at once; go test itself would not.
func leaveOut(b *testing.B, why string) {
	b.Helper()
	fmt.Fprintf(os.Stderr, "%s is left out: %s\n", b.Name(), why)
	b.SkipNow()
}

// scratchOf is a directory on a disk that every user can pass.
func scratchOf(b *testing.B) string {
	b.Helper()
	dir, err := scratch()
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

// hosts is what runs in the lab.
type hosts struct {
	b   *testing.B
	ctx context.Context // ends early if somebody wants that
	dir string          // of the lab, in memory
	own string          // for what has to be on a disk
}

// enter takes possession of the lab: names of hosts can be looked up, and each has
// its own.
func enter(b *testing.B, s scene) *hosts {
	b.Helper()
	ctx, stop := signal.NotifyContext(b.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	b.Cleanup(stop)
	dir, err := lab.Enter()
	h := &hosts{b: b, ctx: ctx, dir: dir, own: scratchOf(b)}
	if err == nil {
		err = lab.Copy(programOf(b), filepath.Join(dir, "bin", "zorilla"), 0o755)
	}
	plan, planErr := lab.PlanOf(s.plan)
	names := "127.0.0.1 localhost\n"
	for _, host := range plan.Hosts() {
		names += fmt.Sprintln(host.Addr, host.Name)
	}
	file := h.write("hosts", names, 0o644)
	if err == nil && planErr == nil {
		err = unix.Mount(file, "/etc/hosts", "", unix.MS_BIND, "") // the lab's mounts are its own
	}
	if err != nil || planErr != nil {
		b.Fatal(errors.Join(err, planErr))
	}
	for _, host := range plan.Names() {
		if out, err := exec.Command("unshare", "--uts="+h.write(host+".uts", "", 0o600), "hostname", host).CombinedOutput(); err != nil {
			b.Fatalf("%s: %v: %s", host, err, out)
		}
	}
	return h
}

func (h *hosts) write(name, text string, mode os.FileMode) string {
	h.b.Helper()
	path := filepath.Join(h.own, name)
	err := os.WriteFile(path, []byte(text), mode)
	if err != nil {
		h.b.Fatal(err)
	}
	return path
}

// serve starts a command on a host that lasts until the benchmark ends, and is asked
// to end then.
func (h *hosts) serve(host string, words ...string) {
	h.b.Helper()
	log, err := os.Create(filepath.Join(h.own, host+"-"+filepath.Base(words[0])+".log"))
	if err != nil {
		h.b.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("lab", append([]string{"host", host}, words...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a terminal's Ctrl-C is for who has started it
	if err := cmd.Start(); err != nil {
		h.b.Fatal(err)
	}
	h.b.Cleanup(func() {
		late := time.AfterFunc(10*time.Second, func() {
			h.b.Errorf("%s on %s does not end", words[0], host)
			_ = cmd.Process.Kill()
		})
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended
		_ = cmd.Wait()
		late.Stop()
	})
}

// until waits for something that was started.
func (h *hosts) until(what string, missing func(context.Context) string) {
	h.b.Helper()
	if _, err := lab.Until(h.ctx, 30*time.Second, what, missing); err != nil {
		logs, _ := filepath.Glob(filepath.Join(h.own, "*.log"))
		for _, log := range logs {
			text, _ := os.ReadFile(log) // for whoever looks for the reason
			h.b.Logf("%s: ... %s", filepath.Base(log), text[max(0, len(text)-1000):])
		}
		h.b.Fatal(err)
	}
}

// nodes starts nodes of a user, 0 for root, on the hosts of a site, with default settings
// but the slots and the page. It returns what begins a client's command.
func (h *hosts) nodes(site string, user uint32) func(...string) *exec.Cmd {
	h.b.Helper()
	secret := h.write(site+".secret", rand.Text(), 0o600)
	if err := os.Chown(secret, int(user), int(user)); err != nil {
		h.b.Fatal(err)
	}
	var states []string
	for i := range 3 {
		host := fmt.Sprint(site, "-", i+1)
		state := filepath.Join(h.own, host)
		err := os.Mkdir(state, 0o700)
		if err == nil {
			err = os.Chown(state, int(user), int(user))
		}
		if err != nil {
			h.b.Fatal(err)
		}
		states = append(states, state)
		id := fmt.Sprint(user)
		words := []string{"zorilla", "node", "--state", state, "--secret-file", secret, "--web", "none", "--slots", fmt.Sprint(slots)}
		if user != 0 {
			words = append([]string{"setpriv", "--reuid", id, "--regid", id, "--clear-groups", "--"}, words...)
		}
		h.serve(host, words...)
	}
	h.know(states[0], 3)
	return func(words ...string) *exec.Cmd {
		cmd := exec.Command("zorilla", words...)
		cmd.Env = append(os.Environ(), "ZORILLA_STATE="+states[0])
		if user != 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		}
		return cmd
	}
}

// know waits until the node in a state directory knows so many.
func (h *hosts) know(state string, nodes int) {
	h.b.Helper()
	c, err := api.Dial(node.Socket(state))
	if err != nil {
		h.b.Fatal(err)
	}
	defer c.Close()
	h.until("all nodes know each other", func(ctx context.Context) string {
		members, err := c.Nodes(ctx)
		if err == nil && len(members) < nodes {
			err = fmt.Errorf("%d nodes", len(members))
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// slurm starts a controller on the first host and a daemon on each of three, that trust
// each other by munge, as root; without control groups, accounting, or a scheduler's delay
// that a job which fits would feel.
func (h *hosts) slurm() {
	h.b.Helper()
	at := func(name string) string { return filepath.Join(h.own, name) }
	key := h.write("munge.key", rand.Text()+rand.Text(), 0o600)
	config := fmt.Sprintf(slurmConfig, first, at("munge.sock"), at("slurm"), slots)
	if err := os.MkdirAll(at("slurm"), 0o755); err != nil {
		h.b.Fatal(err)
	}
	if err := os.Setenv("SLURM_CONF", h.write("slurm.conf", config, 0o644)); err != nil {
		h.b.Fatal(err)
	}
	h.serve(first, "munged", "--foreground", "--force", "--socket="+at("munge.sock"), "--key-file="+key,
		"--log-file="+at("munged.log"), "--pid-file="+at("munged.pid"), "--seed-file="+at("munged.seed"))
	h.until("munged answers", h.says("", "munge", "-n", "-S", at("munge.sock")))
	h.serve(first, "slurmctld", "-D", "-c")
	for i := range 3 {
		host := fmt.Sprint(site, "-", i+1)
		h.serve(host, "slurmd", "-D", "-N", host)
	}
	h.until("Slurm has three nodes", h.says("3", "sinfo", "-h", "-t", "idle", "-o", "%D"))
}

const slurmConfig = `ClusterName=starts
SlurmctldHost=%[1]s
AuthType=auth/munge
AuthInfo=socket=%[2]s
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=%[3]s/state
SlurmdSpoolDir=%[3]s/%%n
SlurmctldPidFile=%[3]s/ctld.pid
SlurmdPidFile=%[3]s/%%n.pid
SlurmctldLogFile=%[3]s/ctld.log
SlurmdLogFile=%[3]s/%%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
MpiDefault=none
ReturnToService=2
NodeName=lan-[1-3] CPUs=%[4]d RealMemory=500 State=UNKNOWN
PartitionName=all Nodes=lan-[1-3] Default=YES MaxTime=INFINITE State=UP
`

// says asks a program for a text; "" is any.
func (h *hosts) says(want string, words ...string) func(context.Context) string {
	return func(ctx context.Context) string {
		out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || want != "" && got != want {
			return fmt.Sprintf("%v: %.200q", err, got)
		}
		return ""
	}
}

// agent writes the cheapest remote shell there can be: it changes the namespaces, and
// nothing is encrypted, checked or sent. Options are of no use to it.
func (h *hosts) agent() string {
	h.b.Helper()
	return h.write("agent", `#!/bin/sh
while :; do case $1 in -*) shift ;; *) break ;; esac; done
host=$1
shift
[ "$1" != -- ] || shift
exec nsenter --net=`+filepath.Join(h.dir, "net")+`/$host --uts=`+h.own+`/$host.uts sh -c "$*"
`, 0o755)
}
