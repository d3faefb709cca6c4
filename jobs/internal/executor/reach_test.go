package executor

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// fenced is a worker that notes whom it reaches.
type fenced struct {
	process.Worker
	told []string
	err  error
}

func (f *fenced) Among(addrs []netip.Addr) error {
	f.told = append(f.told, texts(addrs))
	return f.err
}

// Done implements process.Worker.
func (f *fenced) Done() <-chan struct{} { return nil }

func texts(addrs []netip.Addr) string {
	var list []string
	for _, a := range addrs {
		list = append(list, a.String())
	}
	return strings.Join(list, " ")
}

// Workers reach the nodes that their origin names, by the addresses that the overlay knows of
// these, and never by those that it says.
func TestWorkersReachTheirNodes(t *testing.T) {
	members := map[vicinity.ID]vicinity.Member{}
	join := func(i int, addrs ...string) {
		members[jobtest.Node(i)] = vicinity.Member{ID: jobtest.Node(i), Addrs: addrs}
	}
	join(1, "10.0.0.1:5444", "[fd00::1]:5444")
	join(2, "10.0.0.2:5444", "nonsense")
	x := New(Config{Self: members[jobtest.Node(1)], Log: zerolog.Nop(), Member: func(id vicinity.ID) (vicinity.Member, bool) {
		m, ok := members[id]
		return m, ok
	}}, loop.New(zerolog.Nop()), &participant.Participant{})
	host := func(i int) wire.Host {
		return wire.Host{Node: jobtest.Node(i), Addr: fmt.Sprint("192.0.2.", i), Ranks: []int{i}}
	}
	c := participant.ClaimRecord{Job: wiretest.Job, Start: &wire.Start{Epoch: 3, Hosts: []wire.Host{host(1), host(2), host(3)}, Master: "192.0.2.9", MasterNode: jobtest.Node(4)}}
	if a := x.fences.around(&c); a != nil {
		t.Errorf("a job that says nothing reaches %+v", a)
	}
	if x.fences.within(c.Job, x.procs) != nil || x.fences.has(c.Job) {
		t.Error("it is looked after")
	}
	c.Spec.Net = jobs.NetJob
	const first = "10.0.0.1 fd00::1 10.0.0.2"
	if a := x.fences.around(&c); a == nil || a.Job != string(c.Job) || texts(a.Addrs) != first {
		t.Errorf("it reaches %+v", a)
	}
	w := &fenced{}
	procs := []*handle{{Worker: w, job: c.Job}}
	want := func(what, addrs string) {
		t.Helper()
		w.told = nil
		if err := x.fences.renew(c.Job, procs); !errors.Is(err, w.err) {
			t.Errorf("%s: %v, want %v", what, err, w.err)
		}
		if got := strings.Join(w.told, "; "); got != addrs {
			t.Errorf("%s: %q, want %q", what, got, addrs)
		}
	}
	want("while two nodes are not known", first)
	join(3, "10.0.0.3:5444")
	join(4, "10.0.0.4:5444")
	want("when they are", first+" 10.0.0.3 10.0.0.4")
	w.err = errors.New("no")
	want("when the kernel refuses", first+" 10.0.0.3 10.0.0.4")
	w.err = os.ErrNotExist
	if err := x.fences.renew(c.Job, procs); err != nil {
		t.Errorf("a worker that is gone: %v", err)
	}
	w.err = nil
	delete(members, jobtest.Node(2))
	want("when one is not heard of", first+" 10.0.0.3 10.0.0.4")
	x.fences.update(c.Job, 2, []vicinity.ID{jobtest.Node(1)})
	want("after what is older", first+" 10.0.0.3 10.0.0.4")
	x.fences.update(c.Job, 4, []vicinity.ID{jobtest.Node(1), jobtest.Node(5)})
	want("after it has moved", "10.0.0.1 fd00::1")
	array := c
	array.Job, array.Spec.Array = jobs.ID("aaaaa").At(jobtest.Node(1)), &jobs.Array{}
	if a := x.fences.around(&array); a == nil || len(a.Addrs) > 0 {
		t.Errorf("a task reaches %+v", a)
	}
}

// A worker whose kernel could not be told of a table has not got it, and does not read it.
func TestTableThatDoesNotHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := New(Config{Workers: Workers{Dir: t.TempDir()}, Log: zerolog.Nop(), Member: func(vicinity.ID) (vicinity.Member, bool) { return vicinity.Member{}, false }}, loop.New(zerolog.Nop()), &participant.Participant{})
		id := participant.WorkerID{Job: wiretest.Job}
		if err := os.Mkdir(x.root(id), 0o755); err != nil {
			t.Fatal(err)
		}
		w := &fenced{err: errors.New("no")}
		x.procs[id] = &handle{Worker: w, job: id.Job}
		x.fences.update(id.Job, 1, nil)
		for _, want := range []bool{false, true} {
			x.table(participant.DoTable{Worker: id, Table: wire.Table{Epoch: 2, File: "hosts"}})
			synctest.Wait()
			for _, file := range []string{toldFile, "tmp/" + wire.HostFileName} {
				if _, err := os.Lstat(filepath.Join(x.root(id), file)); (err == nil) != want {
					t.Errorf("%s: %v, want it: %t", file, err, want)
				}
			}
			w.err = nil
		}
	})
}

// The next life of a node knows where its workers' jobs are, and tells the kernel what it
// knows of these nodes, also if some of them never come back.
func TestNodesAreKnownAgain(t *testing.T) {
	x := New(Config{Log: zerolog.Nop(), Member: func(id vicinity.ID) (vicinity.Member, bool) {
		return vicinity.Member{Addrs: []string{"10.0.0.2:5444"}}, id == jobtest.Node(2)
	}}, loop.New(zerolog.Nop()), &participant.Participant{})
	root, w := t.TempDir(), &fenced{}
	c := participant.ClaimRecord{Job: wiretest.Job, Spec: jobs.Spec{Access: jobs.Access{Net: jobs.NetJob}}, Start: &wire.Start{Epoch: 1, Hosts: []wire.Host{{Node: jobtest.Node(1)}}}}
	for _, nodes := range [][]vicinity.ID{{jobtest.Node(1)}, {jobtest.Node(2), jobtest.Node(3)}} {
		if nodes[0] != jobtest.Node(1) {
			if err := saveNodes(root, nodes); err != nil {
				t.Fatal(err)
			}
		}
		clear(x.fences.of)
		x.fences.readopt(root, &c)
		if its := x.fences.of[c.Job]; its == nil || !slices.Equal(its.nodes, nodes) {
			t.Errorf("got %+v, want %q", its, nodes)
		}
		if err := x.fences.renew(c.Job, []*handle{{Worker: w}}); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"", "10.0.0.2"}; !slices.Equal(w.told, want) {
		t.Errorf("it was told %q, want %q", w.told, want)
	}
}
