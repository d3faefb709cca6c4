package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"zorilla/jobs/proc"
	"zorilla/testnet/hosts/lab"
)

// network is a Plan that has been built below dir.
type network struct {
	dir    string
	plan   *lab.Plan
	hosts  []lab.Host
	taps   []int // the router's ends of its ports, by site
	router *router
}

// buildNetwork makes a namespace per host, a bridge per site with the hosts on
// it, and the router between the bridges. It is removed when the namespaces of
// the calling process end.
func buildNetwork(dir string, p *lab.Plan) (*network, error) {
	n := &network{dir: dir, plan: p, hosts: p.Hosts()}
	if err := os.Mkdir(filepath.Join(dir, "net"), 0o755); err != nil {
		return nil, err
	}
	for _, name := range append(p.Names(), lab.Fabric) {
		if err := makeNetns(lab.Netns(dir, name)); err != nil {
			return nil, err
		}
	}
	if err := n.bridges(); err != nil {
		return nil, err
	}
	for _, h := range n.hosts {
		if err := n.connect(h); err != nil {
			return nil, fmt.Errorf("host %s: %w", h.Name, err)
		}
	}
	n.router = newRouter(p, n.taps)
	go n.router.run()
	return n, nil
}

// bridges builds what all hosts hang on, and the router's ports.
func (n *network) bridges() error {
	// Bridges need not ask a firewall that has no rules.
	_ = lab.On(n.dir, lab.Fabric, func() error {
		return os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("0"), 0) // a kernel may not have it
	})
	var script strings.Builder
	script.WriteString("link set lo up\n")
	for s := range n.plan.Sites {
		err := lab.On(n.dir, lab.Fabric, func() error {
			tap, err := openTap("port" + strconv.Itoa(s))
			n.taps = append(n.taps, tap)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(&script, "link add site%d type bridge stp_state 0 mcast_snooping 0\n", s)
		fmt.Fprintf(&script, "link set port%d txqueuelen 2000 master site%d up\n", s, s)
		fmt.Fprintf(&script, "link set site%d up\n", s)
	}
	for i, h := range n.hosts {
		fmt.Fprintf(&script, "link add host%d type veth peer name eth0 netns %s address %s\n", i, lab.Netns(n.dir, h.Name), h.MAC)
		fmt.Fprintf(&script, "link set host%d master site%d up\n", i, h.Site)
	}
	return n.ip(lab.Fabric, script.String())
}

// connect makes a host ready for use: its address, and the router as its way
// to the other sites.
func (n *network) connect(h lab.Host) error {
	err := lab.On(n.dir, h.Name, func() error {
		// Reno slows down when packets are lost, as the users' systems do; BBR,
		// the default of some kernels, does not and would hide it.
		if err := os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte("reno"), 0); err != nil {
			return err
		}
		// Slow connections, too, send eight packets in one piece, and not two: a quarter of the work.
		err := os.WriteFile("/proc/sys/net/ipv4/tcp_min_tso_segs", []byte("8"), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		err = os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0)
		if errors.Is(err, os.ErrNotExist) { // a kernel without it
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	gateway := lab.Address(h.Site, lab.GatewayHost)
	return n.ip(h.Name, fmt.Sprintf(`link set lo up
addr add %s brd + dev eth0
link set eth0 gso_max_size %d up
neigh add %s lladdr %s dev eth0 nud permanent
route add default via %s
`, netip.PrefixFrom(h.Addr, 24), largestPiece, gateway, lab.MAC(h.Site, lab.GatewayHost), gateway))
}

// largestPiece is how many bytes TCP sends in one piece, which goes through cables and router as
// one: a dozen packets cost little more than one does, and are not too many to lose at once.
const largestPiece = 16 << 10

// ip runs lines of ip(8) in a namespace.
func (n *network) ip(where, script string) error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(script)
	return n.tool(where, cmd)
}

// tool runs a program of iproute2 in a namespace.
func (n *network) tool(where string, cmd *exec.Cmd) error {
	if cmd.Err != nil {
		return fmt.Errorf("%w: install iproute2", cmd.Err)
	}
	return lab.On(n.dir, where, func() error {
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, strings.Join(strings.Fields(string(out)), " "))
		}
		return nil
	})
}

// cutHost stops, or lets through, all that a host sends and receives. Its own
// end of the cable stays up: it cannot see that it is alone.
func (n *network) cutHost(i int, cut bool) error {
	const disabled, forwarding = 0, 3
	state := forwarding
	if cut {
		state = disabled
	}
	// "ip link set" takes a state, too, but sets it back to forwarding.
	return n.tool(lab.Fabric, exec.Command("bridge", "link", "set", "dev", "host"+strconv.Itoa(i), "state", strconv.Itoa(state)))
}

