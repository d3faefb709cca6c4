// Package jobs has the words about jobs that everybody uses, users and nodes: what a
// job is asked to be ([Spec]), who it is ([ID]), how it stands ([Status], [Summary],
// [Explanation]) and what an owner allows ([Limits]). It has types, their bounds and
// their order, and does nothing by itself.
//
// # Vocabulary
//
// The node where a job is submitted is its origin. The origin has the job's
// primary: the record answerable for it, which is a pure function of the events
// in the origin's journal. A node that runs some of its workers is a
// participant. A worker is one running process of a job, its number is its rank,
// and each try of a rank is an attempt, numbered from 1.
//
// # Where the rest is
//
// Package agent is what a node does for jobs, model the same in simulations. They, and
// nobody else, can import what is below internal. Both contain
//
//	core        all decisions of one node, made of
//	primary     one job at its origin: ranks, leases, how it ends
//	search      who is to get its ranks: floods, offers, the choice
//	record      what its events tell of a job
//	participant the workers that a node was granted
//	claims      the slots of a node: offers, holds, its queue
//	wire        the messages of all of them, leases, reasons
//	where       conditions on nodes
//	timers      who is to be woken when
//
// and agent has around it
//
//	origin      the jobs submitted at a node, with journal and files
//	output      what workers wrote, at the origin
//	executor    the workers of a node, with processes and directories
//	peer        requests between nodes
//	loop        the goroutine that owns the core
package jobs
