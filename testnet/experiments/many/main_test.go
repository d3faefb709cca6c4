package main

import (
	"slices"
	"strings"
	"testing"
)

func TestRollKnowsWhoKnowsWhom(t *testing.T) {
	r := newRoll(3)
	read := func(i int, lines ...string) {
		log := r.log(i)
		for part := range slices.Chunk([]byte("join   'zorilla invite' prints the token for other machines\n"+strings.Join(lines, "\n")+"\n"), 50) {
			_, _ = log.Write(part)
		}
	}
	here := func(name string) string {
		return "2026-11-23 12:43:55 INF a member is here addr=127.77.0.1:5444 member=zz5hj name=" + name + " node=z4ngs"
	}
	read(0, here("node-1"), here("node-1"), here("node-2"))
	read(1, here("node-0"), "2026-11-23 12:43:55 INF joined the network addr=127.77.0.1:5444 node=z4ngs")
	read(2, here("node-0"), here("node-1"), "2026-11-23 12:43:56 INF stopping: leaving the network node=z4ngs")
	if got := r.share(); got != 5./6 || r.gone() != 0 || r.joined() != 1 {
		t.Errorf("%.3f of the pairs known, %d gone, %d joined", got, r.gone(), r.joined())
	}
	r.kill(1)
	if r.missed() != 0 {
		t.Errorf("%.2f miss who has just been killed", r.missed())
	}
	read(0, "2026-11-23 12:43:56 INF a member is gone member=z4ngs name=node-1 node=zz5hj")
	if r.missed() != 0.5 || r.gone() != 1 || r.share() != 4./6 {
		t.Errorf("%.2f miss who was killed, %d gone, %.3f known", r.missed(), r.gone(), r.share())
	}
}

func TestMemoryOfAProcess(t *testing.T) {
	u := memoryOf([]byte("00400000-7fff [rollup]\nRss:   23668 kB\nPss:   10420 kB\nPss_Anon:  1 kB\n"))
	if u != (usage{resident: 23668 << 10, proportional: 10420 << 10}) {
		t.Errorf("%+v", u)
	}
	if u := memoryOf(nil); u != (usage{}) {
		t.Errorf("of a process that has ended %+v", u)
	}
}
