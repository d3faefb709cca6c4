// Package transfer makes content-addressed blobs of files, and files of blobs: it chunks
// files, verifies and stores the chunks. Package exchange moves them from node to node.
//
// # Vocabulary
//
// A blob is a run of immutable bytes named by its [Hash], SHA-256. A chunk is
// a piece of a file: all chunks of a file are ChunkSize long but the last, and
// an empty file has none. A chunk is a blob, except that small files of one
// tree, those below 64 KiB, travel in bundles: a bundle is a blob of at most
// ChunkSize that holds several of them, one after the other. A [Manifest] lists
// the chunks and bundles of a tree of files and is, encoded, a blob too; its hash
// names the whole tree. A holder is a node whose store has a blob, the origin the node where the tree
// came from.
//
// # The way of a file
//
//	client                      origin                      worker's node
//	[Upload]: hash, ask what  ─►  store  ◄──── Handler ──  Fetch ─────────► store
//	is missing, send that          package exchange          │
//	                                                 [Manifest.Write] ─► work directory
//	                                                         │ the program runs
//	[Manifest.Write] ◄── store ◄── Fetch ── Handler ── store ◄── [Collect]
//
// The store of a worker's node has the chunks of a large file at their places in one file,
// the assembled file ([Expect]). The worker gets that itself ([How]), may write to it, and
// the store takes it back when the work directory is removed ([TakeBack]).
//
// A store, a request and a receiver have one blob for some hundreds of small files,
// and each of them is made once, in the work directory. The paths of files tell where
// bundles end, so that a tree in which one file is another shares most of them with
// what it was. Outputs that are as the inputs were are in no bundle.
//
// A large file of the user is not copied at the origin: its store reads chunks from
// where the file is ([Referrer]), and so does the store of a worker's node with
// large outputs ([Brief]). On its way to a work directory each byte of it is
// hashed twice, by the client and by the receiver; sent once to each; and written once. The
// origin hashes it too when it reads it first, unless the client is of its own user: it takes
// nobody else's word for a file, who could have it send what only the origin may read. Where
// several workers of a job are on a node, the kernel copies it for all but the last. What a store has compared with its hash it believes in this
// life as long as the file's stamp is the same.
//
// A client of the origin that may read the files of its store has the file system copy large
// outputs from there, if they are as they were when the store compared them with their hashes,
// and else compares them itself ([Nearby]).
//
// [Ingest] is what Upload is for those who have a store themselves.
// [ExpandInputs] reads the command line's PATH[:NAME].
//
// # Memory
//
// What a node needs for files does not grow with their size: at most 16 chunks for each
// tree that it fetches, as many for all that it serves, and four for each that it chunks or
// writes, 1 MiB each. So a node stays below 100 MiB while it serves twelve others a
// large file, dense or sparse, and so does each of them (BenchmarkMemory in package
// bench). A manifest takes 32 bytes for each chunk where a tree is served, and some hundred for
// each file while it is made, fetched or written.
//
// # Trust
//
// Whatever comes from another node is checked before it is used: a blob
// against its hash when it arrives ([Putter]) and when it is first read back from
// disk after a restart or a change ([DirStore]); a manifest by
// [Manifest.Validate], which refuses every path that is not clean, relative
// and free of control characters, links that could lead out of the tree,
// conflicts between entries (nothing is below a link), and sizes that do not
// go with the chunks, and bundles that are too large or have files that are not there.
// Each file of a bundle has a hash of its own, by which it is compared with others and
// checked when it is written. Links are for inputs; outputs have none. Validate cannot know which names were asked for:
// a receiver of outputs has [MatchOutput] for that. Work directories belong to
// programs that nobody vouches for: Collect and Write go through os.Root one
// name at a time, do not follow symbolic links, open only regular files and
// never wait for a pipe.
//
// # Layout of a manifest
//
// The five bytes "zman1" (the digit is the version), then one msgpack array
// of at most MaxEntries maps, in the order of [ComparePaths]:
//
//	"path"    string, see CheckPath
//	"dir"     bool: a directory, without any of the following; only needed
//	          for those that are empty
//	"exec"    bool: mode 0755 instead of 0644
//	"mode"    integer: the permissions, at most 0777, if they are others
//	"size"    integer, bytes
//	"chunks"  binary, 32 bytes for each chunk
//	"link"    string: a symbolic link, without any of the others; where it
//	          leads, relative to its directory
//
// Fields that are false, zero or empty are left out; unknown ones are
// ignored; who does not know "mode" writes 0644 or 0755. Owners, times and modes of directories do not travel. A manifest that has
// links begins with "zman2" instead: who does not know of them refuses it.
//
// One with bundles begins with "zman3", links or not, and what follows is a map:
//
//	"entries"  the array
//	"bundles"  binary, for each bundle in order: how many small files are before it that
//	           are in none, since the one before; how many are in it, at least 2 (unsigned
//	           varints); its hash, 32 bytes
//
// Small files are those of 1 to 65535 bytes, in the order of the entries. The bytes of a
// bundle are those of its files in that order, and no others.
//
// # Layout of a pack
//
// Files of the tasks of an array travel as a [Pack], which is no blob: a record
// for each file, and then its bytes without its holes. Numbers are unsigned
// varints.
//
//	'f'  length of path, path, 1 if executable else 0, size
//	'd'  length of path, path: a directory that is empty
//	'b'  offset, count, and so many bytes of the file before; in rising order
//	'e'  the end, but for
//	'm'  number of a record of a file or directory, from 0; mode of that file, where it
//	     is not 0644 or, if it is executable, 0755
//
// Who does not know what follows the end passes over it.
//
// # Layout of a store
//
//	DIR/sha256/ab/abcd…   a blob, named by its 64 hexadecimal digits
//	DIR/assembled/        files of several chunks, or holes where these are to come
//	DIR/files/            what is known of assembled files and those of others, one each: a note
//	DIR/tmp/              blobs being written; emptied at Open
//
// # Concurrency
//
// All types but Manifest, Pack and PackReader may be used from any goroutine. Stores hold no lock
// during I/O. Ingest, Collect, Upload and Write run a few goroutines
// with a buffer of ChunkSize each and return when these have ended; nothing
// else is started. Pins live in memory only: after a restart call
// [DirStore.Open], pin again what is needed, then [DirStore.StartEviction].
package transfer
