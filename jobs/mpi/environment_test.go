package mpi

import (
	"fmt"
	"net/netip"
	"strconv"
	"testing"
)

// What ranks find: for a program of unknown MPI what each needs, for others no more
// than theirs.
func TestEnvironment(t *testing.T) {
	whole := Rank{
		Rank: 3, Size: 6, LocalRank: 1, LocalSize: 2, Hosts: 3, Job: "k7f3q@zeb2a", FD: 5, Libraries: Libraries{"/l/c.so", "/l/f.so"},
		Address: netip.MustParsePrefix("10.99.0.11/24"), Interface: "eth0", Busy: true, Memory: true,
	}
	for name, test := range map[string]struct {
		change func(r *Rank)
		want   map[string]string // "" = not there
	}{
		"all": {func(*Rank) {}, map[string]string{
			"PMI_FD": "5", "PMI_RANK": "3", "PMI_SIZE": "6",
			"UCX_TLS": "self,posix,cma,tcp", "UCX_NET_DEVICES": "eth0", "LD_PRELOAD": "/l/f.so", "ZORILLA_MPI_FINISH": "1", "ZORILLA_MPI_YIELD": "1",
			"FLUX_PMI_LIBRARY_PATH": "/l/c.so", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader,tcp",
			"OMPI_MCA_btl_tcp_if_include": "10.99.0.0/24", "OMPI_MCA_mpi_yield_when_idle": "1",
		}},
		"mpich":    {func(r *Rank) { r.Kind = MPICH }, map[string]string{"UCX_TLS": "self,posix,cma,tcp", "OMPI_MCA_btl": "", "FLUX_JOB_ID": ""}},
		"open mpi": {func(r *Rank) { r.Kind = OpenMPI }, map[string]string{"OMPI_MCA_btl": "self,vader,tcp", "UCX_TLS": "", "LD_PRELOAD": ""}},
		"one host": {func(r *Rank) { r.Hosts, r.LocalSize, r.Busy = 1, 6, false }, map[string]string{
			"UCX_TLS": "self,posix,cma", "OMPI_MCA_btl": "self,vader", "LD_PRELOAD": "", "MPIR_CVAR_NOLOCAL": "", "ZORILLA_MPI_YIELD": "", "OMPI_MCA_mpi_yield_when_idle": "",
		}},
		"one busy host": {func(r *Rank) { r.Hosts, r.LocalSize = 1, 6 }, map[string]string{
			"LD_PRELOAD": "/l/f.so", "ZORILLA_MPI_FINISH": "", "ZORILLA_MPI_YIELD": "1",
		}},
		"alone":         {func(r *Rank) { r.Rank, r.Size, r.Hosts = 0, 1, 1 }, map[string]string{"PMI_SIZE": "1", "LD_PRELOAD": ""}},
		"one rank here": {func(r *Rank) { r.LocalRank, r.LocalSize = 0, 1 }, map[string]string{"UCX_TLS": "self,tcp", "OMPI_MCA_btl": "self,tcp"}},
		"not busy": {func(r *Rank) { r.Busy = false }, map[string]string{
			"ZORILLA_MPI_YIELD": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
		}},
		"no memory": {func(r *Rank) { r.Memory, r.Hosts, r.LocalSize = false, 1, 6 }, map[string]string{
			"UCX_TLS": "self,tcp", "OMPI_MCA_btl": "self,tcp", "LD_PRELOAD": "/l/f.so", "MPIR_CVAR_NOLOCAL": "1",
		}},
		"no memory, several hosts": {func(r *Rank) { r.Memory = false }, map[string]string{"UCX_TLS": "self,tcp", "MPIR_CVAR_NOLOCAL": ""}},
		"no libraries": {func(r *Rank) { r.Libraries = Libraries{} }, map[string]string{
			"PMI_RANK": "3", "UCX_TLS": "self,posix,cma,tcp", "LD_PRELOAD": "", "FLUX_JOB_ID": "", "OMPI_MCA_pml": "",
		}},
		"no network": {func(r *Rank) { r.Address, r.Interface = netip.Prefix{}, "" }, map[string]string{
			"OMPI_MCA_btl_tcp_if_include": "", "UCX_NET_DEVICES": "", "OMPI_MCA_btl": "self,vader,tcp",
		}},
	} {
		r := whole
		test.change(&r)
		env := r.Environment()
		for key, want := range test.want {
			if got := env[key]; got != want {
				t.Errorf("%s: %s is %q, want %q", name, key, got, want)
			}
		}
	}
}

// Open MPI takes ranks whose job's number has one of its own bits for strangers.
func TestNumbersOfJobs(t *testing.T) {
	numbers := map[string]bool{}
	for i := range 1000 {
		text := Rank{Job: fmt.Sprint("job", i)}.number()
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || n == 0 || n&0x80008000 != 0 {
			t.Errorf("number %s: %v", text, err)
		}
		numbers[text] = true
	}
	if len(numbers) < 990 {
		t.Errorf("%d numbers of 1000 jobs", len(numbers))
	}
}
