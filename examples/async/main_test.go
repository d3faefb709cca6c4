package main

import (
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"zorilla/examples/peers/crew"
)

// Strips that learn of each other late and irregularly come to the solution.
func TestStripsThatAreOutOfStep(t *testing.T) {
	const n, size = 9, 3
	var all []*strip
	rows := 0
	for rank := range size {
		all = append(all, newStrip(n, rank, size))
		rows += all[rank].rows
	}
	if rows != n || all[1].first != 4 {
		t.Fatalf("%d rows of %d", rows, n)
	}
	for i := range 3000 {
		for rank, s := range all {
			if i%(rank+1) == 0 {
				s.sweep()
			}
			if i%7 != rank {
				continue
			}
			for side, other := range map[int]int{above: rank - 1, below: rank + 1} {
				if other >= 0 && other < size {
					values, _, _ := s.row(side)
					all[other].learn(1-side, values)
				}
			}
		}
	}
	for rank, s := range all {
		if wrong := s.wrong(); wrong > 1e-9 || math.IsNaN(wrong) {
			t.Errorf("rank %d is wrong by %g", rank, wrong)
		}
	}
}

func TestSettled(t *testing.T) {
	s := newStrip(8, 0, 2)
	if settled, _ := s.report(1); settled {
		t.Error("settled before it began")
	}
	s.sweep()
	if settled, _ := s.report(1); settled {
		t.Error("settled without a word of its neighbour")
	}
	s.learn(above, make([]float64, 10)) // nobody is there
	s.learn(below, make([]float64, 9))  // not a row of this grid
	s.sweep()
	if settled, _ := s.report(1); settled {
		t.Error("settled by what is no row of a neighbour")
	}
	s.learn(below, make([]float64, 10))
	s.sweep()
	if settled, _ := s.report(1e-9); settled {
		t.Error("settled while it changes")
	}
	s.learn(below, make([]float64, 10))
	s.sweep()
	if settled, i := s.report(1); !settled || i != 4 {
		t.Errorf("not settled after %d", i)
	}
}

