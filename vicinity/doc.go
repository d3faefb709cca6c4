// Package vicinity knows who is around and how far.
//
// # What it keeps
//
// Every node chooses, among all members that the overlay tells of, a few
// neighbours: the nearest by measured round trip (6) and some random far ones
// (2). Floods run along these links. The nearest alone would fall apart into
// sites; the far links hold the network together, and they stay a uniform
// sample of the members while members come and go, so that the halves of a
// network that was cut are one again when their members return.
//
// A link is kept by both ends. It exists while at least one end wants it and
// the other answers. A node counts the links that others asked for among its
// nearest where they are about as near, and keeps at most twice as many links
// as it wants; whom it refuses asks another. A neighbour is replaced only by a
// clearly nearer one, by 20 % and 0.2 ms, and its link stays for 3 s after
// that. In a network of no more members than links wanted, all are linked.
//
// # How it measures
//
// The round trip to a peer is the mean of the two smallest of its last eight
// samples, since a busy host or network can only add to the truth. Samples
// are of three origins: pings, the acks that let a pinged node measure too,
// and what the overlay and peer calls observe anyway (Observe). Only own
// measurements count; round trips named by others merely order whom to ping.
//
// Network coordinates (Vivaldi, from serf) ride on pings and pongs. They serve
// to predict the distance between two other nodes, and for maps. They do not
// choose neighbours: they need minutes to tell nodes of one site apart.
//
// # When it speaks
//
// To the first members that join, links are asked for at once. Then there is
// a round every second: the links are looked over; a list of the 10 nearest is
// swapped with one of the 4 nearest or, one time in four, with a random
// member; up to 5 candidates are pinged, those first that may be nearest by
// way of who named them, and at least one random member not measured yet.
// After 20 s without a change of its wishes a node slows down, doubling the
// pause up to 20 s, and pings 2 candidates a round. Links are pinged every
// 10 s, by whichever end comes first, and given up after 4 pings without an
// answer in 7.5 s. A lost neighbour is replaced at once. A calm node sends
// less than 200 bytes a second.
//
// # Wire layout
//
// A payload is one msgpack map of at most 1200 bytes, encoded by
// internal/codec. Fields that are zero are left out; unknown ones are ignored.
//
//	k  kind   1 ping, 2 pong, 3 ack, 4 swap, 5 list, 6 drop
//	n  uint   ping: a random nonce, not 0; pong and ack: the nonce answered
//	a  uint   pong: a nonce that the answerer wants back in an ack
//	l  link   ping, pong: what the sender says of the link with the receiver:
//	          0 none, 1 kept for the other's sake, 2 wanted as near, 3 as far
//	c  array  ping, pong: the sender's coordinate, 11 float32 in seconds:
//	          8 of the vector, error (0 to 1.5), adjustment, height
//	p  array  swap, list: at most 20 maps {i: node ID, r: round trip in
//	          microseconds}, nearest first
//
// A ping with l = 2 or 3 asks for a link; the pong accepts with l > 0 or
// refuses without l. A swap is answered by a list. A drop says that the sender
// keeps no link with the receiver. All are lost without harm: what a node says
// of its links is repeated in every ping.
//
// A message is dropped and counted if it is malformed (also: lengths over 5 s
// or not finite in a coordinate, round trips over 10 s, an ID of wrong form),
// if its sender is not a member, or if the sender sent more than 12 within a
// second. A pong or ack counts only if it answers an open question to its
// sender.
//
// # Concurrency
//
// [Core] is the protocol without clock, lock or goroutine; a simulation runs
// many, and may let them share a [Roster]. [Table] is the shell: one mutex
// guards its core, so that all methods return at once and samples are not
// falsified by a queue; the goroutine of Run drives the timer and is the only
// one that calls Config.Send.
package vicinity
