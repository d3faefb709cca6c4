// Package agent is a node's part in jobs: the [Service] has the core that decides, and
// does what it wants with processes, directories, the journal and the network.
//
// # One job's way
//
// The primary floods a wire.Advertisement with growing radius. Every node that
// hears of it answers the origin with one packet, a wire.Answer: an offer, which
// holds slots under a key for five seconds, or a decline with its reason. A node
// without room queues the advertisement and offers later. When enough is
// offered, and nodes that are nearer than the farthest chosen one have had the
// time to answer, the primary sends each chosen node a wire.Grant: it names
// the key, the ranks and the spec. The participant turns the hold into a claim,
// fetches the inputs and lays out one directory per worker. It tells all that it
// knows with one kind of message, the wire.Report, sent when something changes and
// every two seconds, until the origin has acknowledged all of it: that a worker
// is ready, what it wrote, how it ended, where its output files are. When the
// ranks are ready the primary journals the start and sends START; a ready worker
// that missed it gets it with the answer to its next report. The primary fetches
// output files, verified by their hashes, and then acknowledges the worker as
// done; only then does the participant remove its directory.
//
// A rigid job is all or nothing: nothing is granted before all of it is offered,
// and if one node cannot prepare, everything is released and looked for again. A
// malleable job starts with its minimum and grows until its maximum or until a
// first rank has ended; lost ranks are looked for again under their number, as
// are ranks that were granted and given back, since others may count on them.
// Before its start it, too, releases everything when less than its minimum is
// left.
//
// # Failures
//
// Everything that a worker sends carries its rank and attempt; what the primary
// no longer owns is answered with "drop". A participant that is silent for ten
// seconds, or what its job says, is lost: the machine of its node is asked for
// connections if that is less (primary.Signs). One that was stopped has said so and is waited for two
// minutes. A worker whose program did not begin is declined: it runs elsewhere, and
// a node where that happens several times in a row offers nothing (see package claims). A
// participant whose origin is silent keeps its running workers for an hour, and
// gives prepared ones back after ten seconds, of which it reports when the origin
// answers. Output carries offsets, so that sending it twice is harmless. An
// origin that was killed reads its journal and goes on; its participants report
// to it again. A participant that was killed or stopped finds its workers again
// by the claims in their directories (see participant.ClaimRecord) and their supervisors.
//
// # Concurrency
//
// [Service.Run] has the one goroutine, the loop, that owns the core; it never waits for
// a disk or the network, which have goroutines of their own. All exported methods of
// Service may be called from any goroutine. What a primary leaves is released in order,
// once the events before it are in the journal. What a participant wants done for a
// worker is done by an executor, one thing at a time for each worker, which reports how it
// ended.
package agent
