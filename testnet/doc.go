// Package testnet is an emulated network that lives in one process, a fake
// runner of workers, and whole nodes on them, to be tested together inside a
// testing/synctest bubble: an hour of their time passes in a moment.
//
// # Vocabulary
//
// A [Network] joins [Host]s. A Host is one machine: it has an IP address and
// gives the sockets of a node (Listen, ListenPacket, Dial), with real
// *net.TCPAddr and *net.UDPAddr addresses. [Sites] lays hosts out at sites and
// knows the true distance of each pair. A [Runner] starts [FakeWorker]s, which
// are Go functions ([Program]) in place of processes. [Nodes] are whole nodes of
// package node, one on each host.
//
// # What is emulated
//
// Latency is one way and per pair of hosts, with [Noise] if that is wanted.
// Bandwidth is unlimited but for streams to a host with a [Host.Downlink].
//
// Packets are copied, lost if there is no way, and else put into the receiver's inbox
// one latency later. A full inbox drops what arrives. The sender never learns of any of
// it.
//
// Streams behave like TCP that never loses a segment for long:
//
//   - Dial takes one round trip and Accept half a round trip more. A port on
//     which nobody listens refuses. A host that does not exist, has crashed or
//     is cut off does not answer: the request is repeated with growing pauses,
//     as TCP does, until the context ends or 127 seconds have passed.
//   - Write never blocks: what is under way is not limited. Data arrive in
//     order, one latency after they were written.
//   - After Close the peer reads what was sent, then io.EOF. Data sent to a
//     closed connection are answered with a reset: the writer's later calls
//     fail with ECONNRESET.
//   - Between hosts that are cut off from each other data are held, and arrive
//     one latency after Heal. Nobody is told: use deadlines.
//   - When a host crashes its own sockets fail with net.ErrClosed and its peers
//     hear nothing. Once it has been restarted (and can be reached) the
//     connections of its former life are reset.
//
// # Whole nodes
//
// [StartNodes] starts a node on each host of some Sites. All of it is real but
// the network, the runner, and the disk of journal and cache, which are in
// memory and outlive a crash. The nodes' keys and sources of randomness follow
// from one seed; those of memberlist and TLS do not. A test of whole nodes is
//
//	synctest.Test(t, func(t *testing.T) {
//		nodes, err := testnet.StartNodes(testnet.NodesConfig{Sites: sites, State: t.TempDir(), Seed: 1})
//		…
//		defer nodes.Stop()
//		nodes.AwaitKnown(ctx, nodes.Up())
//		id, err := nodes.Submit(ctx, 0, jobs.Spec{Args: []string{"sleep", "5"}, Min: 4, Max: 4})
//		st, err := nodes.Await(ctx, 0, id, func(st jobs.Status) bool { return st.State == jobs.Completed })
//	})
//
// memberlist costs the square of the number of nodes: 100 nodes start and find
// each other in some 6 s of one processor, 300 in 50 s. [Nodes] measures itself:
// Known, Right, Traffic, Flood.
//
// A command does the same outside of "go test": [Main] lends it a [Bubble].
//
// # Limits of truth
//
// In a bubble time is deterministic, but the order of what happens at the same
// instant is not, nor whom noise then befalls. Addresses are those of the hosts: there
// is no loopback address and no broadcast.
//
// # Concurrency
//
// Everything but Nodes may be called from any goroutine. No lock is held while
// anything waits, no goroutine belongs to a connection, and nothing is left
// running once listeners and connections are closed and late timers have fired.
// Outside a bubble all of it works in real time.
package testnet
