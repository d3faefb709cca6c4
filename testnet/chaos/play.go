package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"zorilla/jobs"
)

const (
	joinTime   = 60 * time.Second
	settleTime = 100 * time.Second // for all jobs to end once the network is healed
	emptyTime  = 30 * time.Second  // for all that is left to go
	lookEvery  = 500 * time.Millisecond
)

// play is a story in a lab.
type play struct {
	o     options
	lab   string
	begin time.Time
	hosts []*host
	away  *absences
	story []*order

	mu     sync.Mutex // guards what follows
	ids    map[int]jobs.ID
	ends   map[jobs.ID]jobs.Status // as they were told first
	wrong  []string
	deeds  map[deed]int
	broken map[jobs.ID]bool // was not fed all of its standard input
	failed map[jobs.ID]bool // jobs of which more is to be told
}

// perform is the lab's script.
func perform(ctx context.Context, lab string, o options) error {
	self := filepath.Join(lab, "bin", "chaos")
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	if err := os.WriteFile(self, program, 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(lab, "tmp"), 0o755); err != nil {
		return err
	}
	p := &play{o: o, lab: lab, begin: time.Now(), away: newAbsences(), ids: map[int]jobs.ID{}, ends: map[jobs.ID]jobs.Status{},
		deeds: map[deed]int{}, broken: map[jobs.ID]bool{}, failed: map[jobs.ID]bool{}}
	var names []string
	for _, name := range []string{"east-1", "east-2", "west-1", "west-2", "north-1"} {
		p.hosts, names = append(p.hosts, newHost(lab, name)), append(names, name)
	}
	p.story = orders(o, names, self)
	err = p.acts(ctx, torments(o, names))
	p.summary()
	if err != nil {
		p.blame("%v", err)
	}
	if len(p.wrong) == 0 {
		fmt.Printf("seed %d: all %d jobs ended as they must; nothing is left\n", o.seed, len(p.story))
		return nil
	}
	return p.report()
}

// acts plays the story from its beginning to its end.
func (p *play) acts(ctx context.Context, list []torment) error {
	p.log("-", "seed %d: %d jobs and %d torments in %v", p.o.seed, len(p.story), len(list), p.o.length)
	if err := p.start(ctx); err != nil {
		return err
	}
	p.begin = time.Now()
	watching, stop := context.WithCancel(ctx)
	var watchers, actors sync.WaitGroup
	defer watchers.Wait()
	defer stop()
	for _, h := range p.hosts {
		watchers.Go(func() { p.watch(watching, h) })
	}
	watchers.Go(func() { p.feelStalls(watching) })
	for _, t := range list {
		actors.Go(func() {
			if p.pause(ctx, t.at) {
				p.torment(ctx, t)
			}
		})
	}
	for _, j := range p.story {
		actors.Go(func() {
			if p.pause(ctx, j.at) {
				p.submit(ctx, j)
			}
		})
	}
	actors.Wait()
	p.log("-", "no more torments; the jobs come to their ends")
	if err := p.settle(ctx); err != nil {
		return err
	}
	stop()
	watchers.Wait()
	return p.finale(ctx)
}

// start starts all nodes and waits until all know all.
func (p *play) start(ctx context.Context) error {
	var wait sync.WaitGroup
	errs := make([]error, len(p.hosts))
	for i, h := range p.hosts {
		if i == 0 { // somebody must be there to be joined
			if err := h.start(ctx); err != nil {
				return err
			}
			continue
		}
		wait.Go(func() { errs[i] = h.start(ctx) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return p.until(ctx, joinTime, "all nodes know all", func(ctx context.Context) string {
		for _, h := range p.hosts {
			members, err := h.client().Nodes(ctx)
			if err != nil || len(members) != len(p.hosts) {
				return fmt.Sprintf("%s knows %d nodes, %v", h.name, len(members), err)
			}
		}
		return ""
	})
}

// until asks again and again until missing returns "".
func (p *play) until(ctx context.Context, limit time.Duration, what string, missing func(context.Context) string) error {
	for end := time.Now().Add(limit); ; {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		lacks := missing(try)
		cancel()
		switch {
		case lacks == "":
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(end):
			return fmt.Errorf("not within %v: %s: %s", limit, what, lacks)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// pause waits for a time of the story.
func (p *play) pause(ctx context.Context, at time.Duration) bool {
	select {
	case <-time.After(time.Until(p.begin.Add(at))):
		return true
	case <-ctx.Done():
		return false
	}
}

// log writes a line of the story.
func (p *play) log(host, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Printf("%7s  %-7s  %s\n", seconds(time.Since(p.begin)), host, fmt.Sprintf(format, args...))
}

// blame notes that something is wrong.
func (p *play) blame(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.log("-", "WRONG: %s", text)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.wrong) < 1000 {
		p.wrong = append(p.wrong, text)
	}
}

// blameJob does so about a job, of which the report tells more.
func (p *play) blameJob(j *order, st *jobs.Status, text string) {
	p.blame("job %d (%s) %s of %s: %s", j.number, j.kind, st.ID, j.origin, text)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed[st.ID] = true
}

func (p *play) host(name string) *host {
	return p.hosts[slices.IndexFunc(p.hosts, func(h *host) bool { return h.name == name })]
}

// feelStalls notes when this machine was too busy to run anything: then all
// nodes were away.
func (p *play) feelStalls(ctx context.Context) {
	last := time.Now()
	for ctx.Err() == nil {
		time.Sleep(lookEvery / 5)
		now := time.Now()
		if now.Sub(last) > 2*time.Second {
			p.log("-", "this machine stood still for %s", seconds(now.Sub(last)))
			for _, h := range p.hosts {
				p.away.begin(h.name, "the machine stood still", last)(now)
			}
		}
		last = now
	}
}
