// Package process runs worker processes under supervisors of their own.
//
// A [Runner] starts, for the workers of each job, a supervisor: the same program
// again, dispatched by [Main] before anything else. For each worker it keeps the
// output and the limits, and ends the whole process tree; a launcher (jobs/launch),
// its child, confines and starts them. A worker goes on without its node for
// [Spec].NodeLimit, and without word of the job's origin for OrphanLimit. The node
// sees a [Worker]. A node that was started again, also one of a newer version, gets it
// back with [Runner.Adopt].
//
// # Root
//
// The caller makes Root with [MakeRoot]; the rest is made here:
//
//	entries   what is known of the worker (internal/entries), one after the other:
//	            mark    who made Root, and which directory it was: a copy is known by it
//	            claim   the caller's, or of any other name ([Note])
//	            spec    what the node asks for, with the control socket's path and key
//	            record  supervisor, launcher and worker (number, start time, boot),
//	                    socket, version
//	            exit    how it ended; when no process is left
//	work/     the worker's directory, writable for it; of tasks, their inputs,
//	          which they can only read
//	task/     the directory that each task begins in, writable for it
//	tmp/      for its TMPDIR, writable for it
//	stdout    output so far, from its first byte on; acknowledged bytes are
//	stderr    freed, so that offsets stay what they are
//	tasks     results of tasks, 32 bytes each: place and code (4 bytes each),
//	          bytes written to stdout and stderr, nanoseconds (8 each); 8 more
//	          for the bytes of its files, with TaskSpec.Outputs or Left
//	lines     the lines of tasks, taken out of work/
//	control-* the control socket; for the node's user alone
//
// With Spec.Shared work/ is that of another root, which has nothing else but its mark, and which
// several workers have together.
//
// One file for what is known, since to make one costs more than all that is written.
// Earlier versions had files of these names, which are still understood. [CleanRoot] ends
// what is alive and removes all of it, if there is a mark; of a copy it removes the files
// alone. Only exit is synced, by the node if it is there still a moment later, else by the supervisor:
// after a reboot the attempt is lost anyway, which the boot in the record tells,
// unless it had ended and its output is there to the last byte.
//
// # Control protocol, version 1
//
// The node passes connections on to the supervisor, over the socket that it has had since
// its start, with the worker; when that is closed no worker comes any more, and the
// supervisor lives until its last one has ended. A node that adopts a worker connects to
// the control socket in its Root: one of the supervisor, by a name for each worker. A
// supervisor without workers waits twenty seconds for those of another job, with a
// launcher ready, since their start costs more than a small job. Every connection begins with hello, which carries the
// version and the key of the worker: without one a process, above all a worker, that
// finds the socket is sent away. A message is its
// length in four bytes, big endian, at most 4096, then msgpack:
//
//	hello     version, key, input,  node, first on each connection
//	          barriers, also
//	ack       stdout, stderr        node: delivered up to these offsets
//	heard     -                     node: the origin was heard of
//	stop      notice, grace         node: SIGTERM after the notice, after the
//	                                grace SIGKILL
//	stop      full                  node: SIGKILL, since it takes so much of a full disk
//	signal    signal                node: for each process that handles it
//	tasks     added, ranges, last   node: tasks to run, after so many others; the
//	                                last ones?
//	progress  stdout, stderr,       supervisor: written so far, and the latest
//	          acked_stdout,         ack; tasks that came, and ended; once at
//	          acked_stderr, stdin,  hello
//	          added, ended, waits   and whether output waits for room on the disk
//	refused   text                  supervisor, last
//	lost      text                  supervisor, last: there is no exit record
//
// Unknown kinds and fields are ignored; a node says hello with the version of
// the supervisor's spec. The latest control connection counts; when it ends the
// supervisor is alone. After a hello with input set, the supervisor answers with
// progress as soon as it has passed on all that earlier connections brought:
// stdin is how much that was. Then chunks follow: length in four bytes, at most
// 1 MiB, then bytes; length zero ends the worker's input, a broken connection
// does not. After a hello with barriers set the messages are those of jobs/pmi: at which
// barriers a rank of an MPI program waits, and what all ranks have put when it may pass.
// The end of the worker is the end of all connections; what happened is in
// exit by then.
//
// After a hello of version 2 with also set a session follows (jobs/session), whose start comes
// at once: the supervisor answers with progress or refused, and with frames from then on. Its
// command runs in the worker's world, counts with it and ends with it, or with the connection.
// A supervisor that knows no sessions refuses the version.
//
// # How a worker begins
//
// The record without a worker is the line: nothing of the program has run before it
// is there. Whatever keeps the supervisor from starting the worker, other than the
// command itself, is told as [work.Unstarted].
//
// # How a worker ends
//
// By the first of: its own exit, walltime, memory, disk, disk full, stop, node gone, origin
// silent. Then the rest of its tree is killed: the launcher finds all of it
// (jobs/launch), and the worker is done when nothing is left. Asked to end politely,
// children have the same grace as the worker.
//
// With namespaces the kernel ends everything when the launcher dies, and that when the
// supervisor does. Without, the launcher ends what it started when it is left alone. If
// both are killed at once, the kernel kills the worker's main process, and the node
// what it recognises: the worker's session, and processes with a variable of Spec.Env
// that names Root, such as TMPDIR. Not covered then: a descendant with a session and
// an environment of its own, and a node that dies at the same time (Adopt or CleanRoot
// then do the same at its next start). Workers are the kernel's first choice when the
// machine runs out of memory.
//
// # Tasks
//
// With Spec.Tasks a worker runs its command many times, for the tasks that
// [TaskFeed] gets, one after the other. The launcher that is there forks them all, so
// that a task costs little more than its fork and exec. A
// task ends when no process of it is left; then its result says how much of the
// streams is its own. Walltime and memory are limits of a task, and what a task
// does never ends the worker. A task that is interrupted by the end of its
// worker has no result.
//
// Each task finds Root/task anew, with links to what is in Root/work, and an
// empty Root/tmp. What it left there and TaskSpec.Outputs names is packed
// (transfer.Pack) when it has ended, and follows its standard error in that
// stream: so files take the way of output, in order, acknowledged and freed as
// that is, and a result is never told before them. Without Outputs it is what TaskSpec.Left
// allows; of how many tasks files were removed is in [work.Exit].
//
// # Memory
//
// The launcher adds up what the tree cannot give back: anonymous, shared and swapped
// pages, shared ones once, files in memory (memfd), and with namespaces what is in /tmp,
// /dev/shm and System V segments, of which each worker of the job counts its part. It
// looks every 5 to 100 ms, depending on how near the limit is. It needs no cgroup and
// no right, and gives the true cause; a tree may be over its limit for that long.
// Limits per process (RLIMIT_DATA) are not used: threads and runtimes reserve far more
// than they need, and a refused allocation would look like a fault of the program.
// [work.Exit].Peak is 0 of what never had more than the launcher, some 15 MiB: the kernel does not
// tell them apart.
//
// [work.Exit].Read and Written are what the kernel counts for each process with its end, in blocks
// of 512 bytes: files that came from a disk, not from memory, and those that were written, as
// soon as they are, also if they are removed again. What is in memory alone (tmpfs, pipes)
// is not in it, and neither is what nodes and supervisors do with the files of workers.
//
// # Disk
//
// What the files in Root/work, Root/task and Root/tmp take is counted again and again by
// the supervisor (jobs/disk), sooner when little is left; streams do not count, since
// they have a bound of their own. Files that were removed from there count while something
// below the launcher holds them open (proc.Removed), by their last path. Who is not root
// sees that of traceable processes alone: commands cannot make themselves untraceable.
// A worker may be over its limit for as long as that takes. A limit is one of each task,
// with the inputs in it.
//
// What workers share (Spec.Shared) counts for each of them in equal parts, and one that makes
// room takes it away from all.
//
// Under a root node with namespaces the three directories, if none is shared, are in a project of
// the file system's, if it has quotas (jobs/quota): its count is looked at instead, and it refuses
// what is more than a little beyond the limit. The directories keep the project until
// [CleanRoot]. Nothing can be renamed into them from elsewhere then.
//
// A node whose disk is full ends workers by [Worker.Yield], which ends all tasks of one, too: the
// task that ran has no result. Their files are removed before their exit is told.
//
// # Sandbox
//
// With namespaces a worker sees the system directories, Spec.Expose, Spec.Writable, its own Root/work
// and Root/tmp (a task Root/task, and Root/work to read), Spec.Devices, and /proc, /dev,
// /tmp and /dev/shm of its job's own: processes, sockets and files of others do not
// exist for it. Its user has a name, and what of /proc is the machine's is read-only.
//
// With Landlock in the kernel it writes in its own directories and Spec.Writable, to null
// devices and Spec.Devices only; without namespaces it reads these, the system directories
// and Spec.Expose, nothing else. Around a path of Spec.Hide below an open directory each
// neighbour is opened by itself, so that the directories above cannot be listed, and with
// or without namespaces nothing can be made or renamed there: so it is around a path that
// is to be read below one of Spec.Writable, too.
//
// A command, interpreter or argument that is not shown is named (launch.World.Unseen),
// a shared library by what the command has said of it (launch.Library), and nobody looks
// whether it is there.
//
// From Landlock version 6 a worker can signal only its own kind. It has no core dumps, no way to
// new privileges, no kernel interfaces that administer the machine, cannot change the
// limits of others, and under a root node has no capabilities. Landlock does not cover
// modes, owners and times of files that the worker's user owns. Without namespaces, and
// before version 9, it does not cover connections to unix sockets either: seccomp then
// lets workers make none. [Runner.Probe] reports what a machine enforces.
//
// # Files
//
// What both sides say is in spec.go, task.go, record.go (files) and
// wire.go (messages); which process is meant, in jobs/proc. The node's
// side is runner.go, adopt.go and worker.go with its parts (streams.go, outbox.go,
// feed.go, input.go), host.go for its supervisors, and for what it finds mark.go,
// clean.go and leftovers.go. The supervisor is supervisor.go, with reception.go for who
// connects; for each worker keeper.go around life.go, with control.go, session.go, spool.go, tasks.go and taskdir.go, and
// begin.go for what its launcher needs.
//
// # Concurrency
//
// Runner and Worker may be used from any goroutine. Each worker has two
// goroutines in the node, which end with it. In the supervisor one loop for each
// worker owns the core ([Life]); launcher, pumps and connections post events to it.
package process
