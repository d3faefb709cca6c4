// Package netpolicy is the network policy of jobs: the kernel itself lets the processes of a
// control group exchange packets with each other and with some addresses of other machines.
// Nothing else of the network reaches them either.
//
// A [Keeper] loads programs (BPF) for the packets that sockets made in the group, or in groups
// below it, send and receive, and for connect(2), into the group around the workers of a job
// (cgroup.Place.Of). They belong to the group: they hold
// while their node is away, whatever is done to the machine's packet filters, and go with
// the group. What a socket may do does not depend on who has it open or whether it is
// still open, so that it also holds for connections that nobody has accepted yet, for
// data that is sent after a close, and for the sockets that the kernel makes below one.
//
// To an address of the machine itself, loopback included, a packet goes only if the socket
// that would get it is of the group, or if there is none, so that the kernel can say so:
// other services of the machine do not exist for the group, nor the group for them. Of
// other machines all is open whose address is, and nothing else.
//
// Packets that are not allowed are dropped. So that programs need not wait for that,
// connect fails with EPERM towards other machines, and sending of datagrams everywhere.
//
// Only TCP, UDP and echoes (ping) pass, without IP options that would lead them elsewhere.
//
// It needs the rights of root, and a group of version 2, with or without controllers.
package netpolicy
