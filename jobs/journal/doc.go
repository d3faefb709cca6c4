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
// [Bolt] is one bbolt file, with one bucket "zorilla journal 1", which holds one
// bucket per key, which holds the entries under their sequence number (8 bytes,
// big endian, from 1 without gaps). A change of the layout changes the name of
// the outer bucket. Open finds files that are cut short and pages that cannot be
// read; bbolt has no checksums, so a flipped bit inside the data of an entry is
// for the reader of the entry to find. Of the file's two head pages the newer
// sound one counts: if something else than a torn write destroys the newer one,
// the last transaction is lost without an error.
//
// [Memory] is the same without a disk, for tests and emulated nodes.
package journal
