// Package bench measures what users wait for, beside the limit on the same
// machine in the same run:
//
//	go test -bench . ./bench                      # all of it, some ten minutes
//	go test -bench 'Run|Supervisor' ./bench       # what a small job costs
//	go test -bench Array ./bench                  # arrays, beside xargs
//	go test -bench 'Jobs|Ps|Syncs' ./bench        # many jobs, and one of many
//	go test -bench Starts ./bench                 # what a parallel job's start costs, beside srun and mpirun
//	go test -timeout 0 -bench Way ./bench                    # inputs and outputs, beside scp, tar over ssh and a plain copy
//	go test -bench MPI ./bench                    # MPI programs, beside mpirun and nothing at all
//	go test -bench Farm ./bench                   # many jobs by many clients, beside GNU parallel over ssh
//	go test -bench Streams ./bench                # standard output and input, beside ssh and a plain copy
//	go test -bench Jobs ./bench -program zorilla  # the same of another build
//
// and, if they are asked for by name:
//
//	go test -timeout 0 -bench Swarm ./bench       # an input for many workers, beside scp, rsync and BitTorrent; 25 min
//	go test -bench FarStreams ./bench             # Streams over 50 and 200 ms; 4 min
//	go test -bench Memory -benchtime 1x ./bench   # what nodes need while they serve large files; 13 GiB of disk
//	go test -bench Checkpoints ./bench            # what checkpoints cost a program; 8 min
//	go test -bench Queued -benchtime 1x ./bench   # what jobs cost that wait; 4 min
//	go test -bench EmptyFiles -benchtime 1x ./bench  # a million files without content
//
// Each benchmark builds zorilla and starts nodes on loopback as real processes; Starts,
// Swarm and FarStreams do so on emulated hosts, and need root and programs that they install.
// Rivals run in turn, so that all see the same noise; the table that each prints
// has the median, the least and the most of their times. Machines are noisy:
// compare ratios, and figures of one run, not milliseconds of two days.
package bench
