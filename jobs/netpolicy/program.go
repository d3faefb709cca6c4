package netpolicy

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
)

// Places on the stack of a program, below its frame.
const (
	keyAt    = -16 // an address, for the map
	headerAt = -56 // of IP
	tupleAt  = -96 // what the kernel finds a socket by: from, to, and their ports
	portsAt  = -104
)

// deepest is how far below the root of all groups one may be. Deeper ones reach nothing of
// their own machine.
const deepest = 24

// Words of the kernel.
const (
	protocolOfPacket = 16 // in struct __sk_buff
	ip4OfAddress     = 4  // in struct bpf_sock_addr
	ip6OfAddress     = 8  // the same

	etherIP4 = 0x0800
	etherIP6 = 0x86dd

	icmp, tcp, udp, icmp6 = 1, 6, 17, 58

	thisNetwork = -1 // BPF_F_CURRENT_NETNS
)

// family is what a program has to know of a version of IP.
type family struct {
	name               string
	length             int16 // of the header
	protocol, from, to int16 // in the header
	size               int16 // of an address
	echo               int32 // the protocol of ping
	mapped             bool  // addresses are keys behind a prefix
}

var (
	ip4 = family{name: "ip4", length: 20, protocol: 9, from: 12, to: 16, size: 4, echo: icmp, mapped: true}
	ip6 = family{name: "ip6", length: 40, protocol: 6, from: 8, to: 24, size: 16, echo: icmp6}
)

// network returns a value as the kernel has it in a register that holds it in the order of
// the network.
func network(v uint16) int32 {
	return int32(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v)))
}

// prefix is the third word of an address of version 4 as one of version 6.
var prefix = int64(binary.NativeEndian.Uint32([]byte{0, 0, 0xff, 0xff}))

// verdicts end a program: 1 passes, 0 does not.
func verdicts() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R0, 1).WithSymbol("pass"),
		asm.Return(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("drop"),
		asm.Return(),
	}
}

// packets decides about what sockets of the group with an ID send or, incoming, get. The
// map has the addresses of others, see entries.
func packets(addrs int, group uint64, incoming bool) asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R1, protocolOfPacket, asm.Word),
		asm.JEq.Imm(asm.R2, network(etherIP4), ip4.name),
		asm.JEq.Imm(asm.R2, network(etherIP6), ip6.name),
		asm.Ja.Label("drop"),
	}
	for _, f := range []*family{&ip4, &ip6} {
		code = append(code, f.parse(incoming)...)
		code = append(code, find(addrs)...)
		code = append(code,
			asm.JEq.Imm(asm.R0, 0, "drop"),
			asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
			asm.JEq.Imm(asm.R1, other, "pass"),
		)
		code = append(code, f.ours(group, incoming)...)
	}
	return append(code, verdicts()...)
}

// parse reads the header of a packet, whose protocol it leaves in register 8, and makes the
// key and the tuple of it.
func (f *family) parse(incoming bool) asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol(f.name),
		asm.Mov.Imm(asm.R2, 0),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, headerAt),
		asm.Mov.Imm(asm.R4, int32(f.length)),
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"),
		asm.LoadMem(asm.R8, asm.RFP, headerAt+f.protocol, asm.Byte),
		asm.JEq.Imm(asm.R8, tcp, f.name+" protocol"),
		asm.JEq.Imm(asm.R8, udp, f.name+" protocol"),
		asm.JNE.Imm(asm.R8, f.echo, "drop"),
		asm.LoadMem(asm.R1, asm.RFP, headerAt, asm.Byte).WithSymbol(f.name + " protocol"),
	}
	if f.mapped { // no options: they could name where it is to go from there
		code = append(code, asm.JNE.Imm(asm.R1, 0x45, "drop"))
	}
	peer, from, to := f.to, f.from, f.to
	if incoming { // the socket that has sent it is wanted
		peer, from, to = f.from, f.to, f.from
	}
	if f.mapped {
		code = append(code, mapped()...)
	}
	for i := int16(0); i < f.size; i += 4 {
		code = append(code,
			asm.LoadMem(asm.R1, asm.RFP, headerAt+peer+i, asm.Word),
			asm.StoreMem(asm.RFP, keyAt+16-f.size+i, asm.R1, asm.Word),
			asm.LoadMem(asm.R1, asm.RFP, headerAt+from+i, asm.Word),
			asm.StoreMem(asm.RFP, tupleAt+i, asm.R1, asm.Word),
			asm.LoadMem(asm.R1, asm.RFP, headerAt+to+i, asm.Word),
			asm.StoreMem(asm.RFP, tupleAt+f.size+i, asm.R1, asm.Word),
		)
	}
	if f.mapped {
		code = append(code,
			asm.LoadMem(asm.R1, asm.RFP, headerAt+peer, asm.Byte),
			asm.JEq.Imm(asm.R1, 127, f.name+" own"),
		)
	}
	return code
}

