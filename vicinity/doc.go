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
// as it wants; whom it refuses asks another, and asks it again after 20 s, then
// ever more rarely, up to 5 min. One without room takes the nearer of those who
// ask, and wants those who want it. A neighbour is replaced only by a clearly
// nearer one, by 20 % and 0.2 ms, when that has said yes, and its link stays for
// 3 s after that. In a network of no more members than links wanted, all are
// linked.
//
// # How it measures
//
// The round trip to a peer is the smallest sample of the last minutes, since a
// busy host or network can only add to the truth: of each 15 s the smallest is
// kept, for eight such times in which there were samples and for five minutes
// at most beside a newer one. So some seconds of a busy host change no rank.
// A way that became longer is known as such when five samples in 4 s or more, all
// clearly above what was usual, agree by an eighth or 0.2 ms, as those of a busy
// host do not (three for a member without a link); else after two minutes of
// samples. A link that seems to be longer
// is measured every 1.5 s at first. Samples are of three origins: pings, the acks
// that let a pinged node measure too, and what the overlay and peer calls observe
// anyway (Observe). Fresh is for who wants to know only what was measured of late.
// Only own measurements choose neighbours. What others name merely orders whom
// to ping. All times are differences of the monotonic clock.
//
// # When distances change
//
// Where most of the ways measured in half a minute have become other ones,
// longer or nearer, it is the node itself that is at another place: it forgets
// what it measured of members without a link, looks for its nearest as one that
// has just joined does, and pings the 24 that were its nearest three times, so that
// they notice. If only some have, it measures the landmarks again, and all others within
// half a minute, the nearest first, four a second; when its bearings have changed it measures again who may be near by them. Of a member whose
// bearings have changed, by its own word or that of others, the next sample
// counts alone; words alone change no round trip. In each round one of the 24
// nearest without a link that was not measured for two minutes is measured again.
//
// # Where nodes are
//
// The 8 members with the smallest IDs are the landmarks. Every node measures
// its round trips to them, three times in the first seconds, then once a minute,
// in networks of more than 240 members once in n/4 seconds. These are its
// bearings. They ride on pings and pongs, and lists carry those of 18 other
// nodes, 12 in the calm: half of them of those that seem nearest to who gets the
// list, so that a few lists lead to one's place among thousands, and half of any,
// so that after a minute a node has the bearings of nearly all others in a
// network of 100, of most in one of 400.
//
// Bearings need no agreement between nodes: they are right as soon as they are
// measured, and stay as they are while nobody moves. Network coordinates
// (Vivaldi), which this package used before, needed minutes to tell nodes of one
// site apart. Two nodes with the same bearings are at one place, and for any two
// the bearings bound the distance from below and above. Between these bounds it
// is predicted from coordinates, which each node works out for itself by
// placing the landmarks, and the others among them, in a space of 4 dimensions.
// Clusters and maps come from the same. Where all landmarks are at one site, two
// other sites that are equally far from it cannot be told apart.
//
// # When it speaks
//
// To the first members that join, links are asked for at once. Then there is
// a round every second: the links are looked over; landmarks not measured well are
// pinged, in networks of more than 3000 members fewer at a time, but 3, so that
// not all nodes ask all of them at once; a list of the 10 nearest is swapped with
// one of the 4 nearest or, one time in four, with a random member; up to 5
// candidates are pinged, those first that may be nearest by way of who named them
// or by their bearings, and at least one random member not measured yet. After
// 20 s without a change of the links that it wants and has a node slows down,
// doubling the pause up to 20 s, and pings 2 candidates a round. Links are pinged every 10 s, by whichever end comes first,
// and given up after 4 pings without an answer in 7.5 s. A lost neighbour is
// replaced at once, and not asked again for 20 s; where there are no more members than
// links, so that nobody can replace it, for 0.5 s, then doubling. A node sends 3 kB a
// second while it looks for its place, and less than 300 bytes in the calm.
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
//	x  bytes  ping, pong, swap, list: the sender's bearings, 4 bytes for each
//	          landmark: its tag and the round trip; sorted by tag
//	p  array  swap, list: at most 20 maps {i: node ID, r: round trip in
//	          microseconds}, nearest first
//	t  bytes  swap, list: the tags of the landmarks in q, 2 bytes each, sorted
//	q  bytes  swap, list: bearings of at most 24 other nodes; for each 17 bytes
//	          of its ID, 2 of their age in seconds, and 2 for each round trip in
//	          the order of t
//
// A tag is the upper half of the FNV-1a hash (32 bits) of a landmark's ID, xor
// the lower half. A round trip r in 2 bytes is sqrt(r/10 s)*65534, rounded; 65535
// says that it is not known. A packed ID is its 26 characters after the z, of 5
// bits each, and 6 bits of zero. Numbers are big-endian.
//
// A ping with l = 2 or 3 asks for a link; the pong accepts with l > 0 or
// refuses without l. A swap is answered by a list. A drop says that the sender
// keeps no link with the receiver. All are lost without harm: what a node says
// of its links is repeated in every ping.
//
// A message is dropped and counted if it is malformed (also: round trips over
// 10 s, an ID of wrong form), if its sender is not a member, or if the sender
// sent more than 12 within a second. A pong or ack counts only if it answers an
// open question to its sender. No bytes stand for a round trip that is negative
// or not finite; bearings that contradict what was measured by more than a
// second are counted and not taken. What a member invents of its place moves
// that member alone, and a landmark that lies is outvoted by the others.
//
// # Parts of the core
//
// Each is a type in a file of its own, and knows only those before it: local
// (configuration, time, what is to be sent), pace (when to act), peers (records
// of other nodes), coordinates (landmarks, bearings, where nodes are), pings
// (questions and answers), links (the ends that this node keeps), wishes (which
// links it wants), candidates (who may be nearer). [Core] owns them all and says
// which of them an input concerns.
//
// # Concurrency
//
// [Core] is the protocol without clock, lock or goroutine; a simulation runs
// many, and may let them share a [Roster]. [Table] is the shell: one mutex
// guards its core, so that all methods return at once and samples are not
// falsified by a queue; the goroutine of Run drives the timer and is the only
// one that calls Config.Send.
package vicinity
