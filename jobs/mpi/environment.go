package mpi

import (
	"hash/fnv"
	"net/netip"
	"strconv"
)

// Rank is the place of one process of a gang, and what its node has for it.
type Rank struct {
	Kind                 Kind // of its program; None if that is not known, as of a script
	Rank, Size           int
	LocalRank, LocalSize int // among the ranks at its node
	Hosts                int // nodes that have ranks
	// Job names the gang, and its attempt: ranks of others that run at the same node, or
	// ran there, must not meet.
	Job string
	// FD is the descriptor that the program inherits, where the node speaks PMI-1.
	FD        int
	Libraries Libraries // as the program sees them; none: what needs them is left out
	// Address is what other nodes reach this one at, with the length of its network's
	// prefix, and Interface has it. The zero Prefix and "" leave the choice to the library.
	Address   netip.Prefix
	Interface string
	// Busy says that there are more ranks at the node than processors for them.
	Busy bool
	// Memory says that the ranks at this node, and only they, share /dev/shm, an IPC
	// namespace and each other's memory. Otherwise they talk over the network.
	Memory bool
}

// Environment returns the variables that the program is to find. They are defaults:
// what the user says goes before them.
func (r Rank) Environment() map[string]string {
	env := map[string]string{
		"PMI_FD":   strconv.Itoa(r.FD),
		"PMI_RANK": strconv.Itoa(r.Rank),
		"PMI_SIZE": strconv.Itoa(r.Size),
	}
	if r.Kind != OpenMPI {
		r.mpich(env)
	}
	if r.Kind != MPICH && r.Libraries.Client != "" {
		r.openMPI(env)
	}
	return env
}

// mpich adds what is said to UCX, which carries the messages of MPICH.
func (r Rank) mpich(env map[string]string) {
	// UCX tells machines apart by the kernel and the IPC namespace, so that memory is
	// tried only where it is shared. System V's segments would outlive a rank that is
	// killed.
	switch {
	case r.Memory && r.Hosts == 1:
		env["UCX_TLS"] = "self,posix,cma"
	case r.Memory && r.LocalSize > 1:
		env["UCX_TLS"] = "self,posix,cma,tcp"
	default:
		env["UCX_TLS"] = "self,tcp"
	}
	if !r.Memory && r.Hosts == 1 {
		// It would share memory with the others of its node in MPI_Init, whatever UCX does. All
		// ranks of a program must say the same, and of other nodes this one does not know.
		env["MPIR_CVAR_NOLOCAL"] = "1"
	}
	if r.Interface != "" {
		env["UCX_NET_DEVICES"] = r.Interface
	}
	// As hydra sets them.
	env["MPI_LOCALRANKID"], env["MPI_LOCALNRANKS"] = strconv.Itoa(r.LocalRank), strconv.Itoa(r.LocalSize)
	env["UCX_VFS_ENABLE"] = "n" // it is a thread by which others look into running programs
	if r.Libraries.Finish == "" || r.Size == 1 {
		return
	}
	if r.overTCP() {
		env["LD_PRELOAD"], env["ZORILLA_MPI_FINISH"] = r.Libraries.Finish, "1"
	}
	if r.yields() {
		env["LD_PRELOAD"], env["ZORILLA_MPI_YIELD"] = r.Libraries.Finish, "1"
	}
}

// yields reports whether a rank that waits for a message lets others have its processor. Where
// all have processors and memory in common, a message comes in less time than that takes.
// Over the network it costs nothing, and where others use the machine too it saves some
// milliseconds for each message.
func (r Rank) yields() bool { return r.Busy || r.overTCP() }

func (r Rank) overTCP() bool { return r.Hosts > 1 || !r.Memory }

// openMPI adds what Open MPI's components are told.
func (r Rank) openMPI(env map[string]string) {
	env["FLUX_JOB_ID"] = r.number()
	env["FLUX_PMI_LIBRARY_PATH"] = r.Libraries.Client
	env["OMPI_MCA_pmix"] = "flux"
	// Without these every transport that was ever built is tried first: three times the
	// time to start.
	env["OMPI_MCA_pml"] = "ob1"
	env["OMPI_MCA_osc"] = "^ucx" // of one-sided communication, which is tried although messages do not go by UCX
	for name, value := range map[string]int{"SIZE": r.Size, "RANK": r.Rank, "LOCAL_SIZE": r.LocalSize, "LOCAL_RANK": r.LocalRank, "NODE_RANK": r.LocalRank} {
		env["OMPI_COMM_WORLD_"+name] = strconv.Itoa(value) // as mpirun sets them, for what asks before it starts MPI
	}
	switch {
	case r.Memory && r.Hosts == 1:
		env["OMPI_MCA_btl"] = "self,vader"
	case r.Memory && r.LocalSize > 1:
		env["OMPI_MCA_btl"] = "self,vader,tcp"
	default:
		env["OMPI_MCA_btl"] = "self,tcp"
	}
	if r.Address.IsValid() {
		env["OMPI_MCA_btl_tcp_if_include"] = r.Address.Masked().String()
		env["OMPI_MCA_oob_tcp_if_include"] = r.Address.Masked().String()
	}
	// Ranks are bound to no processor: Open MPI would count those of each node from the first,
	// and so bind ranks of several nodes of a machine, or of several jobs, to the same.
	env["OMPI_MCA_hwloc_base_binding_policy"] = "none"
	if r.yields() {
		env["OMPI_MCA_mpi_yield_when_idle"] = "1"
	}
}

// number is the job's for Open MPI, whose files in shared places have it in their
// names. It has two halves, and the upper bit of each is Open MPI's own: with one of
// them set, ranks take each other for those of other jobs.
func (r Rank) number() string {
	h := fnv.New32a()
	h.Write([]byte(r.Job))
	return strconv.Itoa(max(1, int(h.Sum32()&0x7fff7fff)))
}
