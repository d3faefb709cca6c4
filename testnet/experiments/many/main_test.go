package main

import (
	"strings"
	"testing"
	"time"
)

func TestRollKnowsWhoKnowsWhom(t *testing.T) {
	r := newRoll(3)
	read := func(i int, lines ...string) {
		r.read(i, strings.NewReader("join   'zorilla invite' prints the token for other machines\n"+strings.Join(lines, "\n")+"\n"))
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
	if words := r.lastWords(2); !strings.Contains(words, "stopping") {
		t.Errorf("last words %q", words)
	}
}

func TestUsageOfAProcess(t *testing.T) {
	u := usageOf([]byte("12 (a b) c) S 1 12 12 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 7 0 1 2"), []byte("00400000-7fff [rollup]\nRss:   23668 kB\nPss:   10420 kB\nPss_Anon:  1 kB\n"))
	if u.cpu != 3*time.Second || u.resident != 23668<<10 || u.proportional != 10420<<10 {
		t.Errorf("%+v", u)
	}
	if u := usageOf(nil, nil); u != (usage{}) {
		t.Errorf("of a process that has ended %+v", u)
	}
	var n network
	n.nodes = append(n.nodes, &process{killed: true})
	if n.usage() != (usage{}) {
		t.Error("who was killed uses something")
	}
}
