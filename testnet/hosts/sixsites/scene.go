package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
)

const slots = 4 // of each node

// scene is the lab with its nodes, as the script sees it.
type scene struct {
	lab   string
	sites []string
	rtt   [][]float64 // ms
	nodes map[string]*labNode
	gates string // directory of files that workers wait for
	rows  [][4]string
	wrong int
	begin time.Time
}

// labNode is the zorilla process of a host.
type labNode struct {
	host   string
	cmd    *exec.Cmd
	client *api.Client
}

func newScene(lab string) (*scene, error) {
	var file struct {
		Sites []struct{ Name string }
		RTT   [][]float64 `json:"rtt_ms"`
	}
	b, err := os.ReadFile(plan)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, err
	}
	s := &scene{lab: lab, rtt: file.RTT, nodes: map[string]*labNode{}, gates: filepath.Join(lab, "gates"), begin: time.Now()}
	for _, site := range file.Sites {
		s.sites = append(s.sites, site.Name)
	}
	return s, os.Mkdir(s.gates, 0o755)
}

// hosts returns all hosts, in the order of the sites.
func (s *scene) hosts() []string {
	var all []string
	for _, site := range s.sites {
		all = append(all, site+"-1", site+"-2")
	}
	return all
}

// siteOf returns the index of a host's site.
func (s *scene) siteOf(host string) int {
	for i, site := range s.sites {
		if strings.HasPrefix(host, site+"-") {
			return i
		}
	}
	return -1
}

func address(site, host int) string { return fmt.Sprintf("10.0.%d.%d", site+1, host) }

// onHost is a command on a host.
func onHost(host string, args ...string) *exec.Cmd {
	return exec.Command("lab", append([]string{"host", host}, args...)...)
}

