// Package launch starts the commands of workers from a process of its own, the
// launcher, which builds the world that they see, confines itself, and forks them.
// No thread of the supervisor, which holds the other end, shares an address space, a
// Landlock domain or, with namespaces, even a process number with a worker.
//
// # The world
//
// With [World].Namespaces the launcher is the first process of a PID namespace, and
// has user, mount, IPC and UTS namespaces of its own. The root directory holds the
// system directories and what is exposed, read-only but for [World].Writable, the directories of the commands,
// and /proc, /dev, /tmp and /dev/shm of its own (sandbox.Root). All commands of a
// launcher share them: the ranks of a job see each other's processes and shared
// memory, as parallel programs need, and nothing of others. The end of the launcher,
// however it comes, is the end of them all, by the kernel.
//
// Each command gets a UTS namespace, which is inherited: by it the launcher tells the
// processes of one command from those of another. What has made a namespace of its own
// is where its parent is; an orphan of that kind ends with the launcher. Without namespaces a launcher, which orphans come back to, runs one
// command at a time, and what is below it is that one's.
//
// In both cases Landlock and seccomp hold (jobs/sandbox): they are applied to one
// thread of the launcher, which forks all commands.
//
// # Messages
//
// A World goes down a unix socket, then commands and what is asked of them, which is the head of a
// command alone; a stream of reports comes up: the length in four bytes, big endian, then msgpack.
// A command brings its three standard descriptors with the length. A launcher whose
// socket closes ends everything, and itself. Both sides are the same program, so that
// there is no version.
package launch
