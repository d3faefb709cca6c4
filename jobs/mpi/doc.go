// Package mpi makes MPI programs, unmodified, the ranks of a job that no launcher of
// theirs has started. Both MPICH and Open MPI 4 can ask a process manager for their
// place over PMI-1, a text protocol on an inherited socket, and a node answers it.
// This package reports which MPI a program is linked with (Detect), and what its ranks
// must find in their environment (Rank.Environment).
//
// Two small libraries in C go to the node with it, see libzpmi. zpmi is what Open MPI
// speaks PMI-1 with: its flux component loads it by FLUX_PMI_LIBRARY_PATH. finish is
// for MPICH, by LD_PRELOAD: it lets programs end that talk over TCP, whose ranks wait in
// MPI_Finalize for each other's answers where nobody answers any more (MPICH 4.0.2 hung
// so in 12 of 20 runs on three hosts, and never with it), and it lets who waits for a message
// yield, as Open MPI can by itself: where there were more ranks than processors, each
// message took MPICH 3.5 ms, and takes less than 0.1.
//
// The libraries are embedded as they were built by jobs/mpi/build, with the compiler
// of Debian 12 and nothing but the C library, for amd64 and arm64. They need version
// 2.7 of it, or on arm64 2.17. Each carries the SHA-256 of its source; the tests
// compare it with the source that is here, and where the same compiler is at hand
// also build them again and compare every byte. After a change of a source:
//
//	jobs/mpi/build
//
// On other systems and processors there is no library, and Install says so.
package mpi
