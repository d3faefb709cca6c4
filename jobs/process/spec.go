package process

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"path/filepath"
	"time"

	"zorilla/jobs/launch"
	"zorilla/jobs/pmi"
	"zorilla/jobs/session"
	"zorilla/jobs/work"
)

// ErrSpec is wrapped by the errors of Start that are the caller's mistakes.
var ErrSpec = errors.New("worker cannot be started")

// ErrNotEntered is wrapped by the errors of Enter.
var ErrNotEntered = errors.New("the command was not run")

// Spec says how to run one worker. All of it is plain data: it is written
// into the work directory and read back by the supervisor.
type Spec struct {
	// Root is the worker's own directory, absolute, already made by the
	// caller and empty but for Root/work, which holds the input files. The
	// supervisor keeps its record, output spools and exit record in Root; the
	// worker runs in Root/work and may write only there and in Root/tmp, which
	// the supervisor makes (for TMPDIR in Env). One Root is for one worker.
	Root string `json:"root"`

	// Shared is the work directory that the worker has instead of Root/work, together with
	// others of its group, and whose files are their user's; nil = it has its own. Tasks have
	// their own.
	Shared *Shared `json:"shared,omitempty"`

	// Group names the job that the worker is of: where they have namespaces, workers
	// of a group share them, and their supervisor. "" = none.
	Group string `json:"group,omitempty"`

	Args []string `json:"args"` // command and arguments; a command with a slash that is not absolute is below Root/work
	Env  []string `json:"env"`  // the whole environment, K=V

	// Stdin: whether the worker's standard input is fed through
	// Worker.Stdin; otherwise it is the null device.
	Stdin bool `json:"stdin"`

	Memory    int64         `json:"memory"`               // bytes for the whole process tree; 0 = unlimited
	Disk      int64         `json:"disk,omitempty"`       // bytes of files in Root/work, or its part of Shared, Root/task and Root/tmp together; 0 = unlimited
	MaxOutput int64         `json:"max_output,omitempty"` // bytes of standard output and error together, of tasks for each; 0 = unlimited
	KeepFree  int64         `json:"keep_free,omitempty"`  // bytes that are left free on the disk of Root: output waits then; 0 = none
	Shares    int           `json:"shares"`               // parts of the processors that it gets beside other workers, if they can be told out; 0 = 1
	Walltime  time.Duration `json:"walltime"`             // 0 = unlimited
	NodeLimit time.Duration `json:"node_limit"`           // ends the worker so long after its node is gone; 0 = 30 s
	// OrphanLimit ends the worker so long after Worker.Heard was called last,
	// or after its start; 0 = never.
	OrphanLimit time.Duration `json:"orphan_limit,omitempty"`

	// Tasks makes the worker run many commands instead of one; nil = one.
	Tasks *TaskSpec `json:"tasks,omitempty"`

	launch.Sight // Hide has the node's state, with all Roots in it
	// At is what the worker, and Env, call Root, where it has namespaces: Inside(Root), or ""
	// for Root itself.
	At  string `json:"at,omitempty"`
	UID int    `json:"uid"` // run as this user and group when >= 0 and the node is root
	GID int    `json:"gid"`
	// WorkerAPI: the worker sees the directory of its API socket (jobs/session/workerapi), which is in
	// Root by then, and the program that uses it (sandbox.ProgramDir). It needs namespaces.
	WorkerAPI bool `json:"door,omitempty"`
	// OwnUser: nobody but workers of this job is UID.
	OwnUser bool `json:"own_user,omitempty"`

	// Among: the workers of a job at this node reach each other and these addresses, and
	// nothing else; nil = what the node does. It needs what Probe calls NetworkJob.
	Among *Among `json:"among,omitempty"`

	// PMI is the worker's place among the ranks of an MPI program, which finds the others
	// through descriptor PMIFD; nil = it has none. See Worker.Barriers.
	PMI *pmi.Place `json:"pmi,omitempty"`
	// Rank is what else the worker may have of its own.
	Rank Rank `json:"rank,omitzero"`

	terms terms // of Start
}

// Shared is a work directory that several workers have together.
type Shared struct {
	// Root, which MakeRoot has made beside those of the workers, holds it: Root/work.
	Root    string `json:"root"`
	Workers int    `json:"workers"` // how many have it: what it takes counts for each in equal parts
}

// Work is the directory that the worker begins in, of the machine.
func (s *Spec) Work() string {
	if s.Shared != nil {
		return filepath.Join(s.Shared.Root, workDir)
	}
	return filepath.Join(s.Root, workDir)
}

// SeenWork returns what the worker calls that directory.
func (s *Spec) SeenWork() string {
	switch {
	case s.Shared == nil:
		return filepath.Join(s.Seen(), workDir)
	case s.At != "":
		return filepath.Join(Inside(s.Shared.Root), workDir)
	}
	return s.Work()
}

