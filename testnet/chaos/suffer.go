package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"time"

	"zorilla/testnet/hosts/lab"
)

// torment does to a host, or several at once, what the story wants.
func (p *play) torment(ctx context.Context, t torment) {
	var nodes []*lab.Node
	for _, name := range t.hosts {
		nodes = append(nodes, p.node(name))
	}
	switch t.deed {
	case deedCutSite, deedLoss:
		p.suffer(ctx, t, nodes...)
	default:
		_ = p.each(nodes, func(n *lab.Node) error { // it has told what is wrong
			p.suffer(ctx, t, n)
			return nil
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deeds[t.deed]++
}

// suffer does it to one host, or to all of a site together.
func (p *play) suffer(ctx context.Context, t torment, nodes ...*lab.Node) {
	for _, n := range nodes {
		n.Turn.Lock()
		defer n.Turn.Unlock()
	}
	hold := func(do, undo func() error) error {
		p.log(cmp.Or(strings.Join(t.hosts, " "), "-"), "%s for %s", t.deed, seconds(t.hold))
		return p.hold(nodes, t.deed, do, undo, func() error {
			time.Sleep(t.hold)
			p.log(cmp.Or(strings.Join(t.hosts, " "), "-"), "goes on")
			return nil
		})
	}
	var n *lab.Node
	if len(nodes) > 0 {
		n = nodes[0]
	}
	var err error
	switch t.deed {
	case deedKill, deedKillAll:
		err = p.restart(ctx, n, t, func() error { return n.End(syscall.SIGKILL) })
	case deedStumble:
		err = p.restart(ctx, n, t, func() error {
			err := n.End(syscall.SIGKILL)
			for i := range 4 {
				if err == nil {
					err = n.Stumble(time.Duration(t.dice>>(16*i)&0xffff%600)*time.Millisecond, p.args...)
				}
			}
			return err
		})
	case deedStop:
		err = p.restart(ctx, n, t, func() error { return n.End(syscall.SIGTERM) })
	case deedCrash:
		err = p.restart(ctx, n, t, n.Crash)
	case deedPause:
		err = hold(func() error { return n.Signal(syscall.SIGSTOP) }, func() error { return n.Signal(syscall.SIGCONT) })
	case deedCut:
		err = hold(ask("cut", "host", n.Name), ask("heal", "host", n.Name))
	case deedCutSite:
		site, _, _ := strings.Cut(n.Name, "-")
		err = hold(ask("cut", "site", site), ask("heal", "site", site))
	case deedLoss:
		err = hold(ask("loss", "10"), ask("loss", "0"))
	case deedFreeze:
		p.freeze(n, t)
	case deedOrphan:
		p.orphan(n, t)
	}
	if err != nil && ctx.Err() == nil {
		p.blame("%s %s: %v", t.deed, strings.Join(t.hosts, " "), err)
	}
}

// restart ends a node and starts it again.
func (p *play) restart(ctx context.Context, n *lab.Node, t torment, end func() error) error {
	p.log(n.Name, "%s, again in %s", t.deed, seconds(t.hold))
	begin := time.Now()
	back := p.away.begin(n.Name, t.deed, begin)
	defer func() { back(time.Now()) }()
	if err := end(); err != nil {
		return err
	}
	if !p.pause(ctx, time.Since(p.begin)+t.hold) {
		return ctx.Err()
	}
	if err := n.Start(ctx, p.args...); err != nil {
		return err
	}
	p.log(n.Name, "is back after %s", seconds(time.Since(begin)))
	return nil
}

// hold does something to hosts that takes them away, and undoes it after a while.
func (p *play) hold(nodes []*lab.Node, why deed, do, undo, meanwhile func() error) error {
	for _, n := range nodes {
		back := p.away.begin(n.Name, why, time.Now())
		defer func() { back(time.Now()) }()
	}
	if err := do(); err != nil {
		return err
	}
	return errors.Join(meanwhile(), undo())
}

// ask returns a function that asks the lab for something.
func ask(request ...string) func() error {
	return func() error {
		_, err := lab.Do(request...)
		return err
	}
}

// freeze pauses a worker, its supervisor, or both.
func (p *play) freeze(n *lab.Node, t torment) {
	all := processes()
	list := supervisors(n.State())
	if len(list) == 0 {
		return
	}
	s := list[t.dice%uint64(len(list))]
	what, pids := "workers and their supervisor", append([]int{s.pid}, below(all, s.pid)...) // it is not to see them stop
	switch t.dice >> 32 % 3 {
	case 0:
		what, pids = "a supervisor", []int{s.pid}
	case 1:
		what, pids = "workers", workersBelow(all, s.pid)
	}
	p.log(n.Name, "pause %s (%s) for %s", what, s.names(), seconds(t.hold))
	signalAll(pids, syscall.SIGSTOP)
	time.Sleep(t.hold)
	slices.Reverse(pids)
	signalAll(pids, syscall.SIGCONT)
}

// orphan kills a supervisor: nobody can know how its worker ended.
func (p *play) orphan(n *lab.Node, t torment) {
	list := supervisors(n.State())
	if len(list) == 0 {
		return
	}
	s := list[t.dice%uint64(len(list))]
	for _, root := range s.roots {
		p.away.supervisorKilled(jobOf(root))
	}
	p.log(n.Name, "%s (%s)", t.deed, s.names())
	signalAll([]int{s.pid}, syscall.SIGKILL)
}