// mapped writes what an address of version 4 has in front, as a key.
func mapped() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, keyAt, asm.R1, asm.DWord),
		asm.LoadImm(asm.R1, prefix, asm.DWord),
		asm.StoreMem(asm.RFP, keyAt+8, asm.R1, asm.Word),
	}
}

// find looks for the key.
func find(addrs int) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, addrs),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, keyAt),
		asm.FnMapLookupElem.Call(),
	}
}

// ours passes what goes between sockets of the group, and what no socket gets. Of what no
// socket seems to have sent, TCP alone.
func (f *family) ours(group uint64, incoming bool) asm.Instructions {
	ports := tupleAt + 2*f.size
	first, second := ports, ports+2
	unsent := "pass"
	if incoming {
		first, second = second, first
		unsent = "drop" // a socket that is connected elsewhere, or bound to a device, is not found
	}
	code := asm.Instructions{
		asm.JEq.Imm(asm.R8, f.echo, "drop").WithSymbol(f.name + " own"),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, int32(f.length)),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, portsAt),
		asm.Mov.Imm(asm.R4, 4),
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"),
		asm.LoadMem(asm.R1, asm.RFP, portsAt, asm.Half),
		asm.StoreMem(asm.RFP, first, asm.R1, asm.Half),
		asm.LoadMem(asm.R1, asm.RFP, portsAt+2, asm.Half),
		asm.StoreMem(asm.RFP, second, asm.R1, asm.Half),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, tupleAt),
		asm.Mov.Imm(asm.R3, int32(2*f.size+4)),
		asm.Mov.Imm(asm.R4, thisNetwork),
		asm.Mov.Imm(asm.R5, 0),
		asm.JEq.Imm(asm.R8, udp, f.name+" datagrams"),
		asm.FnSkLookupTcp.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"), // of nobody: "refused", or the last word of a connection
		asm.Ja.Label(f.name + " socket"),
		asm.FnSkLookupUdp.Call().WithSymbol(f.name + " datagrams"),
		asm.JEq.Imm(asm.R0, 0, unsent),
		asm.Mov.Reg(asm.R9, asm.R0).WithSymbol(f.name + " socket"),
		asm.LoadImm(asm.R7, int64(group), asm.DWord),
	}
	for level := int32(1); level <= deepest; level++ {
		code = append(code,
			asm.Mov.Reg(asm.R1, asm.R9),
			asm.Mov.Imm(asm.R2, level),
			asm.FnSkAncestorCgroupId.Call(),
			asm.JEq.Reg(asm.R0, asm.R7, f.name+" ours"),
			asm.JEq.Imm(asm.R0, 0, f.name+" theirs"),
		)
	}
	return append(code,
		asm.Mov.Reg(asm.R1, asm.R9).WithSymbol(f.name+" theirs"),
		asm.FnSkRelease.Call(),
		asm.Ja.Label("drop"),
		asm.Mov.Reg(asm.R1, asm.R9).WithSymbol(f.name+" ours"),
		asm.FnSkRelease.Call(),
		asm.Ja.Label("pass"),
	)
}

// connects decides about addresses that sockets of a family are to be connected to. What is
// of the machine itself is left to packets.
func connects(addrs int, f *family) asm.Instructions {
	var code asm.Instructions
	if f.mapped {
		code = asm.Instructions{
			asm.LoadMem(asm.R7, asm.R1, ip4OfAddress, asm.Word),
			asm.StoreMem(asm.RFP, keyAt+12, asm.R7, asm.Word),
		}
		code = append(code, mapped()...)
	} else {
		for i := int16(0); i < f.size; i += 4 {
			code = append(code,
				asm.LoadMem(asm.R7, asm.R1, ip6OfAddress+i, asm.Word),
				asm.StoreMem(asm.RFP, keyAt+i, asm.R7, asm.Word),
			)
		}
		code = append(code,
			asm.LoadMem(asm.R2, asm.RFP, keyAt, asm.DWord),
			asm.JNE.Imm(asm.R2, 0, "find"),
			asm.LoadMem(asm.R2, asm.RFP, keyAt+8, asm.DWord),
			asm.JEq.Imm(asm.R2, 0, "pass"), // this machine
			asm.LoadMem(asm.R2, asm.RFP, keyAt+8, asm.Word),
			asm.LoadImm(asm.R3, prefix, asm.DWord),
			asm.JNE.Reg(asm.R2, asm.R3, "find"),
		)
	}
	code = append(code,
		asm.JEq.Imm(asm.R7, 0, "pass"), // this machine
		asm.LoadMem(asm.R2, asm.RFP, keyAt+12, asm.Byte),
		asm.JEq.Imm(asm.R2, 127, "pass"),
	)
	search := find(addrs)
	search[0] = search[0].WithSymbol("find")
	code = append(code, search...)
	code = append(code, asm.JEq.Imm(asm.R0, 0, "drop"))
	return append(code, verdicts()...)
}
