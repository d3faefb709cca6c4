// Package exchange brings trees of blobs from other nodes, and serves them to others,
// also while they are still coming.
//
// An [Exchange] is both sides of one node. [Exchange.Fetch] runs a plan of package
// swarm, which decides whom to ask for what; here is what the plan leaves to others:
// connections, time, bytes and the check of each of them. What several fetches of a
// node need is fetched once.
//
// The node that is asked keeps a ledger for each tree of what it has given to whom, and
// names those who asked to each other: so nobody but the nodes themselves has to know
// who has what. Any member of the network may ask; without the hash of a manifest, or
// of a chunk, nothing is to be had.
//
// Each chunk is hashed once where it arrives, and once where it is read for the first
// time from a file of the user's (see package transfer). A fetch holds at most
// [swarm.MaxRequests] chunks in memory, a node serves at most 16 at a time, and of those
// four side by side, unless their receivers are slow: a chunk that is whole early can be passed on.
package exchange
