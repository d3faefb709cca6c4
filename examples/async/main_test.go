package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"zorilla/examples/peers"
	"zorilla/examples/peers/crew"
)

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

// files are the results of ranks.
func files(ranks []*crew.Rank) (list []string) {
	for rank, r := range ranks {
		list = append(list, filepath.Join(r.Dir(), resultFile(rank)))
	}
	return list
}

// Ranks are killed. The others go on, as far as they are asked to before anybody comes in its
// place; then they learn where that is, and all of them come to the solution. One of them goes
// on from its checkpoint, the other, rank 0, has lost all.
func TestLostRanks(t *testing.T) {
	c := crew.New(t, 4, "-n", "32", "-sweeps", "1", "-pause", "1ms", "-verify", "-checkpoint", "20ms")
	c.Checkpoints()
	var ranks []*crew.Rank
	for rank := range 4 {
		ranks = append(ranks, c.Start(rank, 1))
	}
	for _, lost := range []int{2, 0} {
		beside := ranks[1] // of both
		beside.Says("rank " + strconv.Itoa(lost) + ", attempt 1, is at")
		ranks[lost].Says("iteration 50\n")
		c.Checkpoint(lost)
		ranks[lost].Kill()
		away := number(t, beside.Says("rank "+strconv.Itoa(lost)+", attempt 1, is away in iteration"), `is away in iteration (\d+)`)
		next := (int(away)/tell + 1) * tell
		beside.Says("iteration " + strconv.Itoa(next) + "\n")
		if lost == 0 {
			c.Forget(lost)
		}
		ranks[lost] = c.Start(lost, 2)
		back := number(t, beside.Says("rank "+strconv.Itoa(lost)+", attempt 2, is at"), `attempt 2, is at \S+ in iteration (\d+)`)
		if back <= away || int(back) < next {
			t.Errorf("rank 1 has lost rank %d in iteration %v and found it in %v", lost, away, back)
		}
	}
	for rank, r := range ranks {
		said := r.Ends()
		if wrong := number(t, said, `wrong by (\S+)`); wrong > 1e-6/4 {
			t.Errorf("rank %d is wrong by %g", rank, wrong)
		}
		if (rank == 2 || rank == 0) != strings.Contains(said, "attempt 2 listens") || (rank == 2) != strings.Contains(said, "goes on from checkpoint") {
			t.Errorf("rank %d says:\n%s", rank, said)
		}
		if rank == 2 && number(t, said, `goes on from checkpoint \d+ in iteration (\d+)`) < 50 {
			t.Errorf("rank 2 has lost iterations:\n%s", said)
		}
	}
	if err := run(append([]string{"-check", "-n", "32"}, files(ranks)...), os.Getenv, io.Discard); err != nil {
		t.Error(err)
	}
}

// A rank is lost when it has its result, and the others have ended: the last checkpoint is all
// that the next attempt needs.
func TestLostInTheEnd(t *testing.T) {
	c := crew.New(t, 2, "-n", "8", "-checkpoint", "1h", "-alone", "1s")
	c.Checkpoints()
	ranks := []*crew.Rank{c.Start(0, 1), c.Start(1, 1)}
	for _, r := range ranks {
		r.Ends()
	}
	ranks[1] = c.Start(1, 2)
	if said := ranks[1].Ends(); !strings.Contains(said, "goes on from checkpoint 1 in") || !strings.Contains(said, "done after") {
		t.Errorf("rank 1 says:\n%s", said)
	}
	if err := run(append([]string{"-check", "-n", "8"}, files(ranks)...), os.Getenv, io.Discard); err != nil {
		t.Error(err)
	}
}

// A node without checkpoints is asked once.
func TestNodeWithoutCheckpoints(t *testing.T) {
	c := crew.New(t, 2, "-n", "16", "-pause", "1ms", "-checkpoint", "1ms")
	ranks := []*crew.Rank{c.Start(0, 1), c.Start(1, 1)}
	for _, r := range ranks {
		if said := r.Ends(); strings.Count(said, "no checkpoint: this node takes no checkpoints\n") != 1 {
			t.Errorf("it says:\n%s", said)
		}
	}
}

