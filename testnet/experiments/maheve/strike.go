package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/placement"
	"zorilla/jobs/placement/mapping"
)

// restore is a rank that was lost, and runs again elsewhere. Times are in seconds.
type restore struct {
	Bytes    int64
	Far      bool    // from its checkpoint, which is at the site where it ran
	Waited   float64 // for the checkpoint
	Lost     float64 // from the end of its node until it counted as lost
	Restored float64 // from then until it ran with its checkpoint
}

// saver is the program of a rank: it has random bytes kept, which no two ranks share, and prints for how many
// nanoseconds it waited until they were.
const saver = `if [ -z "$ZORILLA_RESTART" ]; then
	mkdir state && head -c %[1]d /dev/urandom > state/data || exit
	begun=$(date +%%s%%N)
	zorilla checkpoint state > kept || exit
	echo "waited $(($(date +%%s%%N) - begun)) ns"
else
	[ "$(wc -c < state/data)" -eq %[1]d ] || exit
fi
exec sleep 100000`

// restores has ranks lost and restored, near and far in turn.
func (s *scene) restores(ctx context.Context, f *found) error {
	for _, size := range s.sizes {
		for round := range s.rounds {
			site := s.plan.Sites[1+round%2].Name
			near := [2]string{fmt.Sprintf("%s-%d", site, stricken[0]), fmt.Sprintf("%s-%d", site, stricken[1])}
			number := stricken[round%2]
			far := [2]string{fmt.Sprintf("%s-%d", s.plan.Sites[1].Name, number), fmt.Sprintf("%s-%d", s.plan.Sites[2].Name, number)}
			for i, pair := range [][2]string{near, far} {
				r := restore{Bytes: size, Far: i == 1}
				err := s.restore(ctx, &r, pair)
				for ; errors.Is(err, errKeptElsewhere) && f.Aside < mostAside; err = s.restore(ctx, &r, pair) {
					fmt.Fprintln(os.Stderr, err)
					f.Aside++
				}
				if err != nil {
					return fmt.Errorf("a rank at %s or %s: %w", pair[0], pair[1], err)
				}
				f.Restores = append(f.Restores, r)
				fmt.Fprintf(os.Stderr, "round %d: %+v\n", round+1, r)
			}
		}
	}
	return nil
}

// restore has a rank that can only be at two hosts lose the one where it is.
func (s *scene) restore(ctx context.Context, r *restore, pair [2]string) error {
	if err := s.ready(ctx, pair[:]...); err != nil {
		return err
	}
	id, err := s.origin.Client.Submit(ctx, jobs.Spec{Args: []string{"sh", "-c", fmt.Sprintf(saver, r.Bytes)}, Min: 1, Max: 1, Slots: 1,
		Where: fmt.Sprintf("name in [%q, %q]", pair[0], pair[1]), Strategy: string(placement.Maheve),
		Placing: jobs.Placing{Graph: &mapping.Listed{Name: "grid:1x1"}}, Failing: jobs.Failing{LostAfter: codec.Duration(jobs.LeastPatience)}})
	if err != nil {
		return err
	}
	var first jobs.WorkerStatus
	if err := s.follow(ctx, id, "a checkpoint", func(st *jobs.Status) bool {
		if len(st.Workers) > 0 {
			first = st.Workers[0]
		}
		return first.Checkpoint != nil
	}); err != nil {
		return err
	}
	if err := s.kept(ctx, &first); err != nil {
		return errors.Join(err, s.origin.Client.Cancel(ctx, string(id), true))
	}
	if r.Waited, err = s.waited(ctx, id); err != nil {
		return err
	}
	s.pause()
	struck, err := s.strike(deedKill, first.Name)
	if err != nil {
		return err
	}
	var lost time.Time
	var second jobs.WorkerStatus
	if err := s.follow(ctx, id, "the rank runs again", func(st *jobs.Status) bool {
		second = st.Workers[0]
		if lost.IsZero() && !(second.Attempt == first.Attempt && second.State == jobs.WorkerRunning) {
			lost = time.Now()
		}
		return second.Attempt > first.Attempt && second.State == jobs.WorkerRunning
	}); err != nil {
		return err
	}
	r.Lost, r.Restored = lost.Sub(struck).Seconds(), time.Since(lost).Seconds()
	s.heal(ctx, deedKill, first.Name)
	if second.Name == first.Name || second.Resumed == 0 {
		return fmt.Errorf("it runs again at %s with checkpoint %d", second.Name, second.Resumed)
	}
	return s.origin.Client.Cancel(ctx, string(id), true)
}

