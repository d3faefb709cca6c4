package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"zorilla/jobs/mpi"
	"zorilla/jobs/pmi"
	"zorilla/testnet/chart"
	"zorilla/testnet/hosts/lab"
)

// transports are those of MPICH's ranks, whoever starts them.
const transports = "self,tcp"

// layout is how many hosts run how many ranks each.
type layout struct{ hosts, each int }

func (l layout) ranks() int { return l.hosts * l.each }

// parallel is what BenchmarkMPI runs.
type parallel struct {
	*starts
	layout
	dir       string // of the programs
	libraries mpi.Libraries
	own       map[string][]float64 // seconds that programs say they took, by rival and program
}

// BenchmarkMPI is what MPI programs take on hosts of one network, two ranks on each of three,
// and one on each of two, for which two processors are enough; with Open MPI and with MPICH: "zorilla run --mpi" at nodes of root with all of the wall;
// mpirun and Hydra's mpiexec with nsenter for a remote shell; and the ranks started with
// nothing around them, by the benchmark itself, which serves them as nodes do. The programs
// are those of examples/mpi: hello, which only starts; ep, which only computes; and is, which
// sends most of what it has to all others, ten times. Those that compute tell how long they
// took without the start. It needs root, and Debian's packages, which it installs.
//
// All use the same transports: Open MPI shared memory at a host and TCP between hosts, MPICH
// TCP alone, since Hydra's ranks would take three hosts of one kernel for one.
func BenchmarkMPI(b *testing.B) {
	if os.Geteuid() != 0 {
		leaveOut(b, "it needs root")
	}
	if !lab.Inside() {
		if out, err := exec.Command("bash", "../.ci/tools", "mpi").CombinedOutput(); err != nil {
			leaveOut(b, strings.TrimSpace(string(out)))
		}
	}
	if !inLab(b, twoLans, "BenchmarkMPI", "-out="+*out, "-rounds="+strconv.Itoa(*rounds)) {
		return
	}
	err := chart.Keep(*out, func(r *chart.Results) error {
		p := &parallel{starts: &starts{hosts: enter(b, twoLans), tallies: map[string]*tally{}}, own: map[string][]float64{}}
		p.dir = filepath.Join(p.starts.own, "programs")
		if err := os.Mkdir(p.dir, 0o755); err != nil {
			b.Fatal(err)
		}
		if out, err := exec.Command("make", "-C", "examples/mpi", "OUT="+p.dir, "all").CombinedOutput(); err != nil {
			b.Fatalf("build the programs: %v: %.500s", err, out)
		}
		var err error
		if p.libraries, err = mpi.Install(p.dir); err != nil {
			b.Fatal(err)
		}
		p.describe(r)
		p.root = p.nodes(site, 0)
		p.agent()
		for _, p.layout = range []layout{{3, 2}, {2, 1}} {
			p.compare(b, r)
		}
		fmt.Fprintf(r, "\nLoad at the end: %s.\n", load())
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// compare runs each program in turn with all rivals, and writes medians.
func (p *parallel) compare(b *testing.B, r *chart.Results) {
	clear(p.tallies)
	fmt.Fprintf(r, "\nMedian ms of %d rounds or more, %d ranks on %d hosts; in brackets how many times as long as that one zorilla took; behind it what the program says it took itself:\n\n| program | zorilla | mpirun | bare |\n|---|---|---|---|\n", *rounds, p.ranks(), p.layout.hosts)
	for _, kind := range []mpi.Kind{mpi.OpenMPI, mpi.MPICH} {
		for _, words := range [][]string{{"hello"}, {"ep", "26"}, {"is", "23"}} {
			name := words[0] + "." + strings.ReplaceAll(string(kind), " ", "")
			var all []rival
			for _, c := range []struct {
				name string
				run  func(context.Context) ([]byte, error)
			}{
				{"zorilla", p.output(func() *exec.Cmd {
					return p.root(append([]string{"run", "-q", "--stdin", "none", "--strategy", "spread", "-e", "UCX_TLS=" + transports, "-n", strconv.Itoa(p.ranks()), "--mpi", "--", "./" + name}, words[1:]...)...)
				})},
				{"mpirun", p.output(func() *exec.Cmd { return p.mpirun(kind, append([]string{"./" + name}, words[1:]...)) })},
				{"bare", func(ctx context.Context) ([]byte, error) {
					return p.direct(ctx, kind, append([]string{"./" + name}, words[1:]...))
				}},
			} {
				key := c.name + " " + name
				all = append(all, rival{c.name, func() (time.Duration, error) {
					return p.tolerate(key, func() (time.Duration, error) { return p.take(key, c.run) })
				}})
			}
			b.Run(fmt.Sprint(name, "-", p.ranks()), func(b *testing.B) {
				for _, v := range all {
					if _, err := v.run(); err != nil {
						b.Fatalf("%s: %v", v.name, err)
					}
				}
				clear(p.own)
				times := compete(b, *rounds, all...)
				fmt.Fprintf(r, "| %s |", strings.Join(append([]string{name}, words[1:]...), " "))
				for i, t := range times {
					fmt.Fprintf(r, " %s%s |", cell(median(t), median(times[0]), i), p.itself(all[i].name+" "+name, "zorilla "+name))
				}
				fmt.Fprintln(r)
			})
			if b.Failed() {
				b.FailNow()
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(p.tallies)) {
		if t := p.tallies[what]; t.failed > 0 {
			fmt.Fprintf(r, "\n- %s: %d of %d runs failed, the last one with: %v\n", what, t.failed, t.runs, t.last)
		}
	}
}

// itself is what a program says it took, and how many times as long that is with zorilla.
func (p *parallel) itself(key, ours string) string {
	if len(p.own[key]) == 0 {
		return ""
	}
	middle := func(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/2] }
	if key == ours || len(p.own[ours]) == 0 {
		return fmt.Sprintf("; %.0f", 1e3*middle(p.own[key]))
	}
	return fmt.Sprintf("; %.0f (%.2f)", 1e3*middle(p.own[key]), middle(p.own[ours])/middle(p.own[key]))
}

var itself = regexp.MustCompile(` ([0-9.]+) s, verified`)

// take runs a program, whose output has to be right.
func (p *parallel) take(key string, run func(context.Context) ([]byte, error)) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(p.ctx, 3*runLimit)
	defer cancel()
	begun := time.Now()
	text, err := run(ctx)
	took := time.Since(begun)
	switch m := itself.FindSubmatch(text); {
	case err != nil:
		return took, fmt.Errorf("%w: %.200q", err, text)
	case m != nil:
		seconds, _ := strconv.ParseFloat(string(m[1]), 64) // the expression allows nothing else that matters
		p.own[key] = append(p.own[key], seconds)
	case strings.Contains(key, " hello") && bytes.Count(text, []byte("\n")) == p.ranks():
	default:
		return took, fmt.Errorf("it says %.200q", text)
	}
	return took, nil
}

// output runs a command in the directory of the programs.
func (p *parallel) output(command func() *exec.Cmd) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		c := command()
		bound := exec.CommandContext(ctx, c.Path, c.Args[1:]...)
		bound.Env, bound.Dir, bound.WaitDelay = c.Env, p.dir, 5*time.Second
		return bound.Output()
	}
}

// mpirun is the launcher of an MPI.
func (p *parallel) mpirun(kind mpi.Kind, words []string) *exec.Cmd {
	agent, n := filepath.Join(p.starts.own, "agent"), strconv.Itoa(p.ranks())
	var list []string
	for host := range p.layout.hosts {
		list = append(list, fmt.Sprintf("%s-%d:%d", site, host+1, p.each))
	}
	hosts := strings.Join(list, ",")
	if kind == mpi.OpenMPI {
		cmd := exec.Command("mpirun.openmpi", append([]string{"--wdir", p.dir, "--bind-to", "none", "--mca", "plm_rsh_agent", agent, "--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp",
			"--mca", "btl_tcp_if_include", "eth0", "--mca", "mpi_yield_when_idle", "1", "-H", hosts, "-n", n}, words...)...)
		cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
		return cmd
	}
	cmd := exec.Command("mpiexec.hydra", append([]string{"-wdir", p.dir, "-iface", "eth0", "-launcher-exec", agent, "-hosts", hosts, "-n", n}, words...)...)
	cmd.Env = append(os.Environ(), "UCX_TLS="+transports, "LD_PRELOAD="+p.libraries.Finish, "ZORILLA_MPI_FINISH=1", "ZORILLA_MPI_YIELD=1")
	return cmd
}

// direct starts the ranks with nothing around them, and has them meet as nodes do.
func (p *parallel) direct(ctx context.Context, kind mpi.Kind, words []string) ([]byte, error) {
	name, env := strconv.FormatInt(time.Now().UnixNano(), 10), p.environments(kind)
	var all []*exec.Cmd
	texts, links := make([]bytes.Buffer, p.ranks()), make([]*pmi.Link, p.ranks())
	var nodes []int
	for rank := range p.ranks() {
		nodes = append(nodes, rank/p.each)
	}
	for rank := range p.ranks() {
		m, err := pmi.Manage(&pmi.Place{Rank: rank, Size: p.ranks(), Nodes: nodes, Name: name}, func(int) {})
		if err != nil {
			return nil, err
		}
		defer m.Close()
		ours, theirs := net.Pipe()
		defer ours.Close()
		go m.Relay(ours)
		links[rank] = pmi.NewLink(theirs)
		script := "cd " + p.dir + "; exec env " + env(rank, name) + strings.Join(words, " ")
		cmd := exec.CommandContext(ctx, filepath.Join(p.starts.own, "agent"), fmt.Sprint(site, "-", rank/p.each+1), script)
		cmd.ExtraFiles, cmd.Stdout, cmd.WaitDelay = m.Files(), &texts[rank], 5*time.Second
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		m.Started()
		all = append(all, cmd)
	}
	go func() {
		for meet(links) == nil {
		}
	}()
	var err error
	for _, cmd := range all {
		err = errors.Join(err, cmd.Wait())
	}
	var text []byte
	for i := range texts {
		text = append(text, texts[i].Bytes()...)
	}
	return text, err
}

// environments returns what ranks find, as at nodes.
func (p *parallel) environments(kind mpi.Kind) func(rank int, name string) string {
	return func(rank int, name string) string {
		r := mpi.Rank{Kind: kind, Rank: rank, Size: p.ranks(), LocalRank: rank % p.each, LocalSize: p.each, Hosts: p.layout.hosts, Job: name, FD: 3, Libraries: p.libraries,
			Interface: "eth0", Busy: true, Memory: kind == mpi.OpenMPI}
		env := r.Environment()
		env["OMPI_MCA_btl_tcp_if_include"] = "eth0"
		if kind == mpi.MPICH {
			env["UCX_TLS"] = transports
		}
		text := ""
		for _, k := range slices.Sorted(maps.Keys(env)) {
			text += fmt.Sprintf("%s='%s' ", k, env[k])
		}
		return text
	}
}

// meet lets all ranks pass their next barrier.
func meet(links []*pmi.Link) error {
	var pass pmi.Pass
	for _, l := range links {
		b, err := l.Next()
		if err != nil {
			return err
		}
		pass.Number, pass.Puts = b.Number, append(pass.Puts, b.Puts...)
	}
	for _, l := range links {
		if err := l.Pass(pass); err != nil {
			return err
		}
	}
	return nil
}
