// Package doctor finds out what keeps a node, its network or its workers from being as
// good as they could be, and names the cure.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // works, and could be better
	Fail Level = "fail" // does not work
)

// Finding is what was found about one thing.
type Finding struct {
	Level Level  `json:"level"`
	About string `json:"about"`
	What  string `json:"what"`
	Cure  string `json:"cure,omitempty"` // empty if there is nothing to be done
}

// Bad reports whether something does not work.
func Bad(all []Finding) bool {
	return slices.ContainsFunc(all, func(f Finding) bool { return f.Level == Fail })
}

// Way is what came of pings between the node and a member, measured at both ends.
type Way struct {
	Member            api.NodeInfo
	There, Back       api.Measurement
	ThereErr, BackErr error
}

// Seen is what Examine judges.
type Seen struct {
	Release string         // of the client's program
	Config  error          // what keeps commands from reading their files of options
	Nodes   []api.NodeInfo // as api.Service.Nodes: the node itself is first
	Ways    []Way
}

// pings are how many a direction gets: enough that one lost packet is not taken for a
// wall.
const pings = 3

// Ask has the node and its members, at most so many, ping each other. It takes as long as
// the slowest of them, some seconds if packets get lost.
func Ask(ctx context.Context, client *api.Client, nodes []api.NodeInfo, most int) []Way {
	others := slices.DeleteFunc(slices.Clone(nodes), func(n api.NodeInfo) bool { return n.Self })
	others = others[:min(len(others), most)]
	ways := make([]Way, len(others))
	var all sync.WaitGroup
	for i, n := range others {
		w := &ways[i]
		w.Member = n
		all.Go(func() { w.There, w.ThereErr = client.Measure(ctx, "self", string(n.ID), pings) })
		all.Go(func() { w.Back, w.BackErr = client.Measure(ctx, string(n.ID), "self", pings) })
	}
	all.Wait()
	return ways
}

// Examine judges what was seen. What works comes with what does not, in the order in
// which a person would look.
func Examine(s Seen) []Finding {
	if len(s.Nodes) == 0 || !s.Nodes[0].Self {
		return []Finding{{Fail, "node", "it does not know itself", "stop it and start it again"}}
	}
	self := s.Nodes[0]
	var all []Finding
	if s.Config != nil {
		all = append(all, Finding{Fail, "config", s.Config.Error(), "mend the file: all other commands end with that; or do without, ZORILLA_CONFIG=none"})
	}
	all = append(all, program(s.Release, self), work(self))
	all = append(all, members(self, s.Nodes[1:], len(s.Ways)))
	for _, w := range s.Ways {
		all = append(all, w.judge())
	}
	all = append(all, wall(self)...)
	if self.Room != nil {
		all = append(all, disk(*self.Room))
		if self.Room.NoExec {
			all = append(all, Finding{Fail, "work",
				self.Room.Dir + " is on a file system that is mounted noexec: programs that jobs bring cannot be executed",
				"zorilla node --work DIR, a directory on another file system"})
		}
	}
	return append(all, counters(self)...)
}

func program(client string, self api.NodeInfo) Finding {
	what := fmt.Sprintf("%s runs, release %s", jobs.Label(self.Name, self.ID), self.Release)
	if number, _, _ := strings.Cut(client, " "); self.Release != number {
		return Finding{Warn, "node", what + "; this program is " + number, "stop the node and start it with this program: its workers do not notice"}
	}
	return Finding{OK, "node", what, ""}
}

func work(self api.NodeInfo) Finding {
	slots := fmt.Sprintf("%d of %d slots busy", self.Busy, self.Slots)
	switch self.State {
	case "broken":
		return Finding{Fail, "work", "it cannot start workers: " + self.Why, "mend that: it tries again by itself"}
	case "draining":
		return Finding{Warn, "work", slots + "; it takes no new workers, since it drains", "zorilla drain --undo"}
	case api.StateHours:
		return Finding{OK, "work", slots + "; it takes no new workers " + self.Why + ", outside of its owner's hours", ""}
	case "paused":
		return Finding{Warn, "work", slots + "; it takes no new workers, since its owner paused it", "zorilla resume"}
	case "":
		return Finding{OK, "work", slots, ""}
	}
	return Finding{Warn, "work", slots + "; " + self.State, ""}
}

func members(self api.NodeInfo, others []api.NodeInfo, asked int) Finding {
	if len(others) == 0 {
		return Finding{Warn, "network", "no other node is known",
			"'zorilla invite' prints what to type at another machine; port 5444, TCP and UDP, must be open"}
	}
	names := map[string]int{self.Name: 1}
	for _, n := range others {
		names[n.Name]++
	}
	for _, n := range others {
		if names[n.Name] > 1 {
			return Finding{Warn, "network", fmt.Sprintf("%d members; %d of them are called %s", len(others)+1, names[n.Name], n.Name),
				"give them names of their own (zorilla node --name): commands name nodes by them"}
		}
	}
	what := units.Count(len(others)+1, "member", "members")
	if asked < len(others) {
		what += fmt.Sprintf("; the nearest %d are asked", asked)
	}
	return Finding{OK, "network", what, ""}
}

