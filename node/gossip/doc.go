// Package gossip is the overlay: it finds the other nodes of the network, knows
// who is there, and carries packets and connections between nodes. It wraps
// hashicorp/memberlist (SWIM with gossip) and adds proof of membership,
// discovery, and one port for everything.
//
// # Vocabulary
//
// A member is another node that memberlist holds to be alive; the node itself
// is not one of its own members. A stranger is whoever cannot prove that it
// belongs to the network. A seed is an address that the node was told to try; a
// former member's address is tried as well, so that the halves of a network
// that was cut in two find each other again. A beacon is a sealed packet on the
// local network that says where a node is.
//
// # Wire
//
// A node has one port, the same number for TCP and UDP.
//
//	UDP       packets of memberlist, encrypted with the network's gossip key
//	          (AES-256-GCM)
//	TCP       TLS 1.3, both sides proven (package trust); ALPN says what
//	          follows: "zorilla-gossip/2" is a stream of memberlist, "h2" and
//	          "http/1.1" are HTTP between peers, for which see PeerListener and
//	          DialPeer
//	UDP 5445  beacons
//
// memberlist's name of a node is its ID; a stream to a named node is refused
// unless that node's key is at the other end. What else a member says of itself
// is memberlist's metadata: msgpack of
//
//	{n: name, s: site, a: further addresses, c: slots, m: memory, p: platform, e: enforces, v: version,
//	 g: GPUs, l: labels, f: clock in MHz, w: power, b: bandwidth in Mbit/s}
//
// of at most 512 bytes; the first address is memberlist's own. A user packet is
//
//	version (1 byte, 1) | kind (1 byte, not 0) | sender's ID (27 bytes) | payload
//
// The sender is as it says: any member could put another's ID there, so what
// must be certain is signed (trust.Sign). A beacon is
//
//	"zorb" | version (1 byte, 1) | network ID (8 bytes) | nonce (24 bytes) | sealed {i: ID, a: addresses}
//
// sealed with XChaCha20-Poly1305 under the network's beacon key, with all that
// stands before it as associated data. An old beacon that is sent again only
// makes a node knock at an address in vain.
//
// # Probes
//
// memberlist probes one member every 1.25 seconds. A ping without an answer is sent
// again, as the same packet, after 1.5 times as long as that member's answer took last
// (0.25 to 0.6 s), and once more; memberlist itself would ask three others to ping, and
// call by TCP, for each packet that is lost. After 0.75 seconds it does. A round trip
// is reported only of pings that were sent once. Who dies is missed after 8 to 12 seconds
// at 50 members, on distances of 300 ms that vary threefold and with a tenth of the
// packets lost, too.
//
// # Callers
//
// A connection that has not proven who is there is one of at most 512, and of
// 256 from its address (of IPv6 its /64): if there are more the oldest has to
// go, those that have not sent a ClientHello first. That must come within a
// second, the whole handshake within five.
//
// # Paths
//
// A member is first pinged at the first address that it advertises and, if it does not answer
// there, connected to at all of them; packets go to the address where it has proven who it is
// from then on. Where large packets get lost, connections are made with small ones: see dial.go.
// Connections that a change has made useless are closed: those to addresses that a member no
// longer advertises, and those with large packets. A member that three probes in a row reach by
// TCP alone is reported once.
//
// # Joining
//
// Seeds are tried with growing pauses (0.5 to 30 s) until one has answered;
// after that, only those at whose address no member is, ever more rarely, and
// eagerly again when the node is alone. Up to 32 former members are kept and
// tried in the same way. A node that comes back at another address is not
// believed before its old self is known to be dead (about ten seconds); it
// notices that and introduces itself again until it is. A network whose secret
// is another one is reported once for each address.
//
// # Concurrency
//
// All methods may be called from any goroutine. Join and Leave of the Handler
// are called one at a time, in order, from the goroutine of Run; Message and
// RTT come from memberlist's goroutines, also before the Join of the node that
// they are about; so does Elsewhere. A Handler must not block. The member table is guarded by its
// own mutex, which is never held while anything is called.
package gossip