// For whom a rank waits: until it has its result for anybody, and then for who has none.
func TestWaited(t *testing.T) {
	const alone = time.Hour
	s := &solver{part: newPart(8, 0, 3, 2, 1e-6, 1)}
	for _, c := range []struct {
		own, other phase
		others     []*peers.Conn
		waits      bool
	}{
		{active, active, nil, false}, {active, safe, []*peers.Conn{{Rank: 1}}, true}, {settled, safe, []*peers.Conn{{Rank: 1}}, true},
		{safe, settled, []*peers.Conn{{Rank: 1}}, true}, {safe, safe, []*peers.Conn{{Rank: 1}}, false}, {final, final, []*peers.Conn{{Rank: 1}}, true},
	} {
		s.others, s.seen = c.others, time.Now().Add(-2*alone)
		s.part.all[0].Phase, s.part.all[1].Phase = c.own, c.other
		if got := s.waited() < alone; got != c.waits {
			t.Errorf("%+v: waits %v", c, got)
		}
	}
}

// The same on real nodes: Zorilla tries the rank again. The rank that is to be lost takes its
// time, so that nobody comes to the solution before.
func TestLostRankOnRealNodes(t *testing.T) {
	dir := t.TempDir()
	crew.Build(t, dir, "cmd/zorilla", "examples/async")
	env := []string{"PATH=" + dir + ":/usr/bin:/bin", "HOME=" + dir}
	env = append(env, crew.Nodes(t, dir, env, nil, "-n", "3", "--slots", "2"))
	cmd := exec.Command("sh", "-euc", `
		job=$(zorilla submit -i async -n 2..4 --retries 3 -- sh -c '
			pause=2ms; test $ZORILLA_RANK.$ZORILLA_ATTEMPT = 2.1 && pause=1m; exec ./async -n 32 -verify -pause $pause')
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
		`(?m)^rank 2: attempt 2 listens at`, `(?m)^rank 1: rank 2, attempt 1, is away in iteration`, `(?m)^rank 3: done after \d+ iterations, wrong by`,
		`(?m)^rank 0: done after \d+ iterations, wrong by \d\.\de-(0[7-9]|1\d)$`, `(?m)^rank 2: done after \d+ iterations, wrong by \d\.\de-(0[7-9]|1\d)$`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

// A small grid has work for two.
func TestRanksWithoutASlab(t *testing.T) {
	c := crew.New(t, 4, "-n", "16", "-planes", "8", "-verify")
	var ranks []*crew.Rank
	for rank := range 4 {
		ranks = append(ranks, c.Start(rank, 1))
	}
	for rank, r := range ranks {
		said := r.Ends()
		if rank < 2 {
			if wrong := number(t, said, `wrong by (\S+)`); wrong > 1e-6/4 {
				t.Errorf("rank %d is wrong by %g", rank, wrong)
			}
		} else if !strings.Contains(said, "has no slab\n") {
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
		job=$(zorilla submit -n 1..4 ./async -n 32 -planes 16 -verify -pause 20ms)
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
		`(?m)^rank 0: done after \d+ iterations, wrong by \d\.\de-(0[7-9]|1\d)$`, `(?m)^rank 1: done after`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

// With -times ranks print what iterations and planes took, and without they do not.
func TestTimes(t *testing.T) {
	for _, times := range []bool{true, false} {
		args := []string{"-n", "16", "-pause", "1ms"}
		if times {
			args = append(args, "-times")
		}
		c := crew.New(t, 2, args...)
		ranks := []*crew.Rank{c.Start(0, 1), c.Start(1, 1)}
		for rank, r := range ranks {
			said := r.Ends()
			if !times {
				if strings.Contains(said, " took ") {
					t.Errorf("rank %d says:\n%s", rank, said)
				}
				continue
			}
			iteration := number(t, said, `(?m)^rank \d: iteration \d+ took (\S+) s, \d+\.\d+ s of computing$`)
			plane := number(t, said, `(?m)^rank \d: plane of rank `+strconv.Itoa(1-rank)+` took (\S+) s$`)
			if iteration <= 0 || iteration > 10 || plane <= 0 || plane > 10 {
				t.Errorf("rank %d: an iteration took %v s, and a plane %v s", rank, iteration, plane)
			}
		}
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{"-n", "0"}, {"-n", "5000"}, {"-n", "x"}, {"-planes", "0"}, {"-sweeps", "0"}, {"-pause", "-1s"}, {"-checkpoint", "-1s"}, {"-alone", "-1s"},
		{"-tolerance", "0"}, {"-tolerance", "NaN"}, {"-n", "100", "-tolerance", "1e-12"}, {"slab-0.bin"}} {
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
