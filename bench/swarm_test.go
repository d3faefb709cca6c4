package bench

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"zorilla/testnet/chart"
	"zorilla/testnet/hosts/lab"
)

var (
	swarmed  = flag.Int("swarmed", 256, "MiB of the input that BenchmarkSwarm sends to all workers")
	mbit     = flag.Float64("mbit", 100, "Mbit/s of each host of BenchmarkSwarm, up and down each")
	crowds   = flag.String("crowds", "3,6,12", "numbers of workers of BenchmarkSwarm, each at a host of its own: multiples of 3")
	beside   = flag.String("beside", "aria2,scp,rsync", "with what BenchmarkSwarm compares; none if it is empty")
	campus   = scene{"campus", "home-1", "swarm"}
	campuses = []string{"east", "north", "west"}
)

// BenchmarkSwarm is how long a new random input takes to the start of the last of 3, 6
// and 12 workers, each at a host of its own at one of three sites, and what of it leaves
// the origin, which is at a fourth: by "zorilla run"; by aria2, which is BitTorrent, with a
// tracker of its own and a torrent that is made for it; and by scp and rsync to all of them
// at once. In the lab of testnet/hosts, with 100 Mbit/s up and down at each host, which is
// the limit; files are in memory, since the hosts have one disk here. It needs root,
// and Debian's packages of the rivals, which it installs. Targets: within 1.3 times the
// time of a single copy, at most 1.25 copies out of the origin, faster than the others.
func BenchmarkSwarm(b *testing.B) {
	byName(b)
	if os.Geteuid() != 0 {
		leaveOut(b, "it needs root")
	}
	if !inLab(b, campus, "BenchmarkSwarm", "-out="+*out, "-test.benchtime=1x", fmt.Sprint("-swarmed=", *swarmed),
		fmt.Sprint("-mbit=", *mbit), "-crowds="+*crowds, "-beside="+*beside) {
		return
	}
	err := chart.Keep(*out, func(r *chart.Results) error {
		s := &swarm{hosts: enter(b, campus), size: int64(*swarmed) << 20}
		s.single = time.Duration(float64(s.size) * 8 / (*mbit * 1e6) * float64(time.Second))
		s.describe(r)
		for _, text := range strings.Split(*crowds, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 3 || n > 12 || n%3 > 0 {
				return fmt.Errorf("-crowds %s: want multiples of 3, at most 12", *crowds)
			}
			b.Run(text, func(b *testing.B) {
				at := *s.hosts
				at.b = b
				of := *s
				of.hosts, of.workers = &at, hostsOf(n)
				of.compare(r)
				s.rows = of.rows
			})
		}
		fmt.Fprintf(r, "\nLoad at the end: %s.\n", load())
		r.CSV("files.csv", []string{"workers", "what", "run", "seconds", "copies_out", "idle_percent"}, s.rows)
		return nil
	})
	b.ReportMetric(0, "ns/op") // of all: it says nothing
	if err != nil {
		b.Fatal(err)
	}
}

// swarm is what spreads an input to workers.
type swarm struct {
	*hosts
	size    int64
	single  time.Duration // of one copy at the rate of a host
	workers []string      // hosts
	ssh     string        // a client's command
	origin  func(...string) *exec.Cmd
	rows    [][]any
}

// hostsOf returns as many hosts of each of the sites.
func hostsOf(workers int) (names []string) {
	for _, site := range campuses {
		for i := range workers / len(campuses) {
			names = append(names, fmt.Sprint(site, "-", i+1))
		}
	}
	return names
}

func (s *swarm) describe(r *chart.Results) {
	first := func(words ...string) string {
		out, _ := exec.Command(words[0], words[1:]...).CombinedOutput() // what it does not say is left out
		line, _, _ := strings.Cut(string(out), "\n")
		return strings.TrimSpace(line)
	}
	fmt.Fprintf(r, "%s; Linux %s; load at the start: %s.\n%s; %s; %s.\n", time.Now().Format(time.DateOnly), first("uname", "-r"), load(),
		first("aria2c", "--version"), first("ssh", "-V"), first("rsync", "--version"))
	fmt.Fprintf(r, "%d MiB at %g Mbit/s: a single copy takes %.1f s, without headers.\n\n", s.size>>20, *mbit, s.single.Seconds())
	fmt.Fprint(r, "| workers | | seconds | of a single copy | copies out of the origin | processors idle |\n|---|---|---|---|---|---|\n")
}

