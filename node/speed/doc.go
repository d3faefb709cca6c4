// Package speed finds out how fast a machine is: the clock of its processors and the
// bandwidth of its network as the system reports them, and the power of a core, which a
// Meter measures once, when nothing else runs.
//
// What it reads are files in a file system that begins at the root, so that tests have
// others. What is not known is 0.
package speed