// change asks the lab for something, such as "cut site sophia".
func change(request string) error {
	out, err := exec.Command("lab", strings.Fields(request)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("lab %s: %w: %s", request, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// start starts the node of a host, or starts it again.
func (s *scene) start(host string, options ...string) error {
	log, err := os.OpenFile(s.logOf(host), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{"zorilla", "node", "--web", "none", "--slots", fmt.Sprint(slots), "--expose", s.gates}, options...)
	cmd := onHost(host, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	client, err := api.Dial(filepath.Join(s.lab, host, "zorilla.sock"))
	s.nodes[host] = &labNode{host, cmd, client}
	return err
}

func (s *scene) logOf(host string) string { return filepath.Join(s.lab, host+".log") }

// stop ends the node of a host in good order.
func (s *scene) stop(host string) error {
	n := s.nodes[host]
	n.client.Close()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s: %w", host, err)
	}
	if err := n.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", host, err)
	}
	return nil
}

// until polls until ok, and returns how long that took.
func until(ctx context.Context, limit time.Duration, what string, ok func(ctx context.Context) (bool, string)) (time.Duration, error) {
	begin := time.Now()
	for {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		done, state := ok(try)
		cancel()
		took := time.Since(begin)
		switch {
		case done:
			return took, nil
		case ctx.Err() != nil:
			return took, errors.New("interrupted: wait until " + what)
		case took > limit:
			return took, fmt.Errorf("not within %v: %s; now: %s", limit, what, state)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// know waits until each of the hosts knows so many members, itself included.
func (s *scene) know(ctx context.Context, limit time.Duration, least, most int, hosts ...string) (time.Duration, error) {
	return until(ctx, limit, fmt.Sprintf("%s know %d to %d members", strings.Join(hosts, ", "), least, most), func(ctx context.Context) (bool, string) {
		for _, h := range hosts {
			members, err := s.nodes[h].client.Nodes(ctx)
			if err != nil {
				return false, fmt.Sprintf("%s: %v", h, err)
			}
			if len(members) < least || len(members) > most {
				return false, fmt.Sprintf("%s knows %d", h, len(members))
			}
		}
		return true, ""
	})
}

// allKnowAll waits for that.
func (s *scene) allKnowAll(ctx context.Context, limit time.Duration) (time.Duration, error) {
	return s.know(ctx, limit, len(s.hosts()), len(s.hosts()), s.hosts()...)
}

// labJob is a job that was submitted at a host.
type labJob struct {
	s    *scene
	host string
	id   string
	gate string // its workers end when this file is there
}

// submit submits a job at a host whose workers wait until it is released and
// then tell their host.
func (s *scene) submit(host, n string, options ...string) (*labJob, error) {
	j := &labJob{s: s, host: host, gate: filepath.Join(s.gates, fmt.Sprintf("%s.%d", host, time.Now().UnixNano()))}
	args := append([]string{"zorilla", "submit", "-n", n, "--stdin", "none"}, options...)
	args = append(args, "--", "sh", "-c", "until [ -e "+j.gate+" ]; do sleep 0.5; done; hostname")
	cmd := onHost(host, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("submit at %s: %w", host, err)
	}
	j.id = strings.TrimSpace(string(out))
	return j, nil
}

// release lets the job's workers end.
func (j *labJob) release() error { return os.WriteFile(j.gate, nil, 0o644) }

func (j *labJob) status(ctx context.Context) (jobs.Status, error) {
	return j.s.nodes[j.host].client.Job(ctx, j.id)
}

// becomes waits until the job's status is as wanted.
func (j *labJob) becomes(ctx context.Context, limit time.Duration, what string, ok func(jobs.Status) bool) (jobs.Status, time.Duration, error) {
	var st jobs.Status
	took, err := until(ctx, limit, fmt.Sprintf("the job %s of %s %s", j.id, j.host, what), func(ctx context.Context) (bool, string) {
		var err error
		if st, err = j.status(ctx); err != nil {
			return false, err.Error()
		}
		if st.State.Final() && !ok(st) {
			return false, fmt.Sprintf("it ended: %s, %s", st.State, st.Reason)
		}
		return ok(st), fmt.Sprintf("%s, %s, workers %s", st.State, st.Reason, describe(st))
	})
	return st, took, err
}

func describe(st jobs.Status) string {
	var all []string
	for _, w := range st.Workers {
		all = append(all, fmt.Sprintf("%d.%d %s %s", w.Rank, w.Attempt, w.Name, w.State))
	}
	return strings.Join(all, ", ")
}

// running tells that as many workers run.
func running(count int) func(jobs.Status) bool {
	return func(st jobs.Status) bool {
		n := 0
		for _, w := range st.Workers {
			if w.State == jobs.WorkerRunning {
				n++
			}
		}
		return n >= count
	}
}

// ends releases the job and checks that it completes with the output of every
// rank, each once, from the host that ran it.
func (j *labJob) ends(ctx context.Context, limit time.Duration) (time.Duration, error) {
	if err := j.release(); err != nil {
		return 0, err
	}
	st, took, err := j.becomes(ctx, limit, "completes", func(st jobs.Status) bool { return st.State == jobs.Completed })
	if err != nil {
		return took, err
	}
	out, err := onHost(j.host, "zorilla", "logs", j.id).Output()
	if err != nil {
		return took, fmt.Errorf("logs of %s: %w", j.id, err)
	}
	said := map[string]int{}
	for _, line := range strings.Fields(string(out)) {
		said[line]++
	}
	for _, w := range st.Workers {
		if w.State == jobs.WorkerEnded {
			said[w.Name]--
		}
	}
	for host, n := range said {
		if n != 0 {
			return took, fmt.Errorf("job %s of %s: the output has %+d lines of %s too many: %q; workers %s", j.id, j.host, n, host, out, describe(st))
		}
	}
	return took, nil
}

// row adds a line to the table; wrong says that the value misses the target.
func (s *scene) row(what, value, target string, right bool) {
	mark := ""
	if !right {
		mark = "WRONG"
		s.wrong++
	}
	s.rows = append(s.rows, [4]string{what, value, target, mark})
	fmt.Printf("%6.1f s  %s: %s (%s) %s\n", time.Since(s.begin).Seconds(), what, value, target, mark)
}

func (s *scene) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nWHAT\tMEASURED\tTARGET\t")
	for _, r := range s.rows {
		fmt.Fprintln(w, strings.Join(r[:], "\t"))
	}
	_ = w.Flush() // like any print
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func last(sorted []float64) float64 { return sorted[len(sorted)-1] }

func span(sorted []float64) string { return millis(sorted[0]) + ", " + millis(last(sorted)) }

func middle(sorted []float64) string {
	return millis(sorted[len(sorted)/2]) + ", " + millis(last(sorted))
}

func millis(ms float64) string { return fmt.Sprintf("%.1f ms", math.Round(ms*10)/10) }
