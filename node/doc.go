// Package node wires one Zorilla node together: overlay, vicinity, flood,
// transfer, jobs, the client API and the page.
//
// New takes a Config and does nothing yet; Run works until its context ends
// and returns when all that it started has ended. Everything that reaches
// outside of the process is a field of Config, and nil means the real thing;
// hundreds of nodes share a process in tests.
//
// # Goroutines
//
// Run owns the life and death of all others, in three layers that stop one
// after the other: first the listeners for clients and the jobs (workers are ended,
// their origins are told), then the overlay and its companions (the node leaves
// the network), then the journal.
//
// # Parts
//
// [Node] only puts them together (node.go, setup.go); none of them knows it. The
// state directory, the directory of workers, what the owner allows and the
// network are types of their own. What clients ask is answered by four parts of
// service: about jobs, members, the owner's wishes and single chunks. Requests
// about one job go through jobService.of, which finds who answers: the job's
// origin, be it another node or this one, so both are asked alike (api.Peer).
//
// # State directory
//
//	owner.json     what the owner allows
//	identity.key   the node's key; its hash is the node's ID
//	secret         the network's secret
//	peers          addresses of members, for the next start
//	web-token      opens the page
//	zorilla.sock   the client API
//	client-token   proves that a client may read this directory
//	journal.db     jobs that were submitted here, the newest changes of them in
//	               journal.db.log-NUMBER; journal.db.mark tells that there
//	               is one, journal.db.damaged is one that was written anew
//	jobs/          their output
//	cache/         chunks of input and output files
//	work/          directories of running workers; or work-at: where they are
//	power          how fast a core is, as it was measured
//	lock           held while a node uses the directory
package node
