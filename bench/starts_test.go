package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"zorilla/testnet/chart"
)

var (
	out    = flag.String("out", "", "also write what is found into this folder of the repository (Starts, Farm, MPI, Swarm)")
	rounds = flag.Int("rounds", 21, "how often BenchmarkStarts runs each at least")
)

// runLimit is when a job that has not ended counts as one that never will.
const runLimit = 10 * time.Second

// sizes are the workers of jobs, and the targets in ms of zorilla's: the first of what a job
// may cost, the second of what it must be for parallel programs.
var sizes = []struct {
	workers int
	targets string
}{{1, "-"}, {6, "45, 40"}, {24, "120, 100"}, {100, "300, srun's"}}

// maxWorkerCPU is the target for what a worker costs beyond fork and exec, in ms of a core.
const maxWorkerCPU = 3

// starts are the times of all that were started.
type starts struct {
	*hosts
	root, user func(...string) *exec.Cmd // zorilla at the nodes of each
	tallies    map[string]*tally         // of rivals at a size
}

// tally counts the runs of a rival that may fail.
type tally struct {
	runs, failed int
	last         error
}

// BenchmarkStarts is what the start of a small parallel job costs on three hosts of one
// network: "zorilla run hostname" at nodes of root, and of an ordinary user, with all of
// the wall; Slurm's srun; mpirun of Open MPI and of MPICH with nsenter for a remote
// shell; as many processes on the three hosts with nothing around them but nsenter, the bare
// start; and as many of the benchmark itself, on one host. In the lab of testnet/hosts,
// all states on the disk of temporary files. It needs root, and Debian's packages
// of the rivals, which it installs.
//
// The processor time of a worker is that of 10 jobs of 100 workers: of all processes in
// the lab but the benchmark and its client, those that have ended included (utime, stime,
// cutime and cstime of /proc/PID/stat, which the kernel adds up in ns), until all that
// the jobs have started is gone, less what they use in that time when nothing runs.
// A control group around it all (cpuacct) told the same within 0.2 %. What fork and
// exec cost is that of the benchmark and its children while it starts 100.
func BenchmarkStarts(b *testing.B) {
	if os.Geteuid() != 0 {
		leaveOut(b, "it needs root")
	}
	if !inLab(b, twoLans, "BenchmarkStarts", "-out="+*out, "-rounds="+strconv.Itoa(*rounds)) {
		return
	}
	err := chart.Keep(*out, func(r *chart.Results) error {
		s := &starts{hosts: enter(b, twoLans), tallies: map[string]*tally{}}
		s.describe(r)
		s.root, s.user = s.nodes(site, 0), s.nodes(otherSite, nobody)
		fmt.Fprintf(r, "Workers of zorilla are confined by %s; of zorilla-user by %s.\n", s.wall(s.root), s.wall(s.user))
		s.slurm()
		s.compare(b, r)
		s.cost(b, r)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// describe writes what the figures depend on.
func (s *starts) describe(r *chart.Results) {
	line := func(n int, words ...string) string {
		out, _ := exec.Command(words[0], words[1:]...).Output() // what it does not say is left out
		return strings.TrimSpace(strings.Split(string(out)+strings.Repeat("\n", n), "\n")[n])
	}
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	_, model, _ := strings.Cut(string(cpus), "model name\t: ")
	model, _, _ = strings.Cut(model, "\n")
	_, mpich, _ := strings.Cut(line(0, "mpichversion"), ":")
	fmt.Fprintf(r, "%s; %d processors (%s), Linux %s, states on %s; load at the start: %s.\n%s, %s, MPICH %s.\n", time.Now().Format(time.DateOnly),
		runtime.NumCPU(), model, line(0, "uname", "-r"), line(1, "df", "--output=fstype", s.own), load(),
		line(0, "slurmd", "-V"), line(0, "mpirun.openmpi", "--version"), strings.TrimSpace(mpich))
}

// wall is what confines workers of a node.
func (s *starts) wall(command func(...string) *exec.Cmd) string {
	out, err := command("nodes", "--json").Output()
	var all []struct {
		Self     bool
		Enforces []string
	}
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		s.b.Fatalf("zorilla nodes: %v", err)
	}
	for _, n := range all {
		if n.Self {
			return strings.Join(n.Enforces, ", ")
		}
	}
	return "nothing"
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg") // for whoever reads the figures
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// rivals are all that start jobs of a size, zorilla first.
func (s *starts) rivals(workers int) []rival {
	n, each := strconv.Itoa(workers), strconv.Itoa((workers+2)/3)
	nodes := min(3, workers)
	var list []string
	for i := range nodes {
		list = append(list, fmt.Sprintf("%s-%d:%s", site, i+1, each))
	}
	hosts, agent := strings.Join(list, ","), filepath.Join(s.own, "agent")
	// The others are told to use all three hosts; so is zorilla.
	ours := []string{"run", "-q", "--stdin", "none", "--strategy", "spread", "-n", n, "--", "hostname"}
	commands := []struct {
		name string
		make func() *exec.Cmd
	}{
		{"zorilla", func() *exec.Cmd { return s.root(ours...) }},
		{"zorilla-user", func() *exec.Cmd { return s.user(ours...) }},
		{"srun", func() *exec.Cmd { return exec.Command("srun", "-N"+strconv.Itoa(nodes), "-n"+n, "hostname") }},
		{"openmpi", func() *exec.Cmd {
			cmd := exec.Command("mpirun.openmpi", "--mca", "plm_rsh_agent", agent, "-H", hosts, "-n", n, "hostname")
			cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
			return cmd
		}},
		{"mpich", func() *exec.Cmd {
			return exec.Command("mpiexec.hydra", "-iface", "eth0", "-launcher-exec", agent, "-hosts", hosts, "-n", n, "hostname")
		}},
	}
	var all []rival
	for i, c := range commands {
		all = append(all, rival{c.name, func() (time.Duration, error) {
			if i == 0 {
				return s.launch(c.make(), workers)
			}
			return s.tolerate(fmt.Sprint(c.name, " with ", workers), func() (time.Duration, error) { return s.launch(c.make(), workers) })
		}})
	}
	return append(all, rival{"bare", timed(s.bare(workers))}, rival{"fork+exec", timed(bare(workers))})
}

// bare starts a command for each of some workers on the three hosts, and waits for all.
func (s *starts) bare(workers int) func() error {
	return func() error {
		var all []*exec.Cmd
		for i := range workers {
			cmd := exec.CommandContext(s.ctx, filepath.Join(s.own, "agent"), fmt.Sprint(site, "-", i%3+1), "hostname")
			if err := cmd.Start(); err != nil {
				return err
			}
			all = append(all, cmd)
		}
		var err error
		for _, cmd := range all {
			err = errors.Join(err, cmd.Wait())
		}
		return err
	}
}

// launch runs a command that prints a line for each worker, for so long as is allowed.
func (s *starts) launch(cmd *exec.Cmd, workers int) (time.Duration, error) {
	return s.launchWithin(runLimit, cmd, workers)
}

func (s *starts) launchWithin(limit time.Duration, cmd *exec.Cmd, workers int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	bound := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	bound.Env, bound.SysProcAttr = cmd.Env, cmd.SysProcAttr
	bound.Cancel = func() error { return bound.Process.Signal(syscall.SIGTERM) }
	bound.WaitDelay = 5 * time.Second
	begun := time.Now()
	text, err := bound.Output()
	took := time.Since(begun)
	lines := bytes.Count(text, []byte("\n"))
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("%d of %d lines after %v: %w", lines, workers, took.Round(time.Second), context.Cause(ctx))
	case errors.As(err, &exit):
		err = fmt.Errorf("%w: %.300q", err, bytes.TrimSpace(exit.Stderr))
	case err == nil && lines != workers:
		err = fmt.Errorf("%d lines instead of %d", lines, workers)
	}
	return took, err
}

// tolerate lets a rival fail, or hang, which counts as the limit. One that has failed
// twice and never did else is not tried again.
func (s *starts) tolerate(what string, run func() (time.Duration, error)) (time.Duration, error) {
	t := s.tallies[what]
	if t == nil {
		t = &tally{}
		s.tallies[what] = t
	}
	if t.failed == t.runs && t.failed >= 2 {
		return runLimit, nil
	}
	took, err := run()
	t.runs++
	if err == nil || s.ctx.Err() != nil {
		return took, err
	}
	t.failed, t.last = t.failed+1, err
	return runLimit, nil
}

// compare starts jobs of all sizes in turn with all rivals, and writes medians, and how
// many times as long as each rival zorilla took.
func (s *starts) compare(b *testing.B, r *chart.Results) {
	s.agent()
	heading, rule := "| workers | targets |", "|---|---|"
	for _, v := range s.rivals(1) {
		heading, rule = heading+" "+v.name+" |", rule+"---|"
	}
	table := ""
	var rows [][]any
	for _, size := range sizes {
		all := s.rivals(size.workers)
		b.Run(strconv.Itoa(size.workers), func(b *testing.B) {
			for _, v := range all { // directories are made and programs read once
				if _, err := v.run(); err != nil {
					b.Fatalf("%s: %v", v.name, err)
				}
			}
			times := compete(b, *rounds, all...)
			table += fmt.Sprintf("| %d | %s |", size.workers, size.targets)
			for i, t := range times {
				table += " " + cell(median(t), median(times[0]), i) + " |"
				for round, d := range t {
					rows = append(rows, []any{size.workers, all[i].name, round + 1, ms(d)})
				}
			}
			table += "\n"
		})
		if b.Failed() {
			b.FailNow()
		}
	}
	fmt.Fprintf(r, "\nMedian ms of %d rounds or more, all in turn; in brackets how many times as long as that one zorilla took:\n\n%s\n%s\n%s\n",
		*rounds, heading, rule, table)
	for _, what := range slices.Sorted(maps.Keys(s.tallies)) {
		if t := s.tallies[what]; t.failed > 0 {
			fmt.Fprintf(r, "- %s workers: %d of %d runs failed, the last one with: %v\n", what, t.failed, t.runs, t.last)
		}
	}
	r.CSV("starts.csv", []string{"workers", "by", "round", "ms"}, rows)
}

// cell is a median beside that of zorilla, which is the first column.
func cell(d, ours time.Duration, column int) string {
	switch {
	case d >= runLimit:
		return "fails"
	case column == 0:
		return fmt.Sprintf("**%.1f**", ms(d))
	}
	return fmt.Sprintf("%.1f (%.2f)", ms(d), float64(ours)/float64(d))
}

// cost writes what a worker of 100 costs in processor time.
func (s *starts) cost(b *testing.B, r *chart.Results) {
	const workers, jobs, idle = 100, 10, 5 * time.Second
	before := s.used()
	<-time.After(idle)
	rest := float64(s.used()-before) / float64(idle)
	perWorker := func(total time.Duration) float64 { return ms(total) / (workers * jobs) }
	table := ""
	b.Run("cpu", func(b *testing.B) {
		own := ownCPU()
		for range jobs {
			if err := bare(workers)(); err != nil {
				b.Fatal(err)
			}
		}
		least := perWorker(ownCPU() - own)
		b.ReportMetric(least, "cpu-ms/fork+exec")
		for _, v := range s.rivals(workers)[:2] {
			there, before, begun := processes(b), s.used(), time.Now()
			for range jobs {
				if _, err := v.run(); err != nil {
					b.Fatalf("%s: %v", v.name, err)
				}
			}
			s.until("all that was started has ended", func(context.Context) string {
				for pid, words := range processes(b) {
					if _, old := there[pid]; !old {
						return strings.Join(words, " ")
					}
				}
				return ""
			})
			cpu := perWorker(s.used() - before - time.Duration(rest*float64(time.Since(begun))))
			b.ReportMetric(cpu, "cpu-ms/"+v.name)
			table += fmt.Sprintf("| %s | %.2f | %.2f |\n", v.name, cpu, cpu-least)
		}
		table += fmt.Sprintf("| fork+exec | %.2f | |\n", least)
		b.ReportMetric(0, "ns/op")
	})
	fmt.Fprintf(r, "\nProcessor time, core-ms for each of %d workers (target: at most %d beyond fork+exec):\n\n| | all | beyond fork+exec |\n|---|---|---|\n%s\nLoad at the end: %s.\n",
		workers, maxWorkerCPU, table, load())
}

// used is the processor time of all processes of the lab but this one, and of those
// that they have waited for.
func (s *starts) used() (sum time.Duration) {
	for pid := range processes(s.b) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if pid == os.Getpid() || err != nil { // it has ended
			continue
		}
		for _, ticks := range strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))[11:15] {
			n, err := strconv.ParseInt(ticks, 10, 64)
			if err != nil {
				s.b.Fatalf("the times of process %d: %v", pid, err)
			}
			sum += time.Duration(n) * time.Second / ticksPerSecond
		}
	}
	return sum
}

// ownCPU is the processor time of this process and of all that it has waited for.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return childrenCPU() + time.Duration(u.Utime.Nano()+u.Stime.Nano())
}