// errKeptElsewhere: round trips that a busy machine measured too long have a node take others for its nearest.
var errKeptElsewhere = errors.New("which is at another site")

// mostAside bounds how many restores may be put aside for that.
const mostAside = 20

// kept checks that a checkpoint is at the site of its rank, beside the hosts that are stricken.
func (s *scene) kept(ctx context.Context, w *jobs.WorkerStatus) error {
	members, err := s.origin.Client.Nodes(ctx)
	if err != nil {
		return err
	}
	keepers := 0
	for _, m := range members {
		for _, id := range w.Checkpoint.Holders {
			switch {
			case m.ID != id || id == w.Node:
			case s.plan.SiteOf(m.Name) != s.plan.SiteOf(w.Name):
				return fmt.Errorf("the checkpoint of a rank at %s is kept at %s, %w", w.Name, m.Name, errKeptElsewhere)
			default:
				keepers++
			}
		}
	}
	if keepers != jobs.Keepers {
		return fmt.Errorf("the checkpoint of a rank at %s has %d keepers: %s", w.Name, keepers, w.Checkpoint.Short)
	}
	return nil
}

// waited is for how many seconds the program has waited for its checkpoint.
func (s *scene) waited(ctx context.Context, id jobs.ID) (seconds float64, err error) {
	var ns int64
	err = s.follow(ctx, id, "the program has printed how long it waited", func(st *jobs.Status) bool {
		text, err := s.said(ctx, id)
		if err != nil {
			return false
		}
		n, _ := fmt.Sscanf(strings.TrimSpace(text), "waited %d ns", &ns)
		return n == 1
	})
	return time.Duration(ns).Seconds(), err
}

// deaths has nodes die, of jobs with a rank at each: one is killed, and another is cut off.
func (s *scene) deaths(ctx context.Context, f *found) error {
	hosts := s.plan.Names()[1:]
	for _, patience := range []time.Duration{jobs.LeastPatience, 0} {
		id, err := s.origin.Client.Submit(ctx, jobs.Spec{Args: []string{"sleep", "100000"}, Min: 1, Max: len(hosts) + 1, Slots: 1,
			Strategy: string(placement.Spread), Failing: jobs.Failing{LostAfter: codec.Duration(patience)}})
		if err != nil {
			return err
		}
		for round := range s.rounds {
			// Of each site one.
			killed, cut := hosts[round%len(hosts)], hosts[(round+len(hosts)/2)%len(hosts)]
			both, err := s.die(ctx, id, killed, cut)
			if err != nil {
				return fmt.Errorf("%s or %s: %w", killed, cut, err)
			}
			for _, d := range both {
				d.Patience = patience
				f.Deaths = append(f.Deaths, d)
				fmt.Fprintf(os.Stderr, "round %d: %+v\n", round+1, d)
			}
		}
		if err := s.origin.Client.Cancel(ctx, string(id), true); err != nil {
			return err
		}
	}
	return nil
}

// die kills a node that has a rank of a job, and cuts off another.
func (s *scene) die(ctx context.Context, id jobs.ID, killed, cut string) (both [2]death, err error) {
	if err := s.ready(ctx, killed, cut); err != nil {
		return both, err
	}
	runs := func(st *jobs.Status, host string) bool {
		for _, w := range st.Workers {
			if w.Name == host && w.State == jobs.WorkerRunning {
				return true
			}
		}
		return false
	}
	if err := s.follow(ctx, id, "both have a rank", func(st *jobs.Status) bool { return runs(st, killed) && runs(st, cut) }); err != nil {
		return both, err
	}
	s.pause()
	hosts := [2]string{killed, cut}
	var at [2]time.Time
	for i, deed := range []string{deedKill, deedCut} {
		both[i].Deed = deed
		if at[i], err = s.strike(deed, hosts[i]); err != nil {
			return both, err
		}
	}
	err = s.follow(ctx, id, "both ranks are lost", func(st *jobs.Status) bool {
		for i := range both {
			if both[i].Lost == 0 && !runs(st, hosts[i]) {
				both[i].Lost = time.Since(at[i]).Seconds()
			}
		}
		return both[0].Lost > 0 && both[1].Lost > 0
	})
	for i := range both {
		s.heal(ctx, both[i].Deed, hosts[i])
	}
	return both, err
}
