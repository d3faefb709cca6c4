package netpolicy

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// MaxAddrs is how many addresses a group may reach.
const MaxAddrs = 1 << 16

// What the map says of an address.
const (
	other = 0 // of another machine
	own   = 1 // of this one: who is behind it counts
)

// entry is an address in the map; those of version 4 are mapped to version 6.
type entry struct {
	addr [16]byte
	what uint32
}

// entries are what the map is to hold for these addresses on a machine that has those.
// Nobody's address, such as one for many machines, is left out.
func entries(addrs, has []netip.Addr) []entry {
	all := map[netip.Addr]uint32{netip.IPv6Loopback(): own}
	for _, a := range addrs {
		if a = a.Unmap().WithZone(""); a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && a != broadcast {
			all[a] = other
		}
	}
	for _, a := range has {
		if a = a.Unmap().WithZone(""); a.IsValid() && !a.IsLinkLocalUnicast() {
			all[a] = own
		}
	}
	list := make([]entry, 0, len(all))
	for a, what := range all {
		list = append(list, entry{a.As16(), what})
	}
	slices.SortFunc(list, func(a, b entry) int { return slices.Compare(a.addr[:], b.addr[:]) })
	return list
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// machine lists the addresses of this machine.
func machine() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var list []netip.Addr
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				list = append(list, addr)
			}
		}
	}
	return list, nil
}

// The map as others find it.
const (
	mapName   = "zorilla_addrs"
	keySize   = 16
	valueSize = 4
)

// programs are what a group gets.
var programs = []struct {
	name   string
	kind   ebpf.ProgramType
	attach ebpf.AttachType
}{
	{"zorilla_in", ebpf.CGroupSKB, ebpf.AttachCGroupInetIngress},
	{"zorilla_out", ebpf.CGroupSKB, ebpf.AttachCGroupInetEgress},
	{"zorilla_to4", ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect},
	{"zorilla_to6", ebpf.CGroupSockAddr, ebpf.AttachCGroupInet6Connect},
}

// set has what is started in a group, and in groups below it, reach itself and the
// addresses of the list from now on, instead of those of before. The group is a directory of
// version 2, of the caller's alone, and its ID the directory's number.
func set(dir *os.File, group uint64, list []entry) error {
	addrs, err := ebpf.NewMap(&ebpf.MapSpec{Name: mapName, Type: ebpf.Hash, KeySize: keySize,
		ValueSize: valueSize, MaxEntries: uint32(len(list)), Flags: unix.BPF_F_RDONLY_PROG})
	if err != nil {
		return err
	}
	defer addrs.Close()
	for _, e := range list {
		if err := addrs.Put(e.addr[:], e.what); err != nil {
			return err
		}
	}
	for _, p := range programs {
		spec := &ebpf.ProgramSpec{Name: p.name, Type: p.kind, AttachType: p.attach, License: "Apache-2.0"}
		switch p.attach {
		case ebpf.AttachCGroupInet4Connect:
			spec.Instructions = connects(addrs.FD(), &ip4)
		case ebpf.AttachCGroupInet6Connect:
			spec.Instructions = connects(addrs.FD(), &ip6)
		default:
			spec.Instructions = packets(addrs.FD(), group, p.attach == ebpf.AttachCGroupInetIngress)
		}
		if err := replace(dir, spec); err != nil {
			return err
		}
	}
	return nil
}

// replace has a program hold for a group, and then those of before no longer: meanwhile
// passes what both let pass.
func replace(dir *os.File, spec *ebpf.ProgramSpec) error {
	before, err := link.QueryPrograms(link.QueryOptions{Target: int(dir.Fd()), Attach: spec.AttachType})
	if err != nil {
		return err
	}
	program, err := ebpf.NewProgram(spec)
	if err != nil {
		return err
	}
	defer program.Close()
	err = link.RawAttachProgram(link.RawAttachProgramOptions{Target: int(dir.Fd()), Program: program, Attach: spec.AttachType, Flags: unix.BPF_F_ALLOW_MULTI})
	if err != nil {
		return err
	}
	for _, p := range before.Programs {
		err = errors.Join(err, detach(dir, p.ID, spec.AttachType))
	}
	return err
}

func detach(dir *os.File, id ebpf.ProgramID, from ebpf.AttachType) error {
	program, err := ebpf.NewProgramFromID(id)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer program.Close()
	return link.RawDetachProgram(link.RawDetachProgramOptions{Target: int(dir.Fd()), Program: program, Attach: from})
}

// reached lists the addresses of other machines that the programs in a group let it reach.
func reached(dir *os.File) (list []netip.Addr, err error) {
	there, err := link.QueryPrograms(link.QueryOptions{Target: int(dir.Fd()), Attach: ebpf.AttachCGroupInetEgress})
	if err != nil {
		return nil, err
	}
	for _, p := range there.Programs {
		more, err := reachedBy(p.ID)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // gone meanwhile
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

func reachedBy(id ebpf.ProgramID) (list []netip.Addr, err error) {
	program, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	info, err := program.Info()
	if err != nil {
		return nil, err
	}
	maps, _ := info.MapIDs()
	for _, m := range maps {
		addrs, err := ebpf.NewMapFromID(m)
		if err != nil {
			return nil, err
		}
		if addrs.KeySize() == keySize && addrs.ValueSize() == valueSize {
			var e entry
			all := addrs.Iterate()
			for all.Next(&e.addr, &e.what) {
				if e.what == other {
					list = append(list, netip.AddrFrom16(e.addr))
				}
			}
			err = all.Err()
		}
		_ = addrs.Close()
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}