// cutSite stops, or lets through, all between a site and the others.
func (n *network) cutSite(i int, cut bool) {
	n.router.change(func(c *conditions) { c.cut[i] = cut })
}

// lose has packets be lost between sites, each by itself.
func (n *network) lose(percent float64) error {
	for i, tap := range n.taps {
		if err := cutPackets(tap, percent > 0); err != nil {
			return fmt.Errorf("port of site %s: %w", n.plan.Sites[i].Name, err)
		}
	}
	n.router.change(func(c *conditions) { c.loss = percent })
	return nil
}

// heal ends all cuts.
func (n *network) heal() error {
	for i := range n.hosts {
		if err := n.cutHost(i, false); err != nil {
			return err
		}
	}
	n.router.change(func(c *conditions) { clear(c.cut) })
	return nil
}

// maxBacklog is how long a packet may wait for a cable with a limited rate before it
// is dropped, as at the port of a switch.
const maxBacklog = 50 * time.Millisecond

// hostRate limits both directions of a host's cable; 0 is no limit.
func (n *network) hostRate(i int, mbit float64) error {
	for _, end := range []struct{ where, device string }{{lab.Fabric, "host" + strconv.Itoa(i)}, {n.hosts[i].Name, "eth0"}} {
		if err := n.rate(end.where, end.device, mbit, "noqueue"); err != nil {
			return fmt.Errorf("host %s: %w", n.hosts[i].Name, err)
		}
	}
	return nil
}

// siteRate limits what a site sends to the others; 0 is no limit.
func (n *network) siteRate(i int, mbit float64) error {
	if err := n.rate(lab.Fabric, "port"+strconv.Itoa(i), mbit, "pfifo"); err != nil {
		return fmt.Errorf("site %s: %w", n.plan.Sites[i].Name, err)
	}
	return nil
}

// rate limits what goes out of a device; without a limit its queue is of a kind.
func (n *network) rate(where, device string, mbit float64, unlimited string) error {
	args := []string{"qdisc", "replace", "dev", device, "root", unlimited}
	if mbit > 0 {
		rate := fmt.Sprintf("%.0fbit", mbit*1e6)
		// A burst of 5 ms, but at least two packets.
		burst := strconv.Itoa(max(4000, int(mbit*1e6/8/200)))
		args = []string{"qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", burst, "latency", maxBacklog.String()}
	}
	return n.tool(where, exec.Command("tc", args...))
}

// crash kills all processes of a host, as if its power had failed.
func (n *network) crash(i int) error {
	var home syscall.Stat_t
	if err := syscall.Stat(lab.Netns(n.dir, n.hosts[i].Name), &home); err != nil {
		return err
	}
	// Nobody may see another process end and tell of it: all stand still first.
	for range 2 {
		if _, err := signalIn(home, syscall.SIGSTOP); err != nil {
			return err
		}
	}
	for quiet, end := 0, time.Now().Add(5*time.Second); quiet < 2; { // a process may be starting another
		if time.Now().After(end) {
			return fmt.Errorf("host %s: its processes do not end", n.hosts[i].Name)
		}
		found, err := signalIn(home, syscall.SIGKILL)
		if err != nil {
			return err
		}
		if quiet++; found {
			quiet = 0
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// signalIn sends a signal to all processes of a network namespace, to each before its
// children, which some look after. It reports whether there were any.
func signalIn(home syscall.Stat_t, s syscall.Signal) (found bool, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false, err
	}
	parents := map[int]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		var at syscall.Stat_t
		if err != nil || pid == os.Getpid() || syscall.Stat(filepath.Join("/proc", e.Name(), "ns", "net"), &at) != nil {
			continue // no process, or it has ended just now
		}
		if at.Ino == home.Ino && at.Dev == home.Dev {
			st, _ := proc.ReadStat(pid) // likewise
			parents[pid] = st.Parent
		}
	}
	for _, pid := range eldersFirst(parents) {
		found = true
		_ = syscall.Kill(pid, s) // likewise
	}
	return found, nil
}

// eldersFirst sorts processes by how many of the others they descend from.
func eldersFirst(parents map[int]int) []int {
	generation := func(pid int) (n int) {
		for p, ok := parents[pid]; ok && n < len(parents); p, ok = parents[p] {
			n++
		}
		return n
	}
	return slices.SortedFunc(maps.Keys(parents), func(a, b int) int {
		return cmp.Or(cmp.Compare(generation(a), generation(b)), cmp.Compare(a, b))
	})
}
