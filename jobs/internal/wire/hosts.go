package wire

import (
	"fmt"
	"hash/fnv"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/ports"
	"zorilla/vicinity"
)

// The files that tell a worker of its job's table. They are where its TMPDIR
// is, which it can read whatever confines it.
const (
	HostFileName  = "hostfile"
	EpochFileName = "epoch"
)

// Table tells a participant where the ranks of a job are by now.
type Table struct {
	Epoch int64  `json:"epoch"`
	File  string `json:"file"` // the host file
	Hosts []Host `json:"-"`
	// Nodes are those of Hosts, for jobs whose workers reach these alone.
	Nodes []vicinity.ID `json:"nodes,omitempty"`
}

// Host is a node's part of the rank table.
type Host struct {
	Node  vicinity.ID `json:"node"`
	Addr  string      `json:"addr"` // IP address of the node
	Ranks []int       `json:"ranks"`
	// Port is free at the node for what rank 0 listens at; 0 = rank 0 is not there, or its
	// node is an older one.
	Port int `json:"port,omitempty"`
}

// MasterOf returns the address of rank 0's node.
func MasterOf(start Start) string {
	if start.Master != "" {
		return start.Master
	}
	for _, h := range start.Hosts { // of an older origin
		if slices.Contains(h.Ranks, 0) && h.Addr != "" {
			return h.Addr
		}
	}
	return "127.0.0.1"
}

// MasterPort returns the port that rank 0's node has chosen, or else the wanted one.
func (s *Start) MasterPort() int {
	for _, h := range s.Hosts {
		if h.Port != 0 && slices.Contains(h.Ranks, 0) {
			return h.Port
		}
	}
	return WantedPort(s.Job)
}

// WantedPort is the same for all nodes and seldom for two jobs: what rank 0's node chooses
// if it is free, and where older nodes have ranks look for it anyway.
func WantedPort(job jobs.ID) int {
	h := fnv.New32a()
	h.Write([]byte(job))
	return ports.First + int(h.Sum32()%(ports.Last-ports.First+1))
}

// badPort reports whether a port is none that a program may be given; 0 = none was chosen.
func badPort(port int) bool { return port != 0 && (port < 1024 || port > math.MaxUint16) }

// HostOf returns the IP address of "host:port", or "".
func HostOf(addrs []string) string {
	if len(addrs) == 0 {
		return ""
	}
	host, _, err := net.SplitHostPort(addrs[0])
	if err != nil {
		return ""
	}
	return host
}

// HostFile writes a table as lines "address slots=N", by lowest rank. A node
// whose address is not known any more is left out.
func HostFile(hosts []Host) string {
	var b strings.Builder
	for _, h := range hosts {
		if h.Addr != "" {
			fmt.Fprintf(&b, "%s slots=%d\n", h.Addr, len(h.Ranks))
		}
	}
	return b.String()
}

// Check refuses a table that is not what HostFile writes: programs rely on it.
func (t *Table) Check() error {
	bad := t.Epoch < 1 || len(t.Nodes) > jobs.MaxRanks || slices.ContainsFunc(t.Nodes, func(id vicinity.ID) bool { return !id.Valid() })
	for line := range strings.Lines(t.File) {
		addr, slots, found := strings.Cut(strings.TrimSuffix(line, "\n"), " slots=")
		_, err := netip.ParseAddr(addr)
		n, err2 := strconv.Atoi(slots)
		bad = bad || !found || err != nil || err2 != nil || n < 1 || n > jobs.MaxRanks || !strings.HasSuffix(line, "\n")
	}
	if bad {
		return fmt.Errorf("table: %w", codec.ErrMalformed)
	}
	return nil
}

// WithAddrs returns a rank table with the addresses of its nodes, as far as they are
// members.
func WithAddrs(hosts []Host, member func(vicinity.ID) (vicinity.Member, bool)) []Host {
	hosts = slices.Clone(hosts)
	for i := range hosts {
		if m, ok := member(hosts[i].Node); ok {
			hosts[i].Addr = HostOf(m.Addrs)
		}
	}
	return hosts
}

// WithAddrs returns the message with the addresses of nodes.
func (s Start) WithAddrs(member func(vicinity.ID) (vicinity.Member, bool)) Start {
	s.Hosts = WithAddrs(s.Hosts, member)
	s.Master = WithAddrs([]Host{{Node: s.MasterNode}}, member)[0].Addr
	return s
}
