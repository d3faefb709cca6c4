package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"zorilla/jobs"
)

// cutSite cuts a site off while jobs run across the cut, uses both sides, and
// heals.
func (s *scene) cutSite(ctx context.Context) error {
	inside := []string{"sophia-1", "sophia-2"}
	outside := s.hosts()[:10]
	across, err := s.straddle(ctx)
	if err != nil {
		return err
	}
	if err := change("cut site sophia"); err != nil {
		return err
	}
	// Nobody has noticed yet.
	var during []*labJob
	begin := time.Now()
	for _, from := range []struct {
		host string
		size int
	}{{"nancy-2", 3}, {"bordeaux-1", 2}, {"sophia-2", 1}} {
		j, err := s.submit(from.host, fmt.Sprint(from.size))
		if err != nil {
			return err
		}
		during = append(during, j)
	}
	if err := all(ctx, 30*time.Second, during...); err != nil {
		return fmt.Errorf("submitted right after the cut: %w", err)
	}
	s.row("three jobs submitted on both sides right after a site was cut off have ended right", seconds(time.Since(begin)), "30 s", true)
	for _, j := range across {
		if _, _, err := j.becomes(ctx, 60*time.Second, "runs on its own side only", func(st jobs.Status) bool {
			return running(3)(st) && (s.places(st) == "sophia" || !strings.Contains(s.places(st), "sophia"))
		}); err != nil {
			return err
		}
	}
	s.row("the ranks that two jobs had on the other side run on their own", seconds(time.Since(begin)), "120 s", true)
	// Two nodes need a minute or more to give up all ten: some are enough.
	if _, err := s.know(ctx, 90*time.Second, 2, 9, inside...); err != nil {
		return err
	}
	if _, err := s.know(ctx, 90*time.Second, 10, 10, outside...); err != nil {
		return err
	}
	s.row("the ten nodes have given up the two, and the two some of the ten", seconds(time.Since(begin)), "90 s", true)
	begin = time.Now()
	during = nil
	for _, host := range []string{"sophia-1", "grenoble-2"} {
		j, err := s.submit(host, "1")
		if err != nil {
			return err
		}
		during = append(during, j)
	}
	if err := all(ctx, 30*time.Second, during...); err != nil {
		return fmt.Errorf("submitted during the cut: %w", err)
	}
	s.row("a job on each side after that has ended right", seconds(time.Since(begin)), "30 s", true)
	return s.healSite(ctx, across)
}

// straddle starts a job at grenoble and one at sophia, each with workers at
// both. A slot may be free a moment after the job that had it has ended, or a round
// trip be mismeasured, so that jobs go elsewhere: then it tries again.
func (s *scene) straddle(ctx context.Context) ([]*labJob, error) {
	for try := 1; ; try++ {
		across, fillers, where, err := s.fillAround(ctx)
		if err == nil {
			err = all(ctx, 20*time.Second, fillers...)
		}
		if err != nil || where == "" {
			return across, err
		}
		if try == 3 {
			return nil, fmt.Errorf("two jobs should have workers on both sides of the cut: %s", where)
		}
		if err := all(ctx, 20*time.Second, across...); err != nil {
			return nil, err
		}
		time.Sleep(2 * time.Second)
	}
}

// fillAround starts the jobs of straddle, and others that take the slots of the
// sites that are nearer meanwhile. It leaves slots free at sophia. where tells of a
// job that is not on both sides.
func (s *scene) fillAround(ctx context.Context) (across, fillers []*labJob, where string, err error) {
	for _, step := range []struct {
		host, n string
		least   int
		stays   bool
	}{
		{"lyon-1", fmt.Sprint(2 * slots), 2 * slots, false},
		{"grenoble-2", fmt.Sprint(2*slots - 1), 2*slots - 1, false},
		{"grenoble-1", "3..4", 3, true},
		{"sophia-2", fmt.Sprint(2*slots - 4), 2*slots - 4, false},
		{"sophia-1", "3..4", 3, true},
	} {
		j, err := s.submit(step.host, step.n)
		if err != nil {
			return nil, nil, "", err
		}
		st, _, err := j.becomes(ctx, 30*time.Second, "runs", running(step.least))
		if err != nil {
			return nil, nil, "", err
		}
		if !step.stays {
			fillers = append(fillers, j)
			continue
		}
		if places := s.places(st); !strings.Contains(places, "sophia") || !strings.Contains(places, "+") {
			where = fmt.Sprintf("that of %s is at %s", step.host, places)
		}
		across = append(across, j)
	}
	return across, fillers, where, nil
}