// compare runs all in turn, with a new input in each round.
func (s *swarm) compare(r *chart.Results) {
	s.b.Helper()
	s.ssh = s.sshds(append([]string{campus.first}, s.workers...))
	s.limit()
	s.origin = s.nodesOf(append([]string{campus.first}, s.workers...))
	runs := map[string]func(dir string) (time.Duration, error){
		"zorilla": s.zorilla,
		"aria2":   s.aria2,
		"scp":     s.each(func(host, to string) string { return s.scp() + " -q " + s.data() + " " + host + ":" + to }),
		"rsync":   s.each(func(host, to string) string { return "rsync -e '" + s.ssh + "' " + s.data() + " " + host + ":" + to }),
	}
	for run := 1; s.b.Loop(); run++ {
		if err := fill(s.data(), s.size, random()); err != nil {
			s.b.Fatal(err)
		}
		for _, name := range append([]string{"zorilla"}, strings.FieldsFunc(*beside, func(r rune) bool { return r == ',' })...) {
			if runs[name] == nil {
				s.b.Fatalf("-beside %s: it is not known", name)
			}
			dir := filepath.Join(s.dir, name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				s.b.Fatal(err)
			}
			sent, idle := s.sent(), processors()
			took, err := runs[name](dir)
			if err != nil {
				s.b.Fatalf("%s: %v", name, err)
			}
			copies, share := float64(s.sent()-sent)/float64(s.size), idle()
			if err := os.RemoveAll(dir); err != nil {
				s.b.Fatal(err)
			}
			s.b.ReportMetric(took.Seconds(), "s/"+name)
			s.b.ReportMetric(copies, "copies/"+name)
			fmt.Fprintf(r, "| %d | %s | %.1f | %.2f | %.2f | %.0f %% |\n", len(s.workers), name, took.Seconds(), float64(took)/float64(s.single), copies, share)
			s.rows = append(s.rows, []any{len(s.workers), name, run, took.Seconds(), copies, share})
		}
	}
	s.b.ReportMetric(0, "ns/op") // of all together: it says nothing
}

func (s *swarm) data() string { return filepath.Join(s.dir, "data") }

// limit sets the rate of the hosts that have a part in it.
func (s *swarm) limit() {
	s.b.Helper()
	for _, host := range append([]string{campus.first}, s.workers...) {
		if _, err := lab.Do("rate", "host", host, fmt.Sprint(*mbit)); err != nil {
			s.b.Fatal(err)
		}
	}
}

func (s *swarm) zorilla(string) (time.Duration, error) {
	var where []string
	for _, host := range s.workers {
		where = append(where, strconv.Quote(host))
	}
	begun := time.Now()
	var errs bytes.Buffer
	cmd := s.origin("run", "-q", "--stdin", "none", "-n", strconv.Itoa(len(s.workers)), "--where", "name in ["+strings.Join(where, ", ")+"]",
		"-i", s.data(), "--", "sh", "-c", "date +%s%N; stat -c %s data")
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%w: %.300q", err, errs.String())
	}
	var last time.Duration
	whole, ends := 0, 0
	for _, line := range strings.Fields(string(text)) {
		if line == strconv.FormatInt(s.size, 10) {
			whole++
			continue
		}
		took, err := since(begun, line)
		if err != nil {
			return 0, err
		}
		last, ends = max(last, took), ends+1
	}
	if n := len(s.workers); whole != n || ends != n {
		return 0, fmt.Errorf("%d workers started and %d have all, of %d: %.300q", ends, whole, n, text)
	}
	return last, nil
}

