package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/testnet/hosts/lab"
)

// What is done to a node.
const (
	deedKill = "kill -9"
	deedCut  = "cut off"
)

// found is what the script of the lab has found. Times are in seconds.
type found struct {
	Deaths           []death
	Restores         []restore
	Aside            int       // restores that were not looked at, since their checkpoints were not at their sites
	Iterations, Took []float64 // time of a processor, and as they took beside those of other hosts
	Near, Far        []float64 // messages
}

// death is a node that is gone, and a job with a rank there.
type death struct {
	Deed     string
	Patience time.Duration // of the job, 0 = it says nothing
	Lost     float64       // until its rank is
}

// scene is the nodes of the lab, of which the first one is the origin of all jobs.
type scene struct {
	effort
	plan   *lab.Plan
	origin *lab.Node
	nodes  map[string]*lab.Node
	rnd    *rand.Rand

	mu      sync.Mutex
	healing map[string]bool
	failed  error
}

// The hosts of a site whose ranks are lost and restored.
var stricken = []int{9, 10}

// watch is the script of the lab.
func watch(ctx context.Context, e *effort) error {
	dir, err := lab.Enter()
	if err != nil {
		return err
	}
	s, err := newScene(ctx, dir, e)
	if err != nil {
		return err
	}
	var f found
	for _, part := range []func(context.Context, *found) error{s.solve, s.restores, s.deaths} {
		begun := time.Now()
		if err := part(ctx, &f); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "after %.0f s more: %d iterations, %d restores, %d deaths\n",
			time.Since(begun).Seconds(), len(f.Iterations), len(f.Restores), len(f.Deaths))
	}
	return lab.Tell(f)
}

// newScene starts all nodes. Those that are stricken keep no checkpoints, like almost all nodes of a large
// cluster, so that none is where a rank is restored.
func newScene(ctx context.Context, dir string, e *effort) (*scene, error) {
	plan, err := lab.PlanOf(network)
	if err != nil {
		return nil, err
	}
	s := &scene{effort: *e, plan: plan, nodes: map[string]*lab.Node{}, rnd: rand.New(rand.NewPCG(1, 0)), healing: map[string]bool{}}
	for _, site := range plan.Sites {
		if _, err := lab.Do("rate", "site", site.Name, strconv.Itoa(siteMbit)); err != nil {
			return nil, err
		}
	}
	for _, name := range plan.Names() {
		if _, err := lab.Do("rate", "host", name, strconv.Itoa(hostMbit)); err != nil {
			return nil, err
		}
	}
	all, err := lab.Gather(ctx, dir, plan, "--slots", "1")
	if err != nil {
		return nil, err
	}
	s.origin = all[0]
	for _, n := range all {
		s.nodes[n.Name] = n
		for _, number := range stricken {
			if strings.HasSuffix(n.Name, fmt.Sprintf("-%d", number)) {
				if _, err := n.Client.SetLimits(ctx, []string{"max-kept=0"}); err != nil {
					return nil, err
				}
			}
		}
	}
	return s, nil
}

// strike does something to a node, and returns when.
func (s *scene) strike(deed, host string) (at time.Time, err error) {
	at = time.Now()
	if deed == deedCut {
		_, err = lab.Do("cut", "host", host)
	} else {
		err = s.nodes[host].End(syscall.SIGKILL)
	}
	return at, err
}

// heal undoes it meanwhile: ready waits for that.
func (s *scene) heal(ctx context.Context, deed, host string) {
	s.mu.Lock()
	s.healing[host] = true
	s.mu.Unlock()
	go func() {
		var err error
		if deed == deedCut {
			_, err = lab.Do("heal", "host", host)
		} else {
			err = s.nodes[host].Start(ctx, "--slots", "1", "--join", lab.Address(0, 1).String()+":5444")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.healing, host)
		s.failed = errors.Join(s.failed, err)
	}()
}

// ready waits until hosts are as if nothing had been done to them, for the origin, too.
func (s *scene) ready(ctx context.Context, hosts ...string) error {
	_, err := lab.Until(ctx, 2*time.Minute, strings.Join(hosts, " and ")+" are back", func(ctx context.Context) string {
		s.mu.Lock()
		failed, healing := s.failed, false
		for _, h := range hosts {
			healing = healing || s.healing[h]
		}
		s.mu.Unlock()
		if failed != nil {
			return ""
		}
		if healing {
			return "not yet"
		}
		members, err := s.origin.Client.Nodes(ctx)
		if err != nil {
			return err.Error()
		}
		left := len(hosts)
		for _, m := range members {
			for _, h := range hosts {
				if m.Name == h && m.RTT > 0 {
					left--
				}
			}
		}
		if left > 0 {
			return fmt.Sprintf("%d are no members", left)
		}
		return ""
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.failed)
}

// pause waits for up to two seconds: reports come that often.
func (s *scene) pause() { time.Sleep(time.Duration(s.rnd.Int64N(int64(2 * time.Second)))) }

// follow looks at a job whenever it changes, until seen reports true.
func (s *scene) follow(ctx context.Context, id jobs.ID, what string, seen func(*jobs.Status) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("not within a minute: %s", what))
	defer cancel()
	for version := uint64(0); ; {
		st, next, err := s.origin.Client.Await(ctx, string(id), version)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %s", context.Cause(ctx), st.Reason)
		case err != nil:
			return err
		case seen(&st):
			return nil
		case st.State.Final():
			return fmt.Errorf("job %s is %s before %s: %s", id, st.State, what, st.Reason)
		}
		version = next
	}
}

// said returns what rank 0 has printed so far.
func (s *scene) said(ctx context.Context, id jobs.ID) (text string, err error) {
	err = s.origin.Client.Output(ctx, string(id), api.OutputQuery{Rank: 0}, func(o jobs.Output) error {
		text += string(o.Data)
		return nil
	})
	return text, err
}
