// Package heartbeat keeps the nodes in touch that run the ranks of one parallel program, which
// is of no use any more when one of them is lost.
//
// Each node sends beats to the node of rank 0, the hub, which answers at once if there is
// something to tell, else after [Hold]. A node that the hub does not hear for [Silence], or
// that does not hear it, is lost, and the gang with it: all that still hear each other end
// their ranks, and so does the one that was cut off, without a word of the job's origin,
// which may be away.
//
// The ranks meet at barriers, where what they have put goes around (jobs/pmi): a node whose
// ranks all wait at one says so with what they have put, and the hub's answer lets them
// pass when all nodes have said so. That takes one round trip between sites for a
// barrier, however many ranks there are.
//
// [Hub] and [Member] are cores without clock and network.
package heartbeat

import "time"

const (
	// Hold is how long the hub keeps a beat without an answer.
	Hold = 300 * time.Millisecond
	// Silence is how long nodes may not hear of each other.
	Silence = 1500 * time.Millisecond
	// First is how long a node may take to its first beat after the hub's START.
	First = 20 * time.Second
	// Linger is how long the hub tells of a gang that is over.
	Linger = 10 * time.Second
)
