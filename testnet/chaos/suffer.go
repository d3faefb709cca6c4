package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// torment does to a host, or several at once, what the story wants.
func (p *play) torment(ctx context.Context, t torment) {
	var wait sync.WaitGroup
	switch t.deed {
	case deedCutSite:
		p.cutSite(t)
	case deedLoss:
		p.lose(t)
	default:
		for _, name := range t.hosts {
			wait.Go(func() { p.hurt(ctx, p.host(name), t) })
		}
	}
	wait.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deeds[t.deed]++
}

// hurt does it to one host.
func (p *play) hurt(ctx context.Context, h *host, t torment) {
	h.turn.Lock()
	defer h.turn.Unlock()
	var err error
	switch t.deed {
	case deedKill, deedKillAll:
		err = p.restart(ctx, h, t, func() error { return h.end(syscall.SIGKILL) })
	case deedStumble:
		err = p.restart(ctx, h, t, func() error {
			err := h.end(syscall.SIGKILL)
			for i := range 4 {
				if err == nil {
					err = h.stumble(time.Duration(t.dice>>(16*i)&0xffff%600) * time.Millisecond)
				}
			}
			return err
		})
	case deedStop:
		err = p.restart(ctx, h, t, func() error { return h.end(syscall.SIGTERM) })
	case deedCrash:
		err = p.restart(ctx, h, t, func() error {
			h.wanted.Store(false)
			if err := lab("crash", h.name); err != nil {
				return err
			}
			_, done := h.process()
			<-done
			return nil
		})
	case deedPause:
		err = p.hold(h, t, func() error { return h.signal(syscall.SIGSTOP) }, func() error { return h.signal(syscall.SIGCONT) })
	case deedCut:
		err = p.hold(h, t, func() error { return lab("cut", "host", h.name) }, func() error { return lab("heal", "host", h.name) })
	case deedFreeze:
		p.freeze(h, t)
	case deedOrphan:
		p.orphan(h, t)
	}
	if err != nil && ctx.Err() == nil {
		p.blame("%s %s: %v", t.deed, h.name, err)
	}
}

// restart ends a node and starts it again.
func (p *play) restart(ctx context.Context, h *host, t torment, end func() error) error {
	p.log(h.name, "%s, again in %s", t.deed, seconds(t.hold))
	begin := time.Now()
	back := p.away.begin(h.name, t.deed, begin)
	defer func() { back(time.Now()) }()
	if err := end(); err != nil {
		return err
	}
	if !p.pause(ctx, time.Since(p.begin)+t.hold) {
		return ctx.Err()
	}
	if err := h.start(ctx); err != nil {
		return err
	}
	p.log(h.name, "is back after %s", seconds(time.Since(begin)))
	return nil
}

// hold does something to a host that is undone later.
func (p *play) hold(h *host, t torment, do, undo func() error) error {
	p.log(h.name, "%s for %s", t.deed, seconds(t.hold))
	back := p.away.begin(h.name, t.deed, time.Now())
	defer func() { back(time.Now()) }()
	if err := do(); err != nil {
		return err
	}
	time.Sleep(t.hold)
	p.log(h.name, "goes on")
	return undo()
}

// cutSite cuts all hosts of a site off from the others.
func (p *play) cutSite(t torment) {
	site, _, _ := strings.Cut(t.hosts[0], "-")
	p.log(site, "%s for %s", t.deed, seconds(t.hold))
	for _, name := range t.hosts {
		h := p.host(name)
		h.turn.Lock()
		defer h.turn.Unlock()
		back := p.away.begin(name, t.deed, time.Now())
		defer func() { back(time.Now()) }()
	}
	err := lab("cut", "site", site)
	time.Sleep(t.hold)
	if err == nil {
		err = lab("heal", "site", site)
	}
	if err != nil {
		p.blame("%s %s: %v", t.deed, site, err)
	}
	p.log(site, "goes on")
}

// lose has the router lose packets.
func (p *play) lose(t torment) {
	p.log("-", "%s for %s", t.deed, seconds(t.hold))
	err := lab("loss", "10")
	time.Sleep(t.hold)
	if err == nil {
		err = lab("loss", "0")
	}
	if err != nil {
		p.blame("%s: %v", t.deed, err)
	}
}

// freeze pauses a worker, its supervisor, or both.
func (p *play) freeze(h *host, t torment) {
	all := processes()
	list := supervisors(all, h.state())
	if len(list) == 0 {
		return
	}
	s := list[t.dice%uint64(len(list))]
	what, pids := "a worker and its supervisor", append(below(all, s.pid), s.pid)
	switch t.dice >> 32 % 3 {
	case 0:
		what, pids = "a supervisor", []int{s.pid}
	case 1:
		what, pids = "a worker", below(all, s.pid)
	}
	p.log(h.name, "pause %s (%s) for %s", what, filepath.Base(s.supervises()), seconds(t.hold))
	signalAll(pids, syscall.SIGSTOP)
	time.Sleep(t.hold)
	signalAll(pids, syscall.SIGCONT)
}

// orphan kills a supervisor: nobody can know how its worker ended.
func (p *play) orphan(h *host, t torment) {
	list := supervisors(processes(), h.state())
	if len(list) == 0 {
		return
	}
	s := list[t.dice%uint64(len(list))]
	root := s.supervises()
	p.away.supervisorKilled(jobOf(root))
	p.log(h.name, "%s (%s)", t.deed, filepath.Base(root))
	signalAll([]int{s.pid}, syscall.SIGKILL)
}

// String tells a torment, for tests.
func (t torment) String() string {
	return fmt.Sprintf("%s %s %s for %s", seconds(t.at), t.deed, strings.Join(t.hosts, " "), seconds(t.hold))
}