func (w Way) judge() Finding {
	about := jobs.Label(w.Member.Name, w.Member.ID)
	open := "let port " + ports(w.Member.Addrs) + ", TCP and UDP, through to it"
	there, back := len(w.There.Answered), len(w.Back.Answered)
	switch {
	case w.ThereErr != nil:
		return Finding{Fail, about, "this node cannot ping it: " + w.ThereErr.Error(), open}
	case there == 0 && connected(w.There):
		return Finding{Fail, about,
			fmt.Sprintf("it accepts connections (TCP) but answers none of %d pings (UDP)", w.There.Sent),
			"let port " + ports(w.Member.Addrs) + ", UDP, through to it, and its answers back"}
	case there == 0:
		return Finding{Fail, about, fmt.Sprintf("no answer to %d pings", w.There.Sent), "if its machine runs: " + open}
	case w.There.Stream != nil && w.There.Stream.Error != "":
		return Finding{Fail, about, "it answers pings (UDP) but accepts no connections (TCP): " + w.There.Stream.Error,
			"let port " + ports(w.Member.Addrs) + ", TCP, through to it"}
	case errors.Is(w.BackErr, api.ErrRefused):
		return Finding{Warn, about, "reached from here; " + w.BackErr.Error(), "zorilla doctor, later"}
	case w.BackErr != nil:
		return Finding{Fail, about, "it answers packets but no requests: " + w.BackErr.Error(), open}
	case back == 0 && connected(w.Back):
		return Finding{Fail, about,
			fmt.Sprintf("this node reaches it and accepts its connection (TCP), but its %d pings (UDP) were not answered", w.Back.Sent),
			"let this node's port, UDP, through from it"}
	case back == 0:
		return Finding{Fail, about, fmt.Sprintf("this node reaches it; its %d pings were not answered", w.Back.Sent),
			"let this node's port, TCP and UDP, through from it"}
	case w.Back.Stream != nil && w.Back.Stream.Error != "":
		return Finding{Fail, about, "this node reaches it, but it cannot connect to this node (TCP): " + w.Back.Stream.Error,
			"let this node's port, TCP, through from it"}
	case small(w.There) || small(w.Back):
		return Finding{Warn, about,
			"small packets pass, large ones do not: a VPN or tunnel on the way carries less than its MTU. " +
				"Zorilla uses small ones there; MPI and torch hang",
			"lower the MTU of the VPN's interface at both ends (ip link set DEV mtu 1280, or the MTU in its configuration)"}
	case there < w.There.Sent || back < w.Back.Sent:
		return Finding{Warn, about, fmt.Sprintf("%d of %d pings were not answered", w.There.Sent+w.Back.Sent-there-back, w.There.Sent+w.Back.Sent),
			"packets are lost on the way: jobs start later"}
	}
	ms, _ := units.Millis(time.Duration(w.There.Min))
	return Finding{OK, about, "reached both ways, " + ms + "ms", ""}
}

func connected(m api.Measurement) bool { return m.Stream != nil && m.Stream.Error == "" }

func small(m api.Measurement) bool { return m.Stream != nil && m.Stream.Small }

// ports are those of addresses.
func ports(addrs []string) string {
	var all []string
	for _, a := range addrs {
		if i := strings.LastIndexByte(a, ':'); i >= 0 && !slices.Contains(all, a[i+1:]) {
			all = append(all, a[i+1:])
		}
	}
	if len(all) == 0 {
		return "5444"
	}
	return strings.Join(all, ", ")
}

// walls are the means that confine workers, and what a node without one needs, in the
// order of what they are worth.
var walls = []struct{ name, without, cure string }{
	{"namespaces",
		"workers see other processes and files of this machine, and have no shared memory, semaphores and unix sockets, " +
			"which Python's multiprocessing needs",
		"let users make namespaces (sysctl user.max_user_namespaces, " +
			"kernel.apparmor_restrict_unprivileged_userns=0), or start the node as root"},
	{"landlock", "files are kept from workers by their permissions alone", "Linux 5.13 or later, with landlock among the kernel's lsm="},
	{"cgroups", "memory is looked at, and processors are not shared out", "systemd-run --user --scope -p Delegate=yes zorilla node, or start the node as root"},
}

func wall(self api.NodeInfo) (all []Finding) {
	for _, w := range walls {
		if !slices.Contains(self.Enforces, w.name) {
			all = append(all, Finding{Warn, "sandbox", "no " + w.name + ": " + w.without, w.cure})
		}
	}
	if len(all) == 0 {
		all = append(all, Finding{OK, "sandbox", strings.Join(self.Enforces, ", "), ""})
	}
	return all
}

func disk(r api.Room) Finding {
	what := fmt.Sprintf("%s free in %s", units.Bytes(r.Free), r.Dir)
	cure := "make room, keep less (--cache, --keep-outputs), or have workers on another disk: zorilla node --work DIR"
	switch {
	case r.Free < r.Keep:
		return Finding{Fail, "disk", fmt.Sprintf("%s, of which %s are to stay free: the node takes no work", what, units.Bytes(r.Keep)), cure}
	case r.Free < 2*r.Keep:
		return Finding{Warn, "disk", fmt.Sprintf("%s; with less than %s the node takes no work", what, units.Bytes(r.Keep)), cure}
	}
	return Finding{OK, "disk", what, ""}
}

// counters are those of the node that tell of trouble.
func counters(self api.NodeInfo) (all []Finding) {
	for _, c := range self.Traffic {
		if c.Bad && c.Recent > 0 {
			all = append(all, Finding{Warn, c.Group,
				fmt.Sprintf("%d %s in the last ten minutes: %s", c.Recent, c.Name, c.Help),
				"'zorilla nodes -v' shows whether there are more: if so, a host sends what no node should"})
		}
	}
	return all
}
