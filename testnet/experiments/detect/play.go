package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/placement"
	"zorilla/node/api"
	"zorilla/testnet/hosts/lab"
	"zorilla/vicinity"
)

// What is done to a node.
const (
	deedKill = "kill -9"
	deedCut  = "cut off"
	deedNap  = "paused for 1 s"
	deedRest = "paused for 3 s"
)

// trial is one of them. Times are seconds after it was done; 0 = that did not happen.
type trial struct {
	Deed     string
	Patience time.Duration // 0 = the job says nothing
	// Suspected is when the first node suspects it, Dead when the origin's overlay gives it up,
	// Silent when the job names it, Lost when its rank is lost, Again when that runs elsewhere.
	Suspected, Dead, Silent, Lost, Again float64
}

// found is what was found in the lab.
type found struct {
	Trials       []trial
	Calm         time.Duration
	Busy, Ranks  int
	Alarms       int // ranks that were lost in the calm
	Paused       int // times that a node said that it was paused, or too busy to run
	Before, Load string
}

const (
	poll    = 20 * time.Millisecond
	watched = 20 * time.Second // how long what comes of a deed is waited for
)

// stage is the lab's nodes, of which the first is the origin.
type stage struct {
	nodes []*lab.Node
	ids   []vicinity.ID
	rnd   *rand.Rand
}

// play is the script of a lab.
func play(ctx context.Context, o *options) error {
	dir, err := lab.Enter()
	if err != nil {
		return err
	}
	plan, err := lab.PlanOf("grid5000")
	if err != nil {
		return err
	}
	f := found{Calm: o.calm, Busy: o.busy, Before: lab.Load()}
	s := stage{rnd: rand.New(rand.NewPCG(o.seed, 0))}
	if s.nodes, err = lab.Gather(ctx, dir, plan, "--slots", "4"); err != nil {
		return err
	}
	for _, n := range s.nodes {
		info, err := n.Client.Node(ctx)
		if err != nil {
			return err
		}
		s.ids = append(s.ids, info.ID)
	}
	for round := range o.rounds {
		for _, t := range []trial{
			{Deed: deedKill}, {Deed: deedCut}, {Deed: deedKill, Patience: jobs.LeastPatience}, {Deed: deedCut, Patience: jobs.LeastPatience},
			{Deed: deedNap, Patience: jobs.LeastPatience}, {Deed: deedRest, Patience: jobs.LeastPatience},
		} {
			if err := s.try(ctx, &t); err != nil {
				return fmt.Errorf("%s, %v: %w", t.Deed, t.Patience, err)
			}
			f.Trials = append(f.Trials, t)
			fmt.Fprintf(os.Stderr, "round %d: %+v\n", round+1, t)
		}
	}
	if o.calm > 0 {
		if err := s.calm(ctx, &f); err != nil {
			return err
		}
	}
	f.Load = lab.Load()
	return lab.Tell(f)
}

// job submits a job with a rank at each node, which never ends, and waits until it runs.
func (s *stage) job(ctx context.Context, origin int, patience time.Duration) (jobs.ID, error) {
	id, err := s.nodes[origin].Client.Submit(ctx, jobs.Spec{Args: []string{"sleep", "100000"}, Min: 1, Max: len(s.nodes), Slots: 1,
		Strategy: string(placement.Spread), Failing: jobs.Failing{LostAfter: codec.Duration(patience)}})
	if err != nil {
		return "", err
	}
	_, err = lab.Until(ctx, 30*time.Second, "all ranks run", func(ctx context.Context) string {
		st, err := s.nodes[origin].Client.Job(ctx, string(id))
		if err != nil {
			return err.Error()
		}
		if n := len(at(&st, "")); n < len(s.nodes) {
			return fmt.Sprintf("%d run: %s", n, st.Reason)
		}
		return ""
	})
	return id, err
}

// at lists the ranks that run at a node; "" = at any.
func at(st *jobs.Status, node vicinity.ID) (list []jobs.RankAttempt) {
	for _, w := range st.Workers {
		if w.State == jobs.WorkerRunning && (node == "" || w.Node == node) {
			list = append(list, jobs.RankAttempt{Rank: w.Rank, Attempt: w.Attempt})
		}
	}
	return list
}