// aria2 makes a torrent and shares it by aria2 on all hosts.
func (s *swarm) aria2(dir string) (time.Duration, error) {
	begun := time.Now()
	announce, err := track(s.b.Context(), lab.Address(0, 1).String())
	if err != nil {
		return 0, err
	}
	torrent := filepath.Join(dir, "data.torrent")
	if err := makeTorrent(torrent, s.data(), announce); err != nil {
		return 0, err
	}
	hook := filepath.Join(dir, "hook")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\ndate +%s%N > \"$(dirname \"$3\")/new\" && mv \"$(dirname \"$3\")/new\" \"$(dirname \"$3\")/done\"\n"), 0o755); err != nil {
		return 0, err
	}
	options := []string{"aria2c", "-q", "--no-conf", "--file-allocation=none", "--enable-dht=false", "--seed-ratio=0", "--disk-cache=16M",
		"--listen-port=6881", "--on-bt-download-complete=" + hook, "--allow-overwrite=true"}
	ends := func() {}
	defer func() { ends() }()
	serve := func(host string, more ...string) {
		before := ends
		end := s.background(host, slices.Concat(options, more, []string{torrent})...)
		ends = func() { before(); end() }
	}
	serve(campus.first, "--dir="+s.dir, "--bt-seed-unverified=true", "--check-integrity=false")
	for _, host := range s.workers {
		if err := os.Mkdir(filepath.Join(dir, host), 0o755); err != nil {
			return 0, err
		}
		serve(host, "--dir="+filepath.Join(dir, host))
	}
	var last time.Duration
	for _, host := range s.workers {
		if _, err := lab.Until(s.ctx, 20*s.single+time.Minute, "aria2 on "+host+" has all", func(context.Context) string {
			text, err := os.ReadFile(filepath.Join(dir, host, "done"))
			if err != nil {
				return err.Error()
			}
			took, err := since(begun, strings.TrimSpace(string(text)))
			last = max(last, took)
			if err != nil {
				return err.Error()
			}
			return ""
		}); err != nil {
			return 0, err
		}
		if same, err := sameFiles(filepath.Join(dir, host, "data"), s.data()); err != nil || !same {
			return 0, fmt.Errorf("%s has something else: %v", host, err)
		}
	}
	return last, nil
}

// background starts a command on a host, and returns what ends it.
func (s *swarm) background(host string, words ...string) (end func()) {
	cmd := exec.Command("lab", append([]string{"host", host}, words...)...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		s.b.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGKILL) // it would tell its tracker, and wait
		_ = cmd.Wait()
	}
}

// each runs a copy to every host, all at once.
func (s *swarm) each(line func(host, to string) string) func(dir string) (time.Duration, error) {
	return func(dir string) (time.Duration, error) {
		var script strings.Builder
		for i, host := range s.workers {
			to := filepath.Join(dir, host)
			if err := os.Mkdir(to, 0o755); err != nil {
				return 0, err
			}
			fmt.Fprintf(&script, "%s/ & p%d=$!\n", line(host, to), i)
		}
		for i := range s.workers {
			fmt.Fprintf(&script, "wait $p%d || exit\n", i)
		}
		took, err := timed(func() error { return quiet(exec.Command("sh", "-c", script.String())) })()
		for _, host := range s.workers {
			if same, serr := sameFiles(filepath.Join(dir, host, "data"), s.data()); err == nil && (serr != nil || !same) {
				err = fmt.Errorf("%s has something else: %v", host, serr)
			}
		}
		return took, err
	}
}

func sameFiles(a, b string) (bool, error) {
	err := exec.Command("cmp", "-s", a, b).Run()
	return err == nil, err
}

func (s *swarm) scp() string { return "scp" + strings.TrimPrefix(s.ssh, "ssh") }

// sent is how many bytes have left the origin.
func (s *swarm) sent() int64 {
	s.b.Helper()
	text, err := os.ReadFile("/proc/self/net/dev") // of the host on which the benchmark is
	if err != nil {
		s.b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields, ok := strings.CutPrefix(strings.TrimSpace(line), "eth0:"); ok {
			n, err := strconv.ParseInt(strings.Fields(fields)[8], 10, 64)
			if err == nil {
				return n
			}
		}
	}
	s.b.Fatalf("no eth0 in %q", text)
	return 0
}

// processors returns a function that tells which share of the time since then, in
// percent, this machine's processors had nothing to do.
func processors() (idle func() float64) {
	read := func() (idle, all float64) {
		text, _ := os.ReadFile("/proc/stat") // for whoever reads the figures
		line, _, _ := strings.Cut(string(text), "\n")
		for i, field := range strings.Fields(line) {
			n, _ := strconv.ParseFloat(field, 64) // 0 for its name
			if all += n; i == 4 || i == 5 {
				idle += n
			}
		}
		return idle, all
	}
	i0, a0 := read()
	return func() float64 {
		i, a := read()
		return 100 * (i - i0) / max(1, a-a0)
	}
}