// number is what the last match of an expression says.
func number(t *testing.T, said, expression string) float64 {
	t.Helper()
	all := regexp.MustCompile(expression).FindAllStringSubmatch(said, -1)
	if all == nil {
		t.Fatalf("%q is not in:\n%s", expression, said)
	}
	f, err := strconv.ParseFloat(all[len(all)-1][1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A rank is killed. The others go on, as far as they are asked to before anybody comes in its
// place; then they learn where that is, and all of them come to the solution. So it is with
// rank 0, which says when all is done.
func TestLostRanks(t *testing.T) {
	c := crew.New(t, 4, "-n", "32", "-pause", "1ms")
	var ranks []*crew.Rank
	for rank := range 4 {
		ranks = append(ranks, c.Start(rank, 1))
	}
	for _, lost := range []int{2, 0} {
		beside := ranks[1] // of both
		beside.Says("rank " + strconv.Itoa(lost) + ", attempt 1, is at")
		ranks[lost].Says("iteration 500\n")
		ranks[lost].Kill()
		away := number(t, beside.Says("rank "+strconv.Itoa(lost)+", attempt 1, is away in iteration"), `is away in iteration (\d+)`)
		next := (int(away)/tell + 1) * tell
		beside.Says("iteration " + strconv.Itoa(next) + "\n")
		ranks[lost] = c.Start(lost, 2)
		back := number(t, beside.Says("rank "+strconv.Itoa(lost)+", attempt 2, is at"), `attempt 2, is at \S+ in iteration (\d+)`)
		if back <= away || int(back) < next {
			t.Errorf("rank 1 has lost rank %d in iteration %v and found it in %v", lost, away, back)
		}
	}
	for rank, r := range ranks {
		said := r.Ends()
		if wrong := number(t, said, `wrong by (\S+)`); wrong > 2e-5 {
			t.Errorf("rank %d is wrong by %g", rank, wrong)
		}
		if (rank == 2 || rank == 0) != strings.Contains(said, "attempt 2 listens") {
			t.Errorf("rank %d says:\n%s", rank, said)
		}
	}
}

// The same on real nodes: Zorilla tries the rank again, and tells the others where. The rank
// that is to be lost takes its time, so that nobody comes to the solution before.
func TestLostRankOnRealNodes(t *testing.T) {
	dir := t.TempDir()
	crew.Build(t, dir, "cmd/zorilla", "examples/async")
	env := []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=" + dir}
	env = append(env, crew.Nodes(t, dir, env, nil, "-n", "3", "--slots", "2"))
	cmd := exec.Command("sh", "-euc", `
		job=$(zorilla submit -i async -n 2..4 --retries 3 -- sh -c '
			pause=2ms; test $ZORILLA_RANK.$ZORILLA_ATTEMPT = 2.1 && pause=1m; exec ./async -n 32 -pause $pause')
		for rank in 1 3; do
			until zorilla logs $job:$rank | grep -q 'rank 2, attempt 1, is at'; do sleep 0.1; done
		done
		for p in /proc/[0-9]*; do
			test "$(cat $p/comm 2>/dev/null)" = async && tr '\0' '\n' 2>/dev/null <$p/environ >environ || continue
			grep -qx ZORILLA_RANK=2 environ && grep -q "^ZORILLA_JOB_ID=$job" environ && kill -9 ${p#/proc/}
		done
		zorilla wait $job
		for rank in 0 1 2 3; do zorilla logs $job:$rank; done`)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		`(?m)^rank 2: attempt 2 listens at`, `(?m)^rank 1: rank 2, attempt 1, is away in iteration`, `(?m)^rank 3: rank 2, attempt 2, is at`,
		`(?m)^rank 0: done after \d+ iterations, wrong by \d\.\de-0[6-9]$`, `(?m)^rank 2: done after \d+ iterations, wrong by \d\.\de-0[6-9]$`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

// A small grid has work for two.
func TestRanksWithoutAStrip(t *testing.T) {
	c := crew.New(t, 4, "-n", "16", "-rows", "8")
	var ranks []*crew.Rank
	for rank := range 4 {
		ranks = append(ranks, c.Start(rank, 1))
	}
	for rank, r := range ranks {
		said := r.Ends()
		if rank < 2 {
			if wrong := number(t, said, `wrong by (\S+)`); wrong > 2e-5 {
				t.Errorf("rank %d is wrong by %g", rank, wrong)
			}
		} else if !strings.Contains(said, "has no strip\n") {
			t.Errorf("rank %d says:\n%s", rank, said)
		}
	}
}

// On real nodes nobody else is looked for.
func TestFewerWorkersOnRealNodes(t *testing.T) {
	dir := t.TempDir()
	crew.Build(t, dir, "cmd/zorilla", "examples/async")
	env := []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=" + dir}
	env = append(env, crew.Nodes(t, dir, env, nil, "-n", "2", "--slots", "2"))
	cmd := exec.Command("sh", "-euc", `
		job=$(zorilla submit -n 1..4 ./async -n 32 -rows 16 -pause 2ms)
		until zorilla logs $job:0 | grep -q 'asks for 2 workers'; do sleep 0.1; done
		zorilla resize $job
		zorilla wait $job
		zorilla logs $job
		zorilla status $job`)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		`(?m)^rank 0: asks for 2 workers$`, `(?m)^wanted 2 of 1 to 4 workers, there are 2$`, `(?m)^asked for +2 workers`, `(?m)^state +COMPLETED$`,
		`(?m)^rank 0: done after \d+ iterations, wrong by \d\.\de-0[6-9]$`, `(?m)^rank 1: done after`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{"-n", "0"}, {"-n", "5000"}, {"-n", "x"}, {"-rows", "0"}} {
		if err := run(args, func(string) string { return "" }, nil); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
	for _, rank := range []string{"4", "-1", "x", ""} {
		env := map[string]string{"ZORILLA_JOB_ID": "j", "ZORILLA_RANK": rank, "ZORILLA_ATTEMPT": "1", "ZORILLA_MAX": "4", "ZORILLA_SLOTS": "1"}
		if err := run(nil, func(name string) string { return env[name] }, nil); err == nil {
			t.Errorf("rank %q of 4 was accepted", rank)
		}
	}
}
