package executor

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"zorilla/internal/atomicfile"
	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/netpolicy"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// nodesFile, which the worker cannot touch, names the nodes of its job, a line each, as
// this node was told last.
const nodesFile = "nodes"

// fences are whom the workers of jobs reach that asked for their own nodes alone
// (jobs.NetJob). An origin names nodes, and never addresses: these are what the overlay
// knows of its members here.
type fences struct {
	member func(vicinity.ID) (vicinity.Member, bool)
	log    zerolog.Logger

	mu sync.Mutex
	of map[jobs.ID]*fence
}

// fence is whom those of one job reach.
type fence struct {
	epoch int64
	nodes []vicinity.ID
	addrs map[vicinity.ID][]netip.Addr // of nodes that are, or were, members
}

// update notes the nodes of a job, unless newer ones are known.
func (f *fences) update(job jobs.ID, epoch int64, nodes []vicinity.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	its := f.of[job]
	if its == nil {
		its = &fence{addrs: map[vicinity.ID][]netip.Addr{}}
		if f.of == nil {
			f.of = map[jobs.ID]*fence{}
		}
		f.of[job] = its
	}
	if epoch >= its.epoch {
		its.epoch, its.nodes = epoch, nodes
	}
}

// has reports whether a job asked for its own nodes alone.
func (f *fences) has(job jobs.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[job] != nil
}

func (f *fences) forget(job jobs.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, job)
}

// among lists the addresses of a job's nodes, as far as they are known.
func (f *fences) among(job jobs.ID) (list []netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	its := f.of[job]
	if its == nil {
		return nil
	}
	for _, id := range its.nodes {
		if m, ok := f.member(id); ok {
			its.addrs[id] = addrsOf(m)
		}
		list = append(list, its.addrs[id]...)
	}
	if len(list) > netpolicy.MaxAddrs {
		f.log.Warn().Str("job", string(job)).Int("addresses", len(list)).Int("most", netpolicy.MaxAddrs).Msg("not all nodes of a job are reached")
		list = list[:netpolicy.MaxAddrs]
	}
	return list
}

// addrsOf are the addresses of a member.
func addrsOf(m vicinity.Member) (list []netip.Addr) {
	for _, a := range m.Addrs {
		if at, err := netip.ParseAddrPort(a); err == nil {
			list = append(list, at.Addr())
		}
	}
	return list
}

// nodesOf are the nodes of a job as a worker is told at its start. The tasks of an array do
// not know of each other.
func nodesOf(c *participant.ClaimRecord) (list []vicinity.ID) {
	if c.Spec.Array != nil {
		return nil
	}
	for _, h := range c.Start.Hosts {
		list = append(list, h.Node)
	}
	if c.Start.MasterNode != "" && !slices.Contains(list, c.Start.MasterNode) {
		list = append(list, c.Start.MasterNode)
	}
	return list
}

// around returns whom a worker reaches that is to start, or nil for whatever the node does.
func (f *fences) around(c *participant.ClaimRecord) *process.Among {
	if c.Spec.Net != jobs.NetJob {
		return nil
	}
	f.update(c.Job, c.Start.Epoch, nodesOf(c))
	return &process.Among{Job: string(c.Job), Addrs: f.among(c.Job)}
}

// renew tells workers of a job whom they reach by now. A node that has just come back does
// not know all others yet: what it said in its earlier life holds for a while, see
// netpolicy.Keeper.
func (f *fences) renew(job jobs.ID, procs []*handle) error {
	if len(procs) == 0 {
		return nil
	}
	list, all := f.among(job), error(nil)
	for _, proc := range procs {
		if err := proc.Among(list); err != nil && !errors.Is(err, os.ErrNotExist) { // it has ended
			f.log.Warn().Err(err).Str("job", string(job)).Msg("tell the kernel whom workers reach")
			all = errors.Join(all, err)
		}
	}
	return all
}

// within lists the processes of a job that reach its nodes alone.
func (f *fences) within(job jobs.ID, procs map[participant.WorkerID]*handle) (list []*handle) {
	if !f.has(job) {
		return nil
	}
	for id, proc := range procs {
		if id.Job == job {
			list = append(list, proc)
		}
	}
	return list
}

// saveNodes writes down where the job of a worker is, for the next life of this node.
func saveNodes(root string, nodes []vicinity.ID) error {
	var b strings.Builder
	for _, id := range nodes {
		b.WriteString(string(id) + "\n")
	}
	return (atomicfile.How{Loose: true}).Write(filepath.Join(root, nodesFile), []byte(b.String()))
}

// readopt finds out whom an adopted worker was told to reach, which the kernel has held it
// to meanwhile.
func (f *fences) readopt(root string, c *participant.ClaimRecord) {
	if c.Spec.Net != jobs.NetJob {
		return
	}
	nodes := nodesOf(c)
	b, err := os.ReadFile(filepath.Join(root, nodesFile))
	if err == nil {
		nodes = nil
		for line := range strings.Lines(string(b)) {
			if id := vicinity.ID(strings.TrimSuffix(line, "\n")); id.Valid() {
				nodes = append(nodes, id)
			}
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		f.log.Warn().Err(err).Str("job", string(c.Job)).Msg("read where the job of a worker is")
	}
	f.update(c.Job, writtenEpoch(root, c.Start), nodes)
}
