// Command zorilla is the command line of a node and of its clients.
//
// Data goes to standard output, messages go to standard error. Every listing
// has --json. Options stop at the first argument that is none, or at "--".
// JOB is an ID, a unique prefix of one, or "last"; JOB:RANK is one rank.
//
// # Exit codes
//
//	0..255  run, wait: the job's (128+signal, 124 walltime, 125 it found no
//	        workers or lost a node, 126 and 127 its command cannot be executed
//	        or found, 130 cancelled)
//	2       the command line is wrong
//	125     no node is running, or zorilla itself failed
//
// # Signals to run
//
// Ctrl-C shows the state of the job and how to detach; a second one within
// two seconds cancels the job and ends with 130. SIGQUIT (Ctrl-\), SIGTERM and
// SIGHUP detach: the job goes on, and run ends with 128+signal, since the
// result is not known. If standard output is closed (run ... | head), the job
// is cancelled, as a local program would end.
//
// # Files
//
// Each command is a file of its own, with a function that makes it of a console;
// app.go is the only one that knows them all. client.go finds the node and reads
// JOB[:RANK] (askNode, askRank, askJob, askEachJob), job.go and array.go read what
// run and submit have in common. What stays with a job is apart from commands: a
// submission, a lifeline through outages, a follower, a printer.
//
// What needs no console has a room of its own below: cells (what listings show), pick (which
// jobs are meant), config and script (options that were not typed), hint, completion and man
// (for who types them), progress, doctor and top.
package main
