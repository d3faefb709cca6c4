// Package flood spreads a small message to every node within a radius, once
// each, and says when to flood again and how far.
//
// It is the "flood scheduling" of N. Drost, R. V. van Nieuwpoort and H. Bal,
// Simple Locality-Aware Co-allocation in Peer-to-Peer Supercomputing, section
// 3.2, with what that paper leaves open: copies that arrive out of order, loss,
// clocks that differ, and members that misbehave.
//
// # Vocabulary
//
// The origin starts a flood with a radius. Each copy carries a TTL, the hops
// it may travel counting the one it is on: the origin sends TTL = radius, a
// node that receives TTL t sends t-1 on if that is at least 1. So radius 1
// reaches the neighbours only, and radius r all nodes at most r links away.
// Hops counts the links a copy has travelled when it arrives, from 1.
//
// # Once each
//
// A node remembers each message and the best TTL it came with. The first copy
// is checked, delivered and forwarded. A later copy with no more TTL is
// dropped. A later copy with more TTL is forwarded again, but not delivered:
// without that a slow short path behind a fast long one would cut the radius
// short. What a node remembers is a hash of ID, origin and payload, so that a
// member that alters a message on its way cannot make others drop the genuine
// one as a duplicate. The memory lasts for the message's life and a margin,
// and holds MaxSeen messages, oldest out first.
//
// # Extending
//
// The rim of a flood is the nodes that it reached with TTL 1: they did not send
// it on. Instead of a new flood with a larger radius, which repeats all of the
// old one, the origin can send the same message with TTL 2 straight to nodes on
// the rim. By the rule above they send it on by one hop, though not to those of
// whom they have had it, and whoever has it drops it. So the origin chooses where its flood grows, for instance only near
// itself ([Frontier]), at the price of one copy for each node that it extends.
// The paper has no such step.
//
// # Where all are known
//
// An origin that knows how far all others are needs nobody's neighbours to find the nearest.
// It sends the message with TTL 1 straight to the nearest nodes, so many that those whom it
// waits for will probably do, and more with each answer that disappoints ([Frontier.Direct],
// [Frontier.Ask]). So each node gets one copy, where copies by way of all links are five or more for each.
//
// # Once more
//
// Copies and answers get lost. Of the nodes that the origin has sent a copy to itself, those
// that it knows to be near, and that have had time to answer, are sent one more, which
// says so ([Frontier.Silent]). A node that has the message already delivers it again then, and
// so answers again; no other copy does that, and each node does it three times at most. It
// is asked up to five times more within a second of the flood, and twice more later.
//
// # Misbehaving members
//
// TTL, hops and life are bounded on receipt (MaxRadius, MaxLife). Each origin
// has a token bucket, charged after the message proved genuine so that nobody
// can spend the tokens of another; an origin that is out of tokens is neither
// delivered nor forwarded. A node's own Start draws on the same limit. A
// neighbour that hands on what fails the check (honest nodes check before they
// forward) uses up tokens too; without them its new messages are dropped
// unchecked, since checking a signature is the dearest step. A member can still
// repeat a genuine payload under a new ID: the receiver of the payload must
// recognise what it has seen. What somebody has recorded and sends again after
// the memory has ended is for Check to refuse, with ErrLate.
//
// # Wire layout
//
// A packet is one msgpack map, at most MaxPacket bytes. Unknown keys are
// ignored. Whoever carries it puts its own kind byte in front.
//
//	id   bin, 8 bytes   random, by the origin
//	o    str            origin, a node ID
//	t    uint, 1..255   TTL; cut to MaxRadius+1-hops on receipt
//	h    uint, 1..32    hops
//	l    str            last hop, the node ID of the sender of this copy
//	ms   uint           life left in milliseconds; cut to MaxLife on receipt
//	a    bool           the origin sends it to this node once more; left out if not
//	p    bin            payload, at most MaxPayload bytes
//
// Life is relative, so clocks need not agree; each node takes off the time that
// a copy waited in its inbox.
//
// # Concurrency
//
// [Core] is a plain struct for one goroutine. [Flooder] is its shell: one
// goroutine, that of Run, owns the core. Receive, Start and Stats may be called
// from any goroutine. [Search] is a plain value owned by whoever searches.
package flood
