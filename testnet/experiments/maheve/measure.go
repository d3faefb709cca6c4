package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/testnet/chart"
	"zorilla/testnet/hosts/lab"
)

// The lab in which times are measured.
const (
	network       = "clusters"
	hostMbit      = 1000 // each direction of a host's cable
	siteMbit      = 100  // what a site sends to the others
	checkpointGap = 5 * time.Second
)

// effort is how much is measured.
type effort struct {
	quick  bool
	rounds int             // times that each thing is measured, or more
	sizes  []int64         // of checkpoints, in bytes; the first is the one that is simulated
	ranks  int             // of the solver
	solver solverArguments // of the solver
}

type solverArguments struct {
	n, sweeps int
	pause     time.Duration
}

// efforts are the measurement, and the one for tests. A rank of six has 79 000 points, as many as a task
// has rows of a matrix of 5 000 000. How long an iteration takes is decided by the number of sweeps. The pause is for
// the other ranks: all hosts share the processors of this machine.
var efforts = map[bool]effort{
	false: {rounds: 7, sizes: []int64{16 << 20, 64 << 20}, ranks: 6, solver: solverArguments{n: 78, sweeps: 2000, pause: 2500 * time.Millisecond}},
	true:  {quick: true, rounds: 1, sizes: []int64{16 << 20}, ranks: 6, solver: solverArguments{n: 30, sweeps: 100, pause: 200 * time.Millisecond}},
}

// measure measures all times with real nodes in a lab, and writes the file unless it is only a try.
func measure(ctx context.Context, o *options) error {
	begun := time.Now()
	m, err := takeMeasure(ctx, &o.effort)
	if err != nil {
		return err
	}
	m.report(os.Stdout)
	fmt.Printf("\nIt took %.0f s.\n", time.Since(begun).Seconds())
	if o.quick {
		return nil
	}
	return m.write(o.measured)
}

func takeMeasure(ctx context.Context, e *effort) (m *measured, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root may give hosts processes of several users: run as root")
	}
	stage, err := lab.Build(ctx, network, "./examples/async")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	before := lab.Load()
	var f found
	if err := stage.Ask(ctx, &f, "-quick="+strconv.FormatBool(e.quick)); err != nil {
		return nil, err
	}
	plan, err := lab.PlanOf(network)
	if err != nil {
		return nil, err
	}
	m = f.figures(e)
	m.Occasion = &occasion{Commit: chart.Commit(), Date: time.Now().UTC().Format(time.DateOnly), Machine: machine(), Load: before + "; " + lab.Load(),
		Lab: describe(plan), LostAfter: jobs.LeastPatience.String(), CheckpointBytes: e.sizes[0], Aside: f.Aside, Iterations: e.solver.describe(e.ranks)}
	return m, m.check()
}

// figures makes figures of what was found.
func (f *found) figures(e *effort) *measured {
	m := &measured{Checkpoint: figure{Seconds: checkpointGap.Seconds(), Source: wasChosen}, Iteration: figureOf(f.Iterations),
		MessageNear: figureOf(f.Near), MessageFar: figureOf(f.Far), Beside: map[string]figure{}}
	killed := f.deaths(deedKill, jobs.LeastPatience)
	for _, size := range e.sizes {
		near, far, waits := []float64{}, []float64{}, []float64{}
		for _, r := range f.Restores {
			if r.Bytes != size {
				continue
			}
			killed, waits = append(killed, r.Lost), append(waits, r.Waited)
			if r.Far {
				far = append(far, r.Restored)
			} else {
				near = append(near, r.Restored)
			}
		}
		m.Beside["wait for a checkpoint of "+units.Bytes(size)] = figureOf(waits)
		if size == e.sizes[0] {
			m.RestoreNear, m.RestoreFar = figureOf(near), figureOf(far)
			continue
		}
		m.Beside["restore_near of "+units.Bytes(size)], m.Beside["restore_far of "+units.Bytes(size)] = figureOf(near), figureOf(far)
	}
	m.Beside["iteration beside those of other hosts"] = figureOf(f.Took)
	m.Detection = figureOf(killed)
	m.Beside["detection of a pulled cable"] = figureOf(f.deaths(deedCut, jobs.LeastPatience))
	m.Beside["detection without --lost-after"] = figureOf(f.deaths(deedKill, 0))
	m.Beside["detection of a pulled cable without --lost-after"] = figureOf(f.deaths(deedCut, 0))
	return m
}

// deaths returns after how long the ranks of nodes were lost to which something was done.
func (f *found) deaths(deed string, patience time.Duration) (list []float64) {
	for _, d := range f.Deaths {
		if d.Deed == deed && d.Patience == patience {
			list = append(list, d.Lost)
		}
	}
	return list
}

// describe says what the lab is.
func describe(p *lab.Plan) string {
	var sites, distances []string
	for i, s := range p.Sites {
		sites = append(sites, fmt.Sprintf("%s %d", s.Name, s.Hosts))
		for k := range i {
			distances = append(distances, fmt.Sprintf("%v ms from %s to %s", p.RTT[i][k], p.Sites[k].Name, s.Name))
		}
	}
	return fmt.Sprintf("%d hosts at %d sites (%s); round trips %s; %d Mbit/s each direction of a host's cable, %d Mbit/s from each site to the others; "+
		"a slot a host", len(p.Hosts()), len(p.Sites), strings.Join(sites, ", "), strings.Join(distances, ", "), hostMbit, siteMbit)
}

func (s *solverArguments) strings() []string {
	return []string{"-n", strconv.Itoa(s.n), "-sweeps", strconv.Itoa(s.sweeps), "-pause", s.pause.String(), "-tolerance", "1e-11", "-times"}
}

func (s *solverArguments) describe(ranks int) string {
	return fmt.Sprintf("async -n %d -sweeps %d in %d slabs, with a pause of %v after each iteration for the other hosts of the machine",
		s.n, s.sweeps, ranks, s.pause)
}

// machine says what this one is.
func machine() string {
	model := "processors that are not known"
	b, err := os.ReadFile("/proc/cpuinfo")
	lines := strings.Split(string(b), "\n")
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "model name") }); err == nil && i >= 0 {
		_, model, _ = strings.Cut(lines[i], ": ")
	}
	return fmt.Sprintf("%d cores of %s", runtime.NumCPU(), model)
}