// Rank is what a rank may have of its own.
type Rank struct {
	// Signal, a number, is sent to each process of the worker that handles it, as long before the walltime
	// as Notice says, and by Stop; 0 = none. Tasks get it before their walltime alone.
	Signal int           `json:"signal,omitempty"`
	Notice time.Duration `json:"notice,omitempty"` // at most 24 h
	// Grace is the time between SIGTERM and SIGKILL when a limit ends the worker, or its
	// machine; 0 = that of the node.
	Grace time.Duration `json:"grace,omitempty"`
	// Lent: the walltime is what the owner of the node allows.
	Lent  bool  `json:"lent,omitempty"`
	Cores []int `json:"cores,omitempty"` // the processors that it runs on; nil = any
}

// PMIFD is the descriptor over which a worker with Spec.PMI speaks PMI-1.
const PMIFD = 3

// Among is whom the workers of a job reach.
type Among struct {
	Job   string       `json:"job"`
	Addrs []netip.Addr `json:"-"` // of other machines, at the start of the worker; see Worker.Among
}

// Worker is a running or ended worker. Its methods may be called from any
// goroutine.
type Worker interface {
	Streams
	// Tasks feeds the worker's tasks. It is nil unless Spec.Tasks.
	Tasks() TaskFeed
	// Heard tells that the job's origin was heard of just now.
	Heard()
	// Among replaces the addresses that all workers of its job at this node reach. It does nothing
	// if they are the same, or without Spec.Among.
	Among(addrs []netip.Addr) error
	// Barriers tells at which barriers the worker waits, and lets it pass them; whoever
	// calls it uses no other, and closes it. It is nil without Spec.PMI, and if the worker has ended.
	Barriers() *pmi.Link
	// Enter runs a command in the worker's world, with its directory and environment and what
	// start adds to that. It counts with the worker, and ends with it. What follows in both
	// directions are the frames of a session; whoever closes it ends the command. The error is
	// ErrNotEntered if the command was not begun.
	Enter(ctx context.Context, start *session.Start) (io.ReadWriteCloser, error)
	// Signal sends a signal, by its number, to each process of the worker that
	// handles it. A process that does not, perhaps not yet, is left alone, and
	// so are those of a supervisor that is older than this.
	Signal(number int)
	// Stop ends the whole process tree: SIGTERM, SIGKILL after the grace. With a notice, of which
	// at most Spec.Rank.Notice counts, the worker gets Spec.Rank.Signal, if it did not already, and
	// SIGTERM when that is over or its program has ended; a supervisor that is older than this gives
	// none. It returns at once; Done reports when all is gone.
	Stop(notice, grace time.Duration)
	// Yield ends the whole process tree at once, and removes its files, since the disk of
	// its node is full, where they take so many bytes. It returns at once. A supervisor
	// that is older than this stops its worker, and leaves the files.
	Yield(used int64)
	// Done is closed when no process of the worker is alive, its output is
	// complete and its exit record is on disk.
	Done() <-chan struct{}
	// Exit returns how the worker ended; call it after Done.
	Exit() work.Exit
	// Close lets go of what the node holds for an ended worker (connection,
	// descriptors). It does not remove files.
	Close() error
	// Leave lets go of a worker that goes on without its node until a node
	// adopts it. Done is never closed then, unless it is already.
	Leave()
}

// Streams is what a worker reads and writes.
type Streams interface {
	// Stdin feeds the worker's standard input; Close ends it. Write blocks
	// while the worker does not read. It is nil unless Spec.Stdin.
	Stdin() Input
	// ReadOutput copies bytes of a stream from the offset into p, as far as
	// they have been written, and returns how many; it never waits. Bytes
	// below what was acknowledged may be gone.
	ReadOutput(s work.Stream, offset int64, p []byte) (int, error)
	// Written returns how many bytes each stream has so far.
	Written() (stdout, stderr int64)
	// WaitsForRoom reports whether output waits since the disk of the node is full.
	WaitsForRoom() bool
	// Changed is closed at the next change of Written, of WaitsForRoom, or of what Tasks counts, or at
	// the end; ask for it before looking at these.
	Changed() <-chan struct{}
	// Ack says up to which offsets output has been delivered. A worker that
	// is far ahead (64 MiB by default) waits in its writes.
	Ack(stdout, stderr int64)
}

// Input is the writing end of a worker's standard input.
type Input interface {
	// Offset returns how many bytes have been passed on to the worker, by
	// earlier nodes, too: there the next Write must begin. It may wait until
	// the worker has read some of them. Call it once, before Write.
	Offset() (int64, error)
	Write(p []byte) (int, error)
	Close() error
}
