// Package pmi is the process manager's side of the PMI-1 wire protocol, by which the
// ranks of an MPI program find each other: MPICH speaks it as it is, and Open MPI 4 through
// a library of ours (jobs/mpi).
//
// A rank has one end of a stream socket, whose number is in its PMI_FD, and its place in
// PMI_RANK and PMI_SIZE. It sends lines, each answered with one:
//
//	cmd=init pmi_version=1 pmi_subversion=1  cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0
//	cmd=get_maxes                            cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=4096
//	cmd=get_appnum                           cmd=appnum appnum=0
//	cmd=get_universe_size                    cmd=universe_size size=N
//	cmd=get_my_kvsname                       cmd=my_kvsname kvsname=NAME
//	cmd=put kvsname=NAME key=K value=V       cmd=put_result rc=0 msg=success
//	cmd=get kvsname=NAME key=K               cmd=get_result rc=0 msg=success value=V
//	cmd=barrier_in                           cmd=barrier_out, when all ranks have sent it
//	cmd=finalize                             cmd=finalize_ack
//	cmd=abort exitcode=N                     nothing: it is to be ended
//
// What a rank has put, all ranks get after the next barrier. So a barrier is where the
// ranks' managers exchange what was put: a [Rank] that waits tells it with the number of
// the barrier, and is let pass with what all of them have put. Between barriers nothing is
// exchanged: get is answered from what is here.
//
// Processes cannot be spawned, and names not be published: the answers say so.
//
// The protocol is that of MPICH's simple PMI (src/pmi/simple of its sources, and the
// chapter on PMI of its developers' documentation); what the libraries really send was
// read off them.
package pmi
