// Package disk measures how much room directory trees take on their disk, and watches
// that they stay within a limit.
//
// What counts is blocks, as the file system has allocated them: a sparse file counts
// what it takes, a file with several names once, a directory itself. [Used] walks a
// tree that belongs to somebody else, who may change it meanwhile in whatever way: it
// follows no link, leaves the file system nowhere, has at most [openDirs] descriptors
// and a few bytes for each level, however deep the tree is, and needs no path longer
// than a name. It opens directories that their owner has shut, and shuts them again.
// Entries that come and go while it walks are counted or not.
//
// A [Guard] looks again and again, the sooner the less room is left, and never needs
// more than a twentieth of a processor. What has no name any more, others tell it of
// ([Guard].Held); what loses its name while the guard looks is not taken for two files.
// [First] says who is to make room on a disk that
// is full.
package disk
