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
// Besides the writer Run has a keeper, a goroutine that brings what the logs have
// into the table.
//
// # On disk
//
// [File] is a table with logs in front of it. A commit appends one transaction to a
// log and syncs it once. A log has 1 MiB, made and filled with zeros beforehand, so that a
// sync writes nothing but what is new. When one is full the next one, which is there
// already, takes over; the keeper brings the full one into the table in one step, removes it,
// and makes another. Until then what is in logs is in memory too. With
// four full logs that wait for the table the writer waits as well, which bounds both disk and
// memory. A log on which a write failed is not written any more: what the next log begins with
// takes the place of whatever is found behind the last transaction that counts.
// Open and Close bring all logs into the table.
//
// The table, the file that Open is given, is one bbolt file, with a bucket "zorilla
// journal 2", which holds one bucket per key, which holds the entries under their number
// (8 bytes, big endian, from 1 without gaps), and a bucket "zorilla journal log", which has the
// number of the last transaction that came from a log: what is in a log up to that
// number is in the table. Files of versions without logs lack it, and are read; those
// versions find it and say that the file is not theirs. A change of the layout changes the name
// of the outer bucket. The sequence of a bucket counts what must be in it. An entry is stored, in
// logs and table alike, with its key, its number and a CRC-32C over all of it, so that one that
// was flipped, moved or swapped is not taken for what it is not, and is found even if what is
// around it is not what it should be. Logs are called NAME.log-NUMBER.
//
// # Damage
//
// A flipped bit is never believed, and costs one key at most. Load and Read give
// the entries of a key up to the first that is damaged or missing, and then one that
// says so. bbolt's pages have no checksums: Open checks all of their structure itself
// before bbolt opens the file, since bbolt would crash, or write over what is in use.
// If something is wrong, Open collects the entries from the bytes of the file, writes
// a new one, keeps the damaged one beside it (NAME.damaged), and [File.Lost] says so.
// Of the two head pages the newer sound one counts; both say the same after Open and
// Close, so that only a node that was killed can lose its last transaction with one of
// them, which is told too. A transaction in a log says twice which entries it has, so that the one
// that a flipped bit hit is known; transactions are numbered without gaps, so that one that is missing is
// missed. The last one may be incomplete, since its writer was stopped: where parts of it are still zero
// it is dropped, which [File.Lost] tells. A log that lost transactions,
// or whose table is gone, is kept (NAME.log-NUMBER.damaged). A file NAME.mark says that there is a journal, so that one
// that vanished is missed. The list of free pages is not stored.
//
// [Memory] is the same without a disk, for tests and emulated nodes.
package journal
