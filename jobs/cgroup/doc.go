// Package cgroup has the kernel itself bound what workers use in all that they start:
// memory, processes, and their share of the processors and the disk, by control groups
// of version 2 or, on older machines, of version 1.
//
// A node finds a Place for them once (Make), where it may make groups: below its own
// one, if that was delegated to it (systemd: Delegate=yes), or as root. Its
// supervisors make a Group for each worker there, and launchers start the worker's
// processes in it, through a Joiner, so that none of them is ever outside.
package cgroup
