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
// Package agent is what a node does for jobs, model the same in simulations. Both
// contain the core that is below internal, which nobody else can import:
//
//	origin      the jobs submitted at a node, with journal and files
//	executor    the workers of a node, with processes and directories
//	core        all decisions of one node
//	primary     one job at its origin: ranks, leases, how it ends
//	search      who is to get its ranks: floods, offers, the choice
//	record      what its events tell of a job
//	participant the workers that a node was granted
//	claims      the slots of a node: offers, holds, its queue
//	output      what workers wrote, at the origin
//	wire        the messages of all of them, leases, reasons
//	where       conditions on nodes
//	agenda      who is to be woken when
package jobs
