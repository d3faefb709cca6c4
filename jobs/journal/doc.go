// Package journal keeps events so that they survive the process.
//
// A job is a journal: its state is what its entries add up to, and a restart
// reads them again. The package knows nothing of jobs. It stores byte strings
// under keys (a job ID, say) and gives the entries of a key back in the order in
// which they were appended.
//
// # Promises
//
// Append, Delete and Replace return at once. Their done function is called when the
// entries are on disk, or with the error that kept them from it; what must not
// happen before the entry is durable belongs behind done. All that is queued
// goes to disk in one transaction, so that many events cost one sync: the
// writer never waits for company, what arrives during one transaction shares
// the next. The entries of one Append are written all or none. Done functions
// are called in the order of the calls.
//
// While the disk is full nothing fails: what was appended waits, and is tried
// again every second; Stalled tells so. When Run ends before there is room, done
// gets the error.
//
// What is read back of a key is always what was appended first, without a gap:
// once an entry of a key could not be written, later entries of that key are
// refused with [ErrGap], until the key is deleted or replaced, or the journal is opened
// again. Other keys go on as soon as the cause is gone.
//
// # Concurrency
//
// All methods may be called from any goroutine. Run is the one writer; done
// functions are called from its goroutine, must return soon, and may call
// Append, Delete and Replace. Before Run starts, calls are queued. When the context of
// Run ends, it writes what is queued; later calls have their done function
// called with [ErrClosed] before they return.
//
// # On disk
//
// [Bolt] is one bbolt file, with one bucket "zorilla journal 2", which holds one
// bucket per key, which holds the entries under their number (8 bytes, big
// endian, from 1 without gaps). A change of the layout changes the name of the outer
// bucket. The sequence of a bucket counts what must be in it. An entry is stored with
// its key, its number and a CRC-32C over all of it, so that one that was flipped,
// moved or swapped is not taken for what it is not, and is found even if the pages
// around it are not what they should be.
//
// # Damage
//
// A flipped bit is never believed, and costs one key at most. Load and Read give
// the entries of a key up to the first that is damaged or missing, and then one that
// says so. bbolt's pages have no checksums: Open checks all of their structure itself
// before bbolt opens the file, since bbolt would crash, or write over what is in use.
// If something is wrong, Open collects the entries from the bytes of the file, writes
// a new one, keeps the damaged one beside it (NAME.damaged), and [Bolt.Lost] says so.
// Of the two head pages the newer sound one counts; both say the same after Open and
// Close, so that only a node that was killed can lose its last transaction with one of
// them, which is told too. A file NAME.mark says that there is a journal, so that one
// that vanished is missed. The list of free pages is not stored.
//
// [Memory] is the same without a disk, for tests and emulated nodes.
package journal