// try does something to a node that has a rank of a job, and undoes it.
func (s *stage) try(ctx context.Context, t *trial) error {
	id, err := s.job(ctx, 0, t.Patience)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(s.rnd.Int64N(int64(4 * time.Second)))) // reports come every two seconds
	victim := 1 + s.rnd.IntN(len(s.nodes)-1)
	n := s.nodes[victim]
	undo, err := s.do(ctx, t.Deed, n)
	if err != nil {
		return err
	}
	if err := errors.Join(s.watch(ctx, t, id, victim), undo(), s.nodes[0].Client.Cancel(ctx, string(id), true)); err != nil {
		return err
	}
	_, err = lab.Until(ctx, 90*time.Second, "all know all, and nothing is left", lab.All(s.nodes, func(_ *lab.Node, members []api.NodeInfo) string {
		if len(members) < len(s.nodes) {
			return fmt.Sprintf("knows %d", len(members))
		}
		return ""
	}))
	return err
}

// do does it, and returns how it is undone.
func (s *stage) do(ctx context.Context, deed string, n *lab.Node) (undo func() error, err error) {
	pause := func(d time.Duration) (func() error, error) {
		time.AfterFunc(d, func() { _ = n.Signal(syscall.SIGCONT) }) // and once more below
		return func() error { return n.Signal(syscall.SIGCONT) }, n.Signal(syscall.SIGSTOP)
	}
	switch deed {
	case deedNap:
		return pause(time.Second)
	case deedRest:
		return pause(3 * time.Second)
	case deedCut:
		_, err := lab.Do("cut", "host", n.Name)
		return func() error { _, err := lab.Do("heal", "host", n.Name); return err }, err
	}
	return func() error { return n.Start(ctx, "--slots", "4", "--join", lab.Address(0, 1).String()+":5444") }, n.End(syscall.SIGKILL)
}

// watch notes when what comes of it.
func (s *stage) watch(ctx context.Context, t *trial, id jobs.ID, victim int) error {
	begun, origin := time.Now(), s.nodes[0].Client
	logs := s.logs()
	note := func(at *float64, happened bool) {
		if happened && *at == 0 {
			*at = time.Since(begun).Seconds()
		}
	}
	paused := t.Deed == deedNap || t.Deed == deedRest
	for time.Since(begun) < watched && (t.Dead == 0 || t.Again == 0) {
		if paused && time.Since(begun) > watched/2 {
			return nil // nothing comes of it any more
		}
		st, err := origin.Job(ctx, string(id))
		if err != nil {
			return err
		}
		members, err := origin.Nodes(ctx)
		if err != nil {
			return err
		}
		note(&t.Silent, strings.Contains(st.Reason, "has been silent"))
		note(&t.Lost, len(at(&st, s.ids[victim])) == 0)
		note(&t.Again, t.Lost > 0 && len(at(&st, "")) == len(s.nodes))
		note(&t.Dead, !slices.ContainsFunc(members, func(m api.NodeInfo) bool { return m.ID == s.ids[victim] }))
		note(&t.Suspected, logs.say("memberlist: Suspect "+string(s.ids[victim])))
		time.Sleep(poll)
	}
	return nil
}

// tails are the ends of the nodes' logs.
type tails struct {
	nodes []*lab.Node
	from  []int64
}

// logs begins to look at what nodes log from now on.
func (s *stage) logs() *tails {
	t := &tails{nodes: s.nodes}
	for _, n := range s.nodes {
		size := int64(0)
		if info, err := os.Stat(n.LogFile()); err == nil {
			size = info.Size()
		}
		t.from = append(t.from, size)
	}
	return t
}

// say reports whether one of them has said something.
func (t *tails) say(text string) bool { return t.count(text) > 0 }

// count returns how often it was said.
func (t *tails) count(text string) (sum int) {
	for i, n := range t.nodes {
		if b, err := os.ReadFile(n.LogFile()); err == nil && int64(len(b)) > t.from[i] {
			sum += bytes.Count(b[t.from[i]:], []byte(text))
		}
	}
	return sum
}

// calm counts what is lost though nothing happens, beside busy loops: each of three nodes has a job with a
// rank everywhere.
func (s *stage) calm(ctx context.Context, f *found) error {
	ids := make([]jobs.ID, 3)
	for i := range ids {
		var err error
		if ids[i], err = s.job(ctx, 4*i, jobs.LeastPatience); err != nil {
			return err
		}
		f.Ranks += len(s.nodes)
	}
	for range f.Busy {
		loop := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			return err
		}
		defer func() { _, _ = loop.Process.Kill(), loop.Wait() }()
	}
	logs := s.logs()
	select {
	case <-time.After(f.Calm):
	case <-ctx.Done():
		return ctx.Err()
	}
	f.Paused = logs.count("this node was paused")
	for i, id := range ids {
		st, err := s.nodes[4*i].Client.Job(ctx, string(id))
		if err != nil {
			return err
		}
		for _, w := range st.Workers {
			f.Alarms += max(0, w.Attempt-1)
		}
	}
	return nil
}
