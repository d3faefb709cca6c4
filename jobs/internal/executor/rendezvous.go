package executor

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// What programs find in their environment that meet at rank 0, as torch's do.

// listens reports whether a worker is what others of its job may be told to connect to.
func listens(id participant.WorkerID, spec *jobs.Spec) bool {
	rank, _ := spec.RankOf(id.Rank)
	return rank == 0 && spec.Array == nil && spec.Net != jobs.NetNone
}

// beginning is a worker that is about to be started, with its place in its job.
type beginning struct {
	*participant.DoRun
	start            wire.Start // as its replica sees it
	rank, replica    int
	local, localSize int    // its place among the ranks of its job at this node, and how many there are
	addr, face       string // of this machine, by which the job's other nodes reach it; "" = not known
}

// newBeginning finds out the place of a worker. A nil *interfaces knows none.
func newBeginning(e *participant.DoRun, self vicinity.ID, faces *interfaces) *beginning {
	spec := &e.Claim.Spec
	b := &beginning{DoRun: e, start: e.Claim.Start.OfReplica(spec, e.Claim.Rank)}
	b.rank, b.replica = spec.RankOf(e.Claim.Rank)
	here := append([]int{b.rank}, e.Ranks...) // and those that the table knows of
	for _, h := range b.start.Hosts {
		if h.Node == self {
			here = append(here, h.Ranks...)
		}
	}
	slices.Sort(here)
	here = slices.Compact(here)
	b.local, b.localSize = slices.Index(here, b.rank), len(here)
	if faces != nil {
		b.addr, b.face = faces.between(self, b.start.Hosts)
	}
	return b
}

// rendezvous is what torch's programs want to know. The names are those of torchrun, whose
// groups are nodes, and whose roles are all the same. A rank 0 that is here, too, is found by the
// address that this machine has itself.
func (b *beginning) rendezvous(self vicinity.ID) map[string]string {
	hosts := b.start.Hosts
	group := slices.IndexFunc(hosts, func(h wire.Host) bool { return h.Node == self })
	size, worker := strconv.Itoa(b.start.Size), strconv.Itoa(b.rank)
	env := map[string]string{
		"RANK": worker, "WORLD_SIZE": size,
		"LOCAL_RANK": strconv.Itoa(b.local), "LOCAL_WORLD_SIZE": strconv.Itoa(b.localSize),
		"GROUP_RANK": strconv.Itoa(max(0, group)), "GROUP_WORLD_SIZE": strconv.Itoa(max(1, len(hosts))),
		"ROLE_RANK": worker, "ROLE_WORLD_SIZE": size,
		"MASTER_ADDR": wire.MasterOf(b.start), "MASTER_PORT": strconv.Itoa(b.start.MasterPort()),
	}
	if b.face == "" {
		return env
	}
	if slices.ContainsFunc(hosts, func(h wire.Host) bool { return h.Node == self && slices.Contains(h.Ranks, 0) }) {
		env["MASTER_ADDR"] = b.addr
	}
	for _, library := range []string{"GLOO", "NCCL", "TP"} {
		env[library+"_SOCKET_IFNAME"] = b.face
	}
	return env
}

// between returns the address of this machine that a job's workers at other nodes
// reach it by, and its interface; "" if that cannot be told. Others may see this node at
// an address that is a router's: what runs here does not find itself there.
func (n *interfaces) between(self vicinity.ID, hosts []wire.Host) (addr, name string) {
	var own, other netip.Addr
	for _, h := range hosts {
		ip, err := netip.ParseAddr(h.Addr)
		switch {
		case err != nil:
		case h.Node == self:
			own = ip
		case !other.IsValid():
			other = ip
		}
	}
	if name = n.of(own); name == "" && other.IsValid() {
		own = sourceTo(other)
		name = n.of(own)
	}
	return own.String(), name
}

// interfaces are the addresses of this machine, looked up now and then: it takes longer than
// all else that a worker's environment does.
type interfaces struct {
	mu   sync.Mutex
	read time.Time
	list []face
}

type face struct {
	name     string
	loopback bool
	addr     netip.Addr
	bits     int // of its network's prefix
}

const interfacesLast = 5 * time.Second

// of returns the interface that has an address, or "".
func (n *interfaces) of(addr netip.Addr) string { return n.face(addr).name }

// network returns the network that an address of this machine is in, or the zero Prefix.
func (n *interfaces) network(addr netip.Addr) netip.Prefix {
	p, _ := addr.Prefix(n.face(addr).bits) // that of no address is none
	return p
}

// face returns the interface that has an address, or the zero one. That for loopback has
// all of 127.0.0.0/8, of which it names one.
func (n *interfaces) face(addr netip.Addr) face {
	n.mu.Lock()
	defer n.mu.Unlock()
	if age := time.Since(n.read); age < 0 || age > interfacesLast {
		n.list, n.read = look(), time.Now()
	}
	i := slices.IndexFunc(n.list, func(f face) bool { return f.addr == addr || f.loopback && addr.IsLoopback() })
	if i < 0 {
		return face{bits: -1}
	}
	return n.list[i]
}

// look lists the addresses of this machine.
func look() (list []face) {
	all, _ := net.Interfaces()
	for _, i := range all {
		addrs, _ := i.Addrs() // none of one that went away
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				list = append(list, face{i.Name, i.Flags&net.FlagLoopback != 0, p.Addr().Unmap(), p.Bits()})
			}
		}
	}
	return list
}

// sourceTo returns the address of this machine that packets to another one come from, if
// there is a way to it. Nothing is sent.
func sourceTo(addr netip.Addr) netip.Addr {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 9)))
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	from, _ := netip.ParseAddrPort(c.LocalAddr().String())
	return from.Addr().Unmap()
}

// threadVariables tell the usual libraries how many threads to start: as many as the
// worker has slots, or they start one for each core of the machine. Who says it for all of
// them, by OMP_NUM_THREADS, is not contradicted.
func threadVariables(spec *jobs.Spec) map[string]string {
	if _, said := spec.Env[threadNames[0]]; said {
		return nil
	}
	env := map[string]string{}
	for _, name := range threadNames {
		env[name] = strconv.Itoa(spec.Slots)
	}
	return env
}

var threadNames = [...]string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS"}
