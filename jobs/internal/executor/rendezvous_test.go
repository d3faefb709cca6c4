package executor

import (
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/ports"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// told is what a rank of a job at node 1 finds in its environment.
func told(t *testing.T, book *ports.Book, spec jobs.Spec, rank int, hosts ...wire.Host) map[string]string {
	t.Helper()
	x := New(Config{Self: vicinity.Member{ID: jobtest.Node(1)}, Workers: Workers{Dir: t.TempDir(), Runner: process.New(process.Config{}), Ports: book}, Log: zerolog.Nop()},
		loop.New(zerolog.Nop()), &participant.Participant{})
	spec.Min, spec.Max = 4, 4
	start := wire.Start{Job: wiretest.Job, Size: 4, Hosts: hosts}
	b := newBeginning(&participant.DoRun{Claim: participant.ClaimRecord{Job: wiretest.Job, RankAttempt: wiretest.RA(rank, 1), Spec: spec, Start: &start}}, x.cfg.Self.ID, x.interfaces)
	list, err := x.environment(b, &process.Spec{Root: "/root"})
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return env
}

func want(t *testing.T, env map[string]string, list string) {
	t.Helper()
	for _, v := range strings.Fields(list) {
		if name, value, _ := strings.Cut(v, "="); env[name] != value {
			t.Errorf("%s is %q, want %q", name, env[name], value)
		}
	}
}

func TestTorchFindsItsPlace(t *testing.T) {
	book := &ports.Book{}
	defer book.Close()
	one, two := jobtest.Node(1), jobtest.Node(2)
	env := told(t, book, jobs.Spec{Slots: 3}, 3, wire.Host{Node: two, Addr: "127.0.0.2", Ranks: []int{0}, Port: 23000}, wire.Host{Node: one, Addr: "127.0.0.1", Ranks: []int{1, 3}})
	want(t, env, `RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 GROUP_WORLD_SIZE=2 ROLE_RANK=3 ROLE_WORLD_SIZE=4
		MASTER_ADDR=127.0.0.2 MASTER_PORT=23000 GLOO_SOCKET_IFNAME=lo NCCL_SOCKET_IFNAME=lo TP_SOCKET_IFNAME=lo
		ZORILLA_SLOTS=3 OMP_NUM_THREADS=3 MKL_NUM_THREADS=3 OPENBLAS_NUM_THREADS=3 NUMEXPR_NUM_THREADS=3 BLIS_NUM_THREADS=3`)
}

// Which ranks are at a node the table may not know yet, and the node may not for those that ended.
func TestPlaceAmongTheRanksOfANode(t *testing.T) {
	self, spec := jobtest.Node(1), jobs.Spec{Min: 8, Max: 8}
	start := wire.Start{Size: 8, Hosts: []wire.Host{{Node: jobtest.Node(2), Ranks: []int{0, 3}}, {Node: self, Ranks: []int{1, 2, 5}}}}
	for _, c := range []struct {
		here        []int
		rank        int
		local, size int
	}{{nil, 5, 2, 3}, {[]int{4, 5}, 5, 3, 4}, {[]int{6}, 6, 3, 4}, {nil, 7, 3, 4}, {[]int{4, 7}, 1, 0, 5}} {
		b := newBeginning(&participant.DoRun{Claim: participant.ClaimRecord{RankAttempt: wiretest.RA(c.rank, 1), Spec: spec, Start: &start}, Ranks: c.here}, self, nil)
		if b.local != c.local || b.localSize != c.size {
			t.Errorf("%+v: it is %d of %d", c, b.local, b.localSize)
		}
	}
}

// What users say counts, also of what would contradict it.
func TestUsersSayHowManyThreads(t *testing.T) {
	env := told(t, nil, jobs.Spec{Slots: 2, Env: map[string]string{"OMP_NUM_THREADS": "7", "MASTER_PORT": "1234"}}, 0)
	want(t, env, "OMP_NUM_THREADS=7 MASTER_PORT=1234 MKL_NUM_THREADS=")
	want(t, told(t, nil, jobs.Spec{Slots: 2, Env: map[string]string{"MKL_NUM_THREADS": "5"}}, 0), "OMP_NUM_THREADS=2 MKL_NUM_THREADS=5")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if strings.HasSuffix(name, "_IFNAME") {
			t.Errorf("%s is set where the machine is none", name)
		}
	}
}