func (s *scene) healSite(ctx context.Context, across []*labJob) error {
	begin := time.Now()
	if err := change("heal"); err != nil {
		return err
	}
	if _, err := s.allKnowAll(ctx, 90*time.Second); err != nil {
		return err
	}
	s.row("healed: all know all again", seconds(time.Since(begin)), "90 s", true)
	begin = time.Now()
	if err := all(ctx, 60*time.Second, across...); err != nil {
		return fmt.Errorf("ran across the cut: %w", err)
	}
	s.row("the two jobs that had lost ranks have ended right", seconds(time.Since(begin)), "60 s", true)
	var after []*labJob
	for _, host := range []string{"sophia-2", "nancy-1"} {
		j, err := s.submit(host, fmt.Sprint(5*slots)) // more than either site has
		if err != nil {
			return err
		}
		if _, _, err := j.becomes(ctx, 30*time.Second, "runs", running(5*slots)); err != nil {
			return err
		}
		after = append(after, j)
	}
	return all(ctx, 30*time.Second, after...)
}

// cutHost cuts a host off that runs a rank of a malleable job.
func (s *scene) cutHost(ctx context.Context) error {
	j, err := s.submit("lyon-1", "2..8")
	if err != nil {
		return err
	}
	st, _, err := j.becomes(ctx, 30*time.Second, "grows", running(8))
	if err != nil {
		return err
	}
	victim := ""
	for _, w := range st.Workers {
		if w.Name != "lyon-1" {
			victim = w.Name
		}
	}
	lost := map[int]bool{}
	for _, w := range st.Workers {
		if w.Name == victim {
			lost[w.Rank] = true
		}
	}
	begin := time.Now()
	if err := change("cut host " + victim); err != nil {
		return err
	}
	_, _, err = j.becomes(ctx, 60*time.Second, "has all its ranks again without "+victim, func(st jobs.Status) bool {
		for _, w := range st.Workers {
			if w.Name == victim || lost[w.Rank] && w.Attempt < 2 {
				return false
			}
		}
		return running(8)(st)
	})
	if err != nil {
		return err
	}
	s.row(fmt.Sprintf("%s cut off: its %d ranks of a malleable job run elsewhere", victim, len(lost)), seconds(time.Since(begin)), "60 s", true)
	if _, err := j.ends(ctx, 30*time.Second); err != nil {
		return err
	}
	if err := change("heal host " + victim); err != nil {
		return err
	}
	begin = time.Now()
	if _, err := s.allKnowAll(ctx, 90*time.Second); err != nil {
		return err
	}
	s.row("healed: all know all again", seconds(time.Since(begin)), "90 s", true)
	return nil
}

// crash takes a host's power away, and starts its node again as it was.
func (s *scene) crash(ctx context.Context) error {
	const victim = "bordeaux-2"
	if err := change("crash " + victim); err != nil {
		return err
	}
	_ = s.nodes[victim].cmd.Wait() // it was killed
	s.nodes[victim].client.Close()
	begin := time.Now()
	if err := s.start(victim); err != nil {
		return err
	}
	if _, err := s.allKnowAll(ctx, 60*time.Second); err != nil {
		return err
	}
	s.row(victim+" crashed and started again without an address: all know all", seconds(time.Since(begin)), "60 s", true)
	return nil
}

