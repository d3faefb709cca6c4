package primary

import (
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// A job's table is the nodes that its ranks were started on, which its programs
// find in their host files. Each change of it is an epoch. Participants say in
// their reports which epoch their workers know, and the answers bring a newer
// table until they do: a lost answer costs nothing but time.

const (
	// tableEvery is how soon the next change is sent after one was.
	tableEvery = time.Second
	// tableRate bounds what an origin sends of the tables of one job, in bytes
	// a second: a large job, of which every node gets a long table, hears of
	// changes less often.
	tableRate = 4 << 20
	// tableLine is about the size of a host in a table.
	tableLine = 32
)

// tableState is what a primary keeps for its participants.
type tableState struct {
	lastEpoch int64     // up to this epoch participants are sent tables
	sentAt    time.Time // when that began

	hosts []wire.Host // of epoch; in use elsewhere, never changed
	epoch int64
}

// of returns the table of a job by lowest rank.
func (t *tableState) of(r *record.Record) []wire.Host {
	if t.epoch == r.Epoch && t.hosts != nil {
		return t.hosts
	}
	byNode, ports := map[vicinity.ID][]int{}, map[vicinity.ID]int{}
	for i := range r.Ranks {
		if k := &r.Ranks[i]; k.InTable() {
			byNode[k.Node] = append(byNode[k.Node], i)
			ports[k.Node] = max(ports[k.Node], k.Port)
		}
	}
	hosts := make([]wire.Host, 0, len(byNode))
	for id, ranks := range byNode {
		hosts = append(hosts, wire.Host{Node: id, Ranks: ranks, Port: ports[id]})
	}
	slices.SortFunc(hosts, func(a, b wire.Host) int { return a.Ranks[0] - b.Ranks[0] })
	t.hosts, t.epoch = hosts, r.Epoch
	return hosts
}

// next returns the table for a participant that has reported, if its workers
// know an older one and it is time to send it; else nil. A node that says nothing
// of epochs has no use for it.
func (t *tableState) next(now time.Time, r *record.Record, from vicinity.ID, rep *wire.Report) *wire.Table {
	if rep.Epoch <= 0 || rep.Epoch >= r.Epoch || r.Spec.Array != nil || r.Replicated() || r.State.Final() || r.Closing() {
		return nil
	}
	if gone := now.Sub(t.sentAt); t.lastEpoch < r.Epoch && (gone >= tablePace(len(t.of(r))) || gone < 0) {
		t.lastEpoch, t.sentAt = r.Epoch, now
	}
	runs := slices.ContainsFunc(rep.Workers, func(w wire.WorkerReport) bool {
		return w.State == jobs.WorkerRunning && r.Owned(from, w.RankAttempt)
	})
	if rep.Epoch >= t.lastEpoch || !runs {
		return nil
	}
	table := &wire.Table{Epoch: r.Epoch, Hosts: t.of(r)}
	if r.Spec.Net == jobs.NetJob {
		for _, h := range table.Hosts {
			table.Nodes = append(table.Nodes, h.Node)
		}
	}
	return table
}

// startMessage lets ranks start.
func (p *lifecycle) startMessage(ranks []jobs.RankAttempt) wire.Start {
	s := wire.Start{Job: p.Rec.ID, Ranks: ranks, Size: p.Rec.Spec.Min, Hosts: p.table.of(&p.Rec), Epoch: p.Rec.Epoch, MasterNode: p.Rec.Ranks[0].Node}
	if !p.Rec.Spec.FixedSize() {
		s.Size = p.Rec.Ranks.Kept(jobs.WorkerPreparing, jobs.WorkerReady, jobs.WorkerRunning, jobs.WorkerEnded)
	}
	return s
}

// tablePace returns how long a change of a table of so many hosts is kept back
// after one was sent.
func tablePace(hosts int) time.Duration {
	n := float64(hosts)
	return max(tableEvery, time.Duration(n*n*tableLine/tableRate*float64(time.Second)))
}
