package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/testnet/hosts/lab"
)

const siteSlots = 4 // of each node

// sixSites is a story that is told row by row. Its methods end it (see must) when
// it cannot go on.
type sixSites struct {
	*play
	plan *lab.Plan
	rows [][4]string
}

// acts plays it from its beginning to its end.
func (s *sixSites) acts(ctx context.Context) error {
	defer s.print()
	if err := told(func() {
		s.truth(ctx)
		s.discover(ctx)
	}); err != nil {
		return err
	}
	return s.watched(ctx, func() error {
		return told(func() {
			s.join(ctx)
			s.crash(ctx)
			s.loss(ctx)
			s.cutSite(ctx)
			s.distances(ctx) // busy moments have been forgotten in the calm of the cut
			s.order(ctx)
			s.besideHostile(ctx, func() {
				s.ended(ctx, "two jobs across the former cut, each larger than two sites, have ended right",
					map[string]int{"sophia-2": 5 * siteSlots, "nancy-1": 5 * siteSlots})
			})
		})
	})
}

// failure is the panic of must.
type failure struct{ error }

// must ends what told plays, if there is an error.
func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// told returns the error with which must has ended an act.
func told(act func()) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = f.error
		default:
			panic(f)
		}
	}()
	act()
	return nil
}

// row adds a line to the table; a value that misses its target is wrong.
func (s *sixSites) row(what, value, target string, right bool) {
	mark := ""
	if !right {
		mark = "WRONG"
		s.blame("%s: %s, want %s", what, value, target)
	}
	s.rows = append(s.rows, [4]string{what, value, target, mark})
	s.log("-", "%s: %s (%s)", what, value, target)
}

func (s *sixSites) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nWHAT\tMEASURED\tTARGET\t")
	for _, r := range s.rows {
		fmt.Fprintln(w, strings.Join(r[:], "\t"))
	}
	_ = w.Flush() // like any print
}

func precise(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
func since(begin time.Time) string   { return precise(time.Since(begin)) }
func millis(ms float64) string       { return fmt.Sprintf("%.1f ms", ms) }
func last(sorted []float64) float64  { return sorted[len(sorted)-1] }

// ask asks the lab for something.
func (s *sixSites) ask(request ...string) string {
	out, err := lab.Do(request...)
	must(err)
	return out
}

// know waits until nodes know each other, and nobody else.
func (s *sixSites) know(ctx context.Context, limit time.Duration, nodes []*lab.Node) {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	s.ofAll(ctx, limit, nodes, "know "+strings.Join(names, ", "), func(_ *lab.Node, members []api.NodeInfo) string {
		if len(members) != len(names) || slices.ContainsFunc(members, func(m api.NodeInfo) bool { return !slices.Contains(names, m.Name) }) {
			return fmt.Sprintf("knows %d", len(members))
		}
		return ""
	})
}

// ofAll waits until nothing is missing in what each node tells of the members, and
// returns how long that took.
func (s *sixSites) ofAll(ctx context.Context, limit time.Duration, nodes []*lab.Node, what string,
	missing func(*lab.Node, []api.NodeInfo) string) time.Duration {
	took, err := lab.Until(ctx, limit, "all nodes "+what, lab.All(nodes, missing))
	must(err)
	return took
}

// siteOf returns the index of a host's site.
func (s *sixSites) siteOf(host string) int { return s.plan.SiteOf(host) }

// at returns the nodes that are at a site, or those that are not.
func (s *sixSites) at(site string, there bool) []*lab.Node {
	return slices.DeleteFunc(slices.Clone(s.nodes), func(n *lab.Node) bool { return (s.plan.Sites[s.siteOf(n.Name)].Name == site) != there })
}

// places tells the sites of a job's running workers, with the number of workers
// where there are several sites.
func (s *sixSites) places(st jobs.Status) string {
	count := make([]int, len(s.plan.Sites))
	total := 0
	for _, w := range st.Workers {
		if w.State == jobs.WorkerRunning {
			count[s.siteOf(w.Name)]++
			total++
		}
	}
	var all []string
	for i, n := range count {
		switch {
		case n > 0 && n == total:
			return s.plan.Sites[i].Name
		case n > 0:
			all = append(all, fmt.Sprintf("%d %s", n, s.plan.Sites[i].Name))
		}
	}
	return strings.Join(all, " + ")
}

// job submits a job at a host whose workers write, and wait until it may end.
func (s *sixSites) job(ctx context.Context, host string, least, most int, change ...func(*order)) *order {
	j := &order{number: len(s.story), kind: storySixSites, origin: host, after: -1, ends: []end{{jobs.Completed, 0}}}
	key := fmt.Sprintf("%s-%d", storySixSites, j.number)
	j.prog = program{Key: key, Lines: 3, Errs: 1, Bulk: 10_000, Gate: filepath.Join(filepath.Dir(s.self), "may-end-"+key)}
	j.spec = jobs.Spec{Name: key, Min: least, Max: most, Slots: 1}
	for _, f := range change {
		f(j)
	}
	j.spec.Args = j.prog.args(s.self)
	j.lossy = j.spec.Rigid()
	s.mu.Lock()
	s.story = append(s.story, j)
	s.mu.Unlock()
	s.submit(ctx, j)
	if s.idOf(j.number) == "" {
		must(fmt.Errorf("job %d of %s was not accepted", j.number, host))
	}
	return j
}

// becomes waits until a job is as wanted.
func (s *sixSites) becomes(ctx context.Context, j *order, limit time.Duration, what string, ok func(jobs.Status) bool) (st jobs.Status) {
	id := s.idOf(j.number)
	_, err := lab.Until(ctx, limit, fmt.Sprintf("the job %s of %s %s", id, j.origin, what), func(ctx context.Context) string {
		var err error
		st, err = s.node(j.origin).Client.Job(ctx, string(id))
		switch {
		case err != nil:
			return err.Error()
		case ok(st):
			return ""
		}
		return fmt.Sprintf("%s, %s, workers at %s", st.State, st.Reason, s.places(st))
	})
	must(err)
	return st
}

// runs waits until as many workers of a job run.
func (s *sixSites) runs(ctx context.Context, j *order, count int) jobs.Status {
	return s.becomes(ctx, j, 30*time.Second, fmt.Sprintf("runs %d workers", count), func(st jobs.Status) bool { return running(st) >= count })
}

func running(st jobs.Status) (n int) {
	for _, w := range st.Workers {
		if w.State == jobs.WorkerRunning {
			n++
		}
	}
	return n
}

// end lets jobs end, and waits until they have, which must be right.
func (s *sixSites) end(ctx context.Context, limit time.Duration, list ...*order) {
	for _, j := range list {
		must(os.WriteFile(j.prog.Gate, nil, 0o644))
	}
	for _, j := range list {
		st := s.becomes(ctx, j, limit, "ends", func(st jobs.Status) bool { return st.State.Final() })
		s.judge(ctx, s.node(j.origin), j, st)
		if st.State != jobs.Completed {
			must(fmt.Errorf("the job %s of %s ended %s: %s", st.ID, j.origin, st.State, st.Reason))
		}
	}
}