// A node that others see at the address of a router: its own workers do not find rank 0,
// which is here, by that.
func TestRankZeroBehindARouter(t *testing.T) {
	book := &ports.Book{}
	defer book.Close()
	hosts := []wire.Host{{Node: jobtest.Node(1), Addr: "203.0.113.7", Ranks: []int{0, 1}, Port: 23000}, {Node: jobtest.Node(2), Addr: "127.0.0.9", Ranks: []int{2, 3}}}
	want(t, told(t, book, jobs.Spec{Slots: 1}, 1, hosts...), "MASTER_ADDR=127.0.0.1 MASTER_PORT=23000 GLOO_SOCKET_IFNAME=lo")
	// With nobody else to ask the way to, what is known is told.
	want(t, told(t, book, jobs.Spec{Slots: 1}, 1, hosts[0]), "MASTER_ADDR=203.0.113.7 GLOO_SOCKET_IFNAME=")
	// Rank 0 is not here.
	hosts[0].Ranks, hosts[1].Ranks = []int{1}, []int{0}
	want(t, told(t, book, jobs.Spec{Slots: 1}, 1, hosts[1], hosts[0]), "MASTER_ADDR=127.0.0.9")
}

func TestInterfaceOfARealAddress(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		ip := a.(*net.IPNet).IP
		self := jobtest.Node(1)
		addr, name := new(interfaces).between(self, []wire.Host{{Node: jobtest.Node(2), Addr: "192.0.2.1"}, {Node: self, Addr: ip.String()}})
		if i, err := net.InterfaceByName(name); err != nil || addr != ip.String() || (i.Flags&net.FlagLoopback != 0) != ip.IsLoopback() {
			t.Errorf("%s is of %q (%v), as %s", ip, name, err, addr)
		}
	}
}

// The origin is told of a port with the word that rank 0 is ready.
func TestPortIsTold(t *testing.T) {
	book := &ports.Book{}
	defer book.Close()
	x := New(Config{Workers: Workers{Dir: t.TempDir(), Runner: process.New(process.Config{}), Ports: book}, Log: zerolog.Nop()}, loop.New(zerolog.Nop()), &participant.Participant{})
	id := participant.WorkerID{Job: wiretest.Job, RankAttempt: wiretest.RA(0, 1)}
	port := book.Take(x.root(id), 25000)
	for state, want := range map[jobs.WorkerState]int{jobs.WorkerReady: port, jobs.WorkerPreparing: 0} {
		rep := wire.Report{Job: id.Job, Workers: []wire.WorkerReport{{RankAttempt: id.RankAttempt, State: state}, {RankAttempt: wiretest.RA(1, 1), State: state}}}
		x.fill(&rep, nil, nil)
		if got := rep.Workers[0].Port; got != want || rep.Workers[1].Port != 0 {
			t.Errorf("%s: %d, want %d; of rank 1: %d", state, got, want, rep.Workers[1].Port)
		}
	}
	for spec, want := range map[*jobs.Spec]bool{{Min: 2}: true, {Array: &jobs.Array{}}: false, {Access: jobs.Access{Net: jobs.NetNone}}: false} {
		if listens(id, spec) != want {
			t.Errorf("%+v: want %v", spec, want)
		}
	}
}

func BenchmarkInterfaceOf(b *testing.B) {
	var n interfaces
	for b.Loop() {
		n.between(jobtest.Node(1), []wire.Host{{Node: jobtest.Node(1), Addr: "127.0.0.1"}, {Node: jobtest.Node(2), Addr: "192.0.2.1"}})
		n.between(jobtest.Node(1), []wire.Host{{Node: jobtest.Node(1), Addr: "198.51.100.1"}, {Node: jobtest.Node(2), Addr: "192.0.2.1"}})
	}
}
