package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// deed is what is done to a node.
type deed string

const (
	deedKill    deed = "kill -9"
	deedStumble deed = "kill -9, and more while it starts"
	deedStop    deed = "stop (SIGTERM)"
	deedPause   deed = "pause (SIGSTOP)"
	deedCut     deed = "cut off"
	deedCutSite deed = "cut the site off"
	deedCrash   deed = "power failure"
	deedLoss    deed = "lose one packet in ten between sites"
	deedFreeze  deed = "pause a worker"
	deedOrphan  deed = "kill -9 a supervisor"
	deedKillAll deed = "kill -9 all nodes"
)

// torment is one deed of the story.
type torment struct {
	at    time.Duration
	deed  deed
	hosts []string      // which it hits
	hold  time.Duration // until it is undone
	dice  uint64        // chooses among what is only known then
}

const (
	firstTorment = 2 * time.Second
	respite      = 1500 * time.Millisecond // for a host after a torment, to report
	maxAway      = 3                       // hosts at a time, but when all are killed
)

// torments makes what is done in a story. A host suffers one thing at a time.
func torments(o options, hosts []string) []torment {
	rnd := rand.New(rand.NewPCG(o.seed, 2))
	var list []torment
	free := map[string]time.Duration{} // when the host can be hit again
	all := o.length * 6 / 10           // when all are killed at once
	for at := firstTorment; at < o.length; at += between(rnd, 200, 1400) {
		if all > 0 && at >= all {
			for _, h := range hosts {
				at = max(at, free[h])
			}
			t := torment{at: at, deed: deedKillAll, hosts: hosts, hold: between(rnd, 0, 3000)}
			list, all = append(list, t), 0
			for _, h := range hosts {
				free[h] = at + t.hold + 2*respite
			}
			continue
		}
		t := roll(rnd)
		t.at = at
		victim := hosts[rnd.IntN(len(hosts))]
		t.hosts = []string{victim}
		if t.deed == deedCutSite {
			site, _, _ := strings.Cut(victim, "-")
			t.hosts = slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return !strings.HasPrefix(h, site+"-") })
		}
		busy := 0
		for _, h := range hosts {
			if free[h] > at && (!slices.Contains(t.hosts, h) || t.takesAway()) {
				busy++
			}
		}
		if t.deed == deedLoss {
			t.hosts = nil
		}
		hit := slices.ContainsFunc(t.hosts, func(h string) bool { return free[h] > at })
		if hit || busy >= maxAway && t.takesAway() || at+t.hold > o.length+5*time.Second {
			continue
		}
		list = append(list, t)
		if t.takesAway() {
			for _, h := range t.hosts {
				free[h] = at + t.hold + respite
			}
		}
	}
	return list
}

// takesAway reports whether its hosts are away meanwhile.
func (t *torment) takesAway() bool {
	return t.deed != deedFreeze && t.deed != deedOrphan && t.deed != deedLoss
}

// roll chooses what to do and for how long: mostly for less than jobs wait for a
// node, sometimes for longer.
func roll(rnd *rand.Rand) torment {
	t := torment{dice: rnd.Uint64()}
	short, long := between(rnd, 0, 3500), between(rnd, 12_000, 15_000)
	if rnd.IntN(4) == 0 { // just bearable
		short = between(rnd, 3500, 6000)
	}
	n := rnd.IntN(31)
	for _, c := range []struct {
		weight int
		deed   deed
		hold   time.Duration
	}{
		{8, deedKill, short}, {1, deedKill, long}, {3, deedStop, short}, {1, deedStop, long}, {4, deedPause, short}, {1, deedPause, long},
		{3, deedCut, short}, {1, deedCut, long}, {1, deedCutSite, short}, {3, deedFreeze, short}, {1, deedOrphan, short}, {1, deedCrash, short},
		{2, deedStumble, short / 4}, {1, deedLoss, 2 * short},
	} {
		if n -= c.weight; n < 0 {
			t.deed, t.hold = c.deed, c.hold
			break
		}
	}
	return t
}