// loss runs jobs with files between sites while packets get lost.
func (s *scene) loss(ctx context.Context) error {
	before, err := lostPackets()
	if err != nil {
		return err
	}
	if err := change("loss 5"); err != nil {
		return err
	}
	begin := time.Now()
	var wait sync.WaitGroup
	errs := make([]error, 3)
	for i, host := range []string{"nancy-1", "grenoble-1", "sophia-2"} {
		wait.Go(func() { _, errs[i] = s.checksums(ctx, host, 1<<20, 3*slots, 2) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	after, err := lostPackets()
	if err != nil {
		return err
	}
	s.row("packets lost while the next row was measured", fmt.Sprint(after-before), "more than 50", after-before > 50)
	s.row("5 % of the packets lost: three jobs of "+fmt.Sprint(3*slots)+" with 1 MiB of input, each at several sites, have ended right", seconds(time.Since(begin)), "60 s", true)
	if _, err := s.allKnowAll(ctx, 60*time.Second); err != nil {
		return fmt.Errorf("after the loss: %w", err)
	}
	return change("loss 0")
}

// lostPackets asks the lab how many packets it has lost so far.
func lostPackets() (count int, err error) {
	out, err := exec.Command("lab", "show").Output()
	if err != nil {
		return 0, fmt.Errorf("lab show: %w", err)
	}
	_, rest, _ := strings.Cut(string(out), " carried, ")
	if _, err := fmt.Sscanf(rest, "%d lost", &count); err != nil {
		return 0, fmt.Errorf("lab show does not tell lost packets: %q", out)
	}
	return count, nil
}

// checksums runs a job of n workers that checksum its input, and checks the
// files that come back and at how many sites it ran.
func (s *scene) checksums(ctx context.Context, host string, size, n, least int) (time.Duration, error) {
	dir, err := os.MkdirTemp(s.lab, "work-")
	if err != nil {
		return 0, err
	}
	data := make([]byte, size)
	rand.Read(data)
	if err := os.WriteFile(filepath.Join(dir, "data"), data, 0o600); err != nil {
		return 0, err
	}
	begin := time.Now()
	cmd := onHost(host, "timeout", "60", "zorilla", "run", "-q", "-n", fmt.Sprint(n), "--stdin", "none", "-i", "data", "-o", "sum-*", "--",
		"sh", "-c", `sha256sum data > sum-$ZORILLA_RANK; hostname`)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	took := time.Since(begin)
	if err != nil {
		return took, fmt.Errorf("job of %s: %w", host, err)
	}
	if ctx.Err() != nil {
		return took, ctx.Err()
	}
	sites := map[int]bool{}
	for _, h := range strings.Fields(string(out)) {
		sites[s.siteOf(h)] = true
	}
	files, err := filepath.Glob(filepath.Join(dir, "sum-*"))
	if err != nil {
		return took, err
	}
	if len(files) != n || len(sites) < least {
		return took, fmt.Errorf("job of %s: %d files, want %d; ran at %d sites, want %d or more", host, len(files), n, len(sites), least)
	}
	want := fmt.Sprintf("%x  data\n", sha256.Sum256(data))
	for _, f := range files {
		if b, err := os.ReadFile(f); err != nil || string(b) != want {
			return took, fmt.Errorf("job of %s: %s is %q, want %q: %v", host, filepath.Base(f), b, want, err)
		}
	}
	return took, nil
}

// thin limits a host's cable and sends files from it.
func (s *scene) thin(ctx context.Context) error {
	const mbit, size = 20, 4 << 20
	if err := change(fmt.Sprintf("rate host rennes-1 %d", mbit)); err != nil {
		return err
	}
	took, err := s.checksums(ctx, "rennes-1", size, 2*slots, 1)
	if err != nil {
		return err
	}
	least := time.Duration(float64(size) * 8 / mbit * float64(time.Microsecond))
	s.row(fmt.Sprintf("4 MiB of input from a host with a cable of %d Mbit/s to the workers of its site", mbit), seconds(took), "more than "+seconds(least), took > least)
	return change("rate host rennes-1 0")
}
